"""Reads what was published: which kind of event it is, which way it points, and how much of it is left today."""

import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date, datetime
from functools import cache, lru_cache
from itertools import chain
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel

from moot.modules.research.domain.evidence import evidence_of
from moot.modules.research.domain.facts import SAY, Case, Cited
from moot.shared.domain.claims import GRAVE_KINDS, Horizon
from moot.shared.domain.evidence import Evidence
from moot.shared.domain.experts import ExpertType
from moot.shared.domain.facts import Fact, NewsItem
from moot.shared.domain.messages import LOCALES, Locale

WINDOW_DAYS = 90
HALF_LIFE_DAYS = 30
UNREAD_WEIGHT = 0.5
"""What an event that no category fits adds to the balance, without tipping it."""

DOUBT = 2.0
"""The weight of what has not been heard yet."""

Timeframe = Literal["近期", "中期", "远期"]
Probability = Literal["高", "中", "低"]
Topic = Literal["company", "industry", "sentiment", "earnings"]

PROBABILITY: tuple[Probability, ...] = ("低", "中", "高")
"""By how much holds of: announced by the company or an authority; more than intended."""


def is_grave(category: str) -> bool:
    return f"{ExpertType.CATALYST_DETECTIVE.prefix}.{category}" in GRAVE_KINDS


class Category(BaseModel, frozen=True, extra="forbid"):
    """A kind of event and the patterns that give it away; of two that fit, one that is grave or lifts what is grave
    goes first, then the table's order decides.
    """

    id: str
    topic: Topic
    polarity: Literal[-1, 0, 1]
    weight: int
    timeframe: Timeframe
    horizon: Horizon
    words: tuple[str, ...]
    lifts: tuple[str, ...] = ()

    def fits(self, text: str) -> bool:
        return re.search("|".join(self.words), text) is not None


class EventTable(BaseModel):
    """`sizes`: by kind, what a fact weighs below a size in per cent."""

    tentative: tuple[str, ...]
    sizes: dict[str, tuple[tuple[float, float], ...]]
    news: tuple[Category, ...]
    policy: tuple[Category, ...]


UNREAD = Category(id="unread", topic="company", polarity=0, weight=0, timeframe="近期", horizon=20, words=())
SETTLED = "settled"
"""What was grave until it was lifted."""


class Event(Cited):
    """Something published, as it reads today: `points` is its direction times what is left of its weight.

    `title` is in the reader's language, if there is one in it; `titles` are in all. `horizon`: over how many sessions
    it is expected to work. A `fact` was disclosed in `figures`, by name, and its title is made of them.
    """

    kind: Literal["announcement", "news", "policy", "fact"]
    published: date
    title: str
    titles: dict[Locale, str]
    topic: Topic
    category: str
    timeframe: Timeframe
    horizon: Horizon
    probability: Probability
    weight: float
    points: float
    figures: Mapping[str, float] = {}

    @property
    def grave(self) -> bool:
        return is_grave(self.category)


@cache
def event_table() -> EventTable:
    return EventTable.model_validate(tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8")))


def read_events(news: Iterable[NewsItem], case: Case) -> list[Event]:
    """Newest first, each address once."""
    return [_read(item, category, case) for item, category in sort_news(news)]


def sort_news(news: Iterable[NewsItem]) -> Iterator[tuple[NewsItem, Category]]:
    """By kind, newest first, each address once. What is grave is over when something later that lifts it was
    announced: a report by others is not enough.
    """
    unique: dict[str, NewsItem] = {}
    for item in sorted(news, key=lambda item: item.available_at, reverse=True):
        unique.setdefault(item.url, item)
    lifted: dict[str, datetime] = {}
    for item in unique.values():
        category = _category_of(f"{item.title} {item.title_en or ''}".lower(), item.kind == "policy")
        if item.symbol and item.available_at < lifted.get(category.id, item.available_at):
            category = category.model_copy(update={"id": SETTLED, "polarity": 0, "weight": 0})
        if item.symbol and item.kind != "news":
            lifted = dict.fromkeys(category.lifts, item.available_at) | lifted
        yield item, category


@lru_cache(maxsize=4096)
def _category_of(text: str, policy: bool) -> Category:
    known = event_table().policy if policy else event_table().news
    lifting = [category for category in known if category.lifts and category.fits(text)]
    over = {kind for category in lifting for kind in category.lifts}
    grave = (category for category in known if is_grave(category.id) and category.id not in over)
    return next((c for c in chain(grave, lifting, known) if c.fits(text)), UNREAD)


def find_grave(news: Iterable[NewsItem]) -> dict[str, NewsItem]:
    """The newest that tells of each grave kind that stands; only what is about the company itself."""
    told = [
        (category.id, item) for item, category in sort_news(news) if item.symbol and is_grave(category.id)
    ]
    return dict(reversed(told))


def _read(item: NewsItem, category: Category, case: Case) -> Event:
    text = f"{item.title} {item.title_en or ''}".lower()
    decided = not any(word in text for word in event_table().tentative)
    # news about a company is sorted by what happened, other news by whom it is about
    topic = category.topic if item.symbol else "industry" if item.industry else "sentiment"
    return make_event(
        item,
        category.model_copy(update={"topic": topic}),
        case,
        at=item.available_at,
        weight=category.weight or UNREAD_WEIGHT,
        titles=_titles(item),
        url=item.url,
        kind=item.kind,
        probability=PROBABILITY[(item.kind != "news") + decided],
    )


def make_event(
    fact: Fact,
    category: Category,
    case: Case,
    *,
    at: datetime,
    weight: float,
    titles: dict[Locale, str],
    **told: Any,
) -> Event:
    """Its weight is halved with every month since it happened."""
    published = case.symbol.local_date(at)
    left = weight * 0.5 ** ((case.today - published).days / HALF_LIFE_DAYS)
    kind = category.model_dump(include={"topic", "timeframe", "horizon"})
    origin = {"available_at": fact.available_at, "source": fact.source}
    return Event(
        **origin,
        **kind,
        **told,
        published=published,
        title=titles[case.locale],
        titles=titles,
        category=category.id,
        weight=round(left, 2),
        points=round(category.polarity * left, 2),
    )


def _titles(item: NewsItem) -> dict[Locale, str]:
    return {locale: item.title if locale == "zh-CN" else item.title_en or item.title for locale in LOCALES}


def balance(events: Sequence[Event]) -> float | None:
    """From -1 (all against) to +1 (all for), fresh events counting most; one event alone never fills the scale."""
    weight = sum(event.weight for event in events) + DOUBT
    return round(sum(event.points for event in events) / weight, 2) if events else None


def tell_events(events: Sequence[Event], locale: Locale) -> str:
    lines = [SAY("event_line", published=e.published, title=e.title, url=e.url) for e in events]
    return "\n".join(line.in_locale(locale) for line in lines) or SAY("no_results").in_locale(locale)


def event_evidence(expert: str, events: Sequence[Event]) -> list[Evidence]:
    return [evidence_of(e, f"{expert}.event.{n}", e.title) for n, e in enumerate(events, start=1)]
