"""The door of those who judge: what is older than its limit is no data, and what they were given is remembered."""

from collections import defaultdict
from collections.abc import Callable, Iterable
from contextlib import suppress
from datetime import date, datetime, timedelta
from itertools import pairwise
from operator import attrgetter
from statistics import median
from typing import Any

from moot.modules.market_data.application.market_data import F, MarketData
from moot.modules.market_data.domain.facts import BARS, Age, Dataset, local_day
from moot.modules.market_data.domain.provider import A_DAY
from moot.modules.market_data.domain.texts import SAY
from moot.shared.domain.datasets import DataUntil
from moot.shared.domain.errors import ErrorKind, Unavailable
from moot.shared.domain.messages import DEFAULT_LOCALE, Message
from moot.shared.domain.symbol import Symbol

ENOUGH_TO_TELL = 3
"""Days of a series by which one sees how often it comes."""
LOOK_BACK = timedelta(days=3 * 365)
"""How far before an empty range the newest row is looked for, so that its day can be told."""


class StaleData(Unavailable, code="DATA_STALE", kind=ErrorKind.DATA, passing=False):
    """There are data, and they are too old to judge by: somebody has to bring newer ones."""


class FreshData(MarketData):
    """Made for one run. `newest`: by dataset, the day of the newest row given, unless rows of it come now and then;
    `dropped` tells what was left out.

    A dataset of several series, as macro figures are, is judged series by series, and is stale when all of them are.
    """

    def __init__(self, data: MarketData) -> None:
        super().__init__(data.directory.sources)
        self.directory, self._finding = data.directory, data._finding
        self.newest: DataUntil = {}
        self.dropped: list[Message] = []

    async def read_known(
        self,
        dataset: Dataset[F],
        symbol: Symbol,
        as_of: datetime,
        start: date = date.min,
        end: date = date.max,
    ) -> list[F]:
        """Refuses what is too old at the end of the range asked for, and says of which day it is."""
        known = await super().read_known(dataset, symbol, as_of, start, end)
        if dataset.limit and known:
            known = await self._keep_fresh(dataset, dataset.limit, known, symbol, as_of, end)
        elif dataset.limit and start > date.min:
            older: list[F] = []
            with suppress(Unavailable):  # where nothing older can be had, no day can be told
                older = await super().read_known(dataset, symbol, as_of, start - LOOK_BACK, start - A_DAY)
            await self._keep_fresh(dataset, dataset.limit, older, symbol, as_of, end)
        if known and (dataset.limit or not dataset.whole):
            last = max(map(attrgetter(dataset.day), known))
            self.newest[dataset.name] = local_day(last, symbol.market)
        return known

    async def _keep_fresh(
        self, dataset: Dataset[F], limit: Age, known: list[F], symbol: Symbol, as_of: datetime, end: date
    ) -> list[F]:
        series_of, day_of = _tell_series(dataset), attrgetter(dataset.day)
        days = defaultdict[Any, list[date]](list)
        for series, day in zip(map(series_of, known), map(day_of, known), strict=True):
            days[series].append(day)
        newest = {series: max(told) for series, told in days.items()}
        ages = {s: await self._age(dataset, limit, symbol, day, as_of, end) for s, day in newest.items()}
        old = [series for series, age in ages.items() if age > _allow(limit, series, days[series])]
        if known and len(old) == len(newest):
            raise _refuse(dataset, limit, symbol, max(newest.values()), min(ages.values()))
        for series in old:
            names = filter(None, series if isinstance(series, tuple) else [series])
            named = [_name_series(str(name)) for name in names]
            self.dropped.append(SAY("stale.dropped", dataset=dataset.label, series=named, day=newest[series]))
        return [fact for fact in known if series_of(fact) not in old] if old else known

    async def _age(
        self, dataset: Dataset[F], limit: Age, symbol: Symbol, day: date, as_of: datetime, end: date
    ) -> int:
        """In the unit of the limit: days, or the sessions after `day` on which the share was not suspended."""
        today = min(end, symbol.local_date(as_of))
        age = limit.measure(day, today, self.calendar_of(symbol.market))
        if age <= limit.most or limit.sessions is None or dataset is BARS or not dataset.by_symbol:
            return age
        with suppress(Unavailable):
            bars = await super().read_known(BARS, symbol, as_of, day + A_DAY, today)
            age -= sum(bar.suspended for bar in bars)
        return age


def _refuse(dataset: Dataset[F], limit: Age, symbol: Symbol, day: date, age: int) -> StaleData:
    subject = symbol.text if dataset.by_symbol else symbol.market.value
    told = {"dataset": dataset.label, "subject": subject, "symbol": symbol.text, "day": day, "age": age}
    said = SAY("stale.sessions" if limit.sessions else "stale.days", limit=limit.most, **told)
    return StaleData(said, dataset=dataset.name, subject=subject, day=day.isoformat(), age=age)


def _allow(limit: Age, series: Any, days: Iterable[date]) -> int:
    """Of several series some come more seldom than others, as quarters do: each may be two of its own gaps old."""
    told = sorted(set(days))
    if series is None or limit.days is None or len(told) < ENOUGH_TO_TELL:
        return limit.most
    return max(limit.most, 2 * round(median((then - day).days for day, then in pairwise(told))))


def _name_series(name: str) -> Message | str:
    """As people call it, if they do."""
    return SAY(key) if (key := f"macro.{name}") in SAY.texts(DEFAULT_LOCALE) else name


def _tell_series(dataset: Dataset[F]) -> Callable[[F], Any]:
    """What the key of a row says beside its day and its version; a dataset of one series has nothing there."""
    names = [name for name in dataset.key if name not in (dataset.day, "available_at")]
    return attrgetter(*names) if names else lambda _fact: None
