"""The technical analyst: what a year of prices shows, and how it is read by rule."""

import asyncio
from collections.abc import Mapping, Sequence
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel

from moot.modules.research.application.expert_service import Answer, ExpertService, refuse_answer
from moot.modules.research.application.technical_analyst.derived import Derived, stand_among, stand_beside
from moot.modules.research.domain.evidence import (
    Confidence,
    Counted,
    ExpertResult,
    Snapshot,
    cite,
    evidence_of,
)
from moot.modules.research.domain.facts import COMMON, Case, MarketFacts
from moot.modules.research.domain.rubric import Scorecard, Voice
from moot.shared.domain import units
from moot.shared.domain.errors import Unavailable
from moot.shared.domain.evidence import Evidence
from moot.shared.domain.experts import Direction, ExpertType
from moot.shared.domain.facts import DailyBar, IndexBar
from moot.shared.domain.messages import Catalogue, Locale
from moot.shared.domain.symbol import Symbol

FOLDER = Path(__file__).parent
LOOKBACK_DAYS = 365
READ_BACK = timedelta(days=20)
"""Days before those that are judged: peers are measured from there on, and a source need not be asked twice."""
MIN_BARS_REQUIRED = 30
CHARTED_DAYS = 120
PATIENCE = 20.0
"""Seconds: some sources are slow to tell of indexes, and a chart can be read without."""
HALF_A_CENT = 0.005 + 1e-9
STALE_DAYS = 10

SIGNALS: Mapping[int, Direction] = {1: "BULLISH", 0: "NEUTRAL", -1: "BEARISH"}
SellingDays = Annotated[float | None, units.Unit("days", "days", 1)]
Millions = Annotated[float | None, units.Unit("million", "CNY", 0)]
Pattern = Literal[
    "golden_cross",
    "death_cross",
    "breakout_20d_high",
    "breakdown_20d_low",
    "bullish_engulfing",
    "bearish_engulfing",
]


class TechnicalSnapshot(Derived, Snapshot):
    """Indicators of adjusted prices on traded days; None where there are too few of them.

    `obv_change` is what on-balance volume moved in five days, in per cent of what was traded.
    `support` and `resistance` are the nearest swing levels; where the year has none on that side, a projection.
    `support_days` and `resistance_days` are the bars that the levels rest on, `pattern_days` those of each pattern.
    Volatility is that of daily moves, by the year; `days_to_sell` is how long `position` takes at a tenth of what is
    traded. Returns of indexes run between the same days as those of the share, `return_60d` from `return_since` on.
    """

    bars: units.Sessions
    last_trade_date: date
    current_price: Annotated[float, units.PRICE]
    change_percent: units.Percent
    ma5: units.Price
    ma10: units.Price
    ma20: units.Price
    ma30: units.Price
    ma60: units.Price
    ma120: units.Price
    ma200: units.Price
    rsi_value: units.Index
    macd_dif: units.Fine
    macd_dea: units.Fine
    macd_histogram: units.Fine
    kdj_k: units.Index
    kdj_d: units.Index
    kdj_j: units.Index
    adx_value: units.Index
    plus_di: units.Index = None
    minus_di: units.Index = None
    volume_ratio: units.Ratio
    obv_trend: Literal["Rising", "Falling", "Flat"] | None
    obv_change: units.Percent = None
    vwap_value: units.Price
    price_vs_vwap_status: Literal["Above", "Below", "At"] | None
    bb_upper: units.Price
    bb_middle: units.Price
    bb_lower: units.Price
    bb_bandwidth: units.Percent
    atr_value: Annotated[float, units.PRICE]
    turnover_20d: units.Amount
    turnover_1y: units.Amount = None
    position: Millions = None
    days_to_sell: SellingDays = None
    high_20d: Annotated[float, units.PRICE]
    low_20d: Annotated[float, units.PRICE]
    calculated_support_levels: Annotated[list[float], units.PRICE]
    calculated_resistance_levels: Annotated[list[float], units.PRICE]
    support: Annotated[float, units.PRICE]
    resistance: Annotated[float, units.PRICE]
    support_days: list[date]
    resistance_days: list[date]
    detected_patterns: list[Pattern]
    pattern_days: dict[Pattern, list[date]]
    volatility_20d: units.Percent = None
    volatility_60d: units.Percent = None
    volatility_1y: units.Percent = None
    return_20d: units.Percent = None
    return_60d: units.Percent = None
    return_since: date | None = None
    market_index: str | None = None
    market_return_20d: units.Percent = None
    market_return_60d: units.Percent = None
    market_excess_20d: units.Points = None
    market_excess_60d: units.Points = None
    industry_index: str | None = None
    industry_return_20d: units.Percent = None
    industry_return_60d: units.Percent = None
    industry_excess_20d: units.Points = None
    industry_excess_60d: units.Points = None
    peer_count: Counted = None
    return_3m: units.Percent = None
    peer_return_3m: units.Percent = None
    peer_excess_3m: units.Points = None
    ticker: str
    stock_name: str
    analysis_date: date
    days_since_last_trade: Annotated[int, units.DAYS]


class KeyTechnicalLevels(BaseModel, frozen=True):
    support: float
    resistance: float


class TechnicalResult(ExpertResult):
    """`risk_warning` names the level at which the view is wrong."""

    signal: Direction
    confidence: Confidence
    summary_reasoning: str
    key_technical_levels: KeyTechnicalLevels
    risk_warning: str


def _risk(signal: Direction, s: TechnicalSnapshot, say: Voice) -> str:
    """The level that would prove the view wrong, and what weakens the levels themselves."""
    caveats = {
        "risk.no_support": not s.calculated_support_levels,
        "risk.no_resistance": not s.calculated_resistance_levels,
        "risk.stale": s.days_since_last_trade > STALE_DAYS,
    }
    said = [say(key) for key, holds in caveats.items() if holds]
    return say.prose([say(f"risk.{signal}"), *said])


def _tell_leads(snapshot: TechnicalSnapshot, say: Voice) -> str:
    """With what it was compared, and what there was nothing to compare with."""
    leads = snapshot.leads
    known = [say(f"beside.{name}.{'more' if lead >= 0 else 'less'}") for name, lead in leads.items()]
    wanting = {"no_market": "market" not in leads, "no_industry": leads.keys() <= {"market"}}
    return say.list_names([*known, *(say(f"beside.{name}") for name, holds in wanting.items() if holds)])


async def read_indexes(
    facts: MarketFacts, share: Symbol, start: date, end: date, as_of: datetime
) -> Sequence[IndexBar]:
    try:
        async with asyncio.timeout(PATIENCE):
            return await facts.read(IndexBar, share, as_of=as_of, start=start, end=end)
    except TimeoutError:
        raise Unavailable(TechnicalAnalystService.texts("indexes_late", seconds=PATIENCE)) from None


def _is_one_of(level: Any, allowed: list[float]) -> bool:
    try:
        return any(abs(float(level) - one) <= HALF_A_CENT for one in allowed)
    except (TypeError, ValueError):
        return False


class TechnicalAnalystService(ExpertService[TechnicalSnapshot, TechnicalResult]):
    expert = ExpertType.TECHNICAL_ANALYST
    folder, texts = FOLDER, Catalogue(COMMON, FOLDER)
    answer = TechnicalResult
    shows = (
        *("stock_name", "ticker", "analysis_date", "last_trade_date"),
        *("obv_trend", "price_vs_vwap_status", "detected_patterns", "pattern_days"),
        *("support_days", "resistance_days", "return_since", "market_index", "industry_index"),
    )

    def speak(self, snapshot: TechnicalSnapshot, case: Case, locale: Locale) -> Voice:
        say = super().speak(snapshot, case, locale)
        return say.also(
            patterns=[
                say(f"pattern.{name}", first=days[0], day=days[-1])
                for name, days in snapshot.pattern_days.items()
            ],
            beside=_tell_leads(snapshot, say),
            adx=say("measured.adx"),
            support_day=next(iter(snapshot.support_days), None),
            resistance_day=next(iter(snapshot.resistance_days), None),
        )

    def conclude(self, snapshot: TechnicalSnapshot, card: Scorecard, say: Voice) -> TechnicalResult:
        signal = SIGNALS[card.side]
        stance = self.expert.stances[signal]
        conclusion, risk = say(f"conclusion.{signal}"), _risk(signal, snapshot, say)
        return TechnicalResult(
            signal=signal,
            confidence=card.confidence,
            summary_reasoning=card.summarise(say, conclusion, stance),
            key_technical_levels=KeyTechnicalLevels(support=snapshot.support, resistance=snapshot.resistance),
            risk_warning=risk,
            narrative_report=card.narrate(say, view=say(f"view.{signal}"), stance=stance),
        )

    def check(self, snapshot: TechnicalSnapshot, answer: Answer) -> Answer:
        """A level others act on is never the model's own."""
        given = {
            "support": [snapshot.support, *snapshot.calculated_support_levels],
            "resistance": [snapshot.resistance, *snapshot.calculated_resistance_levels],
        }
        levels = answer.get("key_technical_levels")
        for side, allowed in given.items():
            if isinstance(levels, dict) and side in levels and not _is_one_of(levels[side], allowed):
                raise refuse_answer("enum", "key_technical_levels", side, got=levels[side], allowed=allowed)
        return answer

    async def run(
        self, ticker: str, analysis_date: date, *, as_of: datetime, locale: Locale
    ) -> dict[str, Any]:
        case = await self._open(ticker, as_of, locale, field="ticker")
        if analysis_date > case.today:
            raise self._refusal(case, "date_in_future", field="analysis_date", date=analysis_date)
        start = analysis_date - timedelta(days=LOOKBACK_DAYS)
        days = await self._facts.daily_bars(case.symbol, start - READ_BACK, analysis_date, as_of=as_of)
        bars = [bar for bar in days if bar.trade_date >= start and not bar.suspended]
        if not bars:
            raise self._refusal(case, "no_bars", start=start, end=analysis_date)
        if len(bars) < MIN_BARS_REQUIRED:
            raise self._refusal(case, "too_few_bars", actual=len(bars), required=MIN_BARS_REQUIRED)
        indicators = self._sources.indicators(bars)
        beside, origins = await self._stand(case, analysis_date, bars, indicators)
        snapshot = TechnicalSnapshot(
            ticker=case.symbol.text,
            stock_name=case.stock_name,
            analysis_date=analysis_date,
            days_since_last_trade=(analysis_date - bars[-1].trade_date).days,
            **indicators,
            **beside,
        )
        report = await self._report(case, snapshot, self._cite(snapshot, bars, origins))
        closes = [[bar.trade_date.isoformat(), round(bar.close, 2)] for bar in bars[-CHARTED_DAYS:]]
        return report | {"price_series": closes}

    async def _stand(
        self, case: Case, day: date, bars: Sequence[DailyBar], own: Mapping[str, Any]
    ) -> tuple[dict[str, Any], dict[str, IndexBar]]:
        """Beside the market and the industry, between days on which it was traded; peers are those of today."""
        start, end = bars[-61:][0].trade_date, bars[-1].trade_date
        indexes = await self._spare(read_indexes(self._facts, case.symbol, start, end, case.as_of), ())
        beside, origins = stand_beside([bar.trade_date for bar in bars], indexes, case.company.industry, own)
        if not origins and day == case.today:
            beside |= stand_among(await self._spare(self._facts.peers(case.symbol, as_of=case.as_of), None))
        return beside, origins

    def _cite(
        self, snapshot: TechnicalSnapshot, bars: Sequence[DailyBar], indexes: Mapping[str, IndexBar]
    ) -> list[Evidence]:
        """What rests on a bar of the past is known from its day on."""
        on, last, prefix = {bar.trade_date: bar for bar in bars}, bars[-1], self.expert.prefix
        levels = {"calculated_support_levels": snapshot.support_days}
        levels["calculated_resistance_levels"] = snapshot.resistance_days
        swings = {f"{name}.{n}": on[day] for name, days in levels.items() for n, day in enumerate(days, 1)}
        patterns = {f"pattern.{name}": on[days[-1]] for name, days in snapshot.pattern_days.items()}
        return [
            *cite(prefix, snapshot, last, origins={**swings, **indexes}),
            evidence_of(last, f"{prefix}.pattern_balance", snapshot.pattern_balance),
            *(evidence_of(bar, f"{prefix}.{name}", 1) for name, bar in patterns.items()),
        ]


SERVICE = TechnicalAnalystService
