"""What a session is, carried implicitly to whatever runs on its behalf (never through port signatures).

The coordinator sets it at the entry of a run and resets it at the exit; model and data calls read it to know
which session they belong to. asyncio gives each parallel node its own copy.
"""

from contextvars import ContextVar
from datetime import datetime

from pydantic import BaseModel, ConfigDict

from moot.shared.domain.messages import DEFAULT_LOCALE, Locale

DEFAULT_WORKSPACE = "default"
"""Every row belongs to a workspace; until there are others, to this one."""


class ExecutionContext(BaseModel):
    """`session_id` is empty when nothing is persisted; `as_of` is the session's frozen clock."""

    model_config = ConfigDict(frozen=True)

    session_id: str
    as_of: datetime | None = None
    locale: Locale = DEFAULT_LOCALE
    workspace: str = DEFAULT_WORKSPACE
    experts: tuple[str, ...] = ()
    """Who was asked, so that the judge can tell whether enough of them answered."""


current_execution_ctx: ContextVar[ExecutionContext | None] = ContextVar("current_execution_ctx", default=None)
