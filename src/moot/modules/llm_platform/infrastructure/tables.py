"""What the model platform keeps: its models, every call to them, what was spent, and what was found on the web."""

from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import BigInteger, Float, Index, String, Text, UniqueConstraint, text
from sqlalchemy.orm import Mapped, mapped_column

from moot.shared.infrastructure.execution_context import DEFAULT_WORKSPACE
from moot.shared.infrastructure.kept_texts import KeptJson, KeptText
from moot.shared.infrastructure.tables import Base, CallLog


class LLMConfigRow(Base):
    """A model: `facts` are what anybody may see of it, `secrets` the rest, encrypted; both by the names of fields."""

    __tablename__ = "llm_configs"
    __table_args__ = (UniqueConstraint("workspace_id", "alias"),)

    id: Mapped[UUID] = mapped_column(primary_key=True)
    workspace_id: Mapped[str] = mapped_column(String(64), server_default=DEFAULT_WORKSPACE)
    alias: Mapped[str] = mapped_column(String(64))
    facts: Mapped[dict[str, Any]]
    secrets: Mapped[dict[str, Any]]
    created_at: Mapped[datetime]
    updated_at: Mapped[datetime]


class LLMCallLog(CallLog, Base):
    """Every model call with its full prompt and completion: an intent first, completed by its outcome.

    `completion_text` is null when the call failed; tokens are null when the vendor did not say. `ordinal` counts
    the calls of an agent within its session, `attempt` the requests of one call.
    """

    __tablename__ = "llm_call_logs"
    __table_args__ = (Index(None, "session_id", "created_at"), Index(None, "created_at"))

    caller_module: Mapped[str] = mapped_column(String(50))
    caller_agent: Mapped[str | None] = mapped_column(String(50))
    model_name: Mapped[str] = mapped_column(String(100))
    vendor: Mapped[str] = mapped_column(String(50))
    alias: Mapped[str | None] = mapped_column(String(64))
    prompt_text: Mapped[str] = mapped_column(KeptText)
    system_message: Mapped[str | None] = mapped_column(KeptText(once=True))
    completion_text: Mapped[str | None] = mapped_column(KeptText)
    reasoning_text: Mapped[str | None] = mapped_column(KeptText)
    tool_calls: Mapped[list[dict[str, Any]] | None] = mapped_column(KeptJson)
    finish_reason: Mapped[str | None] = mapped_column(String(50))
    prompt_tokens: Mapped[int | None]
    completion_tokens: Mapped[int | None]
    total_tokens: Mapped[int | None]
    temperature: Mapped[float] = mapped_column(Float)
    ordinal: Mapped[int] = mapped_column(server_default=text("0"))


class SpendingRow(Base):
    """What a session, a batch, or a workspace on one day has spent and set aside. `key` says which of them.

    Cost is counted in billionths of the currency: whole numbers add up exactly.
    """

    __tablename__ = "llm_spending"

    key: Mapped[str] = mapped_column(String(150), primary_key=True)
    tokens_spent: Mapped[int] = mapped_column(BigInteger, server_default=text("0"))
    tokens_reserved: Mapped[int] = mapped_column(BigInteger, server_default=text("0"))
    cost_spent: Mapped[int] = mapped_column(BigInteger, server_default=text("0"))
    cost_reserved: Mapped[int] = mapped_column(BigInteger, server_default=text("0"))


class WebSearchCacheRow(Base):
    __tablename__ = "web_search_cache"

    cache_key: Mapped[str] = mapped_column(String(64), primary_key=True)
    request_params: Mapped[dict[str, Any]]
    response_data: Mapped[str] = mapped_column(Text)
    created_at: Mapped[datetime]
    expires_at: Mapped[datetime] = mapped_column(index=True)
