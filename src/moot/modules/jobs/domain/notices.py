"""What is told, on which occasion, and in which words."""

from collections import Counter
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple, Protocol
from uuid import UUID, uuid5

from pydantic import AwareDatetime, BaseModel, Field

from moot.modules.jobs.domain.batches import BatchResults
from moot.modules.jobs.domain.texts import SAY
from moot.modules.jobs.domain.watch import Ruling, Rulings
from moot.shared.domain.claims import Action
from moot.shared.domain.messages import Locale, Message, shorten

Occasion = Literal["verdict", "failure", "escalation", "batch"]
"""Another verdict than before; a session that came to none; a session that waits for a person; a batch that ended,
which tells of its sessions."""

LONGEST_REASON = 200
"""Characters. A whole message has to stay below the 2,048 bytes of the strictest service."""
LONGEST_NAME = 60
MOST_LISTED = 50
"""Lines of one message, wherever there is room for more: nobody reads them."""
URGENT: tuple[Occasion, ...] = ("escalation", "failure", "batch", "verdict")
"""What stands on top where several things are told at once."""


class Pending(NamedTuple):
    """A row of the outbox: who is to be told what, and how often that was tried. `about` is what caused it; without a
    session that is a batch, or a run of a schedule."""

    id: UUID
    workspace_id: str
    destination_id: UUID
    occasion: Occasion
    session_id: UUID | None
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


class Record(Rulings, Protocol):
    """The record of the desk, as notifications see it."""

    async def tell(self, session_id: UUID, workspace: str) -> Told: ...

    async def tell_batch(self, batch_id: UUID, workspace: str) -> BatchResults: ...


class Item(BaseModel, frozen=True):
    """What is told of one session. Whoever gets the same `id` twice was told twice of the same.

    `action` and `before` None: the judge abstained, or there is none.
    """

    id: UUID
    occasion: Occasion | Literal["test", "digest"]
    at: AwareDatetime
    title: str
    session_id: UUID | None = None
    escalation_id: UUID | None = None
    batch_id: UUID | None = None
    symbol: str | None = None
    name: str | None = None
    horizon: int | None = None
    as_of: AwareDatetime | None = None
    action: Action | None = None
    before: Action | None = None
    reason: str | None = None


class Notice(Item):
    """A notification, as a webhook gets it. `text` is all of it in words, `remarks` what every report says, and
    `items` what one message tells of several sessions, in full where the text is cut."""

    workspace: str
    locale: Locale
    text: str
    remarks: tuple[str, ...] = ()
    items: tuple[Item, ...] = ()


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
        **_head(pending, locale),
        title=title,
        text="\n".join([*lines, *told.notices[locale]]),
        remarks=tuple(told.notices[locale]),
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


def compose_digest(notices: Sequence[Notice], most: int) -> Notice:
    """One message of at most so many bytes for several to the same place: the urgent on top, and how many of each."""
    told, place = _by_urgency(notices), notices[0]
    title = SAY("notice.digest", count=len(told), counts=_count(told)).in_locale(place.locale)
    remarks = _gather_remarks(told)
    return Notice(
        id=uuid5(place.id, " ".join(sorted(str(one.id) for one in told))),
        occasion="digest",
        at=max(one.at for one in told),
        workspace=place.workspace,
        locale=place.locale,
        title=title,
        text=_fit([title], [one.title for one in told], remarks, most, place.locale),
        remarks=remarks,
        items=_list_items(told),
    )


def compose_batch(
    pending: Pending, results: BatchResults, notices: Sequence[Notice], most: int, locale: Locale
) -> Notice:
    """That a batch has ended, how it went, and what of its sessions is worth telling."""
    batch, told, remarks = results.batch, _by_urgency(notices), _gather_remarks(notices)
    counts = {
        "shares": batch.shares,
        "judged": batch.progress.states.get("judged", 0),
        "counts": _count(told),
    }
    title = SAY(f"notice.batch.{batch.status}", name=batch.name, **counts).in_locale(locale)
    head = [title, *_quote(shorten(batch.reason or "", LONGEST_REASON), batch.request.locale, locale)]
    see = SAY("notice.see_batch", id=batch.id, day=f"{batch.as_of:%Y-%m-%d}").in_locale(locale)
    return Notice(
        **_head(pending, locale),
        title=title,
        text=_fit(head, [one.title for one in told], [see, *remarks], most, locale),
        batch_id=batch.id,
        as_of=batch.as_of,
        reason=batch.reason,
        remarks=remarks,
        items=_list_items(told),
    )


def _head(pending: Pending, locale: Locale) -> dict[str, Any]:
    told = {"id": pending.id, "occasion": pending.occasion, "at": pending.created_at}
    return {**told, "workspace": pending.workspace_id, "locale": locale}


def _by_urgency(notices: Sequence[Notice]) -> list[Notice]:
    return sorted(notices, key=lambda one: (URGENT.index(one.occasion), one.at))


def _count(told: Sequence[Notice]) -> list[Message]:
    counted = Counter(one.occasion for one in told) or {"verdict": 0}
    return [SAY(f"notice.count.{kind}", count=count) for kind, count in counted.items()]


def _gather_remarks(told: Sequence[Notice]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(remark for one in told for remark in one.remarks))


def _list_items(told: Sequence[Notice]) -> tuple[Item, ...]:
    return tuple(Item(**one.model_dump(include=set(Item.model_fields))) for one in told)


def _fit(head: Sequence[str], lines: Sequence[str], foot: Sequence[str], most: int, locale: Locale) -> str:
    """As many of the lines, from the first on, as fit with all the rest, and how many were left out."""
    for shown in range(min(len(lines), MOST_LISTED), -1, -1):
        left = len(lines) - shown
        more = [SAY("notice.more", count=left).in_locale(locale)] if left else []
        text = "\n".join([*head, *lines[:shown], *more, *foot])
        if len(text.encode()) <= most or not shown:
            break
    return text


def compose_run(pending: Pending, locale: Locale) -> Notice:
    """That a schedule could not begin what was due."""
    known = {"name": pending.about["schedule"], "due": pending.about["due"]}
    title = SAY("notice.run", **known).in_locale(locale)
    reason = shorten(pending.about["why"], LONGEST_REASON)
    see = SAY("notice.see_run", **known).in_locale(locale)
    return Notice(
        **_head(pending, locale),
        title=title,
        text="\n".join([title, *_quote(reason, pending.about["locale"], locale), see]),
        reason=reason,
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
