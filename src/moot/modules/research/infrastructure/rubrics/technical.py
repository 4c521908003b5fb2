"""How the technical analyst reads a chart by rule."""

from math import copysign

from moot.modules.research.domain.analyst import Signal
from moot.modules.research.domain.scorecard import Rule, Scorecard, bands, mark
from moot.modules.research.domain.technical import KeyTechnicalLevels, TechnicalResult, TechnicalSnapshot
from moot.modules.research.domain.voice import Voice
from moot.modules.research.infrastructure.rubrics.rubric import Rubric, narrative, summary

SIGNAL_AT = 0.2
STALE_DAYS = 10

BULLISH_PATTERNS = {"golden_cross", "breakout_20d_high", "bullish_engulfing"}
OBV = {"Rising": 1.0, "Falling": -1.0, "Flat": 0.0}


def _above(value: float | None, base: float | None) -> float | None:
    """How far `value` lies above `base`, in per cent."""
    return None if value is None or not base else 100 * (value / base - 1)


def _difference(a: float | None, b: float | None) -> float | None:
    return None if a is None or b is None else a - b


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
        "price_ma200",
        lambda s: _above(s.current_price, s.ma200),
        bands((0, -1, "below"), rest=(1, "above")),
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
        lambda s: s.rsi_value,
        bands(
            (30, 1, "oversold"), (45, -1, "weak"), (55, 0, "even"), (70, 1, "strong"), rest=(-1, "overbought")
        ),
    ),
    Rule(
        "kdj",
        lambda s: _difference(s.kdj_k, s.kdj_d),
        bands((-2, -1, "down"), (2, 0, "flat"), rest=(1, "up")),
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
    patterns = say.listing(say(f"technical.pattern.{pattern}") for pattern in s.detected_patterns)
    return mark("technical", RULES, s, say.also(patterns=patterns))


def signal_for(score: float) -> Signal:
    if abs(score) < SIGNAL_AT:
        return "NEUTRAL"
    return "BULLISH" if score > 0 else "BEARISH"


def _concludes(s: TechnicalSnapshot, card: Scorecard, say: Voice) -> TechnicalResult:
    signal = signal_for(card.score or 0.0)
    conclusion, risk = say(f"technical.conclusion.{signal}"), _risk(signal, s, say)
    return TechnicalResult(
        signal=signal,
        confidence=card.confidence,
        summary_reasoning=summary(card, say, conclusion),
        key_technical_levels=KeyTechnicalLevels(support=s.support, resistance=s.resistance),
        risk_warning=risk,
        narrative_report=narrative(card, say, conclusion=conclusion, risk=risk),
    )


def _risk(signal: Signal, s: TechnicalSnapshot, say: Voice) -> str:
    """The level that would prove the view wrong, and what weakens the levels themselves."""
    caveats = {
        "technical.risk.no_support": not s.calculated_support_levels,
        "technical.risk.no_resistance": not s.calculated_resistance_levels,
        "technical.risk.stale": s.days_since_last_trade > STALE_DAYS,
    }
    said = [say(key) for key, holds in caveats.items() if holds]
    return say.prose([say(f"technical.risk.{signal}"), *said])


TECHNICAL_RUBRIC = Rubric(_marks, _concludes)
