"""What the desk does without being asked each time: running what waits, watch-lists, and telling what has changed.

The doors are `application.worker.Worker`, `application.watch.WatchlistService`,
`application.destinations.DestinationService` and `application.delivery.DeliveryService`. Researches nothing itself.
"""
