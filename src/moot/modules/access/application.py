"""Making keys, and letting their holders in."""

import asyncio
import math
import re
import secrets
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import NamedTuple

import structlog

from moot.modules.access import domain
from moot.modules.access.domain import SAY, SCOPES, ApiKey, Bucket, Buckets, Login, Scope
from moot.shared.domain.clock import Clock
from moot.shared.domain.errors import (
    AppError,
    Forbidden,
    InvalidInput,
    NotFound,
    TooManyRequests,
    Unauthenticated,
    Unavailable,
)
from moot.shared.domain.messages import nearest, shorten
from moot.shared.domain.validation import suggest
from moot.shared.infrastructure.execution_context import DEFAULT_WORKSPACE
from moot.shared.infrastructure.redaction import REDACT

__all__ = ["SCOPES", "AccessService", "ApiKey"]

logger = structlog.get_logger(__name__)

NOTED_EVERY = 60.0
"""Seconds between two writes of when a key was used."""
MOST_NAMED = 5
WORKSPACE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


class IssuedKey(NamedTuple):
    """The only time a key is seen whole."""

    key: ApiKey
    secret: str


class AccessService:
    """`keys` None: nothing is stored, so there are no keys and nobody has one. One for the whole process."""

    def __init__(
        self,
        keys: domain.KeyRepository | None,
        clock: Clock,
        *,
        seconds: Callable[[], float] = time.monotonic,
        pause: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._keys, self._clock, self._seconds, self._pause = keys, clock, seconds, pause
        self._known: set[str] = set()
        self._any_keys = False
        self._requests, self._attempts = Buckets(domain.REQUESTS_A_MINUTE), Buckets(domain.ATTEMPTS_A_MINUTE)
        self._noted: dict[str, float] = {}
        self._writing: set[asyncio.Task[None]] = set()

    async def create(
        self, name: str, scopes: Sequence[str] = ("read",), workspace: str = DEFAULT_WORKSPACE
    ) -> IssuedKey:
        _check(name, scopes, workspace)
        secret = domain.mint()
        REDACT.learn(secret)
        key = ApiKey(
            id=str(domain.id_of(secret)),
            key_hash=domain.digest_of(secret),
            name=name.strip(),
            scopes=tuple(scope for scope in SCOPES if scope in scopes),
            workspace_id=workspace,
            created_at=self._clock.now(),
        )
        await self._require_store().add(key)
        return IssuedKey(key, secret)

    async def list(self) -> Sequence[ApiKey]:
        return await self._require_store().list()

    async def revoke(self, wanted: str) -> ApiKey:
        """By its id, its name, or what only one of them begins with. From the next request on, in every process."""
        store, now = self._require_store(), self._clock.now()
        key = _find(wanted, await store.list())
        if key.revoked_at is not None:
            return key
        await store.change(key.id, revoked_at=now)
        return key.model_copy(update={"revoked_at": now})

    async def has_keys(self) -> bool:
        """Whether anybody could get in with one; while nobody can look, what was seen last."""
        if self._keys is not None:
            with suppress(Unavailable):
                self._any_keys = await self._keys.any_valid()
        return self._any_keys

    async def admit(self, presented: str | None, needed: Scope, address: str) -> ApiKey:
        """Whose key this is. Raises `Unauthenticated`, `TooManyRequests` or `Forbidden`."""
        if presented is None:
            await self._attempt(address, patience=0.0)
            raise Unauthenticated(SAY("key_missing"))
        return self._allow(await self._verify(presented, address), needed)

    async def login(self, presented: str, address: str) -> str:
        """A token for the browser of whoever shows a key, so that it need not keep the key. Raises as `admit`."""
        key = await self._verify(presented, address)
        token = secrets.token_urlsafe(domain.SECRET_BYTES)
        now = self._clock.now()
        login = Login(
            token_hash=domain.digest_of(token), key_id=key.id, expires_at=now + domain.LOGGED_IN_FOR
        )
        await self._require_store().add_login(login, now)
        return token

    async def admit_login(self, token: str, needed: Scope) -> ApiKey | None:
        """Whose browser this is; None: it has to log in, as its key was revoked, its time is up or it left."""
        login = await self._keys.get_login(domain.digest_of(token)) if self._keys else None
        if login is None or login.expires_at <= self._clock.now():
            return None
        key = await self._require_store().get(login.key_id)
        return self._allow(key, needed) if key and key.revoked_at is None else None

    async def logout(self, token: str) -> None:
        await self._require_store().remove_login(domain.digest_of(token))

    def _allow(self, key: ApiKey, needed: Scope) -> ApiKey:
        self._take(self._requests.of(key.id, self._seconds()), "too_many", name=key.name)
        self._note_use(key)
        if not key.allows(needed):
            message = SAY("scope_missing", needed=needed, name=key.name, held=key.scopes)
            raise Forbidden(message, needed=needed, scopes=list(key.scopes))
        return key

    async def finish(self) -> None:
        """Wait for what is still being written."""
        await asyncio.gather(*self._writing)

    async def _verify(self, presented: str, address: str) -> ApiKey:
        """What was never right may be a guess, and guesses take turns. One that was right has cost nothing."""
        digest, key_id = domain.digest_of(presented), domain.id_of(presented)
        attempts = None if digest in self._known else await self._attempt(address, patience=domain.PATIENCE)
        key = await self._keys.get(key_id) if self._keys and key_id else None
        if key is None or not key.opens_with(digest):
            self._known.discard(digest)
            raise Unauthenticated(SAY("key_refused"))
        if attempts is not None:
            attempts.tokens += 1
            self._known.add(digest)
            REDACT.learn(presented)
        return key

    async def _attempt(self, address: str, *, patience: float) -> Bucket:
        attempts = self._attempts.of(domain.network_of(address), self._seconds())
        if wait := self._take(attempts, "attempts.too_many", patience, address=address):
            await self._pause(wait)
        return attempts

    def _take(self, bucket: Bucket, refusal: str, patience: float = 0.0, **about: str) -> float:
        """Seconds to wait, at most `patience`."""
        wait = bucket.take(self._seconds(), patience)
        if wait > patience:
            seconds = math.ceil(wait)
            message = SAY(refusal, limit=bucket.per_minute, seconds=seconds, **about)
            raise TooManyRequests(message, retry_after=seconds)
        return wait

    def _note_use(self, key: ApiKey) -> None:
        """Beside the request, which does not wait for it."""
        now = self._seconds()
        if now - self._noted.get(key.id, -math.inf) < NOTED_EVERY:
            return
        self._noted[key.id] = now
        task = asyncio.create_task(self._write_use(key.id))
        self._writing.add(task)
        task.add_done_callback(self._writing.discard)

    async def _write_use(self, key_id: str) -> None:
        try:
            await self._require_store().change(key_id, last_used_at=self._clock.now())
        except AppError as e:
            logger.warning("use of a key not noted", key_id=key_id, error=str(e))

    def _require_store(self) -> domain.KeyRepository:
        if self._keys is None:
            raise Unavailable(SAY("nothing_stored"), code="NOTHING_STORED")
        return self._keys


def _find(wanted: str, keys: Sequence[ApiKey]) -> ApiKey:
    """By an id or else a name in full, or else by what one begins with; of several, those that still count."""
    typed = wanted.strip().casefold()
    named = {key: (key.id, key.name.casefold()) for key in keys if typed}
    whole = [key for key in named if key.id == typed] or [key for key in named if typed in named[key]]
    begun = [key for key, names in named.items() if any(name.startswith(typed) for name in names)]
    meant = whole or begun
    meant = [key for key in meant if key.revoked_at is None] or meant
    if not meant:
        near = nearest(wanted, [name for key in keys for name in (key.id, key.name)])
        raise NotFound(suggest(SAY("not_found", id=shorten(wanted)), near))
    if len(meant) > 1:
        choices = [f"{key.id} ({key.name})" for key in meant[:MOST_NAMED]]
        raise InvalidInput(SAY("several", id=shorten(wanted), choices=choices))
    return meant[0]


def _check(name: str, scopes: Sequence[str], workspace: str) -> None:
    if not 1 <= len(name.strip()) <= 100 or not name.strip().isprintable():
        raise InvalidInput(SAY("name_malformed"))
    if not scopes or not set(scopes) <= set(SCOPES):
        near = [name for scope in scopes if scope not in SCOPES for name in nearest(scope, SCOPES)]
        raise InvalidInput(suggest(SAY("scope_unknown", scopes=scopes, allowed=SCOPES), near))
    if not WORKSPACE.fullmatch(workspace):
        raise InvalidInput(SAY("workspace_malformed", workspace=workspace))
