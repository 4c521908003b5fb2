"""All tables of the first release.

Written by hand and independent of the models: a revision says what was true on its day.
"""

from typing import Any

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql
from sqlalchemy.schema import SchemaItem

revision = "0001"
down_revision = None

MOMENT = sa.DateTime(timezone=True)
JSON = sa.JSON().with_variant(postgresql.JSONB(), "postgresql")
ZERO, NO = sa.text("0"), sa.false()
METADATA = sa.MetaData(
    naming_convention={
        "pk": "pk_%(table_name)s",
        "fk": "fk_%(table_name)s_%(column_0_name)s",
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
    }
)


def upgrade() -> None:
    METADATA.create_all(op.get_bind(), checkfirst=False)


def downgrade() -> None:
    METADATA.drop_all(op.get_bind(), checkfirst=False)


def add_table(name: str, *parts: SchemaItem) -> None:
    """Its key is an id, unless it names another."""
    keys = [part for part in parts if isinstance(part, sa.Column) and part.primary_key]
    sa.Table(name, METADATA, *(() if keys else [sa.Column("id", sa.Uuid, primary_key=True)]), *parts)


def needed(kind: Any, *names: str, default: Any = None) -> list[sa.Column[Any]]:
    """Columns of one type that always hold something."""
    return [sa.Column(name, kind, server_default=default, nullable=False) for name in names]


def optional(kind: Any, *names: str) -> list[sa.Column[Any]]:
    return [sa.Column(name, kind) for name in names]


def strings(*, nullable: bool = False, **lengths: int) -> list[sa.Column[str]]:
    """Short texts, and how long each may be."""
    return [sa.Column(name, sa.String(most), nullable=nullable) for name, most in lengths.items()]


def lease() -> list[sa.Column[Any]]:
    """Who works on a row."""
    token = needed(sa.BigInteger, "lease_token", default=ZERO)
    return [*strings(lease_owner=100, nullable=True), *token, *optional(MOMENT, "lease_expires_at")]


def call_log() -> list[sa.Column[Any] | sa.Index]:
    """What every log of calls has in common."""
    return [
        *optional(sa.Uuid, "session_id"),
        *needed(sa.String(64), "workspace_id", default="default"),
        *optional(sa.Integer, "latency_ms"),
        *strings(status=20),
        *optional(sa.Text, "error_message"),
        *needed(MOMENT, "created_at"),
        *optional(sa.Float, "cost"),
        *needed(sa.Integer, "attempt", default=sa.text("1")),
        *strings(request_digest=64, nullable=True),
        *needed(sa.String(10), "origin", default="live"),
        sa.Index(None, "session_id", "created_at"),
    ]


add_table(
    "research_sessions",
    *needed(sa.String(64), "workspace_id", default="default"),
    *strings(symbol=20, status=20, trigger_source=50, locale=10),
    *needed(JSON, "selected_experts", "options"),
    *optional(JSON, "question"),
    *strings(requested_by=100, verdict_status=20, verdict_action=10, nullable=True),
    *strings(idempotency_key=255, request_digest=64, nullable=True),
    *needed(MOMENT, "as_of", "created_at"),
    *optional(sa.Text, "reason"),
    *needed(sa.Integer, "audit_gaps", "retry_count", "begun", default=ZERO),
    sa.Column("parent_session_id", sa.Uuid, sa.ForeignKey("research_sessions.id")),
    *optional(MOMENT, "completed_at"),
    *optional(sa.Integer, "duration_ms"),
    *lease(),
    *needed(sa.Boolean, "cancel_requested", default=NO),
    sa.Index(None, "parent_session_id", "created_at", "id"),
    sa.Index(None, "status", "lease_expires_at"),
    sa.Index(None, "symbol", "created_at"),
    sa.Index(None, "workspace_id", "created_at", "id"),
    sa.Index(None, "workspace_id", "idempotency_key", unique=True),
    sa.Index(None, "workspace_id", "status", "created_at", "id"),
    sa.Index(None, "workspace_id", "symbol", "created_at", "id"),
    sa.Index(None, "workspace_id", "trigger_source", "created_at", "id"),
    sa.Index(None, "workspace_id", "verdict_action", "created_at", "id"),
)
add_table(
    "node_executions",
    sa.Column("session_id", sa.Uuid, sa.ForeignKey("research_sessions.id"), nullable=False),
    *strings(node_type=50, status=20),
    *optional(JSON, "result_data"),
    *optional(sa.Text, "narrative_report", "error_message"),
    *strings(error_type=100, nullable=True),
    *needed(sa.Integer, "attempts", default=sa.text("1")),
    *needed(sa.Boolean, "reused", default=NO),
    *needed(JSON, "evidence"),
    *needed(MOMENT, "started_at"),
    *optional(MOMENT, "completed_at"),
    *optional(sa.Integer, "duration_ms"),
    sa.Index(None, "session_id"),
)
add_table(
    "session_events",
    sa.Column("session_id", sa.Uuid, primary_key=True),
    sa.Column("seq", sa.Integer, primary_key=True),
    *needed(sa.Uuid, "id"),
    *strings(type=30),
    *needed(MOMENT, "at"),
    *needed(JSON, "data"),
)
add_table(
    "session_answers",
    *needed(sa.Uuid, "session_id"),
    *strings(moot=40),
    *needed(JSON, "files"),
    sa.Index(None, "session_id"),
)
add_table(
    "llm_call_logs",
    *call_log(),
    *strings(caller_module=50, vendor=50, model_name=100),
    *strings(caller_agent=50, finish_reason=50, alias=64, nullable=True),
    *needed(sa.Text, "prompt_text"),
    *optional(sa.Text, "system_message", "completion_text", "reasoning_text"),
    *optional(JSON, "tool_calls"),
    *optional(sa.Integer, "prompt_tokens", "completion_tokens", "total_tokens"),
    *needed(sa.Float, "temperature"),
    *needed(sa.Integer, "ordinal", default=ZERO),
    sa.Index(None, "created_at"),
)
add_table(
    "external_api_call_logs",
    *call_log(),
    *strings(service_name=50, operation=100),
    *needed(JSON, "request_params"),
    *optional(sa.Text, "response_data"),
    *optional(sa.Integer, "status_code"),
)
add_table(
    "audit_chain",
    sa.Column("session_id", sa.Uuid, primary_key=True),
    sa.Column("seq", sa.Integer, primary_key=True),
    *strings(kind=30, digest=64, previous_hash=64, hash=64),
    *needed(sa.Uuid, "row_id"),
)
add_table(
    "audit_heads",
    sa.Column("session_id", sa.Uuid, primary_key=True),
    *needed(sa.Integer, "length"),
    *strings(hash=64),
    *optional(sa.Uuid, "ledger"),
    *needed(sa.Boolean, "closed", default=NO),
    *strings(signature=64, nullable=True),
    sa.Index(None, "ledger"),
)
add_table(
    "llm_configs",
    *needed(sa.String(64), "workspace_id", default="default"),
    *strings(alias=64, vendor=50, provider_type=20, model_name=100),
    *needed(sa.Text, "base_url", "encrypted_api_key", "description"),
    *needed(sa.Integer, "priority"),
    *needed(JSON, "tags", "capabilities"),
    *optional(sa.Float, "price_in", "price_out", "timeout"),
    *optional(sa.Integer, "context_size", "concurrency"),
    *optional(sa.Date, "knowledge_cutoff"),
    *optional(sa.Text, "encrypted_proxy"),
    *needed(sa.Boolean, "is_active", default=sa.true()),
    *needed(sa.Boolean, "public_only", default=NO),
    *needed(MOMENT, "created_at", "updated_at"),
    sa.UniqueConstraint("workspace_id", "alias"),
)
add_table(
    "llm_spending",
    sa.Column("key", sa.String(150), primary_key=True),
    *needed(sa.BigInteger, "tokens_spent", "tokens_reserved", "cost_spent", "cost_reserved", default=ZERO),
)
add_table(
    "web_search_cache",
    sa.Column("cache_key", sa.String(64), primary_key=True),
    *needed(JSON, "request_params"),
    *needed(sa.Text, "response_data"),
    *needed(MOMENT, "created_at", "expires_at"),
    sa.Index(None, "expires_at"),
)
add_table(
    "api_keys",
    sa.Column("id", sa.String(8), primary_key=True),
    *strings(key_hash=64, name=100),
    *needed(JSON, "scopes"),
    *needed(sa.String(64), "workspace_id", default="default"),
    *needed(MOMENT, "created_at"),
    *optional(MOMENT, "revoked_at", "last_used_at"),
)
add_table(
    "rulesets",
    *strings(workspace_id=64, digest=64, created_by=100),
    *needed(sa.Integer, "number"),
    *needed(JSON, "rules"),
    *needed(sa.Text, "note"),
    *needed(MOMENT, "created_at"),
    sa.Index(None, "workspace_id", "digest"),
    sa.Index(None, "workspace_id", "number", unique=True),
)
add_table(
    "ruleset_activations",
    *strings(workspace_id=64, activated_by=100),
    *needed(sa.Integer, "sequence"),
    sa.Column("ruleset_id", sa.Uuid, sa.ForeignKey("rulesets.id"), nullable=False),
    *needed(MOMENT, "activated_at"),
    sa.Index(None, "workspace_id", "sequence", unique=True),
)
add_table(
    "decisions",
    *strings(workspace_id=64, ruleset_digest=64, decision_id=200, decision_type=50, requester=100, status=20),
    *optional(sa.Uuid, "session_id"),
    *needed(JSON, "payload", "context", "result"),
    *needed(MOMENT, "requested_at", "decided_at"),
    sa.Index(None, "session_id", "decided_at"),
    sa.Index(None, "workspace_id", "decided_at", "id"),
    sa.Index(None, "workspace_id", "status", "decided_at"),
)
add_table(
    "escalations",
    *strings(workspace_id=64, payload_digest=64, decision_type=50, status=20, requester=100),
    *optional(sa.Uuid, "session_id"),
    sa.Column("decision_row_id", sa.Uuid, sa.ForeignKey("decisions.id"), nullable=False),
    *needed(JSON, "payload", "context", "why"),
    *needed(MOMENT, "requested_at", "expires_at"),
    *strings(decided_by=100, used_for=200, nullable=True),
    *optional(MOMENT, "decided_at", "used_at"),
    *optional(sa.Text, "reason"),
    *optional(JSON, "approved_payload"),
    sa.Index(None, "session_id"),
    sa.Index(None, "workspace_id", "status", "requested_at"),
)
add_table(
    "conversations",
    *strings(workspace_id=64, status=20),
    *strings(requested_by=100, nullable=True),
    *needed(sa.Text, "title"),
    *needed(JSON, "turns"),
    *needed(MOMENT, "created_at", "updated_at"),
    *lease(),
    sa.Index(None, "workspace_id", "updated_at"),
)
