"""What the desk does without being asked each time: watch-lists, and telling people what has changed.

The doors are `application.watch.WatchlistService`, `application.destinations.DestinationService` and
`application.delivery.DeliveryService`. Researches nothing: what it tells is read from the record.
"""
