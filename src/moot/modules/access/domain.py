"""Keys: what one looks like, what it may do, and where it is kept. Of the key itself only a digest is.

Whoever has a key asks as often as its bucket allows. Whoever has none shares a bucket with their address.
"""

import hashlib
import hmac
import ipaddress
import re
import secrets
import string
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Literal, Protocol, get_args

from pydantic import AwareDatetime, BaseModel, Field

from moot.shared.domain.messages import Catalogue
from moot.shared.infrastructure.execution_context import DEFAULT_WORKSPACE

SAY = Catalogue(Path(__file__).parent / "texts")

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


class Login(BaseModel, frozen=True, from_attributes=True):
    """A browser that showed a key. It keeps a token instead, of which a digest is on file; with the key it ends."""

    token_hash: str = Field(repr=False)
    key_id: str
    expires_at: AwareDatetime


class KeyRepository(Protocol):
    async def add(self, key: ApiKey) -> None: ...

    async def get(self, key_id: str) -> ApiKey | None: ...

    async def list(self) -> Sequence[ApiKey]:
        """All of them, revoked ones too, oldest first."""

    async def any_valid(self) -> bool:
        """Whether there is one that was not revoked."""

    async def change(self, key_id: str, **moments: datetime) -> None:
        """Write down when it was revoked, or used last."""

    async def add_login(self, login: Login, now: datetime) -> None:
        """Those that have expired by `now` make room."""

    async def get_login(self, token_hash: str) -> Login | None: ...

    async def remove_login(self, token_hash: str) -> None: ...


LOGGED_IN_FOR = timedelta(days=7)
REQUESTS_A_MINUTE = 600
ATTEMPTS_A_MINUTE = 60
PATIENCE = 5.0
"""Seconds an attempt waits for its token before it is sent away."""
REMEMBERED = 10_000
"""So many keys or addresses; who has many more to ask from has not one key more to find."""


@dataclass
class Bucket:
    """Tokens that fill up again while nobody asks. Times are seconds of a clock that never goes back."""

    per_minute: int
    filled_at: float
    tokens: float

    def take(self, now: float, patience: float = 0.0) -> float:
        """Seconds until there is a token. It is taken, or reserved, unless they are more than `patience`."""
        per_second = self.per_minute / 60
        self.tokens = min(self.per_minute, self.tokens + (now - self.filled_at) * per_second)
        self.filled_at = now
        wait = max(0.0, (1 - self.tokens) / per_second)
        if wait <= patience:
            self.tokens -= 1
        return wait


class Buckets:
    """One for each key, or each address that came without a key that is known; those heard last are kept."""

    def __init__(self, per_minute: int) -> None:
        self._per_minute = per_minute
        self._buckets: OrderedDict[str, Bucket] = OrderedDict()

    def of(self, name: str, now: float) -> Bucket:
        bucket = self._buckets.setdefault(name, Bucket(self._per_minute, now, self._per_minute))
        self._buckets.move_to_end(name)
        if len(self._buckets) > REMEMBERED:
            self._buckets.popitem(last=False)
        return bucket


def network_of(address: str) -> str:
    """One customer of an IPv6 provider has at least 2^64 addresses: they count as one."""
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return address
    return address if parsed.version == 4 else str(ipaddress.ip_network((parsed.packed, 64), strict=False))
