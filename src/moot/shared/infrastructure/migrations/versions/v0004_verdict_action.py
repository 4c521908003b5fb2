"""What a session's verdict was, beside its status; and indexes for every way to look through the history."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0004"
down_revision = "0003"

JSON = sa.JSON().with_variant(postgresql.JSONB(), "postgresql")
SESSIONS = sa.table(
    "research_sessions", sa.column("id"), sa.column("verdict_status"), sa.column("verdict_action")
)
NODES = sa.table(
    "node_executions", sa.column("session_id"), sa.column("node_type"), sa.column("result_data", JSON)
)
RETRIES = "ix_research_sessions_parent_session_id_created_at_id"
FILTERS = ("status", "verdict_action", "trigger_source")


def upgrade() -> None:
    op.add_column("research_sessions", sa.Column("verdict_action", sa.String(10)))
    fill_in()
    for name in FILTERS:
        columns = ["workspace_id", name, "created_at", "id"]
        op.create_index(index_of(name), "research_sessions", columns)
    op.create_index(RETRIES, "research_sessions", ["parent_session_id", "created_at", "id"])


def downgrade() -> None:
    op.drop_index(RETRIES, "research_sessions")
    for name in FILTERS:
        op.drop_index(index_of(name), "research_sessions")
    op.drop_column("research_sessions", "verdict_action")


def index_of(name: str) -> str:
    return f"ix_research_sessions_workspace_id_{name}_created_at_id"


def fill_in() -> None:
    """Earlier sessions get what their judge said."""
    said = (
        sa.select(sa.func.max(NODES.c.result_data["action"].as_string()))
        .where(NODES.c.session_id == SESSIONS.c.id, NODES.c.node_type == "judge")
        .scalar_subquery()
    )
    op.execute(sa.update(SESSIONS).where(SESSIONS.c.verdict_status == "judged").values(verdict_action=said))
