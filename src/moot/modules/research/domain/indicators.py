"""What code computes from a price series."""

from datetime import date
from typing import Annotated, Literal

from moot.modules.research.domain.evidence import Snapshot
from moot.modules.research.domain.facts import PRICE, Count, Index, Percent, Price, Ratio

MIN_BARS_REQUIRED = 30

Pattern = Literal[
    "golden_cross",
    "death_cross",
    "breakout_20d_high",
    "breakdown_20d_low",
    "bullish_engulfing",
    "bearish_engulfing",
]


class Indicators(Snapshot):
    """Computed from adjusted prices of traded days; None where there are too few of them.

    `support` and `resistance` are the nearest swing levels; where the year has none on that side, a projection.
    """

    bars: Count
    last_trade_date: date
    current_price: Annotated[float, PRICE]
    change_percent: Percent
    ma5: Price
    ma10: Price
    ma20: Price
    ma30: Price
    ma60: Price
    ma120: Price
    ma200: Price
    rsi_value: Index
    macd_dif: Ratio
    macd_dea: Ratio
    macd_histogram: Ratio
    kdj_k: Index
    kdj_d: Index
    kdj_j: Index
    adx_value: Index
    volume_ratio: Ratio
    obv_trend: Literal["Rising", "Falling", "Flat"] | None
    vwap_value: Price
    price_vs_vwap_status: Literal["Above", "Below", "At"] | None
    bb_upper: Price
    bb_middle: Price
    bb_lower: Price
    bb_bandwidth: Percent
    atr_value: Annotated[float, PRICE]
    high_20d: Annotated[float, PRICE]
    low_20d: Annotated[float, PRICE]
    calculated_support_levels: Annotated[list[float], PRICE]
    calculated_resistance_levels: Annotated[list[float], PRICE]
    support: Annotated[float, PRICE]
    resistance: Annotated[float, PRICE]
    detected_patterns: list[Pattern]
