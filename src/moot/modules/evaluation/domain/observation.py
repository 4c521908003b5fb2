"""What was said of a company at a moment, and what came of it."""

from collections.abc import Sequence
from datetime import date, datetime
from pathlib import Path
from typing import Protocol

from pydantic import BaseModel

from moot.shared.domain.claims import Horizon
from moot.shared.domain.errors import InvalidInput
from moot.shared.domain.experts import EXPERT_TEXTS
from moot.shared.domain.facts import DailyBar
from moot.shared.domain.messages import Catalogue
from moot.shared.domain.symbol import Market, Symbol

SAY = Catalogue(EXPERT_TEXTS, Path(__file__).parent / "texts")
HORIZONS: tuple[Horizon, ...] = (5, 20, 60)
ARGUED, UNARGUED = "all", "unargued"


class Frozen(BaseModel, frozen=True, extra="forbid", allow_inf_nan=False):
    """As it is written to JSON."""


class View(Frozen):
    """A conclusion, an expert's or the judge's; `stance` runs from -1 (bear) to 1 (bull)."""

    signal: str
    stance: float
    confidence: float


class Said(Frozen):
    """A claim: `pull` as it was made, for (+) or against (-), `settled` what the argument left of its strength,
    `value` the number it rests on first, if that is one.
    """

    id: str
    kind: str
    pull: float
    settled: float
    horizon: Horizon
    value: float | None


class Deliberation(Frozen):
    """What the whole desk makes of a company at a moment, by rule; `failures` are codes, of experts or of the judge.

    `leans`: where it leads, from -1 (do not buy) to 1 (do), by who is heard: `all`, `only x`, `without x`; and
    `unargued`, the mean stance of the experts without any debate.
    """

    views: dict[str, View]
    failures: dict[str, str]
    claims: list[Said] = []
    leans: dict[str, float] = {}


class Outcome(Frozen):
    """Bought and sold on these days; `excess` is over the mean of all that were looked at on the same day."""

    bought: date
    sold: date
    gain: float
    excess: float


class Observation(Frozen):
    symbol: str
    day: date
    said: Deliberation
    came: dict[Horizon, Outcome]


class Panel(Protocol):
    async def deliberate(self, symbol: Symbol, as_of: datetime) -> Deliberation:
        """All experts, the debate and the judge, by what was known at `as_of`."""


class Prices(Protocol):
    """Read past the experts: who deliberates never sees them."""

    async def list_symbols(self, start: date, end: date) -> list[Symbol]:
        """Everybody with bars in that time."""

    def list_sessions(self, market: Market, start: date, end: date) -> list[date]: ...

    async def read_bars(self, symbol: Symbol, start: date, end: date) -> Sequence[DailyBar]:
        """Raw prices with their factors, oldest first; none where there are none."""


class NothingToWalk(InvalidInput, code="NOTHING_TO_WALK"):
    """No company, or no month, that could be looked at."""
