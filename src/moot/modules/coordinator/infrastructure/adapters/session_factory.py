"""How the adapters get at another context: a database session of their own, and its container around it."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from datetime import datetime
from typing import NamedTuple

from sqlalchemy.ext.asyncio import AsyncSession

from moot.shared.domain.clock import SystemClock
from moot.shared.domain.messages import DEFAULT_LOCALE, Locale
from moot.shared.infrastructure.execution_context import current_execution_ctx

SessionFactory = Callable[[], AbstractAsyncContextManager[AsyncSession | None]]


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
