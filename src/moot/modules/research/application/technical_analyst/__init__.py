"""The technical analyst: what a year of prices shows, and how it is read by rule."""

from collections.abc import Mapping
from datetime import date, datetime, timedelta
from math import copysign
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel

from moot.modules.research.application.expert_service import Answer, ExpertService, refuse_answer
from moot.modules.research.domain.evidence import Confidence, ExpertResult, Snapshot, cite, evidence_of
from moot.modules.research.domain.facts import COMMON, Case
from moot.modules.research.domain.rubric import Scorecard, Voice
from moot.shared.domain import units
from moot.shared.domain.experts import Direction, ExpertType
from moot.shared.domain.messages import Catalogue, Locale

FOLDER = Path(__file__).parent
LOOKBACK_DAYS = 365
MIN_BARS_REQUIRED = 30
CHARTED_DAYS = 120
HALF_A_CENT = 0.005 + 1e-9
STALE_DAYS = 10

BULLISH_PATTERNS = {"golden_cross", "breakout_20d_high", "bullish_engulfing"}
SIGNALS: Mapping[int, Direction] = {1: "BULLISH", 0: "NEUTRAL", -1: "BEARISH"}
ASIDE = 0.01
"""Nearer to its average than this share of it, a price is on neither side."""
NO_MOVE = 0.05
"""A day that changed the price by less, in per cent, went nowhere."""

Pattern = Literal[
    "golden_cross",
    "death_cross",
    "breakout_20d_high",
    "breakdown_20d_low",
    "bullish_engulfing",
    "bearish_engulfing",
]


class TechnicalSnapshot(Snapshot):
    """Indicators of adjusted prices on traded days; None where there are too few of them.

    `obv_change` is what on-balance volume moved in five days, in per cent of what was traded.
    `support` and `resistance` are the nearest swing levels; where the year has none on that side, a projection.
    """

    bars: units.Count
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
    high_20d: Annotated[float, units.PRICE]
    low_20d: Annotated[float, units.PRICE]
    calculated_support_levels: Annotated[list[float], units.PRICE]
    calculated_resistance_levels: Annotated[list[float], units.PRICE]
    support: Annotated[float, units.PRICE]
    resistance: Annotated[float, units.PRICE]
    detected_patterns: list[Pattern]
    ticker: str
    stock_name: str
    analysis_date: date
    days_since_last_trade: Annotated[int, units.DAYS]

    @property
    def trend(self) -> float | None:
        """The strength of the trend, with the sign of its direction; 0 where it has none."""
        if self.adx_value is None or not self.ma20:
            return None
        side = self.current_price / self.ma20 - 1
        return copysign(self.adx_value, side) if abs(side) >= ASIDE else 0.0

    @property
    def signed_volume(self) -> float | None:
        """How busy the day was, with the sign of where it went."""
        if self.volume_ratio is None or self.change_percent is None:
            return None
        return (
            copysign(self.volume_ratio, self.change_percent) if abs(self.change_percent) >= NO_MOVE else 0.0
        )

    @property
    def place_in_band(self) -> float | None:
        """0 at the lower Bollinger band, 1 at the upper."""
        if self.bb_upper is None or self.bb_lower is None or self.bb_upper == self.bb_lower:
            return None
        return (self.current_price - self.bb_lower) / (self.bb_upper - self.bb_lower)

    @property
    def pattern_balance(self) -> int:
        return sum(1 if pattern in BULLISH_PATTERNS else -1 for pattern in self.detected_patterns)

    @property
    def room(self) -> float | None:
        """What can be won up to resistance for each unit lost down to support."""
        down = self.current_price - self.support
        return (self.resistance - self.current_price) / down if down > 0 else None


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
        *("obv_trend", "price_vs_vwap_status", "detected_patterns"),
    )

    def speak(self, snapshot: TechnicalSnapshot, case: Case, locale: Locale) -> Voice:
        say = super().speak(snapshot, case, locale)
        return say.also(patterns=[self.texts(f"pattern.{p}") for p in snapshot.detected_patterns])

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
        days = await self._facts.daily_bars(case.symbol, start, analysis_date, as_of=as_of)
        bars = [bar for bar in days if not bar.suspended]
        if not bars:
            raise self._refusal(case, "no_bars", start=start, end=analysis_date)
        if len(bars) < MIN_BARS_REQUIRED:
            raise self._refusal(case, "too_few_bars", actual=len(bars), required=MIN_BARS_REQUIRED)
        snapshot = TechnicalSnapshot(
            ticker=case.symbol.text,
            stock_name=case.stock_name,
            analysis_date=analysis_date,
            days_since_last_trade=(analysis_date - bars[-1].trade_date).days,
            **self._sources.indicators(bars),
        )
        seen = {"pattern_balance": snapshot.pattern_balance} | {
            f"pattern.{name}": 1 for name in snapshot.detected_patterns
        }
        evidence = [
            *cite(self.expert.prefix, snapshot, bars[-1]),
            *(evidence_of(bars[-1], f"{self.expert.prefix}.{name}", n) for name, n in seen.items()),
        ]
        report = await self._report(case, snapshot, evidence)
        closes = [[bar.trade_date.isoformat(), round(bar.close, 2)] for bar in bars[-CHARTED_DAYS:]]
        return report | {"price_series": closes}


SERVICE = TechnicalAnalystService
