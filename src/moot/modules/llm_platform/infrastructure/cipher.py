"""What is encrypted at rest, and with what: `MOOT_SECRET_KEY`, else a file only its owner can read."""

import os
import secrets
import tempfile
from base64 import urlsafe_b64encode
from collections.abc import Callable
from functools import cached_property
from pathlib import Path

import structlog
from cryptography.fernet import Fernet, InvalidToken
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from pydantic import SecretStr

from moot.modules.llm_platform.domain.model_config import SecretUnreadable
from moot.modules.llm_platform.domain.texts import SAY
from moot.shared.domain.errors import Unavailable

logger = structlog.get_logger(__name__)

FILE_NAME = "secret.key"


class Cipher:
    """`secret` is any text that is not empty, or a function that fetches it once there is something to hide."""

    def __init__(self, secret: str | Callable[[], str]) -> None:
        self._secret = secret

    def encrypt(self, plain: str) -> str:
        return self._fernet.encrypt(plain.encode()).decode()

    def decrypt(self, token: str) -> str:
        try:
            return self._fernet.decrypt(token.encode()).decode()
        except InvalidToken:
            raise SecretUnreadable(SAY("config.secret_changed")) from None

    @cached_property
    def _fernet(self) -> Fernet:
        secret = self._secret if isinstance(self._secret, str) else self._secret()
        if not secret:
            raise ValueError("an empty secret hides nothing")
        key = HKDF(algorithm=SHA256(), length=32, salt=None, info=b"moot: secrets at rest")
        return Fernet(urlsafe_b64encode(key.derive(secret.encode())))


def cipher_for(secret_key: SecretStr, home: Path) -> Cipher:
    """By `secret_key` when there is one, else by the file in `home`, which is made when it is first needed."""
    given = secret_key.get_secret_value()
    return Cipher(given or (lambda: _kept_secret(home.expanduser() / FILE_NAME)))


def _kept_secret(file: Path) -> str:
    try:
        if not file.exists():
            _make(file)
        _tighten(file)
        secret = file.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as e:
        reason = e.strerror if isinstance(e, OSError) else "it is not text"
        raise Unavailable(SAY("config.secret_file", file=str(file), reason=reason)) from e
    if not secret:
        raise Unavailable(SAY("config.secret_file_empty", file=str(file)))
    return secret


def _make(file: Path) -> None:
    """The file appears under its name once it is whole; of several that try at once, the first one's stays."""
    file.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(prefix=FILE_NAME, dir=file.parent)  # O_EXCL, 0600
    draft = Path(name)
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as out:
            out.write(secrets.token_urlsafe(32))
            out.flush()
            os.fsync(out.fileno())
        file.hardlink_to(draft)
    except FileExistsError:
        return
    finally:
        draft.unlink()


def _tighten(file: Path) -> None:
    if file.stat().st_mode & 0o077:
        logger.warning("others could read the secret, now only its owner can", file=str(file))
        file.chmod(0o600)
