"""What stands before a call to something outside, and keeps it from being made while that is broken."""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import NamedTuple

from moot.shared.domain.errors import Unavailable


class Dependency(NamedTuple):
    """Something outside that is called. `workspace`: whose it is; None: the desk's, and all may know of it."""

    name: str
    workspace: str | None = None


Guard = Callable[[Dependency], AbstractAsyncContextManager[None]]
"""One call to the dependency is made in this block; raises `LeftAlone` instead of entering it."""


class LeftAlone(Unavailable):
    """The call was not made: the dependency failed too often of late. `retry_after` is in seconds."""

    @property
    def retry_after(self) -> int:
        return int(self.details["retry_after"])


def is_outage(error: Exception) -> bool:
    """Whether what was called failed, and not the one who called it."""
    return getattr(error, "outage", False)


@asynccontextmanager
async def let_through(_called: Dependency) -> AsyncIterator[None]:
    """Lets every call through."""
    yield
