"""The industry's cross-section: the company as its source tells it, the others as far as they are kept."""

from collections.abc import Mapping
from datetime import date, datetime, timedelta
from typing import TypeVar

from moot.modules.market_data.domain import facts
from moot.modules.market_data.domain.peers import (
    GROWTH,
    LATELY,
    MULTIPLES,
    RETURNS,
    Measures,
    Sight,
    find_place,
    measure,
)
from moot.modules.market_data.domain.provider import MarketDataProvider, MeasuresMany
from moot.shared.domain.errors import Unavailable
from moot.shared.domain.facts import Company, Fact
from moot.shared.domain.peers import CrossSection, Peer
from moot.shared.domain.symbol import Symbol

F = TypeVar("F", bound=Fact)


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
    if isinstance(source, MeasuresMany):
        found = await source.measure(names, sight)
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
