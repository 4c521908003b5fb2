"""Connections to the desk: bounded in number, and in how long they may keep it waiting."""

import asyncio
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

PATIENCE = 15.0
"""Seconds for a request line and its headers, and for the rest of a body that is no longer wanted."""
MOST_WAITING = 200
MOST_CONNECTIONS = 1000


class BoundedHttp(H11Protocol):
    """Whoever opens a connection and does not say what for is hung up on, the longest silent first."""

    patience, most_waiting = PATIENCE, MOST_WAITING
    _deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._watch()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._watch()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._stop_clock()

    def _watch(self) -> None:
        """The clock runs while there is no request to answer; what is sent meanwhile does not wind it up again."""
        answering = self.cycle is not None and not self.cycle.response_complete
        if answering or self.transport.is_closing():
            self._stop_clock()
        elif self._deadline is None:
            self._deadline = self.loop.call_later(self.patience, self._hang_up)
            self._make_room()

    def _make_room(self) -> None:
        others = (each for each in self.connections if isinstance(each, BoundedHttp))
        waiting = {each: each._deadline.when() for each in others if each._deadline is not None}
        if len(waiting) > self.most_waiting:
            min(waiting, key=waiting.__getitem__)._hang_up()

    def _hang_up(self) -> None:
        self._stop_clock()
        self.transport.abort()

    def _stop_clock(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None


BOUNDS: dict[str, Any] = {"http": BoundedHttp, "limit_concurrency": MOST_CONNECTIONS, "timeout_keep_alive": 5}
"""For `uvicorn.Config`. Headers larger than 16 KB are refused by its parser."""
