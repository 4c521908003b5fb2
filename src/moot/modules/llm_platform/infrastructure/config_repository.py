"""Model configs in SQL: what anybody may see as one JSON object, beside it the secrets, which are stored encrypted.

With what: `MOOT_SECRET_KEY`, else a file only its owner can read.
"""

import secrets
from base64 import urlsafe_b64encode
from collections.abc import Callable, Collection, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import structlog
from pydantic import SecretStr
from sqlalchemy import Connection, delete, insert, select, update
from sqlalchemy.exc import IntegrityError

from moot.modules.llm_platform.domain.exceptions import DuplicateConfig
from moot.modules.llm_platform.domain.model_config import (
    ConfigRepository,
    LLMConfig,
    ModelCard,
    SecretUnreadable,
    no_such_config,
)
from moot.modules.llm_platform.domain.texts import SAY
from moot.modules.llm_platform.infrastructure.tables import LLMConfigRow
from moot.shared.domain.clock import Clock
from moot.shared.domain.errors import Unavailable
from moot.shared.infrastructure.database import Database
from moot.shared.infrastructure.home import make_private_folder, write_private
from moot.shared.infrastructure.redaction import REDACT

if TYPE_CHECKING:
    from cryptography.fernet import Fernet

logger = structlog.get_logger(__name__)

COLUMNS = {"id", "workspace_id", "alias", "created_at", "updated_at"}
FACTS = ModelCard.model_fields.keys() - COLUMNS - {"unreadable"}
FILE_NAME = "secret.key"


class Cipher:
    """`secret` is any text that is not empty, or a function that fetches it once there is something to hide.

    What goes in or comes out may be used, and is written down nowhere from then on. A desk without a key to hide does
    not load the cipher.
    """

    def __init__(self, secret: str | Callable[[], str]) -> None:
        self._secret = secret

    def encrypt(self, plain: str) -> str:
        REDACT.learn(plain)
        return self._fernet.encrypt(plain.encode()).decode()

    def decrypt(self, token: str) -> str:
        from cryptography.fernet import InvalidToken  # noqa: PLC0415

        try:
            plain = self._fernet.decrypt(token.encode()).decode()
        except InvalidToken:
            raise SecretUnreadable(SAY("config.secret_changed")) from None
        REDACT.learn(plain)
        return plain

    @cached_property
    def _fernet(self) -> "Fernet":
        from cryptography.fernet import Fernet  # noqa: PLC0415
        from cryptography.hazmat.primitives.hashes import SHA256  # noqa: PLC0415
        from cryptography.hazmat.primitives.kdf.hkdf import HKDF  # noqa: PLC0415

        secret = self._secret if isinstance(self._secret, str) else self._secret()
        if not secret:
            raise ValueError("an empty secret hides nothing")
        key = HKDF(algorithm=SHA256(), length=32, salt=None, info=b"moot: secrets at rest")
        return Fernet(urlsafe_b64encode(key.derive(secret.encode())))


class SqlConfigRepository(ConfigRepository):
    def __init__(self, database: Database, cipher: Cipher, clock: Clock) -> None:
        self._database, self._cipher, self._clock = database, cipher, clock

    async def list(self) -> Sequence[LLMConfig]:
        return [self._config(row) for row in await self._database.scalars(select(LLMConfigRow))]

    async def add(self, config: LLMConfig) -> None:
        now = self._clock.now()
        place = {"id": config.id, "workspace_id": config.workspace_id, "alias": config.alias}
        values = place | self._values(config, LLMConfig.model_fields) | {"created_at": now, "updated_at": now}

        def work(db: Connection) -> None:
            try:
                db.execute(insert(LLMConfigRow).values(values))
            except IntegrityError:
                raise DuplicateConfig(SAY("config.duplicate", alias=config.alias)) from None

        await self._database.write(work)

    async def update(self, config: LLMConfig, fields: Collection[str]) -> None:
        changed, mine = self._values(config, fields), LLMConfigRow.id == config.id

        def work(db: Connection) -> None:
            stored = db.execute(
                select(LLMConfigRow.facts, LLMConfigRow.secrets).where(mine).with_for_update()
            )
            if (row := stored.mappings().first()) is None:
                raise no_such_config(config.alias)
            values = {name: row[name] | part for name, part in changed.items()}
            db.execute(update(LLMConfigRow).where(mine).values(**values, updated_at=self._clock.now()))

        await self._database.write(work)

    async def remove(self, config: LLMConfig) -> None:
        mine = delete(LLMConfigRow).where(LLMConfigRow.id == config.id).returning(LLMConfigRow.id)

        def work(db: Connection) -> None:
            if db.scalar(mine) is None:
                raise no_such_config(config.alias)

        await self._database.write(work)

    def _values(self, config: LLMConfig, fields: Collection[str]) -> dict[str, dict[str, Any]]:
        hidden = {"api_key": config.api_key.get_secret_value(), "proxy": config.proxy}
        return {
            "facts": config.model_dump(mode="json", include=FACTS & set(fields)),
            "secrets": {
                name: plain and self._cipher.encrypt(plain)
                for name, plain in hidden.items()
                if name in fields
            },
        }

    def _config(self, row: LLMConfigRow) -> LLMConfig:
        opened: dict[str, str] = {}
        unreadable: list[str] = []
        for name, sealed in sorted(row.secrets.items()):
            try:
                opened |= {name: self._cipher.decrypt(sealed)} if sealed else {}
            except SecretUnreadable:
                unreadable.append(name)
        columns = {name: getattr(row, name) for name in COLUMNS}
        return LLMConfig.model_validate({**row.facts, **columns, **opened, "unreadable": tuple(unreadable)})


def cipher_for(secret_key: SecretStr, home: Path) -> Cipher:
    """By `secret_key` when there is one, else by the file in `home`, which is made when it is first needed."""
    given = secret_key.get_secret_value()
    return Cipher(given or (lambda: _keep_secret(home.expanduser() / FILE_NAME)))


def _keep_secret(file: Path) -> str:
    try:
        if not file.exists():
            make_private_folder(file.parent)
            write_private(file, secrets.token_urlsafe(32), unless_there=True)
        if file.stat().st_mode & 0o077:
            logger.warning("others could read the secret, now only its owner can", file=str(file))
            file.chmod(0o600)
        secret = file.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as e:
        reason = e.strerror if isinstance(e, OSError) else "it is not text"
        raise Unavailable(SAY("config.secret_file", file=str(file), reason=reason)) from e
    if not secret:
        raise Unavailable(SAY("config.secret_file_empty", file=str(file)))
    return secret
