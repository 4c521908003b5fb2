"""What is told, on which occasion, and in which words."""

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple, Protocol
from uuid import UUID

from pydantic import AwareDatetime, BaseModel, Field

from moot.modules.jobs.domain.texts import SAY
from moot.modules.jobs.domain.watch import Action, Ruling
from moot.shared.domain.messages import Locale, Message, shorten

Occasion = Literal["verdict", "failure", "escalation"]
"""Another verdict than before; a session that came to none; a session that waits for a person."""

LONGEST_REASON = 200
"""Characters. A whole message has to stay below the 2,048 bytes of the strictest service."""
LONGEST_NAME = 60


class Pending(NamedTuple):
    """A row of the outbox: who is to be told what, and how often that was tried. `about` is what caused it."""

    id: UUID
    workspace_id: str
    destination_id: UUID
    occasion: Occasion
    session_id: UUID
    about: dict[str, Any]
    attempts: int
    created_at: AwareDatetime


class Told(BaseModel, frozen=True):
    """A session, as far as somebody is told of it; `ruling` is there when it came to one. `reason` is in `locale`."""

    symbol: str
    names: dict[Locale, str] = Field(default_factory=dict)
    locale: Locale
    horizon: int
    as_of: AwareDatetime
    ruling: Ruling | None = None
    reason: str = ""
    notices: dict[Locale, list[str]]


class Record(Protocol):
    """The record of the desk, as notifications see it."""

    async def on(self, symbol: str, workspace: str) -> Sequence[Ruling]:
        """The latest rulings on a symbol; what-ifs are none."""

    async def tell(self, session_id: UUID, workspace: str) -> Told: ...


class Notice(BaseModel, frozen=True):
    """A notification, as a webhook gets it. Whoever gets the same `id` twice was told twice of the same.

    `action` and `before` None: the judge abstained, or there is none. `text` is all of it in words.
    """

    id: UUID
    occasion: Occasion | Literal["test"]
    at: AwareDatetime
    workspace: str
    locale: Locale
    title: str
    text: str
    session_id: UUID | None = None
    escalation_id: UUID | None = None
    symbol: str | None = None
    name: str | None = None
    horizon: int | None = None
    as_of: AwareDatetime | None = None
    action: Action | None = None
    before: Action | None = None
    reason: str | None = None


def compose(pending: Pending, told: Told, before: Ruling | None, locale: Locale) -> Notice:
    """What `told` comes to in words, for a reader of `locale`; `before` is the ruling that it changes."""
    action = told.ruling.action if told.ruling else None
    title = SAY(
        f"notice.{pending.occasion}",
        company=_name_company(told, locale),
        action=_name_action(action),
        before=_name_action(before.action if before else None),
    ).in_locale(locale)
    why = pending.about.get("why") or [told.reason]
    reason = shorten(why[0].strip().partition("\n")[0], LONGEST_REASON)
    lines = [title, *_quote(reason, told.locale, locale), *_refer(pending, told, locale)]
    return Notice(
        id=pending.id,
        occasion=pending.occasion,
        at=pending.created_at,
        workspace=pending.workspace_id,
        locale=locale,
        title=title,
        text="\n".join([*lines, *told.notices[locale]]),
        session_id=pending.session_id,
        escalation_id=pending.about.get("escalation_id"),
        symbol=told.symbol,
        name=told.names.get(locale),
        horizon=told.horizon,
        as_of=told.as_of,
        action=action,
        before=before.action if before else None,
        reason=reason or None,
    )


def compose_test(notice_id: UUID, at: AwareDatetime, workspace: str, name: str, locale: Locale) -> Notice:
    said = SAY("notice.test", name=name).in_locale(locale)
    given: dict[str, Any] = {"id": notice_id, "at": at, "workspace": workspace, "locale": locale}
    return Notice(**given, occasion="test", title=said, text=said)


def _name_company(told: Told, locale: Locale) -> Message | str:
    name = shorten(" ".join(told.names.get(locale, "").split()), LONGEST_NAME)
    return SAY("notice.company", name=name, symbol=told.symbol) if name else told.symbol


def _name_action(action: Action | None) -> Message:
    return SAY(f"action.{action or 'none'}")


def _quote(reason: str, written_in: Locale, locale: Locale) -> list[str]:
    """In the words it was given in: of another language it says so."""
    if not reason:
        return []
    key = "notice.reason" if written_in == locale else f"notice.reason_in.{written_in}"
    return [SAY(key, reason=reason).in_locale(locale)]


def _refer(pending: Pending, told: Told, locale: Locale) -> list[str]:
    known = {"session": pending.session_id, "day": f"{told.as_of:%Y-%m-%d}", "horizon": told.horizon}
    lines = [SAY("notice.session", **known)]
    if asked := pending.about.get("escalation_id"):
        lines.append(SAY("notice.answer", id=asked))
    return [line.in_locale(locale) for line in lines]
