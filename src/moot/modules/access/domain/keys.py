"""Keys: what one looks like, what it may do, and where it is kept. Of the key itself only a digest is."""

import hashlib
import hmac
import re
import secrets
import string
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Literal, Protocol, get_args

from pydantic import AwareDatetime, BaseModel, Field

from moot.shared.infrastructure.execution_context import DEFAULT_WORKSPACE

Scope = Literal["read", "research", "approve", "admin"]
SCOPES: tuple[Scope, ...] = get_args(Scope)
INCLUDES: Mapping[Scope, frozenset[Scope]] = {
    "read": frozenset({"read"}),
    "research": frozenset({"research", "read"}),
    "approve": frozenset({"approve", "read"}),
    "admin": frozenset(SCOPES),
}

ID_LETTERS = string.ascii_lowercase + string.digits  # no dash in front: an id is typed on the command line
ID_LENGTH = 8
SECRET_BYTES = 32
KEY = re.compile(rf"moot_([a-z0-9]{{{ID_LENGTH}}})_[A-Za-z0-9_-]{{43}}")


def mint() -> str:
    """A new key: `moot_<id>_<secret>`."""
    key_id = "".join(secrets.choice(ID_LETTERS) for _ in range(ID_LENGTH))
    return f"moot_{key_id}_{secrets.token_urlsafe(SECRET_BYTES)}"


def id_of(key: str) -> str | None:
    """The part of a key that may be told; None: this is no key of ours."""
    match = KEY.fullmatch(key)
    return match[1] if match else None


def digest_of(key: str) -> str:
    """Keys are random and long: what slows down guessing a password is not needed here."""
    return hashlib.sha256(key.encode()).hexdigest()


class ApiKey(BaseModel, frozen=True, from_attributes=True):
    """A key as it is on file."""

    id: str
    key_hash: str = Field(repr=False)
    name: str
    scopes: tuple[Scope, ...]
    workspace_id: str = DEFAULT_WORKSPACE
    created_at: AwareDatetime
    revoked_at: AwareDatetime | None = None
    last_used_at: AwareDatetime | None = None

    def allows(self, needed: Scope) -> bool:
        return any(needed in INCLUDES[scope] for scope in self.scopes)

    def opens_with(self, digest: str) -> bool:
        """Whether this is the digest of the key, and the key still counts. Takes as long whatever the answer is."""
        return hmac.compare_digest(self.key_hash, digest) and self.revoked_at is None


class KeyRepository(Protocol):
    async def add(self, key: ApiKey) -> None: ...

    async def get(self, key_id: str) -> ApiKey | None: ...

    async def list(self) -> Sequence[ApiKey]:
        """All of them, revoked ones too, oldest first."""

    async def any_valid(self) -> bool:
        """Whether there is one that was not revoked."""

    async def change(self, key_id: str, **moments: datetime) -> None:
        """Write down when it was revoked, or used last."""
