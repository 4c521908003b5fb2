"""Where notifications go, and the outbox they leave from."""

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Literal, Protocol, get_args
from urllib.parse import SplitResult, urlsplit
from uuid import UUID

from pydantic import AwareDatetime, BaseModel, Field, SecretStr

from moot.modules.jobs.domain.notices import Notice, Occasion, Pending
from moot.modules.jobs.domain.texts import SAY
from moot.shared.domain.errors import InvalidInput, UpstreamFailed
from moot.shared.domain.messages import DEFAULT_LOCALE, Locale, Message
from moot.shared.domain.validation import Strict

Kind = Literal["webhook", "wecom", "dingtalk", "feishu", "slack", "email"]
KINDS: tuple[Kind, ...] = get_args(Kind)
OCCASIONS: tuple[Occasion, ...] = get_args(Occasion)
SIGNED: tuple[Kind, ...] = ("webhook", "dingtalk", "feishu")
"""Those whose receiver can tell from a secret who sent a message; of an e-mail the secret is the password."""
SCHEMES = {kind: ("smtp", "smtps") if kind == "email" else ("http", "https") for kind in KINDS}

LONGEST: Mapping[Kind, int] = {
    "webhook": 20_000,
    "wecom": 2_000,
    "dingtalk": 18_000,
    "feishu": 18_000,
    "slack": 10_000,
    "email": 20_000,
}
"""Bytes of a text that each takes, and some to spare: WeCom 2,048, DingTalk and Feishu 20,000. Slack takes 40,000
characters, of which one of ours may need five."""

NAME = re.compile(r"\S{1,64}")
ADDRESS = re.compile(r"[^\s@<>,;]+@[^\s@<>,;]+")
UNCLEAR = re.compile(r"[\x00-\x20\x7f\\]")
"""What one reader of a URL drops or turns into a slash, and another does not."""


class DestinationBody(Strict):
    """`url` holds the key of a chat group in it, so it is kept like one."""

    name: str
    kind: Kind
    url: SecretStr
    secret: SecretStr = SecretStr("")
    occasions: tuple[Occasion, ...] = Field(default=OCCASIONS, min_length=1)
    locale: Locale = DEFAULT_LOCALE
    sender: str = ""
    recipients: tuple[str, ...] = ()

    def check(self) -> None:
        """Raises `InvalidInput` for what no single field can be blamed for, and for what may hold a secret."""
        if not NAME.fullmatch(self.name) or not self.name.isprintable():
            raise InvalidInput(SAY("destination.name_malformed"), field="name")
        _split(self.kind, self.url.get_secret_value())
        if self.secret.get_secret_value() and self.kind not in (*SIGNED, "email"):
            raise InvalidInput(SAY("destination.cannot_sign", kind=self.kind), field="secret")
        if self.kind == "email" and not (self.recipients and self.sender):
            raise InvalidInput(SAY("destination.nobody"), field="recipients")
        for address in filter(None, (self.sender, *self.recipients)):
            if not ADDRESS.fullmatch(address):
                raise InvalidInput(SAY("destination.no_address", address=address), field="recipients")


class Destination(DestinationBody):
    """`unreadable`: it was encrypted with another secret than the desk has now."""

    id: UUID
    workspace_id: str
    created_at: AwareDatetime
    unreadable: bool = False
    place: str = ""
    """The address without what is secret in it."""


def find_place(kind: Kind, url: str) -> str:
    parts = _split(kind, url)
    port = f":{parts.port}" if parts.port else ""
    return f"{parts.scheme}://{parts.hostname}{port}"


def _split(kind: Kind, url: str) -> SplitResult:
    """The URL is not repeated in the complaint."""
    said = InvalidInput(SAY("destination.url_malformed", schemes=SCHEMES[kind]), field="url")
    if UNCLEAR.search(url):
        raise said
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError:
        raise said from None
    stray = kind != "email" and "@" in parts.netloc
    if parts.scheme not in SCHEMES[kind] or not parts.hostname or parts.password or stray:
        raise said
    return parts


class Tally(BaseModel, frozen=True):
    """How a destination has fared; `last_error` of what waits to be tried again, or was given up."""

    sent: int = 0
    waiting: int = 0
    given_up: int = 0
    last_error: str | None = None


class DestinationView(Tally):
    """Without what is secret; `signed`: there is a secret to sign, or to log in, with."""

    name: str
    kind: Kind
    place: str
    signed: bool
    occasions: tuple[Occasion, ...]
    locale: Locale
    sender: str
    recipients: tuple[str, ...]
    created_at: AwareDatetime
    unreadable: bool

    @classmethod
    def of(cls, destination: Destination, tally: Tally) -> "DestinationView":
        shown = destination.model_dump(include=set(cls.model_fields))
        return cls(**shown, **tally.model_dump(), signed=bool(destination.secret.get_secret_value()))


class DeliveryFailed(UpstreamFailed, code="DELIVERY_FAILED"):
    """`passing`: the same may succeed later, not before `retry_after` seconds."""

    def __init__(self, message: Message, *, passing: bool = True, retry_after: float = 0.0) -> None:
        super().__init__(message)
        self.passing, self.retry_after = passing, retry_after


Send = Callable[[Destination, Notice], Awaitable[None]]
"""Returns when the other side has taken it; raises `DeliveryFailed`."""

Outcome = Literal["sent", "given_up"]
MOST_ATTEMPTS = 10
FIRST_PAUSE, LONGEST_PAUSE = 30.0, 3600.0
HELD = timedelta(seconds=120)
"""How long a row belongs to whoever claimed it: longer than any attempt takes."""
JITTER = 0.2


def find_pause(attempts: int, retry_after: float, chance: float) -> timedelta:
    """Until the next attempt after so many: twice as long each time, some of it by chance, so that those who failed
    together do not return together. What the other side asks for holds, within reason."""
    doubled = min(FIRST_PAUSE * 2.0 ** (attempts - 1), LONGEST_PAUSE)
    return timedelta(seconds=max(doubled * (1 + JITTER * chance), min(retry_after, LONGEST_PAUSE)))


class Notifications(Protocol):
    """The destinations, their secrets encrypted where they are kept, and the outbox."""

    async def add(self, destination: Destination) -> bool:
        """False where the workspace has one of that name."""

    async def list(self, workspace: str | None = None) -> Sequence[Destination]:
        """By name; None: of all workspaces."""

    async def remove(self, destination: Destination) -> None:
        """With all that was to go there."""

    async def count(self, workspace: str) -> dict[UUID, Tally]: ...

    async def find_due(self, now: datetime, at_most: int) -> Sequence[Pending]:
        """Oldest first."""

    async def claim(self, rows: Sequence[Pending], now: datetime) -> Sequence[Pending]:
        """Those of the rows that nobody else was quicker to take: for `HELD`, and with one attempt more."""

    async def postpone(self, claimed: Pending, until: datetime, error: str) -> None:
        """Whoever held it too long changes nothing any more, here and below."""

    async def hold_back(self, destination_id: UUID, now: datetime, until: datetime) -> None:
        """All that is due there, without counting it as an attempt."""

    async def close(
        self, claimed: Sequence[Pending], outcome: Outcome, at: datetime, error: str | None = None
    ) -> None: ...

    async def drop(self, claimed: Pending) -> None:
        """There is nothing to tell."""

    async def forget(self, before: datetime) -> None:
        """What was closed earlier, and what was noted for a place while that was removed."""
