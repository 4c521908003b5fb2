"""What is worked out from indicators: how a share did beside its market and its industry, and what rules measure that
no indicator tells by itself, of a snapshot or of a row of many shares.

Adjusted closes are held against an index between the same two days, or against the median of peers where there is
no index.
"""

from collections.abc import Collection, Mapping, Sequence
from datetime import date
from math import copysign
from typing import Any

from moot.modules.research.domain.facts import difference
from moot.shared.domain.facts import IndexBar
from moot.shared.domain.peers import CrossSection

BULLISH_PATTERNS = {"golden_cross", "breakout_20d_high", "bullish_engulfing"}
ASIDE = 0.01
"""Nearer to its average than this share of it, a price is on neither side."""
TREND_ADX = 25
"""From here on, by Wilder, there is a trend."""
WINDOWS = (20, 60)
CUSTOMARY = "000300.SH"
"""The index that mainland funds are measured by; where it is not to be had, the first by its code."""
FEWEST_PEERS = 5
"""The median of fewer is the return of somebody."""


class Derived:
    """Of whatever has these fields of a `TechnicalSnapshot`: one of them, or a row of many shares."""

    @property
    def trend(self: Any) -> int | None:
        """Above (+) or below (-) its 20-day average, 2 where ADX sees a trend that way; 0 on neither side."""
        if self.adx_value is None or self.plus_di is None or self.minus_di is None or not self.ma20:
            return None
        aside = self.current_price / self.ma20 - 1
        if abs(aside) < ASIDE:
            return 0
        agreed = self.adx_value >= TREND_ADX and (self.plus_di - self.minus_di) * aside > 0
        return int(copysign(2 if agreed else 1, aside))

    @property
    def pattern_balance(self: Any) -> int:
        return sum(1 if pattern in BULLISH_PATTERNS else -1 for pattern in self.detected_patterns)

    @property
    def leads(self: Any) -> dict[str, float]:
        """By what it returned more than its market and its industry, where there is something to compare with."""
        leads = {
            "market": self.market_excess_60d,
            "industry": self.industry_excess_60d,
            "peers": self.peer_excess_3m,
        }
        return {beside: lead for beside, lead in leads.items() if lead is not None}

    @property
    def relative_strength(self: Any) -> float | None:
        """By what it leads all it is compared with, or trails them, on average; 0 where it does neither."""
        leads: Collection[float] = self.leads.values()
        if not leads or self.return_60d is None:
            return None
        agreed = min(leads) > 0 or max(leads) < 0
        return sum(leads) / len(leads) if agreed else 0.0

    @property
    def room(self: Any) -> float | None:
        """What can be won up to resistance for each unit lost down to support; a projection is nobody's level."""
        up: float = self.resistance - self.current_price
        down: float = self.current_price - self.support
        swings = self.support_days and self.resistance_days
        return up / down if swings and down > 0 else None


def stand_beside(
    days: Sequence[date], indexes: Sequence[IndexBar], industry: str, own: Mapping[str, Any]
) -> tuple[dict[str, Any], dict[str, IndexBar]]:
    """What came of it up to the last of the `days` it was traded on, and the index each of it is from. `own` has the
    share's returns; whatever a window lacks makes its comparison None.
    """
    found: dict[str, Any] = {}
    origins: dict[str, IndexBar] = {}
    for place, of in (("market", None), ("industry", industry)):
        index = _choose(indexes, of)
        compared = _compare(place, index, days, own)
        found |= compared
        origins |= dict.fromkeys(compared, index[-1]) if index else {}
    return found, origins


def _choose(indexes: Sequence[IndexBar], industry: str | None) -> list[IndexBar]:
    codes = sorted({bar.index for bar in indexes if bar.industry == industry})
    chosen = CUSTOMARY if CUSTOMARY in codes else next(iter(codes), None)
    return [bar for bar in indexes if bar.index == chosen]


def _compare(
    place: str, index: Sequence[IndexBar], days: Sequence[date], own: Mapping[str, Any]
) -> dict[str, Any]:
    closes = {bar.trade_date: bar.close for bar in index}
    found: dict[str, Any] = {f"{place}_index": index[-1].index if index else None}
    for n in WINDOWS:
        start = closes.get(days[-1 - n]) if len(days) > n else None
        end = closes.get(days[-1])
        moved = round(100 * (end / start - 1), 1) if start and end else None
        found |= {f"{place}_return_{n}d": moved, f"{place}_excess_{n}d": _exceed(own[f"return_{n}d"], moved)}
    return found


def stand_among(peers: CrossSection | None) -> dict[str, Any]:
    """Over three months to the day."""
    if peers is None:
        return {}
    place, own = peers.places["return_3m"], peers.own.return_3m
    if place.median is None or own is None or place.count < FEWEST_PEERS:
        return {}
    mine, theirs = round(own, 1), round(place.median, 1)
    return {
        "peer_count": place.count,
        "return_3m": mine,
        "peer_return_3m": theirs,
        "peer_excess_3m": _exceed(mine, theirs),
    }


def _exceed(own: float | None, other: float | None) -> float | None:
    lead = difference(own, other)
    return None if lead is None else round(lead, 1)
