"""What rules measure that no indicator tells by itself: worked out from a snapshot, or from a row of many shares."""

from collections.abc import Sequence
from datetime import date
from math import copysign
from typing import Protocol

BULLISH_PATTERNS = {"golden_cross", "breakout_20d_high", "bullish_engulfing"}
ASIDE = 0.01
"""Nearer to its average than this share of it, a price is on neither side."""
TREND_ADX = 25
"""From here on, by Wilder, there is a trend."""


class Charted(Protocol):
    """What is known of a share by its bars, and by what it is compared with."""

    @property
    def current_price(self) -> float: ...
    @property
    def ma20(self) -> float | None: ...
    @property
    def adx_value(self) -> float | None: ...
    @property
    def plus_di(self) -> float | None: ...
    @property
    def minus_di(self) -> float | None: ...
    @property
    def detected_patterns(self) -> Sequence[str]: ...
    @property
    def return_60d(self) -> float | None: ...
    @property
    def market_excess_60d(self) -> float | None: ...
    @property
    def industry_excess_60d(self) -> float | None: ...
    @property
    def peer_excess_3m(self) -> float | None: ...
    @property
    def leads(self) -> dict[str, float]: ...
    @property
    def support(self) -> float: ...
    @property
    def resistance(self) -> float: ...
    @property
    def support_days(self) -> Sequence[date | int]: ...
    @property
    def resistance_days(self) -> Sequence[date | int]: ...


class Derived:
    """Whatever is `Charted` can tell it."""

    @property
    def trend(self: Charted) -> int | None:
        """Above (+) or below (-) its 20-day average, 2 where ADX sees a trend that way; 0 on neither side."""
        if self.adx_value is None or self.plus_di is None or self.minus_di is None or not self.ma20:
            return None
        aside = self.current_price / self.ma20 - 1
        if abs(aside) < ASIDE:
            return 0
        agreed = self.adx_value >= TREND_ADX and (self.plus_di - self.minus_di) * aside > 0
        return int(copysign(2 if agreed else 1, aside))

    @property
    def pattern_balance(self: Charted) -> int:
        return sum(1 if pattern in BULLISH_PATTERNS else -1 for pattern in self.detected_patterns)

    @property
    def leads(self: Charted) -> dict[str, float]:
        """By what it returned more than its market and its industry, where there is something to compare with."""
        leads = {
            "market": self.market_excess_60d,
            "industry": self.industry_excess_60d,
            "peers": self.peer_excess_3m,
        }
        return {beside: lead for beside, lead in leads.items() if lead is not None}

    @property
    def relative_strength(self: Charted) -> float | None:
        """By what it leads all it is compared with, or trails them, on average; 0 where it does neither."""
        leads = self.leads.values()
        if not leads or self.return_60d is None:
            return None
        agreed = min(leads) > 0 or max(leads) < 0
        return sum(leads) / len(leads) if agreed else 0.0

    @property
    def room(self: Charted) -> float | None:
        """What can be won up to resistance for each unit lost down to support; a projection is nobody's level."""
        down = self.current_price - self.support
        swings = self.support_days and self.resistance_days
        return (self.resistance - self.current_price) / down if swings and down > 0 else None
