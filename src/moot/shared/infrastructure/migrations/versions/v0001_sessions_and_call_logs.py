"""Research sessions, the journal of their nodes, and the logs of model and external calls.

Written by hand and independent of the models: a revision says what was true on its day.
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0001"
down_revision = None

MOMENT = sa.DateTime(timezone=True)
JSON = sa.JSON().with_variant(postgresql.JSONB(), "postgresql")


def upgrade() -> None:
    create_research_sessions()
    create_node_executions()
    create_llm_call_logs()
    create_external_api_call_logs()


def downgrade() -> None:
    for table in ("external_api_call_logs", "llm_call_logs", "node_executions", "research_sessions"):
        op.drop_table(table)


def create_research_sessions() -> None:
    op.create_table(
        "research_sessions",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("workspace_id", sa.String(64), server_default="default", nullable=False),
        sa.Column("symbol", sa.String(20), nullable=False),
        sa.Column("status", sa.String(20), nullable=False),
        sa.Column("selected_experts", JSON, nullable=False),
        sa.Column("options", JSON, nullable=False),
        sa.Column("trigger_source", sa.String(50), nullable=False),
        sa.Column("as_of", MOMENT, nullable=False),
        sa.Column("locale", sa.String(10), nullable=False),
        sa.Column("verdict_status", sa.String(20)),
        sa.Column("reason", sa.Text()),
        sa.Column("audit_gaps", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("retry_count", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("parent_session_id", sa.Uuid()),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.Column("completed_at", MOMENT),
        sa.Column("duration_ms", sa.Integer()),
        sa.Column("lease_owner", sa.String(100)),
        sa.Column("lease_token", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("lease_expires_at", MOMENT),
        sa.PrimaryKeyConstraint("id", name="pk_research_sessions"),
        sa.ForeignKeyConstraint(
            ["parent_session_id"],
            ["research_sessions.id"],
            name="fk_research_sessions_parent_session_id",
        ),
    )
    op.create_index("ix_research_sessions_symbol_created_at", "research_sessions", ["symbol", "created_at"])
    op.create_index(
        "ix_research_sessions_workspace_id_created_at_id",
        "research_sessions",
        ["workspace_id", "created_at", "id"],
    )


def create_node_executions() -> None:
    op.create_table(
        "node_executions",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("session_id", sa.Uuid(), nullable=False),
        sa.Column("node_type", sa.String(50), nullable=False),
        sa.Column("status", sa.String(20), nullable=False),
        sa.Column("result_data", JSON),
        sa.Column("narrative_report", sa.Text()),
        sa.Column("error_type", sa.String(100)),
        sa.Column("error_message", sa.Text()),
        sa.Column("attempts", sa.Integer(), server_default=sa.text("1"), nullable=False),
        sa.Column("reused", sa.Boolean(), server_default=sa.false(), nullable=False),
        sa.Column("evidence", JSON, nullable=False),
        sa.Column("started_at", MOMENT, nullable=False),
        sa.Column("completed_at", MOMENT),
        sa.Column("duration_ms", sa.Integer()),
        sa.PrimaryKeyConstraint("id", name="pk_node_executions"),
        sa.ForeignKeyConstraint(
            ["session_id"], ["research_sessions.id"], name="fk_node_executions_session_id"
        ),
    )
    op.create_index("ix_node_executions_session_id", "node_executions", ["session_id"])


def create_llm_call_logs() -> None:
    op.create_table(
        "llm_call_logs",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("session_id", sa.Uuid()),
        sa.Column("workspace_id", sa.String(64), server_default="default", nullable=False),
        sa.Column("caller_module", sa.String(50), nullable=False),
        sa.Column("caller_agent", sa.String(50)),
        sa.Column("model_name", sa.String(100), nullable=False),
        sa.Column("vendor", sa.String(50), nullable=False),
        sa.Column("prompt_text", sa.Text(), nullable=False),
        sa.Column("system_message", sa.Text()),
        sa.Column("completion_text", sa.Text()),
        sa.Column("prompt_tokens", sa.Integer()),
        sa.Column("completion_tokens", sa.Integer()),
        sa.Column("total_tokens", sa.Integer()),
        sa.Column("temperature", sa.Float(), nullable=False),
        sa.Column("latency_ms", sa.Integer(), nullable=False),
        sa.Column("status", sa.String(20), nullable=False),
        sa.Column("error_message", sa.Text()),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_llm_call_logs"),
    )
    op.create_index("ix_llm_call_logs_session_id_created_at", "llm_call_logs", ["session_id", "created_at"])


def create_external_api_call_logs() -> None:
    op.create_table(
        "external_api_call_logs",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("session_id", sa.Uuid()),
        sa.Column("workspace_id", sa.String(64), server_default="default", nullable=False),
        sa.Column("service_name", sa.String(50), nullable=False),
        sa.Column("operation", sa.String(100), nullable=False),
        sa.Column("request_params", JSON, nullable=False),
        sa.Column("response_data", sa.Text()),
        sa.Column("status_code", sa.Integer()),
        sa.Column("latency_ms", sa.Integer(), nullable=False),
        sa.Column("status", sa.String(20), nullable=False),
        sa.Column("error_message", sa.Text()),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_external_api_call_logs"),
    )
    op.create_index(
        "ix_external_api_call_logs_session_id_created_at",
        "external_api_call_logs",
        ["session_id", "created_at"],
    )
