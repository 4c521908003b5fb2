"""Rulesets and which of them is active, decisions, and what waits for a person."""

from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import ForeignKey, Index, String, Text
from sqlalchemy.orm import Mapped, mapped_column

from moot.shared.infrastructure.kept_texts import KeptJson
from moot.shared.infrastructure.tables import Base


class RulesetRow(Base):
    """Never changed once it is there: whoever changes a rule makes the next one."""

    __tablename__ = "rulesets"
    __table_args__ = (
        Index(None, "workspace_id", "number", unique=True),
        Index(None, "workspace_id", "digest"),
    )

    id: Mapped[UUID] = mapped_column(primary_key=True)
    workspace_id: Mapped[str] = mapped_column(String(64))
    number: Mapped[int]
    digest: Mapped[str] = mapped_column(String(64))
    rules: Mapped[list[dict[str, Any]]]
    note: Mapped[str] = mapped_column(Text)
    created_by: Mapped[str] = mapped_column(String(100))
    created_at: Mapped[datetime]


class RulesetActivationRow(Base):
    """The newest of a workspace says which ruleset decides there."""

    __tablename__ = "ruleset_activations"
    __table_args__ = (Index(None, "workspace_id", "sequence", unique=True),)

    id: Mapped[UUID] = mapped_column(primary_key=True)
    workspace_id: Mapped[str] = mapped_column(String(64))
    sequence: Mapped[int]
    ruleset_id: Mapped[UUID] = mapped_column(ForeignKey("rulesets.id"))
    activated_by: Mapped[str] = mapped_column(String(100))
    activated_at: Mapped[datetime]


class DecisionRow(Base):
    """Committed before anybody acts on it. Holds what is needed to decide again."""

    __tablename__ = "decisions"
    __table_args__ = (
        Index(None, "session_id", "decided_at"),
        Index(None, "workspace_id", "decided_at", "id"),
        Index(None, "workspace_id", "status", "decided_at"),
    )

    id: Mapped[UUID] = mapped_column(primary_key=True)
    workspace_id: Mapped[str] = mapped_column(String(64))
    session_id: Mapped[UUID | None]
    decision_id: Mapped[str] = mapped_column(String(200))
    decision_type: Mapped[str] = mapped_column(String(50))
    requester: Mapped[str] = mapped_column(String(100))
    status: Mapped[str] = mapped_column(String(20))
    payload: Mapped[dict[str, Any]] = mapped_column(KeptJson(once=True))
    context: Mapped[dict[str, Any]]
    result: Mapped[dict[str, Any]] = mapped_column(KeptJson(once=True))
    ruleset_digest: Mapped[str] = mapped_column(String(64))
    requested_at: Mapped[datetime]
    decided_at: Mapped[datetime]


class EscalationRow(Base):
    """A decision that waits for a person. What was approved is bound to `payload_digest`, and used once."""

    __tablename__ = "escalations"
    __table_args__ = (Index(None, "workspace_id", "status", "requested_at"), Index(None, "session_id"))

    id: Mapped[UUID] = mapped_column(primary_key=True)
    workspace_id: Mapped[str] = mapped_column(String(64))
    session_id: Mapped[UUID | None]
    decision_row_id: Mapped[UUID] = mapped_column(ForeignKey("decisions.id"))
    decision_type: Mapped[str] = mapped_column(String(50))
    payload: Mapped[dict[str, Any]]
    context: Mapped[dict[str, Any]]
    payload_digest: Mapped[str] = mapped_column(String(64))
    why: Mapped[list[str]]
    status: Mapped[str] = mapped_column(String(20))
    requester: Mapped[str] = mapped_column(String(100))
    requested_at: Mapped[datetime]
    expires_at: Mapped[datetime]
    decided_by: Mapped[str | None] = mapped_column(String(100))
    decided_at: Mapped[datetime | None]
    reason: Mapped[str | None] = mapped_column(Text)
    approved_payload: Mapped[dict[str, Any] | None]
    used_at: Mapped[datetime | None]
    used_for: Mapped[str | None] = mapped_column(String(200))
