"""What the desk does without being asked each time: running what waits, batches, schedules, watch-lists, and telling
what has changed.

The doors are in `application`: `worker.Worker`, `batches.BatchService`, `schedules.ScheduleService`,
`watch.WatchlistService`, `destinations.DestinationService` and `delivery.DeliveryService`. Researches nothing itself.
"""
