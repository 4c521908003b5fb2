"""Point-in-time reads: the only door to market data. `as_of` has no default, and nothing later is seen."""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import date, datetime, timedelta
from typing import Any, TypeVar

from pydantic import BaseModel

from moot.modules.market_data.application.directory import Directory
from moot.modules.market_data.application.peers import stand_among
from moot.modules.market_data.domain import facts, series, trading_rules
from moot.modules.market_data.domain.provider import (
    Batch,
    CompanyLookup,
    IndustryIndexes,
    MarketDataProvider,
)
from moot.modules.market_data.domain.spelling import strip_marks, transcribe
from moot.modules.market_data.domain.texts import SAY
from moot.shared.domain.errors import InvalidInput, Unavailable
from moot.shared.domain.facts import (
    Company,
    DailyBar,
    DailyValuation,
    Fact,
    FinancialReport,
    MacroObservation,
    NameSince,
    NewsItem,
)
from moot.shared.domain.peers import CrossSection
from moot.shared.domain.symbol import Market, Symbol

F = TypeVar("F", bound=Fact)
LOOK_BACK = timedelta(days=15)


class TradingState(BaseModel, frozen=True):
    """As of the last session known then. None: there is none. Percentages are of the day's reference price.

    `t_plus`: sessions before shares bought may be sold again.
    """

    st: bool
    suspended: bool
    days_listed: int
    limit_percent: float | None
    change_percent: float
    at_limit_up: bool
    at_limit_down: bool
    t_plus: int
    lot_size: int | None


class MarketData:
    calendar_of = staticmethod(trading_rules.trading_calendar)

    def __init__(self, providers: Mapping[Market, MarketDataProvider]) -> None:
        self.directory = Directory(providers)
        self._finding: dict[tuple[str, datetime], asyncio.Future[CrossSection]] = {}

    async def symbol(self, text: str) -> Symbol:
        """The share that a person means; refuses what means several or none."""
        return await self.directory.symbol(text)

    async def company(self, symbol: Symbol, *, as_of: datetime) -> Company:
        """The company listed under `symbol` at `as_of`; refuses one that is unknown, gone or not there yet."""
        source = self.source_of(symbol)
        company = await self.directory.listed(symbol)
        if company is None and isinstance(source, CompanyLookup):
            company = await source.company(symbol.text)
        if company is None:
            raise await self.directory.refuse_unlisted(symbol)
        return as_listed(company, symbol.local_date(as_of))

    async def daily_bars(
        self, symbol: Symbol, start: date, end: date, *, as_of: datetime, adjusted: bool = True
    ) -> list[DailyBar]:
        """Bars of the range, oldest first; adjusted to the last factor known at `as_of` unless told otherwise."""
        bars = await self.read_known(facts.BARS, symbol, as_of, start, end)
        return _adjust(bars) if adjusted else bars

    async def daily_valuations(
        self, symbol: Symbol, start: date, end: date, *, as_of: datetime
    ) -> list[DailyValuation]:
        return await self.read_known(facts.VALUATIONS, symbol, as_of, start, end)

    async def financial_reports(
        self, symbol: Symbol, periods: int, *, as_of: datetime
    ) -> list[FinancialReport]:
        """The newest periods first."""
        return (await self.read_versions(facts.REPORTS, symbol, as_of))[:periods]

    async def read_versions(self, dataset: facts.Dataset[F], symbol: Symbol, as_of: datetime) -> list[F]:
        """As `read_known`, with each row in the version known at `as_of`, newest first: what was restated since had
        its old figures then. For statements, dividends and whatever else has `available_at` in its key."""
        return pick_versions(dataset, await self.read_known(dataset, symbol, as_of))

    async def read(
        self, kind: type[F], symbol: Symbol, *, as_of: datetime, start: date = date.min, end: date = date.max
    ) -> list[F]:
        """All facts of a kind that were known at `as_of`, oldest first; what was restated, as it was told last."""
        dataset: facts.Dataset[F] = facts.BY_MODEL[kind]
        if "available_at" in dataset.key:
            return (await self.read_versions(dataset, symbol, as_of))[::-1]
        return await self.read_known(dataset, symbol, as_of, start, end)

    async def macro(self, symbol: Symbol, days: int, *, as_of: datetime) -> list[MacroObservation]:
        """The figures of the symbol's home market whose period lies within the last `days`."""
        today = symbol.local_date(as_of)
        return await self.read_known(facts.MACRO, symbol, as_of, today - timedelta(days=days), today)

    async def news(self, symbol: Symbol, days: int, *, as_of: datetime) -> list[NewsItem]:
        """What was published in the last `days` about the company, its industry or the market; oldest first."""
        company = await self.company(symbol, as_of=as_of)
        today = symbol.local_date(as_of)
        items = await self.read_known(facts.NEWS, symbol, as_of, today - timedelta(days=days), today)
        return [
            item
            for item in items
            if item.symbol == symbol.text
            or (item.symbol is None and item.industry in (None, company.industry))
        ]

    async def trading_state(self, symbol: Symbol, *, as_of: datetime) -> TradingState | None:
        """None when there has been no session lately. Raises `InvalidInput` for what cannot be researched."""
        today = symbol.local_date(as_of)
        company = await self.company(symbol, as_of=as_of)
        bars = await self.daily_bars(symbol, today - LOOK_BACK, today, as_of=as_of, adjusted=False)
        if not bars:
            return None
        bar, board = bars[-1], trading_rules.board_of(symbol)
        bar = bar.model_copy(update={"is_st": bar.is_st or series.was_st(company, today)})
        band = trading_rules.price_limit(bar, company.list_date, self.calendar_of(symbol.market))
        return TradingState(
            st=bar.is_st,
            suspended=bar.suspended,
            days_listed=(today - company.list_date).days,
            limit_percent=float(band.up) if band else None,
            change_percent=round((bar.close / bar.pre_close - 1) * 100, 4),
            at_limit_up=trading_rules.is_limit_up(bar, band),
            at_limit_down=trading_rules.is_limit_down(bar, band),
            t_plus=trading_rules.SETTLEMENT[symbol.market],
            lot_size=trading_rules.LOTS[board] if board else None,
        )

    async def peers(self, symbol: Symbol, *, as_of: datetime) -> CrossSection:
        """The company among those of its industry that were listed at `as_of`, by what was known then. What several
        ask for at the same time is found once.
        """
        asked = (symbol.text, as_of)
        if asked not in self._finding:
            self._finding[asked] = asyncio.ensure_future(self._find_peers(symbol, as_of))
            self._finding[asked].add_done_callback(lambda _: self._finding.pop(asked))
        return await asyncio.shield(self._finding[asked])

    async def _find_peers(self, symbol: Symbol, as_of: datetime) -> CrossSection:
        company, today = await self.company(symbol, as_of=as_of), symbol.local_date(as_of)
        industry = await self.directory.list_industry(symbol.market, company.industry)
        mates = name_listed(industry, today)
        return await stand_among(self.source_of(symbol), company, mates, as_of)

    async def read_known(
        self,
        dataset: facts.Dataset[F],
        symbol: Symbol,
        as_of: datetime,
        start: date = date.min,
        end: date = date.max,
    ) -> list[F]:
        """Everything of a kind that was known at `as_of`, oldest first."""
        subject = symbol.text if dataset.by_symbol else symbol.market.value
        found = await self.source_of(symbol).read(dataset, subject, start, end)
        if dataset is facts.BARS:
            found = await self._make_whole(symbol, found, start)
        if dataset is facts.INDEX_BARS:
            found = await self._choose_indexes(symbol, found, start, end)
        return [fact for fact in found if fact.available_at <= as_of]

    async def _choose_indexes(self, symbol: Symbol, bars: Batch[Any], start: date, end: date) -> Batch[Any]:
        """Those of the market and of the company's industry: which others are kept depends on who asked before."""
        source, industry = self.source_of(symbol), ""
        with suppress(Unavailable):  # what cannot be had of an industry leaves the market
            company = await self.directory.listed(symbol)
            industry = company.industry if company else ""
            if isinstance(source, IndustryIndexes) and await source.industry_bars(industry, start, end):
                bars = await source.read(facts.INDEX_BARS, symbol.market.value, start, end)
        return Batch(bar for bar in bars if bar.industry in (None, industry))

    async def _make_whole(self, symbol: Symbol, bars: Batch[Any], start: date) -> Batch[Any]:
        """Bars with the days on which the share was suspended, and ST told: here, before anybody sees them."""
        source, calendar = self.source_of(symbol), self.calendar_of(symbol.market)
        if not bars.covered:
            return bars
        earlier = series.find_earlier(bars, bars.covered, calendar, start)
        before = (await source.read(facts.BARS, symbol.text, *earlier))[-1:] if earlier else []
        company: Company | None = None
        with suppress(Unavailable):  # a list that cannot be had leaves what the bars tell themselves
            company = await self.directory.listed(symbol)
        whole = series.make_whole([*before, *bars], bars.covered, calendar, company)
        return Batch(bar for bar in whole if bar.trade_date >= start)

    def source_of(self, symbol: Symbol) -> MarketDataProvider:
        provider = self.directory.sources.get(symbol.market)
        if provider is None:
            said = SAY("market_unsupported", symbol=symbol.text, market=symbol.market.value)
            raise InvalidInput(said, code="SYMBOL_UNSUPPORTED", field="symbol")
        return provider


def _refuse_unlisted(why: str, company: Company, on: date) -> InvalidInput:
    said = SAY(why, symbol=company.symbol, name=company.label, on=on.isoformat())
    return InvalidInput(said, code="SYMBOL_NOT_LISTED", field="symbol")


def pick_versions(dataset: facts.Dataset[F], known: Iterable[F]) -> list[F]:
    """Of each row the version known last, newest row first."""
    names = [name for name in dataset.key if name != "available_at"]
    told = sorted(known, key=lambda fact: (getattr(fact, dataset.day), fact.available_at))
    latest = {tuple(getattr(fact, name) for name in names): fact for fact in told}
    return list(reversed(latest.values()))


def as_listed(company: Company, today: date) -> Company:
    """As it was known that day; refuses one that was gone by then or not there yet."""
    if today < company.list_date:
        raise _refuse_unlisted("not_listed_yet", company, company.list_date)
    if company.delist_date and today >= company.delist_date:
        raise _refuse_unlisted("delisted", company, company.delist_date)
    return as_known(company, today)


def as_known(company: Company, today: date) -> Company:
    """The company without what happened to it later: neither its end nor a name that came after that day.

    An English name has no day: that of a company that was renamed since is left out with the new one. Without one it
    goes by how its name sounds.
    """
    spells = [
        spell if spell.end is None or spell.end <= today else spell.model_copy(update={"end": None})
        for spell in company.st_history
        if spell.start <= today
    ]
    names, name = _names_then(company, today), name_then(company, today)
    later = {known.name for known in company.names} - {known.name for known in names}
    renamed = strip_marks(name) != strip_marks(company.name)
    english = "" if renamed or company.name_en == company.name else company.name_en
    return company.model_copy(
        update={
            "name": name,
            "aliases": tuple(alias for alias in company.aliases if alias not in later),
            "names": names,
            "delist_date": None,
            "st_history": tuple(spells),
            "name_en": english or transcribe(name),
            **({"pinyin": ""} if renamed else {}),
        }
    )


def name_listed(companies: Iterable[Company], today: date) -> dict[str, str]:
    """By symbol, what those were called that were listed that day."""
    return {each.symbol: name_then(each, today) for each in companies if each.is_listed(today)}


def name_then(company: Company, today: date) -> str:
    if company.names:
        return _names_then(company, today)[-1].name
    return company.name if series.in_spell(company.st_history, today) else strip_marks(company.name)


def _names_then(company: Company, today: date) -> tuple[NameSince, ...]:
    return tuple(known for known in company.names if known.start <= today) or company.names[:1]


def _adjust(bars: Sequence[DailyBar]) -> list[DailyBar]:
    """Scale raw prices so that the last known day keeps its own price and earlier days are comparable to it."""
    if not bars:
        return []
    last = bars[-1].adj_factor
    return [bar if bar.adj_factor == last else _scale(bar, bar.adj_factor / last) for bar in bars]


def _scale(bar: DailyBar, by: float) -> DailyBar:
    prices = {name: getattr(bar, name) * by for name in ("open", "high", "low", "close", "pre_close")}
    return bar.model_copy(update=prices)
