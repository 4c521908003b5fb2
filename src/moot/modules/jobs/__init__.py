"""What the desk does without being asked each time: running what waits, batches, watch-lists, and telling what has
changed.

The doors are `application.worker.Worker`, `application.batches.BatchService`, `application.watch.WatchlistService`,
`application.destinations.DestinationService` and `application.delivery.DeliveryService`. Researches nothing itself.
"""
