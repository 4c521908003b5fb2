"""The synthetic market as a provider: the history that the seed implies, shown up to yesterday."""

from collections.abc import Callable, Sequence
from datetime import date, datetime
from functools import cached_property, lru_cache
from typing import Any, TypeVar

from pydantic import BaseModel

from moot.modules.market_data.domain import facts
from moot.modules.market_data.domain.provider import Batch
from moot.modules.market_data.infrastructure.demo.market import SOURCE, ZONE, firms, moment
from moot.shared.domain.clock import Clock
from moot.shared.domain.facts import MacroObservation, NewsItem
from moot.shared.domain.symbol import Market

M = TypeVar("M", bound=BaseModel)


class DemoMarket:
    """A pure function of (seed, symbol, date). Nothing that became public today, or later, is there yet.

    `moment_of_reading` tells when a session that runs again first ran.
    """

    name = SOURCE

    def __init__(
        self, seed: int, clock: Clock, moment_of_reading: Callable[[datetime], datetime] = lambda now: now
    ) -> None:
        self._seed, self._clock, self._moment = seed, clock, moment_of_reading

    async def read(
        self, dataset: facts.Dataset[M], subject: str, start: date = date.min, end: date = date.max
    ) -> Batch[M]:
        if dataset is facts.COMPANIES:
            listed: list[Any] = [firm.company for firm in firms().values()]
            return Batch(listed)
        every = self._all().all_of(dataset, subject)
        midnight, days = moment(_today(self._moment(self._clock.now())), 0), (start, end, Market.DEMO)
        public = (fact for fact in every if fact.available_at < midnight)
        return Batch(fact for fact in public if dataset.covers(getattr(fact, dataset.day), *days))

    def _all(self) -> "_World":
        """History is written ahead to the end of next year, so that one writing serves for many days."""
        return _world(self._seed, date(_today(self._clock.now()).year + 1, 12, 31))


def _today(now: datetime) -> date:
    return now.astimezone(ZONE).date()


class _World:
    """Everything up to `until`; what is public is for the reader to say. Only here numpy is needed, and loaded."""

    def __init__(self, seed: int, until: date) -> None:
        from moot.modules.market_data.infrastructure.demo import news, prices  # noqa: PLC0415

        self._seed, self._until, self._press = seed, until, news
        self.histories = {symbol: prices.Share(firm, seed, until) for symbol, firm in firms().items()}
        self._news: dict[str, list[NewsItem]] = {}

    def all_of(self, dataset: facts.Dataset[Any], subject: str) -> Sequence[Any]:
        if dataset is facts.NEWS:
            return self._news_of(subject)
        home = self.histories.get(subject) if dataset.by_symbol else self
        found: Sequence[Any] = getattr(home, dataset.name, ())
        return found

    @cached_property
    def macro(self) -> list[MacroObservation]:
        return self._press.list_macro(self._seed, self._until)

    @cached_property
    def _policies(self) -> list[NewsItem]:
        return self._press.list_policies(self._seed, self._until)

    def _news_of(self, subject: str) -> list[NewsItem]:
        if subject not in self._news:
            share = self.histories.get(subject)
            told = [*(self._press.list_news(share) if share else ()), *self._policies]
            self._news[subject] = sorted(told, key=lambda item: (item.available_at, item.url))
        return self._news[subject]


_world = lru_cache(maxsize=4)(_World)
"""All desks of a process share it: nothing in it changes."""
