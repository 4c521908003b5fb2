"""The keys on file."""

from datetime import datetime

from sqlalchemy import String
from sqlalchemy.orm import Mapped, mapped_column

from moot.shared.infrastructure.execution_context import DEFAULT_WORKSPACE
from moot.shared.infrastructure.tables import Base


class ApiKeyRow(Base):
    """The columns carry the names of the fields of `ApiKey`. The key itself is nowhere."""

    __tablename__ = "api_keys"

    id: Mapped[str] = mapped_column(String(8), primary_key=True)
    key_hash: Mapped[str] = mapped_column(String(64))
    name: Mapped[str] = mapped_column(String(100))
    scopes: Mapped[list[str]]
    workspace_id: Mapped[str] = mapped_column(String(64), server_default=DEFAULT_WORKSPACE)
    created_at: Mapped[datetime]
    revoked_at: Mapped[datetime | None]
    last_used_at: Mapped[datetime | None]
