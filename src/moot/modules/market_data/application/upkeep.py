"""Keeping the lake: what to fetch, what is held, and whether it can be trusted."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from itertools import groupby, pairwise
from pathlib import Path

from moot.modules.market_data.application.market_data import MarketData
from moot.modules.market_data.application.sync import SyncEvent, SyncService, SyncWatch
from moot.modules.market_data.domain import facts
from moot.modules.market_data.domain.provider import Coverage, IndexMembers, MarketDataProvider, home_of
from moot.modules.market_data.domain.series import TOLERANCE, ex_step
from moot.modules.market_data.domain.texts import SAY
from moot.modules.market_data.domain.trading_rules import TradingCalendar, price_limit, trading_calendar
from moot.shared.domain.errors import InvalidInput, Unavailable
from moot.shared.domain.facts import Company, DailyBar, DailyValuation
from moot.shared.domain.messages import Message
from moot.shared.domain.symbol import Market, Symbol

SHARES_MAY_CHANGE = 3.0
SAMPLE = timedelta(days=60)


@dataclass(frozen=True)
class Remark:
    """Something to look at: on which day, and what."""

    kind: str
    day: date
    text: Message


@dataclass(frozen=True)
class Case:
    """What is examined: raw bars and valuations of one company, oldest first; `inferred` are bars no source told."""

    company: Company
    bars: Sequence[DailyBar]
    valuations: Sequence[DailyValuation]
    calendar: TradingCalendar
    inferred: frozenset[date] = frozenset()


def examine(case: Case) -> list[Remark]:
    """Every remark, oldest first."""
    checks: list[Callable[[Case], Iterable[Remark]]] = [gaps, suspensions, moves, units, factors, shares]
    return sorted((remark for check in checks for remark in check(case)), key=lambda remark: remark.day)


def gaps(case: Case) -> Iterator[Remark]:
    """Sessions of which nothing is known: no source was asked for them, and no file reaches there."""
    if not case.bars:
        return
    there = {bar.trade_date for bar in case.bars}
    for day in case.calendar.sessions(case.bars[0].trade_date, case.bars[-1].trade_date):
        if day not in there:
            yield _remark("gap", day)


def suspensions(case: Case) -> Iterator[Remark]:
    """Sessions without a bar of which a source was asked: said once for all that follow each other."""
    for inferred, bars in groupby(case.bars, key=lambda bar: bar.trade_date in case.inferred):
        if inferred:
            days = [bar.trade_date for bar in bars]
            yield _remark("suspended", days[0], until=days[-1].isoformat(), count=len(days))


def moves(case: Case) -> Iterator[Remark]:
    """Closes beyond the price limit of the day."""
    for bar in case.bars:
        band = price_limit(bar, case.company.list_date, case.calendar)
        if band is None:
            continue
        low, high = band.prices(bar.pre_close)
        if not low - 0.011 <= bar.close <= high + 0.011:
            move = 100 * (bar.close / bar.pre_close - 1)
            yield _remark("move", bar.trade_date, move=move, low=low, high=high, close=bar.close)


def units(case: Case) -> Iterator[Remark]:
    """Amount over volume is the day's mean price: outside of low and high, one of the two is in other units."""
    for bar in case.bars:
        if bar.volume and bar.amount:
            mean = bar.amount / bar.volume
            if not bar.low * (1 - TOLERANCE) <= mean <= bar.high * (1 + TOLERANCE):
                yield _remark("unit", bar.trade_date, mean=mean, low=bar.low, high=bar.high)


def factors(case: Case) -> Iterator[Remark]:
    """A reference price below the previous close and the step of the factor tell the same story, or one is wrong."""
    for before, bar in pairwise(case.bars):
        if case.calendar.next_session(before.trade_date) != bar.trade_date:
            continue  # what happened in between is not known
        by_price = ex_step(before, bar)
        by_factor = bar.adj_factor / before.adj_factor
        if abs(by_price / by_factor - 1) > TOLERANCE:
            yield _remark("factor", bar.trade_date, by_price=by_price, by_factor=by_factor)


def shares(case: Case) -> Iterator[Remark]:
    """Market value over price is the number of shares; it does not triple overnight."""
    for before, day in pairwise(case.valuations):
        ratio = (day.total_mv / day.close) / (before.total_mv / before.close)
        if not 1 / SHARES_MAY_CHANGE <= ratio <= SHARES_MAY_CHANGE:
            yield _remark("shares", day.trade_date, ratio=ratio)


async def disagreements(symbol: Symbol, sources: Mapping[str, MarketDataProvider], end: date) -> list[Remark]:
    """Closes of the last weeks that two sources tell differently; a source that cannot answer is left out."""
    told: dict[str, dict[date, float]] = {}
    for name, source in sources.items():
        try:
            bars = await source.read(facts.BARS, symbol.text, end - SAMPLE, end)
        except Unavailable:
            continue
        told[name] = {bar.trade_date: bar.close for bar in bars}
    return [
        _remark("disagree", day, one=one, other=other, a=told[one][day], b=told[other][day])
        for one, other in pairwise(told)
        for day in sorted(told[one].keys() & told[other].keys())
        if abs(told[one][day] / told[other][day] - 1) > TOLERANCE
    ]


def _remark(kind: str, day: date, **values: object) -> Remark:
    return Remark(kind, day, SAY(f"remark.{kind}", day=day.isoformat(), **values))


@dataclass(frozen=True)
class Holding:
    """`age` is that of the newest row, in sessions or days as the limit counts; None without limit or rows."""

    coverage: Coverage
    limit: facts.Age | None
    age: int | None = None

    @property
    def too_old(self) -> bool:
        return self.limit is not None and self.age is not None and self.age > self.limit.most


def hold(kept: Coverage, now: datetime) -> Holding:
    limit, day, subject = facts.DATASETS[kept.dataset].limit, kept.newest, kept.subject
    if limit is None or day is None:
        return Holding(kept, limit)
    market = home_of(subject)
    today = facts.local_day(now, market)
    return Holding(kept, limit, limit.measure(day, today, trading_calendar(market)))


HISTORY = timedelta(days=3 * 366)
INDEXES = {"csi300": "399300.SZ", "csi500": "399905.SZ"}


@dataclass(frozen=True)
class SyncPlan:
    symbols: tuple[Symbol, ...]
    start: date
    end: date

    @property
    def steps(self) -> int:
        subjects = {True: len(self.symbols), False: len({symbol.market for symbol in self.symbols})}
        return sum(subjects[dataset.by_symbol] for dataset in facts.DATASETS.values())


@dataclass(frozen=True)
class MarketDataUpkeep:
    market_data: MarketData
    syncing: SyncService

    async def plan(
        self, texts: Sequence[str], universe: str | None, start: date | None, end: date | None
    ) -> SyncPlan:
        """Who to fetch, for which days: three years up to today unless told otherwise."""
        today = self.syncing.clock.now().date()
        codes = [*await self._resolve(texts), *await self._universe(universe)]
        symbols = tuple(dict.fromkeys(map(Symbol.parse, codes)))
        first, last = start or (end or today) - HISTORY, end or today
        if not symbols:
            raise InvalidInput(SAY("upkeep.nobody"))
        if first > last:
            raise InvalidInput(SAY("upkeep.backwards", start=first.isoformat(), end=last.isoformat()))
        return SyncPlan(symbols, first, last)

    async def sync(self, plan: SyncPlan, *, watch: SyncWatch | None = None) -> list[SyncEvent]:
        return await self.syncing.sync(plan.symbols, plan.start, plan.end, watch=watch)

    async def holdings(self) -> list[Holding]:
        now = self.syncing.clock.now()
        return [hold(kept, now) for kept in self.syncing.store.inventory()]

    async def examine(self, text: str) -> list[Remark]:
        """What is odd about the data of a company, and where its sources tell it differently."""
        company = await self.market_data.directory.resolve(text)
        symbol, now = Symbol.parse(company.symbol), self.syncing.clock.now()
        today = symbol.local_date(now)
        start = today - HISTORY
        bars = await self.market_data.daily_bars(symbol, start, today, as_of=now, adjusted=False)
        told = await self.market_data.source_of(symbol).read(facts.BARS, symbol.text, start, today)
        case = Case(
            company,
            bars,
            await self.market_data.daily_valuations(symbol, start, today, as_of=now),
            self.market_data.calendar_of(symbol.market),
            frozenset(bar.trade_date for bar in bars) - {bar.trade_date for bar in told},
        )
        sources = self.syncing.providers.get(symbol.market, {})
        return [*examine(case), *await disagreements(symbol, sources, today), *self._name_old(symbol)]

    def _name_old(self, symbol: Symbol) -> Iterator[Remark]:
        """Of every kind of data there is about the company or its market, what is too old to judge by."""
        for dataset in facts.DATASETS.values():
            subject = symbol.text if dataset.by_symbol else symbol.market.value
            kept = self.syncing.store.coverage(dataset, subject)
            if kept and kept.newest and hold(kept, self.syncing.clock.now()).too_old:
                yield _remark("old", kept.newest, dataset=dataset.label)

    async def _universe(self, universe: str | None) -> list[str]:
        """The codes of everybody listed in China, of an index, or of a file with one company a line."""
        china = self.market_data.directory.sources.get(Market.CN)
        if universe is None:
            return []
        if universe == "all":
            companies = await china.read(facts.COMPANIES, Market.CN.value) if china else []
            return [company.symbol for company in companies if company.delist_date is None]
        if universe in INDEXES:
            return await self.list_members(universe, self.syncing.clock.now().date())
        return await self._resolve(_read_lines(universe))

    async def _resolve(self, texts: Iterable[str]) -> list[str]:
        return [(await self.market_data.directory.resolve(text)).symbol for text in texts]

    async def list_members(self, name: str, day: date) -> list[str]:
        """Of an index, on that day; raises `Unavailable` where no source tells them."""
        index = INDEXES[name]
        for source in self.syncing.providers.get(Market.CN, {}).values():
            if isinstance(source, IndexMembers):
                return await source.constituents(index, day)
        raise Unavailable(SAY("upkeep.no_members", index=index))


def _read_lines(universe: str) -> list[str]:
    file = Path(universe)
    if not file.is_file():
        raise InvalidInput(SAY("upkeep.universe_unknown", universe=universe))
    return [line for line in file.read_text(encoding="utf-8").splitlines() if line.strip()]
