"""A market of facts in memory that keeps time as the real one does, and short ways to write research's facts."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from typing import Any

from moot.modules.research.domain.facts import Case, F
from moot.shared.domain.datasets import DataUntil
from moot.shared.domain.errors import Unavailable
from moot.shared.domain.facts import (
    Company,
    DailyBar,
    DailyValuation,
    Fact,
    FinancialReport,
    MacroObservation,
    NewsItem,
)
from moot.shared.domain.messages import Message
from moot.shared.domain.peers import CrossSection, Peer
from moot.shared.domain.symbol import Symbol

SYMBOL = "900001.DEMO"
TODAY = date(2026, 6, 30)
AS_OF = datetime(2026, 6, 30, 10, tzinfo=UTC)

COMPANY = Company(
    symbol=SYMBOL,
    name="幻山酒业",
    name_en="Mirage Hill Distillers",
    industry="白酒",
    industry_en="Liquor",
    list_date=date(2018, 1, 2),
)

CASE = Case(Symbol.parse(SYMBOL), COMPANY, AS_OF, TODAY, "zh-CN")


@dataclass
class FakeMarketFacts:
    """Knows one company, `listed`; shows what was available at `as_of`."""

    daily: Sequence[DailyBar] = ()
    history: Sequence[DailyValuation] = ()
    filed: Sequence[FinancialReport] = ()
    figures: Sequence[MacroObservation] = ()
    published: Sequence[NewsItem] = ()
    others: Sequence[Fact] = ()
    among: CrossSection | None = None
    industry: Sequence[Peer] = ()
    asked: list[datetime] = field(default_factory=list)
    newest: DataUntil = field(default_factory=dict)
    dropped: list[Message] = field(default_factory=list)
    listed: Company = COMPANY

    async def company(self, symbol: Symbol, *, as_of: datetime) -> Company:
        self.asked.append(as_of)
        return self.listed

    async def daily_bars(self, symbol: Symbol, start: date, end: date, *, as_of: datetime) -> list[DailyBar]:
        return [b for b in self.daily if start <= b.trade_date <= end and b.available_at <= as_of]

    async def daily_valuations(
        self, symbol: Symbol, start: date, end: date, *, as_of: datetime
    ) -> list[DailyValuation]:
        return [v for v in self.history if start <= v.trade_date <= end and v.available_at <= as_of]

    async def financial_reports(
        self, symbol: Symbol, periods: int, *, as_of: datetime
    ) -> list[FinancialReport]:
        return [r for r in self.filed if r.available_at <= as_of][:periods]

    async def macro(self, symbol: Symbol, days: int, *, as_of: datetime) -> list[MacroObservation]:
        return [f for f in self.figures if f.available_at <= as_of]

    async def news(self, symbol: Symbol, days: int, *, as_of: datetime) -> list[NewsItem]:
        return [n for n in self.published if n.available_at <= as_of]

    async def read(
        self, kind: type[F], symbol: Symbol, *, as_of: datetime, start: date = date.min, end: date = date.max
    ) -> list[F]:
        every = (*self.daily, *self.filed, *self.others)
        found = [fact for fact in every if isinstance(fact, kind) and fact.available_at <= as_of]
        return sorted(found, key=lambda fact: fact.event_time)

    async def peers(self, symbol: Symbol, *, as_of: datetime) -> CrossSection:
        """Those told, or else whatever `industry` holds, beside the company on its last day."""
        if self.among:
            return self.among
        if not self.industry:
            raise Unavailable("no peers")
        known = await self.daily_valuations(symbol, date.min, date.max, as_of=as_of)
        multiples = {n: getattr(known[-1], n) for n in ("pe_ttm", "pb", "ps_ttm")} if known else {}
        own = Peer(symbol=SYMBOL, name=COMPANY.name, **multiples)
        return CrossSection(
            industry=COMPANY.industry, as_of=as_of, own=own, peers=tuple(self.industry), places={}
        )


def evening(day: date) -> datetime:
    return datetime(day.year, day.month, day.day, 9, tzinfo=UTC)


def told(day: date) -> dict[str, Any]:
    return {"event_time": evening(day), "available_at": evening(day), "source": "fake"}


def bars_of(
    closes: Iterable[float], *, until: date = TODAY, spread: float = 0.01, volume: int = 1000
) -> list[DailyBar]:
    """One bar a day up to `until`; each opens at the close before and reaches `spread` beyond both."""
    prices = list(closes)
    return [
        _bar(before, close, until - timedelta(days=len(prices) - 1 - n), spread, volume)
        for n, (before, close) in enumerate(zip([prices[0], *prices], prices, strict=False))
    ]


def _bar(before: float, close: float, day: date, spread: float, volume: int) -> DailyBar:
    return DailyBar(
        symbol=SYMBOL,
        trade_date=day,
        open=before,
        high=max(before, close) * (1 + spread),
        low=min(before, close) * (1 - spread),
        close=close,
        pre_close=before,
        volume=volume,
        amount=volume * close,
        adj_factor=1.0,
        **told(day),
    )


def a_report(year: int, quarter: int, **figures: Any) -> FinancialReport:
    """Announced 30 days after its quarter; whatever is not named was not reported."""
    end = date(year + quarter // 4, quarter * 3 % 12 + 1, 1) - timedelta(days=1)
    return FinancialReport(
        symbol=SYMBOL,
        period_end=end,
        announced_on=end + timedelta(days=30),
        **told(end + timedelta(days=30)),
        **figures,
    )


def valuations_of(multiples: Iterable[float], *, until: date = TODAY, **today: float) -> list[DailyValuation]:
    """One day per PE, up to `until`; PB and PS are those of `today` on the last day and move as the PE does."""
    values = list(multiples)
    figures = {"pb": 2.0, "ps_ttm": 3.0} | today
    return [
        DailyValuation(
            symbol=SYMBOL,
            trade_date=(day := until - timedelta(days=len(values) - 1 - n)),
            close=20.0,
            total_mv=5e9,
            pe_ttm=pe,
            dv_ratio=2.0,
            **told(day),
            **{name: value * abs(pe / values[-1]) for name, value in figures.items()},
        )
        for n, pe in enumerate(values)
    ]


def a_figure(series: str, value: float, period: date, **changes: Any) -> MacroObservation:
    fields: dict[str, Any] = {"unit": "%", "industry": None, "url": f"fake://macro/{series}/{period:%Y-%m}"}
    return MacroObservation(
        series=series,
        value=value,
        period=period,
        **told(period + timedelta(days=10)),
        **fields | changes,
    )


def a_news(title: str, title_en: str, *, days_ago: int = 1, **changes: Any) -> NewsItem:
    day = TODAY - timedelta(days=days_ago)
    fields: dict[str, Any] = {
        "kind": "announcement",
        "symbol": SYMBOL,
        "industry": None,
        "url": f"fake://news/{title_en.replace(' ', '-')}/{days_ago}",
    }
    return NewsItem(
        title=title,
        title_en=title_en,
        **told(day),
        **fields | changes,
    )
