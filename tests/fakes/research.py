"""A market of facts in memory that keeps time as the real one does, and short ways to write research's facts."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from typing import Any

from moot.modules.research.domain.facts import (
    Bar,
    Case,
    Company,
    MacroFigure,
    News,
    Report,
    Valuation,
)
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
)

CASE = Case(Symbol.parse(SYMBOL), COMPANY, AS_OF, TODAY, "zh-CN")


@dataclass
class FakeMarketFacts:
    """Knows one company; shows what was available at `as_of`."""

    daily: Sequence[Bar] = ()
    history: Sequence[Valuation] = ()
    filed: Sequence[Report] = ()
    figures: Sequence[MacroFigure] = ()
    published: Sequence[News] = ()
    asked: list[datetime] = field(default_factory=list)

    async def company(self, symbol: Symbol, *, as_of: datetime) -> Company:
        self.asked.append(as_of)
        return COMPANY

    async def bars(self, symbol: Symbol, start: date, end: date, *, as_of: datetime) -> list[Bar]:
        return [b for b in self.daily if start <= b.trade_date <= end and b.available_at <= as_of]

    async def valuations(self, symbol: Symbol, start: date, end: date, *, as_of: datetime) -> list[Valuation]:
        return [v for v in self.history if start <= v.trade_date <= end and v.available_at <= as_of]

    async def reports(self, symbol: Symbol, periods: int, *, as_of: datetime) -> list[Report]:
        return [r for r in self.filed if r.available_at <= as_of][:periods]

    async def macro(self, symbol: Symbol, days: int, *, as_of: datetime) -> list[MacroFigure]:
        return [f for f in self.figures if f.available_at <= as_of]

    async def news(self, symbol: Symbol, days: int, *, as_of: datetime) -> list[News]:
        return [n for n in self.published if n.available_at <= as_of]


def evening(day: date) -> datetime:
    return datetime(day.year, day.month, day.day, 9, tzinfo=UTC)


def bars_of(
    closes: Iterable[float], *, until: date = TODAY, spread: float = 0.01, volume: int = 1000
) -> list[Bar]:
    """One bar a day up to `until`; each opens at the close before and reaches `spread` beyond both."""
    prices = list(closes)
    return [
        _bar(before, close, until - timedelta(days=len(prices) - 1 - n), spread, volume)
        for n, (before, close) in enumerate(zip([prices[0], *prices], prices, strict=False))
    ]


def _bar(before: float, close: float, day: date, spread: float, volume: int) -> Bar:
    return Bar(
        trade_date=day,
        open=before,
        high=max(before, close) * (1 + spread),
        low=min(before, close) * (1 - spread),
        close=close,
        volume=volume,
        available_at=evening(day),
        source="fake",
    )


def a_report(year: int, quarter: int, **figures: Any) -> Report:
    """Announced 30 days after its quarter; whatever is not named was not reported."""
    end = date(year + quarter // 4, quarter * 3 % 12 + 1, 1) - timedelta(days=1)
    numbers = [name for name in Report.model_fields if name not in FILED]
    return Report(
        period_end=end,
        announced_on=end + timedelta(days=30),
        available_at=evening(end + timedelta(days=30)),
        source="fake",
        **dict.fromkeys(numbers) | figures,
    )


FILED = ("period_end", "announced_on", "available_at", "source")


def valuations_of(multiples: Iterable[float], *, until: date = TODAY, **today: float) -> list[Valuation]:
    """One day per PE, up to `until`; PB and PS are those of `today` on the last day and move as the PE does."""
    values = list(multiples)
    figures = {"pb": 2.0, "ps_ttm": 3.0} | today
    return [
        Valuation(
            trade_date=(day := until - timedelta(days=len(values) - 1 - n)),
            close=20.0,
            total_mv=5e9,
            pe_ttm=pe,
            dv_ratio=2.0,
            available_at=evening(day),
            source="fake",
            **{name: value * abs(pe / values[-1]) for name, value in figures.items()},
        )
        for n, pe in enumerate(values)
    ]


def a_figure(series: str, value: float, period: date, **changes: Any) -> MacroFigure:
    fields: dict[str, Any] = {"unit": "%", "industry": None, "url": f"fake://macro/{series}/{period:%Y-%m}"}
    return MacroFigure(
        series=series,
        value=value,
        period=period,
        available_at=evening(period + timedelta(days=10)),
        source="fake",
        **fields | changes,
    )


def a_news(title: str, title_en: str, *, days_ago: int = 1, **changes: Any) -> News:
    day = TODAY - timedelta(days=days_ago)
    fields: dict[str, Any] = {
        "kind": "announcement",
        "symbol": SYMBOL,
        "industry": None,
        "url": f"fake://news/{title_en.replace(' ', '-')}/{days_ago}",
    }
    return News(
        title=title,
        title_en=title_en,
        available_at=evening(day),
        source="fake",
        **fields | changes,
    )
