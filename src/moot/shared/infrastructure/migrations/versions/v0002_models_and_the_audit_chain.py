"""Models, spending and web search; calls as intent and outcome; the audit chain."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0002"
down_revision = "0001"

MOMENT = sa.DateTime(timezone=True)
JSON = sa.JSON().with_variant(postgresql.JSONB(), "postgresql")
NEW_TABLES = ("audit_heads", "audit_chain", "web_search_cache", "llm_spending", "llm_configs")
CALL_LOGS = ("llm_call_logs", "external_api_call_logs")


def upgrade() -> None:
    for table in CALL_LOGS:
        with op.batch_alter_table(table) as batch:
            batch.alter_column("latency_ms", existing_type=sa.Integer(), nullable=True)
            batch.add_column(sa.Column("cost", sa.Float()))
            batch.add_column(sa.Column("attempt", sa.Integer(), server_default=sa.text("1"), nullable=False))
            batch.add_column(sa.Column("request_digest", sa.String(64)))
            batch.add_column(sa.Column("origin", sa.String(10), server_default="live", nullable=False))
    with op.batch_alter_table("llm_call_logs") as batch:
        batch.add_column(sa.Column("alias", sa.String(64)))
        batch.add_column(sa.Column("reasoning_text", sa.Text()))
        batch.add_column(sa.Column("tool_calls", JSON))
        batch.add_column(sa.Column("finish_reason", sa.String(50)))
        batch.add_column(sa.Column("ordinal", sa.Integer(), server_default=sa.text("0"), nullable=False))
    op.create_index("ix_llm_call_logs_created_at", "llm_call_logs", ["created_at"])
    create_llm_configs()
    create_llm_spending()
    create_web_search_cache()
    create_audit_chain()


def downgrade() -> None:
    """A call that was never completed has no latency, and the older schema no place for that: it becomes 0."""
    for table in NEW_TABLES:
        op.drop_table(table)
    op.drop_index("ix_llm_call_logs_created_at", "llm_call_logs")
    for table in CALL_LOGS:
        op.execute(f"UPDATE {table} SET latency_ms = 0 WHERE latency_ms IS NULL")  # noqa: S608
        with op.batch_alter_table(table) as batch:
            batch.alter_column("latency_ms", existing_type=sa.Integer(), nullable=False)
            for column in ("cost", "attempt", "request_digest", "origin"):
                batch.drop_column(column)
    with op.batch_alter_table("llm_call_logs") as batch:
        for column in ("alias", "reasoning_text", "tool_calls", "finish_reason", "ordinal"):
            batch.drop_column(column)


def create_llm_configs() -> None:
    op.create_table(
        "llm_configs",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("workspace_id", sa.String(64), server_default="default", nullable=False),
        sa.Column("alias", sa.String(64), nullable=False),
        sa.Column("vendor", sa.String(50), nullable=False),
        sa.Column("provider_type", sa.String(20), nullable=False),
        sa.Column("base_url", sa.Text(), nullable=False),
        sa.Column("model_name", sa.String(100), nullable=False),
        sa.Column("encrypted_api_key", sa.Text(), nullable=False),
        sa.Column("description", sa.Text(), nullable=False),
        sa.Column("priority", sa.Integer(), nullable=False),
        sa.Column("tags", JSON, nullable=False),
        sa.Column("price_in", sa.Float()),
        sa.Column("price_out", sa.Float()),
        sa.Column("context_size", sa.Integer()),
        sa.Column("knowledge_cutoff", sa.Date()),
        sa.Column("capabilities", JSON, nullable=False),
        sa.Column("encrypted_proxy", sa.Text()),
        sa.Column("is_active", sa.Boolean(), server_default=sa.true(), nullable=False),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.Column("updated_at", MOMENT, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_llm_configs"),
        sa.UniqueConstraint("workspace_id", "alias", name="uq_llm_configs_workspace_id_alias"),
    )


def create_llm_spending() -> None:
    counters = ("tokens_spent", "tokens_reserved", "cost_spent", "cost_reserved")
    op.create_table(
        "llm_spending",
        sa.Column("key", sa.String(150), nullable=False),
        *(sa.Column(name, sa.BigInteger(), server_default=sa.text("0"), nullable=False) for name in counters),
        sa.PrimaryKeyConstraint("key", name="pk_llm_spending"),
    )


def create_web_search_cache() -> None:
    op.create_table(
        "web_search_cache",
        sa.Column("cache_key", sa.String(64), nullable=False),
        sa.Column("request_params", JSON, nullable=False),
        sa.Column("response_data", sa.Text(), nullable=False),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.Column("expires_at", MOMENT, nullable=False),
        sa.PrimaryKeyConstraint("cache_key", name="pk_web_search_cache"),
    )
    op.create_index("ix_web_search_cache_expires_at", "web_search_cache", ["expires_at"])


def create_audit_chain() -> None:
    op.create_table(
        "audit_chain",
        sa.Column("session_id", sa.Uuid(), nullable=False),
        sa.Column("seq", sa.Integer(), nullable=False),
        sa.Column("kind", sa.String(30), nullable=False),
        sa.Column("row_id", sa.Uuid(), nullable=False),
        sa.Column("digest", sa.String(64), nullable=False),
        sa.Column("previous_hash", sa.String(64), nullable=False),
        sa.Column("hash", sa.String(64), nullable=False),
        sa.PrimaryKeyConstraint("session_id", "seq", name="pk_audit_chain"),
    )
    op.create_table(
        "audit_heads",
        sa.Column("session_id", sa.Uuid(), nullable=False),
        sa.Column("length", sa.Integer(), nullable=False),
        sa.Column("hash", sa.String(64), nullable=False),
        sa.PrimaryKeyConstraint("session_id", name="pk_audit_heads"),
    )
