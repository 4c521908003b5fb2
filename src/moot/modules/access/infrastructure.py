"""Keys in SQL. Fields and columns share their names."""

from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import Connection, String, delete, insert, select, update
from sqlalchemy.orm import Mapped, mapped_column

from moot.modules.access.domain import ApiKey, KeyRepository, Login
from moot.shared.infrastructure.database import Database
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


class LoginRow(Base):
    __tablename__ = "console_logins"

    token_hash: Mapped[str] = mapped_column(String(64), primary_key=True)
    key_id: Mapped[str] = mapped_column(String(8))
    expires_at: Mapped[datetime] = mapped_column(index=True)


class SqlKeyRepository(KeyRepository):
    def __init__(self, database: Database) -> None:
        self._database = database

    async def add(self, key: ApiKey) -> None:
        row = insert(ApiKeyRow).values(key.model_dump() | {"scopes": list(key.scopes)})
        await self._database.write(lambda db: db.execute(row))

    async def get(self, key_id: str) -> ApiKey | None:
        row = await self._database.scalar(select(ApiKeyRow).where(ApiKeyRow.id == key_id))
        return ApiKey.model_validate(row) if row else None

    async def list(self) -> Sequence[ApiKey]:
        wanted = select(ApiKeyRow).order_by(ApiKeyRow.created_at, ApiKeyRow.id)
        return [ApiKey.model_validate(row) for row in await self._database.scalars(wanted)]

    async def any_valid(self) -> bool:
        wanted = select(ApiKeyRow.id).where(ApiKeyRow.revoked_at.is_(None)).limit(1)
        return await self._database.scalar(wanted) is not None

    async def change(self, key_id: str, **moments: datetime) -> None:
        changed = update(ApiKeyRow).where(ApiKeyRow.id == key_id).values(moments)
        await self._database.write(lambda db: db.execute(changed))

    async def add_login(self, login: Login, now: datetime) -> None:
        def write(db: Connection) -> None:
            db.execute(delete(LoginRow).where(LoginRow.expires_at <= now))
            db.execute(insert(LoginRow).values(login.model_dump()))

        await self._database.write(write)

    async def get_login(self, token_hash: str) -> Login | None:
        row = await self._database.scalar(select(LoginRow).where(LoginRow.token_hash == token_hash))
        return Login.model_validate(row) if row else None

    async def remove_login(self, token_hash: str) -> None:
        gone = delete(LoginRow).where(LoginRow.token_hash == token_hash)
        await self._database.write(lambda db: db.execute(gone))
