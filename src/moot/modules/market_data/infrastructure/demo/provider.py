"""The synthetic market as a provider: the history that the seed implies, shown up to yesterday."""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Sequence
from datetime import date, datetime
from functools import cache, lru_cache
from operator import itemgetter
from typing import Any, Generic, TypeVar

from pydantic import BaseModel

from moot.modules.market_data.domain import facts
from moot.modules.market_data.domain.provider import Batch
from moot.modules.market_data.infrastructure.demo.market import SOURCE, firms, moment
from moot.shared.domain.clock import Clock
from moot.shared.domain.facts import NewsItem
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
        midnight = moment(facts.local_day(self._moment(self._clock.now()), Market.DEMO), 0)
        told = self._all().all_of(dataset, subject).between(start, end)
        return Batch(fact for fact in told if fact.available_at < midnight)

    def _all(self) -> "_World":
        """History is written ahead to the end of next year, so that one writing serves for many days."""
        return _world(self._seed, date(facts.local_day(self._clock.now(), Market.DEMO).year + 1, 12, 31))


class _Rows(Generic[M]):
    """All of one dataset, in the order of its days, so that a stretch of them is found without reading the rest."""

    def __init__(self, dataset: facts.Dataset[M], rows: Iterable[M]) -> None:
        self._whole = dataset.whole
        told = [(facts.local_day(getattr(row, dataset.day), Market.DEMO), row) for row in rows]
        ordered = told if dataset.whole else sorted(told, key=itemgetter(0))
        self._days, self._rows = [day for day, _ in ordered], [row for _, row in ordered]

    def between(self, start: date, end: date) -> Sequence[M]:
        if self._whole:
            return self._rows
        return self._rows[bisect_left(self._days, start) : bisect_right(self._days, end)]


class _World:
    """Everything up to `until`; what is public is for the reader to say. Only here numpy is needed, and loaded."""

    def __init__(self, seed: int, until: date) -> None:
        from moot.modules.market_data.infrastructure.demo import (  # noqa: PLC0415
            news,
            ownership,
            prices,
            statements,
        )

        self._share = cache(lambda symbol: prices.Share(firms()[symbol], seed, until))
        self._list_policies = cache(lambda: _in_order(news.list_policies(seed, until)))
        self._of_market: dict[facts.Dataset[Any], Callable[[], Sequence[Any]]] = {
            facts.MACRO: lambda: news.list_macro(seed, until),
            facts.INDEX_BARS: lambda: prices.list_index_bars([self._share(symbol) for symbol in firms()]),
        }
        self._of_share: dict[facts.Dataset[Any], Callable[[prices.Share], Sequence[Any]]] = {
            facts.NEWS: lambda share: _in_order([*news.list_news(share), *self._list_policies()]),
            facts.STATEMENTS: statements.publish_statements,
            facts.NOTICES: statements.list_notices,
            facts.PLEDGES: ownership.list_pledges,
            facts.UNLOCKS: ownership.list_unlocks,
            facts.HOLDERS: ownership.list_holder_counts,
            facts.HOLDER_TRADES: ownership.list_holder_trades,
            facts.MARGIN: ownership.list_margin,
            facts.FLOWS: ownership.list_flows,
        }
        self._told: dict[tuple[str, str], _Rows[Any]] = {}

    def all_of(self, dataset: facts.Dataset[Any], subject: str) -> _Rows[Any]:
        key = dataset.name, (subject if subject in firms() else "") if dataset.by_symbol else SOURCE
        if key not in self._told:
            self._told[key] = _Rows(dataset, self._work_out(dataset, subject))
        return self._told[key]

    def _work_out(self, dataset: facts.Dataset[Any], subject: str) -> Sequence[Any]:
        if dataset.by_symbol and subject not in firms():
            return self._list_policies() if dataset is facts.NEWS else ()
        if dataset in self._of_market:
            return self._of_market[dataset]()
        share, teller = self._share(subject), self._of_share.get(dataset)
        found: Sequence[Any] = teller(share) if teller else getattr(share, dataset.name)
        return found


def _in_order(told: list[NewsItem]) -> list[NewsItem]:
    return sorted(told, key=lambda item: (item.available_at, item.url))


_world = lru_cache(maxsize=2)(_World)
"""All desks of a process share it: nothing in it changes. Two, as a year ends; each can take half a gigabyte."""
