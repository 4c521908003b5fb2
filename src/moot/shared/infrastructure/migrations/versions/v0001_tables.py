"""All tables of the first release.

Written by hand and independent of the models: a revision says what was true on its day.
"""

from typing import Any

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0001"
down_revision = None

Part = sa.Column[Any] | sa.Constraint | sa.Index
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


def table(name: str, *parts: Part, **how: Any) -> None:
    sa.Table(name, METADATA, *parts, **how)


def table_by_id(name: str, *parts: Part) -> None:
    """One whose rows have an id of their own."""
    table(name, sa.Column("id", sa.Uuid, primary_key=True), *parts)


def call_log() -> list[Part]:
    """What every log of calls has in common."""
    return [
        sa.Column("session_id", sa.Uuid),
        sa.Column("workspace_id", sa.String(64), server_default="default", nullable=False),
        sa.Column("latency_ms", sa.Integer),
        sa.Column("status", sa.String(20), nullable=False),
        sa.Column("error_message", sa.Text),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.Column("cost", sa.Float),
        sa.Column("attempt", sa.Integer, server_default=sa.text("1"), nullable=False),
        sa.Column("request_digest", sa.String(64)),
        sa.Column("origin", sa.String(10), server_default="live", nullable=False),
        sa.Index(None, "session_id", "created_at"),
    ]


table_by_id(
    "research_sessions",
    sa.Column("workspace_id", sa.String(64), server_default="default", nullable=False),
    sa.Column("symbol", sa.String(20), nullable=False),
    sa.Column("status", sa.String(20), nullable=False),
    sa.Column("selected_experts", JSON, nullable=False),
    sa.Column("options", JSON, nullable=False),
    sa.Column("question", JSON),
    sa.Column("trigger_source", sa.String(50), nullable=False),
    sa.Column("requested_by", sa.String(100)),
    sa.Column("as_of", MOMENT, nullable=False),
    sa.Column("locale", sa.String(10), nullable=False),
    sa.Column("verdict_status", sa.String(20)),
    sa.Column("verdict_action", sa.String(10)),
    sa.Column("reason", sa.Text),
    sa.Column("audit_gaps", sa.Integer, server_default=ZERO, nullable=False),
    sa.Column("retry_count", sa.Integer, server_default=ZERO, nullable=False),
    sa.Column("parent_session_id", sa.Uuid, sa.ForeignKey("research_sessions.id")),
    sa.Column("batch_id", sa.Uuid),
    sa.Column("created_at", MOMENT, nullable=False),
    sa.Column("completed_at", MOMENT),
    sa.Column("duration_ms", sa.Integer),
    sa.Column("lease_owner", sa.String(100)),
    sa.Column("lease_token", sa.BigInteger, server_default=ZERO, nullable=False),
    sa.Column("lease_expires_at", MOMENT),
    sa.Column("begun", sa.Integer, server_default=ZERO, nullable=False),
    sa.Column("cancel_requested", sa.Boolean, server_default=NO, nullable=False),
    sa.Column("idempotency_key", sa.String(255)),
    sa.Column("request_digest", sa.String(64)),
    sa.Index(None, "batch_id"),
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
table_by_id(
    "node_executions",
    sa.Column("session_id", sa.Uuid, sa.ForeignKey("research_sessions.id"), nullable=False),
    sa.Column("node_type", sa.String(50), nullable=False),
    sa.Column("status", sa.String(20), nullable=False),
    sa.Column("result_data", JSON),
    sa.Column("narrative_report", sa.Text),
    sa.Column("error_type", sa.String(100)),
    sa.Column("error_message", sa.Text),
    sa.Column("attempts", sa.Integer, server_default=sa.text("1"), nullable=False),
    sa.Column("reused", sa.Boolean, server_default=NO, nullable=False),
    sa.Column("evidence", JSON, nullable=False),
    sa.Column("started_at", MOMENT, nullable=False),
    sa.Column("completed_at", MOMENT),
    sa.Column("duration_ms", sa.Integer),
    sa.Index(None, "session_id"),
)
table(
    "session_events",
    sa.Column("session_id", sa.Uuid, primary_key=True),
    sa.Column("seq", sa.Integer, primary_key=True),
    sa.Column("id", sa.Uuid, nullable=False),
    sa.Column("type", sa.String(30), nullable=False),
    sa.Column("at", MOMENT, nullable=False),
    sa.Column("data", JSON, nullable=False),
    sqlite_with_rowid=False,
)
table_by_id(
    "session_answers",
    sa.Column("session_id", sa.Uuid, nullable=False),
    sa.Column("moot", sa.String(40), nullable=False),
    sa.Column("files", JSON, nullable=False),
    sa.Index(None, "session_id"),
)
table_by_id(
    "llm_call_logs",
    *call_log(),
    sa.Column("caller_module", sa.String(50), nullable=False),
    sa.Column("caller_agent", sa.String(50)),
    sa.Column("model_name", sa.String(100), nullable=False),
    sa.Column("vendor", sa.String(50), nullable=False),
    sa.Column("alias", sa.String(64)),
    sa.Column("prompt_text", sa.Text, nullable=False),
    sa.Column("system_message", sa.Text),
    sa.Column("completion_text", sa.Text),
    sa.Column("reasoning_text", sa.Text),
    sa.Column("tool_calls", JSON),
    sa.Column("finish_reason", sa.String(50)),
    sa.Column("prompt_tokens", sa.Integer),
    sa.Column("completion_tokens", sa.Integer),
    sa.Column("total_tokens", sa.Integer),
    sa.Column("temperature", sa.Float, nullable=False),
    sa.Column("ordinal", sa.Integer, server_default=ZERO, nullable=False),
    sa.Index(None, "created_at"),
)
table_by_id(
    "external_api_call_logs",
    *call_log(),
    sa.Column("service_name", sa.String(50), nullable=False),
    sa.Column("operation", sa.String(100), nullable=False),
    sa.Column("request_params", JSON, nullable=False),
    sa.Column("response_data", sa.Text),
    sa.Column("status_code", sa.Integer),
)
table(
    "texts",
    sa.Column("id", sa.String(16), primary_key=True),
    sa.Column("data", sa.LargeBinary, nullable=False),
)
table(
    "audit_chain",
    sa.Column("session_id", sa.Uuid, primary_key=True),
    sa.Column("seq", sa.Integer, primary_key=True),
    sa.Column("kind", sa.String(30), nullable=False),
    sa.Column("row_id", sa.Uuid, nullable=False),
    sa.Column("digest", sa.LargeBinary(32), nullable=False),
    sa.Column("previous_hash", sa.LargeBinary(32), nullable=False),
    sa.Column("hash", sa.LargeBinary(32), nullable=False),
    sqlite_with_rowid=False,
)
table(
    "audit_heads",
    sa.Column("session_id", sa.Uuid, primary_key=True),
    sa.Column("length", sa.Integer, nullable=False),
    sa.Column("hash", sa.String(64), nullable=False),
    sa.Column("ledger", sa.Uuid),
    sa.Column("closed", sa.Boolean, server_default=NO, nullable=False),
    sa.Column("signature", sa.String(64)),
    sa.Index(None, "ledger"),
)
table_by_id(
    "llm_configs",
    sa.Column("workspace_id", sa.String(64), server_default="default", nullable=False),
    sa.Column("alias", sa.String(64), nullable=False),
    sa.Column("facts", JSON, nullable=False),
    sa.Column("secrets", JSON, nullable=False),
    sa.Column("created_at", MOMENT, nullable=False),
    sa.Column("updated_at", MOMENT, nullable=False),
    sa.UniqueConstraint("workspace_id", "alias"),
)
table(
    "llm_spending",
    sa.Column("key", sa.String(150), primary_key=True),
    sa.Column("tokens_spent", sa.BigInteger, server_default=ZERO, nullable=False),
    sa.Column("tokens_reserved", sa.BigInteger, server_default=ZERO, nullable=False),
    sa.Column("cost_spent", sa.BigInteger, server_default=ZERO, nullable=False),
    sa.Column("cost_reserved", sa.BigInteger, server_default=ZERO, nullable=False),
)
table(
    "rate_limits",
    sa.Column("key", sa.String(150), primary_key=True),
    sa.Column("uses", JSON, nullable=False),
)
table(
    "web_search_cache",
    sa.Column("cache_key", sa.String(64), primary_key=True),
    sa.Column("request_params", JSON, nullable=False),
    sa.Column("response_data", sa.Text, nullable=False),
    sa.Column("created_at", MOMENT, nullable=False),
    sa.Column("expires_at", MOMENT, nullable=False),
    sa.Index(None, "expires_at"),
)
table(
    "api_keys",
    sa.Column("id", sa.String(8), primary_key=True),
    sa.Column("key_hash", sa.String(64), nullable=False),
    sa.Column("name", sa.String(100), nullable=False),
    sa.Column("scopes", JSON, nullable=False),
    sa.Column("workspace_id", sa.String(64), server_default="default", nullable=False),
    sa.Column("created_at", MOMENT, nullable=False),
    sa.Column("revoked_at", MOMENT),
    sa.Column("last_used_at", MOMENT),
)
table(
    "console_logins",
    sa.Column("token_hash", sa.String(64), primary_key=True),
    sa.Column("key_id", sa.String(8), nullable=False),
    sa.Column("expires_at", MOMENT, nullable=False),
    sa.Index(None, "expires_at"),
)
table_by_id(
    "rulesets",
    sa.Column("workspace_id", sa.String(64), nullable=False),
    sa.Column("number", sa.Integer, nullable=False),
    sa.Column("digest", sa.String(64), nullable=False),
    sa.Column("rules", JSON, nullable=False),
    sa.Column("note", sa.Text, nullable=False),
    sa.Column("created_by", sa.String(100), nullable=False),
    sa.Column("created_at", MOMENT, nullable=False),
    sa.Index(None, "workspace_id", "digest"),
    sa.Index(None, "workspace_id", "number", unique=True),
)
table_by_id(
    "ruleset_activations",
    sa.Column("workspace_id", sa.String(64), nullable=False),
    sa.Column("sequence", sa.Integer, nullable=False),
    sa.Column("ruleset_id", sa.Uuid, sa.ForeignKey("rulesets.id"), nullable=False),
    sa.Column("activated_by", sa.String(100), nullable=False),
    sa.Column("activated_at", MOMENT, nullable=False),
    sa.Index(None, "workspace_id", "sequence", unique=True),
)
table_by_id(
    "decisions",
    sa.Column("workspace_id", sa.String(64), nullable=False),
    sa.Column("session_id", sa.Uuid),
    sa.Column("decision_id", sa.String(200), nullable=False),
    sa.Column("decision_type", sa.String(50), nullable=False),
    sa.Column("requester", sa.String(100), nullable=False),
    sa.Column("status", sa.String(20), nullable=False),
    sa.Column("payload", JSON, nullable=False),
    sa.Column("context", JSON, nullable=False),
    sa.Column("result", JSON, nullable=False),
    sa.Column("ruleset_digest", sa.String(64), nullable=False),
    sa.Column("requested_at", MOMENT, nullable=False),
    sa.Column("decided_at", MOMENT, nullable=False),
    sa.Index(None, "session_id", "decided_at"),
    sa.Index(None, "workspace_id", "decided_at", "id"),
    sa.Index(None, "workspace_id", "status", "decided_at"),
)
table_by_id(
    "escalations",
    sa.Column("workspace_id", sa.String(64), nullable=False),
    sa.Column("session_id", sa.Uuid),
    sa.Column("decision_row_id", sa.Uuid, sa.ForeignKey("decisions.id"), nullable=False),
    sa.Column("decision_type", sa.String(50), nullable=False),
    sa.Column("payload", JSON, nullable=False),
    sa.Column("context", JSON, nullable=False),
    sa.Column("payload_digest", sa.String(64), nullable=False),
    sa.Column("why", JSON, nullable=False),
    sa.Column("status", sa.String(20), nullable=False),
    sa.Column("requester", sa.String(100), nullable=False),
    sa.Column("requested_at", MOMENT, nullable=False),
    sa.Column("expires_at", MOMENT, nullable=False),
    sa.Column("decided_by", sa.String(100)),
    sa.Column("decided_at", MOMENT),
    sa.Column("reason", sa.Text),
    sa.Column("approved_payload", JSON),
    sa.Column("used_at", MOMENT),
    sa.Column("used_for", sa.String(200)),
    sa.Index(None, "session_id"),
    sa.Index(None, "workspace_id", "status", "requested_at"),
)
table_by_id(
    "conversations",
    sa.Column("workspace_id", sa.String(64), nullable=False),
    sa.Column("requested_by", sa.String(100)),
    sa.Column("title", sa.Text, nullable=False),
    sa.Column("status", sa.String(20), nullable=False),
    sa.Column("turns", JSON, nullable=False),
    sa.Column("created_at", MOMENT, nullable=False),
    sa.Column("updated_at", MOMENT, nullable=False),
    sa.Column("lease_owner", sa.String(100)),
    sa.Column("lease_token", sa.BigInteger, server_default=ZERO, nullable=False),
    sa.Column("lease_expires_at", MOMENT),
    sa.Index(None, "workspace_id", "updated_at"),
)
table_by_id(
    "batches",
    sa.Column("workspace_id", sa.String(64), nullable=False),
    sa.Column("name", sa.String(64), nullable=False),
    sa.Column("status", sa.String(20), nullable=False),
    sa.Column("as_of", MOMENT, nullable=False),
    sa.Column("request", JSON, nullable=False),
    sa.Column("requested_by", sa.String(100)),
    sa.Column("reason", sa.Text),
    sa.Column("over_limit", sa.Boolean, server_default=NO, nullable=False),
    sa.Column("left_out", JSON, nullable=False),
    sa.Column("shares", sa.Integer, nullable=False),
    sa.Column("symbols", sa.LargeBinary, nullable=False),
    sa.Column("screening", sa.LargeBinary),
    sa.Column("screened", sa.Integer),
    sa.Column("created_at", MOMENT, nullable=False),
    sa.Column("ended_at", MOMENT),
    sa.Column("lease_owner", sa.String(100)),
    sa.Column("lease_token", sa.BigInteger, server_default=ZERO, nullable=False),
    sa.Column("lease_expires_at", MOMENT),
    sa.Index(None, "ended_at", "status"),
    sa.Index(None, "workspace_id", "created_at", "id"),
    sa.Index(None, "workspace_id", "name", "created_at"),
)
table(
    "watched_symbols",
    sa.Column("workspace_id", sa.String(64), primary_key=True),
    sa.Column("list_name", sa.String(64), primary_key=True),
    sa.Column("symbol", sa.String(20), primary_key=True),
    sa.Column("added_at", MOMENT, nullable=False),
)
table_by_id(
    "schedules",
    sa.Column("workspace_id", sa.String(64), nullable=False),
    sa.Column("name", sa.String(64), nullable=False),
    sa.Column("facts", JSON, nullable=False),
    sa.Column("paused", sa.Boolean, server_default=NO, nullable=False),
    sa.Column("next_due", MOMENT, nullable=False),
    sa.Column("created_at", MOMENT, nullable=False),
    sa.UniqueConstraint("workspace_id", "name"),
    sa.Index(None, "next_due"),
)
table_by_id(
    "schedule_runs",
    sa.Column("schedule_id", sa.Uuid, sa.ForeignKey("schedules.id", ondelete="CASCADE"), nullable=False),
    sa.Column("due_at", MOMENT, nullable=False),
    sa.Column("status", sa.String(20), nullable=False),
    sa.Column("facts", JSON, nullable=False),
    sa.Column("lease_owner", sa.String(100)),
    sa.Column("lease_token", sa.BigInteger, server_default=ZERO, nullable=False),
    sa.Column("lease_expires_at", MOMENT),
    sa.Index(None, "schedule_id", "due_at"),
    sa.Index(None, "status"),
)
table_by_id(
    "notify_destinations",
    sa.Column("workspace_id", sa.String(64), nullable=False),
    sa.Column("name", sa.String(64), nullable=False),
    sa.Column("facts", JSON, nullable=False),
    sa.Column("secrets", JSON, nullable=False),
    sa.Column("created_at", MOMENT, nullable=False),
    sa.UniqueConstraint("workspace_id", "name"),
)
table_by_id(
    "notify_outbox",
    sa.Column("workspace_id", sa.String(64), nullable=False),
    sa.Column("destination_id", sa.Uuid, nullable=False),
    sa.Column("occasion", sa.String(20), nullable=False),
    sa.Column("session_id", sa.Uuid),
    sa.Column("about", JSON, nullable=False),
    sa.Column("status", sa.String(20), nullable=False),
    sa.Column("attempts", sa.Integer, server_default=ZERO, nullable=False),
    sa.Column("due_at", MOMENT, nullable=False),
    sa.Column("error", sa.Text),
    sa.Column("created_at", MOMENT, nullable=False),
    sa.Index(None, "status", "due_at"),
    sa.Index(None, "workspace_id", "destination_id", "status"),
)
