"""How a company stands in its industry at a moment: multiples, growth and returns of everybody, measured alike.

The company is as its source tells it, the others as far as they are kept.
"""

from collections.abc import Mapping, Sequence
from datetime import date, datetime, timedelta
from statistics import median
from typing import TypeVar

from moot.modules.market_data.application.many import ReadsMany
from moot.modules.market_data.domain import facts
from moot.modules.market_data.domain.provider import MarketDataProvider, Measures, Sight
from moot.shared.domain.errors import Unavailable
from moot.shared.domain.facts import Company, DailyBar, DailyValuation, Fact, FinancialReport, quarter_of
from moot.shared.domain.peers import CrossSection, Peer, Place
from moot.shared.domain.symbol import Symbol

MULTIPLES = ("pe_ttm", "pb", "ps_ttm", "dv_ratio", "total_mv")
GROWTH = {"revenue_yoy": "total_revenue", "profit_yoy": "net_profit"}
RETURNS = {"return_1m": 1, "return_3m": 3, "return_6m": 6, "return_12m": 12}
LATELY = timedelta(days=15)
"""How long a price stands for the days after it: five sessions and the longest holidays."""

F = TypeVar("F", bound=Fact)
Priced = TypeVar("Priced", DailyBar, DailyValuation)


async def stand_among(
    source: MarketDataProvider, company: Company, mates: Mapping[str, str], as_of: datetime
) -> CrossSection:
    """`mates` are the companies of its industry that were listed: by symbol, what they were called."""
    sight = see_from(Symbol.parse(company.symbol), as_of)
    own = Peer(symbol=company.symbol, name=company.name, **await _measure(source, company.symbol, sight))
    others = {mate: mates[mate] for mate in sorted(mates.keys() - {company.symbol})}
    peers = await measure_each(source, others, sight)
    return find_places(company, own, tuple(peers.values()), as_of)


def see_from(symbol: Symbol, as_of: datetime) -> Sight:
    today, limit = symbol.local_date(as_of), facts.REPORTS.limit
    recent = today - timedelta(days=limit.days) if limit and limit.days else date.min
    return Sight(as_of, today, recent)


async def measure_each(source: MarketDataProvider, names: Mapping[str, str], sight: Sight) -> dict[str, Peer]:
    """In one read where the source can."""
    if isinstance(source, ReadsMany):
        found: Mapping[str, Measures] = await source.measure(names, sight)
    else:
        found = {symbol: await _measure(source, symbol, sight) for symbol in names}
    return {symbol: Peer(symbol=symbol, name=name, **found.get(symbol, {})) for symbol, name in names.items()}


def find_places(company: Company, own: Peer, peers: tuple[Peer, ...], as_of: datetime) -> CrossSection:
    places = {name: find_place(name, own, peers) for name in (*MULTIPLES, *GROWTH, *RETURNS)}
    return CrossSection(industry=company.industry, as_of=as_of, own=own, peers=peers, places=places)


async def _measure(source: MarketDataProvider, symbol: str, sight: Sight) -> Measures:
    async def read(dataset: facts.Dataset[F]) -> list[F]:
        """What cannot be had is a value nobody has: the places tell how many had one."""
        begin = date.min if dataset.whole else sight.look_back(max(RETURNS.values())) - LATELY
        try:
            found = await source.read(dataset, symbol, begin, sight.today)
        except Unavailable:
            return []
        return [fact for fact in found if fact.available_at <= sight.as_of]

    return measure(await read(facts.VALUATIONS), await read(facts.REPORTS), await read(facts.BARS), sight)


def measure(
    valuations: Sequence[DailyValuation],
    reports: Sequence[FinancialReport],
    bars: Sequence[DailyBar],
    sight: Sight,
) -> Measures:
    """From what is seen of one company, oldest first."""
    last, now = _stands_on(sight.today, valuations), _price_on(sight.today, bars)
    returns = {n: _change(now, _price_on(sight.look_back(months), bars)) for n, months in RETURNS.items()}
    return {**{n: getattr(last, n, None) for n in MULTIPLES}, **_growth(reports, sight), **returns}


def _stands_on(day: date, facts: Sequence[Priced]) -> Priced | None:
    return next((fact for fact in reversed(facts) if day - LATELY <= fact.trade_date <= day), None)


def _price_on(day: date, bars: Sequence[DailyBar]) -> float | None:
    bar = _stands_on(day, bars)
    return None if bar is None else bar.close * bar.adj_factor


def _growth(reports: Sequence[FinancialReport], sight: Sight) -> Measures:
    versions = sorted(reports, key=lambda report: (report.period_end, report.available_at))
    if not versions or versions[-1].period_end < sight.recent:
        return {}
    held = {quarter_of(report.period_end): report for report in versions}
    (year, quarter), last = quarter_of(versions[-1].period_end), versions[-1]
    before = held.get((year - 1, quarter))
    return {name: _change(getattr(last, f), getattr(before, f, None)) for name, f in GROWTH.items()}


def _change(now: float | None, before: float | None) -> float | None:
    """In per cent; there is none from nothing, or from a loss."""
    return None if now is None or before is None or before <= 0 else (now / before - 1) * 100


def find_place(measure: str, own: Peer, peers: Sequence[Peer]) -> Place:
    mine, theirs = getattr(own, measure), [v for peer in peers if (v := getattr(peer, measure)) is not None]
    if not theirs:
        return Place(count=0)
    below = None if mine is None else 100 * sum((v < mine) + (v == mine) / 2 for v in theirs) / len(theirs)
    return Place(count=len(theirs), median=median(theirs), percentile=below)
