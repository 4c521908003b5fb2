"""Model configs in SQL. Fields and columns share their names, but for the secrets, which are stored encrypted."""

from collections.abc import Collection, Sequence
from typing import Any

from sqlalchemy import Connection, CursorResult, delete, insert, select, update
from sqlalchemy.exc import IntegrityError
from sqlalchemy.sql.dml import Delete, Update

from moot.modules.llm_platform.domain.exceptions import DuplicateConfig
from moot.modules.llm_platform.domain.model_config import (
    ConfigRepository,
    LLMConfig,
    ModelCard,
    SecretUnreadable,
    no_such_config,
)
from moot.modules.llm_platform.domain.texts import SAY
from moot.modules.llm_platform.infrastructure.cipher import Cipher
from moot.modules.llm_platform.infrastructure.tables import LLMConfigRow
from moot.shared.domain.clock import Clock
from moot.shared.infrastructure.database import Database
from moot.shared.infrastructure.redaction import REDACT
from moot.shared.infrastructure.transactions import transaction

PLAIN = ModelCard.model_fields.keys() - {"unreadable"}
SECRET = ("api_key", "proxy")


class SqlConfigRepository(ConfigRepository):
    def __init__(self, database: Database, cipher: Cipher, clock: Clock) -> None:
        self._database, self._cipher, self._clock = database, cipher, clock

    async def list(self, workspace: str | None = None) -> Sequence[LLMConfig]:
        wanted = select(LLMConfigRow).order_by(LLMConfigRow.alias)
        if workspace is not None:
            wanted = wanted.where(LLMConfigRow.workspace_id == workspace)
        async with transaction(self._database.session) as db:
            return [self._config(row) for row in await db.scalars(wanted)]

    async def get(self, alias: str, workspace: str) -> LLMConfig | None:
        wanted = select(LLMConfigRow).where(*_place(alias, workspace))
        async with transaction(self._database.session) as db:
            row = await db.scalar(wanted)
        return self._config(row) if row else None

    async def add(self, config: LLMConfig) -> None:
        now = self._clock.now()
        values = self._values(config, {*PLAIN, *SECRET}) | {"created_at": now, "updated_at": now}

        def work(db: Connection) -> None:
            try:
                db.execute(insert(LLMConfigRow).values(values))
            except IntegrityError:
                raise DuplicateConfig(SAY("config.duplicate", alias=config.alias)) from None

        await self._database.write(work)

    async def update(self, config: LLMConfig, fields: Collection[str]) -> None:
        values = self._values(config, fields) | {"updated_at": self._clock.now()}
        statement = update(LLMConfigRow).where(LLMConfigRow.id == config.id).values(values)
        await self._change(statement, config.alias)

    async def remove(self, alias: str, workspace: str) -> None:
        await self._change(delete(LLMConfigRow).where(*_place(alias, workspace)), alias)

    async def _change(self, statement: Update | Delete, alias: str) -> None:
        def work(db: Connection) -> None:
            result = db.execute(statement)
            if isinstance(result, CursorResult) and result.rowcount == 0:
                raise no_such_config(alias)

        await self._database.write(work)

    def _values(self, config: LLMConfig, fields: Collection[str]) -> dict[str, Any]:
        plain = config.model_dump(include=PLAIN & set(fields))
        secrets = {"api_key": config.api_key.get_secret_value(), "proxy": config.proxy}
        changed = {name: secret for name, secret in secrets.items() if name in fields}
        return plain | {
            f"encrypted_{name}": secret and self._sealed(secret) for name, secret in changed.items()
        }

    def _sealed(self, secret: str) -> str:
        REDACT.learn(secret)
        return self._cipher.encrypt(secret)

    def _opened(self, sealed: str) -> str:
        """From here on it may be used, and is written down nowhere."""
        secret = self._cipher.decrypt(sealed)
        REDACT.learn(secret)
        return secret

    def _config(self, row: LLMConfigRow) -> LLMConfig:
        opened: dict[str, str] = {}
        unreadable: list[str] = []
        for name in SECRET:
            sealed = getattr(row, f"encrypted_{name}")
            try:
                opened |= {name: self._opened(sealed)} if sealed else {}
            except SecretUnreadable:
                unreadable.append(name)
        plain = {name: getattr(row, name) for name in PLAIN}
        return LLMConfig.model_validate({**plain, **opened, "unreadable": tuple(unreadable)})


def _place(alias: str, workspace: str) -> tuple[Any, Any]:
    return LLMConfigRow.alias == alias, LLMConfigRow.workspace_id == workspace
