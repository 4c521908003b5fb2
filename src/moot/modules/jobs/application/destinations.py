"""Where notifications go: which places there are, how they fare, and whether one can be reached."""

from collections.abc import Sequence
from uuid import uuid4

from moot.modules.jobs.domain.destinations import (
    KINDS,
    OCCASIONS,
    Destination,
    DestinationBody,
    DestinationView,
    Notifications,
    Send,
    Tally,
    find_place,
)
from moot.modules.jobs.domain.notices import compose_test
from moot.modules.jobs.domain.texts import SAY
from moot.shared.domain.clock import Clock
from moot.shared.domain.errors import Conflict, NotFound, Unavailable
from moot.shared.domain.messages import nearest
from moot.shared.domain.validation import suggest

__all__ = ["KINDS", "OCCASIONS", "DestinationBody", "DestinationService", "DestinationView"]

Views = list[DestinationView]


class DestinationService:
    def __init__(self, store: Notifications, send: Send, clock: Clock, workspace: str) -> None:
        self._store, self._send = store, send
        self._clock, self._workspace = clock, workspace

    async def list(self) -> Views:
        tallies = await self._store.count(self._workspace)
        known = await self._store.list(self._workspace)
        return [DestinationView.of(one, tallies.get(one.id, Tally())) for one in known]

    async def add(self, body: DestinationBody) -> DestinationView:
        body.check()
        added = Destination(
            **dict(body),
            id=uuid4(),
            workspace_id=self._workspace,
            created_at=self._clock.now(),
            place=find_place(body.kind, body.url.get_secret_value()),
        )
        if not await self._store.add(added):
            raise Conflict(SAY("destination.duplicate", name=body.name), name=body.name)
        return DestinationView.of(added, Tally())

    async def remove(self, name: str) -> DestinationView:
        found = await self._require(name)
        await self._store.remove(found)
        return DestinationView.of(found, Tally())

    async def test(self, name: str) -> DestinationView:
        """Send something there now. Raises `DeliveryFailed`."""
        found = await self._require(name)
        refuse_unreadable(found)
        now = self._clock.now()
        await self._send(found, compose_test(uuid4(), now, self._workspace, found.name, found.locale))
        return DestinationView.of(found, Tally())

    async def _require(self, name: str) -> Destination:
        known: Sequence[Destination] = await self._store.list(self._workspace)
        for one in known:
            if one.name == name:
                return one
        said = SAY("destination.not_found", name=name)
        raise NotFound(suggest(said, nearest(name, [one.name for one in known])), name=name)


def refuse_unreadable(destination: Destination) -> None:
    if destination.unreadable:
        raise Unavailable(SAY("destination.unreadable", name=destination.name))
