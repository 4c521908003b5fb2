"""The synthetic market as a provider: the history that the seed implies, shown up to yesterday."""

from collections.abc import Callable, Sequence
from datetime import date, datetime
from functools import cache, lru_cache
from operator import attrgetter, itemgetter
from typing import Any

from moot.modules.market_data.domain import facts
from moot.modules.market_data.domain.provider import Batch
from moot.modules.market_data.infrastructure.demo.market import SOURCE, History, M, firms, moment
from moot.shared.domain.clock import Clock
from moot.shared.domain.symbol import Market

WHOLE = date.min, date.max
BY_TIME = attrgetter("available_at", "url")
_Found = Sequence[Any] | History[Any]


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
        told = self._all().all_of(dataset, subject).between(*WHOLE if dataset.whole else (start, end))
        return Batch(fact for fact in told if fact.available_at < midnight)

    def _all(self) -> "_World":
        """History is written ahead to the end of next year, so that one writing serves for many days."""
        return _world(self._seed, date(facts.local_day(self._clock.now(), Market.DEMO).year + 1, 12, 31))


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
        self._list_policies = cache(lambda: sorted(news.list_policies(seed, until), key=BY_TIME))
        self._of_market: dict[facts.Dataset[Any], Callable[[], _Found]] = {
            facts.MACRO: lambda: news.list_macro(seed, until),
            facts.INDEX_BARS: lambda: prices.tell_index_bars([self._share(symbol) for symbol in firms()]),
        }
        self._of_share: dict[facts.Dataset[Any], Callable[[prices.Share], _Found]] = {
            facts.NEWS: lambda share: sorted([*news.list_news(share), *self._list_policies()], key=BY_TIME),
            facts.STATEMENTS: statements.publish_statements,
            facts.NOTICES: statements.list_notices,
            facts.PLEDGES: ownership.list_pledges,
            facts.UNLOCKS: ownership.list_unlocks,
            facts.HOLDERS: ownership.list_holder_counts,
            facts.HOLDER_TRADES: ownership.list_holder_trades,
            facts.MARGIN: ownership.tell_margin,
            facts.FLOWS: ownership.tell_flows,
        }
        self._told: dict[tuple[str, str], History[Any]] = {}

    def all_of(self, dataset: facts.Dataset[Any], subject: str) -> History[Any]:
        key = dataset.name, (subject if subject in firms() else "") if dataset.by_symbol else SOURCE
        if key not in self._told:
            found = self._work_out(dataset, subject)
            self._told[key] = found if isinstance(found, History) else _in_order_of_days(dataset, found)
        return self._told[key]

    def _work_out(self, dataset: facts.Dataset[Any], subject: str) -> _Found:
        if dataset.by_symbol and subject not in firms():
            return self._list_policies() if dataset is facts.NEWS else ()
        if dataset in self._of_market:
            return self._of_market[dataset]()
        share, teller = self._share(subject), self._of_share.get(dataset)
        found: _Found = teller(share) if teller else getattr(share, dataset.name)
        return found


def _in_order_of_days(dataset: facts.Dataset[M], rows: Sequence[M]) -> History[M]:
    told = [(facts.local_day(getattr(row, dataset.day), Market.DEMO), row) for row in rows]
    told = told if dataset.whole else sorted(told, key=itemgetter(0))
    return History([day for day, _ in told], [row for _, row in told].__getitem__)


_world = lru_cache(maxsize=2)(_World)
"""All desks of a process share it: nothing in it changes. Two, as a year ends."""
