"""Price levels from evidence: where to act, where the view is refuted, where it has paid off."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from moot.shared.domain.evidence import Evidence

Action = Literal["BUY", "SELL", "HOLD"]

UP, DOWN = 1, -1
STOP_IN_ATR = 2
TARGET_IN_ATR = 3


class Levels(BaseModel):
    """Prices in the market's currency. `entry` is the price the other two are measured from."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    entry: Annotated[float, Field(gt=0)] | None = None
    stop: Annotated[float, Field(gt=0)] | None = None
    target: Annotated[float, Field(gt=0)] | None = None

    def fit(self, action: Action) -> bool:
        """Whether the known levels run from stop over entry to target the way the action hopes to go."""
        known = [level * hoped(action) for level in (self.stop, self.entry, self.target) if level is not None]
        return all(near < far for near, far in pairwise(known))


def hoped(action: Action) -> int:
    """Which way the price should go. A HOLD is watched like a BUY: for the sake of what is held."""
    return DOWN if action == "SELL" else UP


def levels_for(action: Action, evidence: Sequence[Evidence]) -> Levels:
    """Stop and target at their ATR distance, or at the nearest support or resistance where that is farther."""
    price = _positive(evidence, "technical.current_price")
    if price is None:
        return Levels()
    atr = _positive(evidence, "technical.atr_value")
    wall = {
        DOWN: _positive(evidence, "technical.support"),
        UP: _positive(evidence, "technical.resistance"),
    }
    with_us, against_us = hoped(action), -hoped(action)
    return Levels(
        entry=price,
        stop=_farthest(price, against_us, _step(price, atr, against_us * STOP_IN_ATR), wall[against_us]),
        target=_farthest(price, with_us, _step(price, atr, with_us * TARGET_IN_ATR), wall[with_us]),
    )


def _positive(evidence: Sequence[Evidence], wanted: str) -> float | None:
    for item in evidence:
        if item.id == wanted and isinstance(item.value, int | float) and item.value > 0:
            return item.value
    return None


def _step(price: float, atr: float | None, multiple: int) -> float | None:
    return None if atr is None else price + multiple * atr


def _farthest(price: float, side: int, *candidates: float | None) -> float | None:
    """The candidate farthest from `price` on that side of it, to the cent; a level on the wrong side is stale."""
    prices = [round(candidate, 2) for candidate in candidates if candidate is not None]
    beyond = [level for level in prices if level > 0 and (level - price) * side > 0]
    return max(beyond, key=lambda level: level * side, default=None)
