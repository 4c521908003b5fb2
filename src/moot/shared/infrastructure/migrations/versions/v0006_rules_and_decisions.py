"""Rulesets and which of them is active, the decisions they made, and those that wait for a person."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0006"
down_revision = "0005"

JSON = sa.JSON().with_variant(postgresql.JSONB(), "postgresql")
MOMENT = sa.DateTime(timezone=True)


def upgrade() -> None:
    _rulesets()
    _decisions()
    _escalations()
    op.add_column("research_sessions", sa.Column("requested_by", sa.String(100)))


def downgrade() -> None:
    op.drop_column("research_sessions", "requested_by")
    for table in ("escalations", "decisions", "ruleset_activations", "rulesets"):
        op.drop_table(table)


def _rulesets() -> None:
    op.create_table(
        "rulesets",
        sa.Column("id", sa.Uuid, nullable=False),
        sa.Column("workspace_id", sa.String(64), nullable=False),
        sa.Column("number", sa.Integer, nullable=False),
        sa.Column("digest", sa.String(64), nullable=False),
        sa.Column("rules", JSON, nullable=False),
        sa.Column("note", sa.Text, nullable=False),
        sa.Column("created_by", sa.String(100), nullable=False),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_rulesets"),
    )
    _index("rulesets", "workspace_id", "number", unique=True)
    _index("rulesets", "workspace_id", "digest")
    op.create_table(
        "ruleset_activations",
        sa.Column("id", sa.Uuid, nullable=False),
        sa.Column("workspace_id", sa.String(64), nullable=False),
        sa.Column("sequence", sa.Integer, nullable=False),
        sa.Column("ruleset_id", sa.Uuid, nullable=False),
        sa.Column("activated_by", sa.String(100), nullable=False),
        sa.Column("activated_at", MOMENT, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_ruleset_activations"),
        sa.ForeignKeyConstraint(["ruleset_id"], ["rulesets.id"], name="fk_ruleset_activations_ruleset_id"),
    )
    _index("ruleset_activations", "workspace_id", "sequence", unique=True)


def _decisions() -> None:
    op.create_table(
        "decisions",
        sa.Column("id", sa.Uuid, nullable=False),
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
        sa.PrimaryKeyConstraint("id", name="pk_decisions"),
    )
    _index("decisions", "session_id", "decided_at")
    _index("decisions", "workspace_id", "decided_at", "id")
    _index("decisions", "workspace_id", "status", "decided_at")


def _escalations() -> None:
    op.create_table(
        "escalations",
        sa.Column("id", sa.Uuid, nullable=False),
        sa.Column("workspace_id", sa.String(64), nullable=False),
        sa.Column("session_id", sa.Uuid),
        sa.Column("decision_row_id", sa.Uuid, nullable=False),
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
        sa.PrimaryKeyConstraint("id", name="pk_escalations"),
        sa.ForeignKeyConstraint(["decision_row_id"], ["decisions.id"], name="fk_escalations_decision_row_id"),
    )
    _index("escalations", "workspace_id", "status", "requested_at")
    _index("escalations", "session_id")


def _index(table: str, *columns: str, unique: bool = False) -> None:
    op.create_index(f"ix_{table}_{'_'.join(columns)}", table, list(columns), unique=unique)
