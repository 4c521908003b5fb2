"""Conversations: questions in people's own words, and what became of them; sessions found quickly by symbol."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0007"
down_revision = "0006"

JSON = sa.JSON().with_variant(postgresql.JSONB(), "postgresql")
MOMENT = sa.DateTime(timezone=True)
BY_SYMBOL = "ix_research_sessions_workspace_id_symbol_created_at_id"


def upgrade() -> None:
    op.create_table(
        "conversations",
        sa.Column("id", sa.Uuid, nullable=False),
        sa.Column("workspace_id", sa.String(64), nullable=False),
        sa.Column("requested_by", sa.String(100)),
        sa.Column("title", sa.Text, nullable=False),
        sa.Column("status", sa.String(20), nullable=False),
        sa.Column("turns", JSON, nullable=False),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.Column("updated_at", MOMENT, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_conversations"),
    )
    op.create_index(
        "ix_conversations_workspace_id_updated_at", "conversations", ["workspace_id", "updated_at"]
    )
    op.create_index(BY_SYMBOL, "research_sessions", ["workspace_id", "symbol", "created_at", "id"])


def downgrade() -> None:
    op.drop_index(BY_SYMBOL, "research_sessions")
    op.drop_table("conversations")
