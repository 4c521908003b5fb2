"""Prices: the one a verdict is given at, and the levels that follow from what was measured in the same session."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Annotated

from pydantic import BaseModel, Field

from moot.shared.domain.claims import Action
from moot.shared.domain.evidence import Evidence
from moot.shared.domain.experts import ExpertType

UP, DOWN = 1, -1
STOP_IN_ATR = 2
TARGET_IN_ATR = 3
TICK_DIGITS = 2
TECHNICAL = ExpertType.TECHNICAL_ANALYST.prefix
PRICE = "current_price"


class Levels(BaseModel, frozen=True, extra="forbid", allow_inf_nan=False):
    """Prices in the market's currency. `entry` is the price the other two are measured from."""

    entry: Annotated[float, Field(gt=0)] | None = None
    stop: Annotated[float, Field(gt=0)] | None = None
    target: Annotated[float, Field(gt=0)] | None = None

    def fit(self, action: Action) -> bool:
        """Whether the known levels run from stop over entry to target the way the action hopes to go."""
        known = [level for level in (self.stop, self.entry, self.target) if level is not None]
        return all((far - near) * direction_of(action) > 0 for near, far in pairwise(known))

    @property
    def stakes(self) -> tuple[float, float] | None:
        """What there is to win and to lose, where both are known."""
        if self.entry is None or self.stop is None or self.target is None:
            return None
        won, lost = abs(self.target - self.entry), abs(self.entry - self.stop)
        return round(won, TICK_DIGITS), round(lost, TICK_DIGITS)


def direction_of(action: Action) -> int:
    """Which way the price should go. A HOLD is watched like a BUY: for the sake of what is held."""
    return DOWN if action == "SELL" else UP


def find_price(evidence: Sequence[Evidence]) -> Evidence | None:
    """The newest price that anybody cites; of several, the technical analyst's."""
    prices = [item for item in evidence if item.id.endswith(f".{PRICE}") and _measure(item)]
    return max(prices, key=lambda item: (item.as_of.date(), item.id.startswith(TECHNICAL)), default=None)


def levels_for(action: Action, evidence: Sequence[Evidence]) -> Levels:
    """The stop where the technical view is refuted: at support, or at resistance for a sale; where there is none, at
    its ATR distance. The target at its ATR distance, or at the wall on that side where that is farther.
    """
    found = find_price(evidence)
    price = to_tick(_measure(found)) if found else 0.0
    if not price:
        return Levels()
    atr, walls = measured(evidence, "atr_value"), {DOWN: "support", UP: "resistance"}

    def step(side: int, distance: int) -> float | None:
        return _farthest(price, side, None if atr is None else price + side * distance * atr)

    def wall(side: int) -> float | None:
        return _farthest(price, side, measured(evidence, walls[side]))

    side = direction_of(action)
    stop, target = wall(-side) or step(-side, STOP_IN_ATR), (step(side, TARGET_IN_ATR), wall(side))
    return Levels(entry=price, stop=stop, target=_farthest(price, side, *target))


def measured(evidence: Sequence[Evidence], field: str) -> float | None:
    """What the technical analyst measured, unless there is a price of a later session."""
    newest = find_price(evidence)
    for item in evidence:
        if item.id == f"{TECHNICAL}.{field}" and not (newest and item.as_of.date() < newest.as_of.date()):
            return _measure(item) or None
    return None


def to_tick(price: float) -> float:
    """To the smallest step of the markets Moot knows: a cent, or a fen."""
    return round(price, TICK_DIGITS)


def _measure(item: Evidence) -> float:
    return float(item.value) if isinstance(item.value, int | float) and item.value > 0 else 0.0


def _farthest(price: float, side: int, *candidates: float | None) -> float | None:
    """The candidate farthest from `price` on that side of it; a level that the price has passed is no level."""
    prices = [to_tick(candidate) for candidate in candidates if candidate is not None]
    beyond = [level for level in prices if level > 0 and (level - price) * side > 0]
    return max(beyond, key=lambda level: level * side, default=None)
