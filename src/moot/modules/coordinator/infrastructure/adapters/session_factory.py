"""How the adapters get at another context: through its container, with the moment and the language of the session."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from datetime import datetime
from functools import partial
from typing import Generic, NamedTuple, TypeVar

from sqlalchemy.ext.asyncio import AsyncSession

from moot.shared.domain.clock import SystemClock
from moot.shared.domain.messages import DEFAULT_LOCALE, Locale
from moot.shared.infrastructure.execution_context import current_execution_ctx

SessionFactory = Callable[[], AbstractAsyncContextManager[AsyncSession | None]]
C = TypeVar("C")


class Gateway(Generic[C]):
    """Its container is made for each call. Whoever in it needs the database opens a session of its own."""

    def __init__(
        self, session_factory: SessionFactory, container_factory: Callable[[SessionFactory], C]
    ) -> None:
        self._container: Callable[[], C] = partial(container_factory, session_factory)


class Setting(NamedTuple):
    """What the session under way says about the moment and the language; outside of one, now and the default."""

    as_of: datetime
    locale: Locale
    experts_asked: int


def current_setting() -> Setting:
    context = current_execution_ctx.get()
    if context is None or context.as_of is None:
        return Setting(SystemClock().now(), DEFAULT_LOCALE, 0)
    return Setting(context.as_of, context.locale, len(context.experts))
