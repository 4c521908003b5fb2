"""The technical analyst: what a year of prices shows, and how it is read by rule."""

from datetime import date, datetime, timedelta
from math import copysign
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict

from moot.modules.research.application.expert_service import ExpertService
from moot.modules.research.application.remit import Answer, Remit, refuse_answer
from moot.modules.research.domain.analyst import Confidence, ExpertResult
from moot.modules.research.domain.evidence import DAYS, measured
from moot.modules.research.domain.indicators import MIN_BARS_REQUIRED, Indicators
from moot.modules.research.domain.rubric import Rubric, narrative, summary
from moot.modules.research.domain.scorecard import Rule, Scorecard, bands, difference, mark
from moot.modules.research.domain.texts import COMMON
from moot.modules.research.domain.voice import Voice
from moot.shared.domain.experts import Direction, ExpertType
from moot.shared.domain.messages import Catalogue, Locale

FOLDER = Path(__file__).parent
LOOKBACK_DAYS = 365
HALF_A_CENT = 0.005 + 1e-9
SIGNAL_AT = 0.2
STALE_DAYS = 10

BULLISH_PATTERNS = {"golden_cross", "breakout_20d_high", "bullish_engulfing"}
OBV = {"Rising": 1.0, "Falling": -1.0, "Flat": 0.0}


class TechnicalSnapshot(Indicators):
    ticker: str
    stock_name: str
    analysis_date: date
    days_since_last_trade: Annotated[int, DAYS]


class KeyTechnicalLevels(BaseModel):
    model_config = ConfigDict(frozen=True)

    support: float
    resistance: float


class TechnicalResult(ExpertResult):
    """`risk_warning` names the level at which the view is wrong."""

    signal: Direction
    confidence: Confidence
    summary_reasoning: str
    key_technical_levels: KeyTechnicalLevels
    risk_warning: str


def _above(value: float | None, base: float | None) -> float | None:
    """How far `value` lies above `base`, in per cent."""
    return None if value is None or not base else 100 * (value / base - 1)


def _of_price(value: float | None, s: TechnicalSnapshot) -> float | None:
    return None if value is None else 100 * value / s.current_price


def _trend(s: TechnicalSnapshot) -> float | None:
    """The strength of the trend, with the sign of its direction."""
    side = _above(s.current_price, s.ma20)
    return None if s.adx_value is None or side is None else copysign(s.adx_value, side)


def _volume(s: TechnicalSnapshot) -> float | None:
    """How busy the day was, with the sign of where it went."""
    if s.volume_ratio is None or s.change_percent is None:
        return None
    return copysign(s.volume_ratio, s.change_percent)


def _in_band(s: TechnicalSnapshot) -> float | None:
    """0 at the lower Bollinger band, 1 at the upper."""
    if s.bb_upper is None or s.bb_lower is None or s.bb_upper == s.bb_lower:
        return None
    return (s.current_price - s.bb_lower) / (s.bb_upper - s.bb_lower)


def _patterns(s: TechnicalSnapshot) -> float:
    return sum(1 if pattern in BULLISH_PATTERNS else -1 for pattern in s.detected_patterns)


def _room(s: TechnicalSnapshot) -> float | None:
    """What can be won up to resistance for each unit lost down to support."""
    down = s.current_price - s.support
    return (s.resistance - s.current_price) / down if down > 0 else None


RULES: tuple[Rule[TechnicalSnapshot], ...] = (
    Rule(
        "price_ma20",
        lambda s: _above(s.current_price, s.ma20),
        bands((-1, -2, "below"), (1, 0, "near"), rest=(2, "above")),
    ),
    Rule(
        "ma20_ma60",
        lambda s: _above(s.ma20, s.ma60),
        bands((-0.5, -2, "below"), (0.5, 0, "near"), rest=(2, "above")),
    ),
    Rule(
        "price_ma200", lambda s: _above(s.current_price, s.ma200), bands((0, -1, "below"), rest=(1, "above"))
    ),
    Rule("adx", _trend, bands((-25, -2, "down"), (25, 0, "none"), rest=(2, "up"))),
    Rule(
        "macd",
        lambda s: _of_price(s.macd_histogram, s),
        bands((-0.02, -1, "down"), (0.02, 0, "flat"), rest=(1, "up")),
    ),
    Rule(
        "macd_axis",
        lambda s: _of_price(s.macd_dif, s),
        bands((-0.05, -1, "below"), (0.05, 0, "at"), rest=(1, "above")),
    ),
    Rule(
        "rsi",
        "rsi_value",
        bands(
            (30, 1, "oversold"), (45, -1, "weak"), (55, 0, "even"), (70, 1, "strong"), rest=(-1, "overbought")
        ),
    ),
    Rule(
        "kdj", lambda s: difference(s.kdj_k, s.kdj_d), bands((-2, -1, "down"), (2, 0, "flat"), rest=(1, "up"))
    ),
    Rule("volume", _volume, bands((-1.5, -1, "selling"), (1.5, 0, "usual"), rest=(1, "buying"))),
    Rule(
        "obv",
        lambda s: None if s.obv_trend is None else OBV[s.obv_trend],
        bands((-0.5, -1, "falling"), (0.5, 0, "flat"), rest=(1, "rising")),
    ),
    Rule(
        "vwap",
        lambda s: _above(s.current_price, s.vwap_value),
        bands((-0.5, -1, "below"), (0.5, 0, "at"), rest=(1, "above")),
    ),
    Rule("bollinger", _in_band, bands((0, 1, "under"), (1, 0, "inside"), rest=(-1, "over"))),
    Rule("patterns", _patterns, bands((-0.5, -1, "bearish"), (0.5, 0, "none"), rest=(1, "bullish"))),
    Rule("room", _room, bands((0.5, -1, "tight"), (2, 0, "even"), rest=(1, "wide"))),
)


def _marks(s: TechnicalSnapshot, say: Voice) -> Scorecard:
    patterns = say.listing(say(f"pattern.{pattern}") for pattern in s.detected_patterns)
    return mark(RULES, s, say.also(patterns=patterns))


def signal_for(score: float) -> Direction:
    if abs(score) < SIGNAL_AT:
        return "NEUTRAL"
    return "BULLISH" if score > 0 else "BEARISH"


def _concludes(s: TechnicalSnapshot, card: Scorecard, say: Voice) -> TechnicalResult:
    signal = signal_for(card.score or 0.0)
    conclusion, risk = say(f"conclusion.{signal}"), _risk(signal, s, say)
    return TechnicalResult(
        signal=signal,
        confidence=card.confidence,
        summary_reasoning=summary(card, say, conclusion),
        key_technical_levels=KeyTechnicalLevels(support=s.support, resistance=s.resistance),
        risk_warning=risk,
        narrative_report=narrative(card, say, conclusion=conclusion, risk=risk),
    )


def _risk(signal: Direction, s: TechnicalSnapshot, say: Voice) -> str:
    """The level that would prove the view wrong, and what weakens the levels themselves."""
    caveats = {
        "risk.no_support": not s.calculated_support_levels,
        "risk.no_resistance": not s.calculated_resistance_levels,
        "risk.stale": s.days_since_last_trade > STALE_DAYS,
    }
    said = [say(key) for key, holds in caveats.items() if holds]
    return say.prose([say(f"risk.{signal}"), *said])


def levels_were_given(snapshot: TechnicalSnapshot, answer: Answer) -> Answer:
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


def _is_one_of(level: Any, allowed: list[float]) -> bool:
    try:
        return any(abs(float(level) - one) <= HALF_A_CENT for one in allowed)
    except (TypeError, ValueError):
        return False


class TechnicalAnalystService(ExpertService[TechnicalSnapshot, TechnicalResult]):
    expert = ExpertType.TECHNICAL_ANALYST
    rubric = Rubric(Catalogue(COMMON, FOLDER), _marks, _concludes)
    remit = Remit(
        FOLDER,
        TechnicalResult,
        shows=(
            *("stock_name", "ticker", "analysis_date", "last_trade_date"),
            *("obv_trend", "price_vs_vwap_status", "detected_patterns"),
        ),
        checks=levels_were_given,
    )

    async def run(
        self, ticker: str, analysis_date: date, *, as_of: datetime, locale: Locale
    ) -> dict[str, Any]:
        case = await self._open(ticker, as_of, locale, field="ticker")
        if analysis_date > case.today:
            raise self._refusal(case, "date_in_future", field="analysis_date", date=analysis_date)
        start = analysis_date - timedelta(days=LOOKBACK_DAYS)
        bars = await self._facts.bars(case.symbol, start, analysis_date, as_of=as_of)
        if not bars:
            raise self._refusal(case, "no_bars", start=start, end=analysis_date)
        if len(bars) < MIN_BARS_REQUIRED:
            raise self._refusal(case, "too_few_bars", actual=len(bars), required=MIN_BARS_REQUIRED)
        snapshot = TechnicalSnapshot(
            ticker=case.symbol.text,
            stock_name=case.stock_name,
            analysis_date=analysis_date,
            days_since_last_trade=(analysis_date - bars[-1].trade_date).days,
            **self._sources.indicators.compute(bars).model_dump(),
        )
        return await self._report(case, snapshot, measured(self.expert.prefix, snapshot, bars[-1]))


SERVICE = TechnicalAnalystService
