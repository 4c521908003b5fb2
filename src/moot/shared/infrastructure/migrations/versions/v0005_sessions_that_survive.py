"""What a session needs to go on after its process died, to be found by its key, and to tell what happens in it."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0005"
down_revision = "0004"

JSON = sa.JSON().with_variant(postgresql.JSONB(), "postgresql")
MOMENT = sa.DateTime(timezone=True)
SESSIONS = "research_sessions"
NEW = ("question", "idempotency_key", "request_digest", "cancel_requested")
BY_KEY = "ix_research_sessions_workspace_id_idempotency_key"
BY_LEASE = "ix_research_sessions_status_lease_expires_at"


def upgrade() -> None:
    op.add_column(SESSIONS, sa.Column("question", JSON))
    op.add_column(SESSIONS, sa.Column("idempotency_key", sa.String(255)))
    op.add_column(SESSIONS, sa.Column("request_digest", sa.String(64)))
    op.add_column(
        SESSIONS, sa.Column("cancel_requested", sa.Boolean, server_default=sa.false(), nullable=False)
    )
    op.create_index(BY_KEY, SESSIONS, ["workspace_id", "idempotency_key"], unique=True)
    op.create_index(BY_LEASE, SESSIONS, ["status", "lease_expires_at"])
    op.create_table(
        "session_events",
        sa.Column("session_id", sa.Uuid, nullable=False),
        sa.Column("seq", sa.Integer, nullable=False),
        sa.Column("type", sa.String(30), nullable=False),
        sa.Column("at", MOMENT, nullable=False),
        sa.Column("data", JSON, nullable=False),
        sa.PrimaryKeyConstraint("session_id", "seq", name="pk_session_events"),
    )


def downgrade() -> None:
    op.drop_table("session_events")
    for name in (BY_LEASE, BY_KEY):
        op.drop_index(name, SESSIONS)
    for name in NEW:
        op.drop_column(SESSIONS, name)
