"""The door for screens: of many shares at a moment, who is listed, their bars, and how they stand among their peers.

What is kept is read at once, and nothing is fetched; a source that keeps nothing is asked share by share.
"""

import asyncio
from collections import ChainMap
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Any

import polars as pl

from moot.modules.market_data.application.columns import facts_of, schema_of
from moot.modules.market_data.application.many import ReadsMany, Rows, Wanted
from moot.modules.market_data.application.market_data import (
    F,
    MarketData,
    as_listed,
    name_listed,
    pick_versions,
)
from moot.modules.market_data.application.peers import find_places, measure_each, see_from
from moot.modules.market_data.application.sync import SyncedSource, last_day
from moot.modules.market_data.domain.facts import BARS, BY_MODEL, VALUATIONS, Dataset
from moot.modules.market_data.domain.provider import A_DAY, Sight
from moot.shared.domain.errors import AppError, InvalidInput, Unavailable
from moot.shared.domain.facts import Company, DailyBar
from moot.shared.domain.peers import CrossSection, Peer
from moot.shared.domain.symbol import Market, Symbol
from moot.shared.domain.universe import Standing

AT_ONCE = 8
"""Reads under way at the same time, where a source has to be asked share by share."""
PRICES = ("open", "high", "low", "close")
OF_BARS = (*PRICES, "volume", "amount", "adj_factor", "suspended")
OF_VALUATIONS = ("close", "total_mv", "shares", "pe_ttm", "pb", "ps_ttm", "dv_ratio")

TRADED = ("symbol", "trade_date", *PRICES, "volume", "amount")
NO_BARS = pl.DataFrame(schema={name: schema_of(DailyBar)[name] for name in TRADED} | {"volume": pl.Float64()})


@dataclass(frozen=True)
class BarsOfMany:
    """`traded`: adjusted to the last of each share, without the days on which it was not traded, in the order of
    symbols and days. `one_by_one`: the sources that had to be asked share by share.
    """

    traded: pl.DataFrame
    standings: Mapping[str, Standing]
    damaged: tuple[str, ...] = ()
    one_by_one: tuple[str, ...] = ()


class Universe:
    def __init__(self, data: MarketData) -> None:
        self._data, self._kept = data, _narrow_to_kept(data)

    async def list_companies(
        self, symbols: Sequence[Symbol], *, as_of: datetime
    ) -> tuple[dict[str, Company], dict[str, AppError]]:
        """Those listed then, and why the others are not."""
        listed: dict[str, Company] = {}
        refused: dict[str, AppError] = {}
        for market, shares in _by_market(symbols).items():
            there = await self._list(market)
            for share in shares:
                try:
                    listed[share.text] = (
                        as_listed(there[share.text], share.local_date(as_of))
                        if share.text in there
                        else await self._data.company(share, as_of=as_of)
                    )
                except (InvalidInput, Unavailable) as e:
                    refused[share.text] = e
        return listed, refused

    async def _list(self, market: Market) -> Mapping[str, Company]:
        directory = self._data.directory
        return await directory.list_companies(market) if market in directory.sources else {}

    async def read_bars(self, symbols: Sequence[Symbol], days: int, *, as_of: datetime) -> BarsOfMany:
        """Of the last so many days."""
        parts = [await self._read_market(shares, days, as_of) for shares in _by_market(symbols).values()]
        return BarsOfMany(
            traded=pl.concat([NO_BARS, *(part.traded for part in parts)]),
            standings={symbol: standing for part in parts for symbol, standing in part.standings.items()},
            damaged=tuple(symbol for part in parts for symbol in part.damaged),
            one_by_one=tuple(name for part in parts for name in part.one_by_one),
        )

    async def _read_market(self, shares: Sequence[Symbol], days: int, as_of: datetime) -> BarsOfMany:
        today = shares[0].local_date(as_of)
        wanted = Wanted(today - timedelta(days=days), today, as_of, OF_BARS)
        rows = await self._read(BARS, shares, wanted)
        newest = rows.frame.group_by("symbol", maintain_order=True).agg(
            pl.col("trade_date", "suspended").last()
        )
        standings = {
            symbol: await self._stand(Symbol.parse(symbol), day, suspended, as_of, whole=rows.one_by_one)
            for symbol, day, suspended in newest.iter_rows()
        }
        source = self._data.source_of(shares[0]).name
        return BarsOfMany(_adjust(rows.frame), standings, rows.damaged, (source,) if rows.one_by_one else ())

    async def _stand(
        self, share: Symbol, day: date, suspended: bool, as_of: datetime, *, whole: bool
    ) -> Standing:
        """A session that is known to have had no bar was one on which the share was suspended."""
        today, calendar = share.local_date(as_of), self._data.calendar_of(share.market)
        if not whole and calendar.within(day + A_DAY, last_day(share.market, as_of)):
            known = await self._kept.read_known(BARS, share, as_of, day, today)
            day, suspended = (known[-1].trade_date, known[-1].suspended) if known else (day, suspended)
        age = calendar.count(day + A_DAY, today) if day < today else 0
        return Standing(day, suspended, age, too_old=self._is_old(BARS, share, day, as_of))

    async def read_valuations(
        self, symbols: Sequence[Symbol], days: int, *, as_of: datetime
    ) -> dict[str, dict[str, list[Any]]]:
        """By symbol and column, of the last so many days, oldest first; none of a share whose last is too old."""
        found: dict[str, dict[str, list[Any]]] = {}
        for shares in _by_market(symbols).values():
            today = shares[0].local_date(as_of)
            wanted = Wanted(today - timedelta(days=days), today, as_of, OF_VALUATIONS)
            rows = await self._read(VALUATIONS, shares, wanted)
            tables = await asyncio.to_thread(_cut_tables, rows.frame)
            found |= {
                symbol: table
                for symbol, table in tables.items()
                if not self._is_old(VALUATIONS, shares[0], table["trade_date"][-1], as_of)
            }
        return found

    async def read_filed(
        self, kind: type[F], symbols: Sequence[Symbol], *, as_of: datetime
    ) -> dict[str, list[F]]:
        """By symbol what it filed, the newest period first, in the version known then; none of a share whose last is
        too old.
        """
        dataset: Dataset[F] = BY_MODEL[kind]
        columns = tuple(name for name in kind.model_fields if name not in ("symbol", dataset.day))
        found: dict[str, list[F]] = {}
        for shares in _by_market(symbols).values():
            rows = await self._read(dataset, shares, Wanted(date.min, date.max, as_of, columns))
            versions = await asyncio.to_thread(_pick_each, dataset, rows.frame)
            for symbol, filed in versions.items():
                if not self._is_old(dataset, shares[0], getattr(filed[0], dataset.day), as_of):
                    found[symbol] = filed
        return found

    def _is_old(self, dataset: Dataset[Any], share: Symbol, day: date, as_of: datetime) -> bool:
        today, calendar = share.local_date(as_of), self._data.calendar_of(share.market)
        return dataset.limit is not None and dataset.limit.measure(day, today, calendar) > dataset.limit.most

    async def find_cross_sections(
        self, companies: Collection[Company], *, as_of: datetime
    ) -> dict[str, CrossSection]:
        """Each company among those of its industry that were listed then; none where a peer cannot be read."""
        found: dict[str, CrossSection] = {}
        by_symbol = {each.symbol: each for each in companies}
        for market, shares in _by_market(map(Symbol.parse, by_symbol)).items():
            sight = see_from(shares[0], as_of)
            industries = sorted({by_symbol[share.text].industry for share in shares})
            listed = {
                industry: name_listed(await self._data.directory.list_industry(market, industry), sight.today)
                for industry in industries
            }
            peers = await self._measure(shares[0], listed.values(), sight)
            chosen = [by_symbol[share.text] for share in shares if share.text in peers]
            found |= await asyncio.to_thread(_place_each, chosen, listed, peers, as_of)
        return found

    async def _measure(
        self, share: Symbol, industries: Collection[Mapping[str, str]], sight: Sight
    ) -> dict[str, Peer]:
        """All in one read; where somebody cannot be read, industry by industry, without his."""
        source = self._data.source_of(share)
        try:
            return await measure_each(source, dict(ChainMap(*map(dict, industries))), sight)
        except Unavailable:
            found: dict[str, Peer] = {}
            for names in industries:
                with suppress(Unavailable):
                    found |= await measure_each(source, names, sight)
            return found

    async def _read(self, dataset: Dataset[Any], shares: Sequence[Symbol], wanted: Wanted) -> Rows:
        source = self._data.source_of(shares[0])
        if not isinstance(source, ReadsMany):
            return await self._read_each(dataset, shares, wanted)
        return await source.read_many(dataset, [share.text for share in shares], wanted)

    async def _read_each(self, dataset: Dataset[Any], shares: Sequence[Symbol], wanted: Wanted) -> Rows:
        gate = asyncio.Semaphore(AT_ONCE)

        async def read(share: Symbol) -> Sequence[Any]:
            async with gate:
                try:
                    return await self._data.read_known(dataset, share, wanted.as_of, wanted.start, wanted.end)
                except Unavailable:
                    return ()

        found = await asyncio.gather(*map(read, sorted(shares, key=str)))
        model: Any = dataset.model
        schema = {name: schema_of(model)[name] for name in ("symbol", dataset.day, *wanted.columns)}
        rows = [[getattr(fact, name) for name in schema] for facts in found for fact in facts]
        return Rows(pl.DataFrame(rows, schema, orient="row"), one_by_one=True)


def _narrow_to_kept(data: MarketData) -> MarketData:
    """What is kept, as it is: nobody outside is asked for more."""
    kept = {m: s.lake if isinstance(s, SyncedSource) else s for m, s in data.directory.sources.items()}
    return MarketData(kept)


def _by_market(symbols: Iterable[Symbol]) -> dict[Market, list[Symbol]]:
    found: dict[Market, list[Symbol]] = {}
    for symbol in symbols:
        found.setdefault(symbol.market, []).append(symbol)
    return found


def _place_each(
    companies: Iterable[Company],
    listed: Mapping[str, Mapping[str, str]],
    peers: Mapping[str, Peer],
    as_of: datetime,
) -> dict[str, CrossSection]:
    """`listed` are by industry."""
    found: dict[str, CrossSection] = {}
    for company in companies:
        mates = sorted(listed[company.industry].keys() - {company.symbol})
        others = tuple(peers[mate] for mate in mates)
        found[company.symbol] = find_places(company, peers[company.symbol], others, as_of)
    return found


def _pick_each(dataset: Dataset[F], frame: pl.DataFrame) -> dict[str, list[F]]:
    known: dict[str, list[F]] = {}
    for symbol, fact in zip(frame["symbol"], facts_of(dataset.model, frame), strict=True):
        known.setdefault(symbol, []).append(fact)
    return {symbol: pick_versions(dataset, facts) for symbol, facts in known.items()}


def _cut_tables(frame: pl.DataFrame) -> dict[str, dict[str, list[Any]]]:
    shares = frame.partition_by("symbol", as_dict=True, include_key=False)
    return {str(symbol): table.to_dict(as_series=False) for (symbol,), table in shares.items()}


def _adjust(frame: pl.DataFrame) -> pl.DataFrame:
    """As `MarketData.daily_bars` does."""
    factor = pl.col("adj_factor")
    by = factor / factor.last().over("symbol")
    traded = frame.with_columns(pl.col(PRICES) * by, pl.col("volume").cast(pl.Float64))
    return traded.filter(~pl.col("suspended")).select(TRADED)
