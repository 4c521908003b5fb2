"""How a share did beside its market and its industry: its adjusted closes against an index between the same two days,
or against the median of its peers where there is no index.
"""

from collections.abc import Mapping, Sequence
from datetime import date
from typing import Any

from moot.modules.research.domain.facts import difference
from moot.shared.domain.facts import IndexBar
from moot.shared.domain.peers import CrossSection

WINDOWS = (20, 60)
CUSTOMARY = "000300.SH"
"""The index that mainland funds are measured by; where it is not to be had, the first by its code."""
FEWEST_PEERS = 5
"""The median of fewer is the return of somebody."""


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


def stand_among(found: Sequence[CrossSection]) -> dict[str, Any]:
    """Over three months to the day."""
    for among in found:
        place, own = among.places["return_3m"], among.own.return_3m
        if place.median is not None and own is not None and place.count >= FEWEST_PEERS:
            mine, theirs = round(own, 1), round(place.median, 1)
            return {
                "peer_count": place.count,
                "return_3m": mine,
                "peer_return_3m": theirs,
                "peer_excess_3m": _exceed(mine, theirs),
            }
    return {}


def _exceed(own: float | None, other: float | None) -> float | None:
    lead = difference(own, other)
    return None if lead is None else round(lead, 1)
