"""What an expert asserts, for or against buying, and the evidence it rests on; the argument that a debate makes of
it, and how somebody may contest it.
"""

from collections.abc import Mapping
from typing import Annotated, Literal, get_args
from uuid import UUID

from pydantic import AwareDatetime, BaseModel, Field, StringConstraints, ValidationInfo, field_validator

from moot.shared.domain.experts import Direction, ExpertType
from moot.shared.domain.messages import Locale
from moot.shared.domain.validation import Strict, refuse

Side = Literal["for", "against", "neither"]
Action = Literal["BUY", "SELL", "HOLD"]
"""What a judge rules."""
Horizon = Literal[5, 20, 60]
"""In sessions: a week, a month, a quarter."""
HORIZONS: tuple[Horizon, ...] = get_args(Horizon)
Author = Literal["rubric", "llm", "person"]
Strength = Annotated[float, Field(ge=0, le=1)]
Said = Annotated[
    str, StringConstraints(strip_whitespace=True, min_length=1, max_length=500, pattern=r"^\P{C}+$")
]
NEEDED = {"strength": "strength", "add": "says"}
"""By move, what it cannot be without."""
SIGNS: Mapping[str, int] = {
    **{"for": 1, "against": -1, "neither": 0},
    **{"BULLISH": 1, "BEARISH": -1, "NEUTRAL": 0},
    **{"BUY": 1, "SELL": -1, "HOLD": 0},
}
"""Which way a side of an argument, its direction or an action points: 1 for buying, -1 against it."""
GRAVE_KINDS = frozenset(
    f"catalyst.{kind}" for kind in ("investigation", "audit_qualified", "delisting", "default", "suspension")
)
"""Kinds of claims that forbid a purchase, however much speaks for it."""


class Claim(BaseModel, frozen=True, extra="forbid", allow_inf_nan=False):
    """`id` is dotted and unique in a session (`technical.rsi`); `kind` names what is asserted, whoever it is about
    (`technical.rsi.oversold`); `dimension` is one of its expert's.

    `says` is in every language of the desk, or in the one its author writes. `evidence` are ids, `as_of` is the
    newest of them. `reported`: it rests on what others wrote, and on nothing that code could check. `horizon`: over
    how many sessions it says something. `contests` is the id of another claim, which this one answers.
    """

    id: str
    kind: str
    expert: ExpertType
    dimension: str
    side: Side
    strength: Strength
    says: dict[Locale, str] = Field(min_length=1)
    evidence: list[str] = Field(min_length=1)
    as_of: AwareDatetime
    reported: bool = False
    by: Author = "rubric"
    horizon: Horizon = 20
    contests: str | None = None

    def text(self, locale: Locale) -> str:
        """In that language, or in the one there is."""
        return self.says.get(locale) or next(iter(self.says.values()))

    @property
    def pull(self) -> float:
        """Positive for it, negative against it."""
        return SIGNS[self.side] * self.strength


def lean_of(points_to: str, weight: float) -> float:
    """From -1 (against buying) to 1 (for it): what a verdict's weight has over one that is undecided, the way its
    action or direction points."""
    return SIGNS.get(points_to, 0) * max(0.0, 2 * weight - 1)


class Relation(BaseModel, frozen=True, extra="forbid"):
    """A claim that weakens (`attack`) or strengthens (`support`) another; `scheme` is what it is an instance of,
    `weight` how much of its strength comes through.
    """

    source: str
    target: str
    kind: Literal["attack", "support"]
    scheme: str
    why: dict[Locale, str]
    weight: Strength = 1.0
    by: Author = "rubric"


class ArgumentGraph(BaseModel, frozen=True, extra="forbid"):
    """What was argued and what it comes to: the strengths that claims end up with, how far each dimension pulls, and
    what they leave of the motion, which stood at one half before anybody spoke. `horizon` is that of the motion,
    `weights` the version of the table that says what each expert counts over it.

    `conviction` is how far the motion leans, less the doubt of those who were not heard. `decisive` are the claims
    without which the direction would be another.
    """

    claims: list[Claim]
    relations: list[Relation]
    heard: list[ExpertType]
    strengths: dict[str, Strength]
    dimensions: dict[str, float]
    motion: Strength
    conviction: Strength
    direction: Direction
    confidence: Strength
    decisive: list[str]
    horizon: Horizon = 20
    weights: str = ""


class Move(Strict):
    """How somebody contests an argument: `strike` a claim, give it another `strength`, or `add` one that attacks or
    supports it; `says` is theirs, and it is as strong as they say, or half.
    """

    move: Literal["strike", "strength", "add"]
    claim: str = Field(min_length=1, max_length=200)
    strength: Annotated[Strength | None, Field(validate_default=True, allow_inf_nan=False)] = None
    says: Annotated[Said | None, Field(validate_default=True)] = None
    kind: Literal["attack", "support"] = "attack"

    @field_validator("strength", "says")
    @classmethod
    def _what_the_move_needs(cls, value: float | str | None, so_far: ValidationInfo) -> float | str | None:
        if value is None and NEEDED.get(so_far.data.get("move", "")) == so_far.field_name:
            raise refuse("missing")
        return value


class PastClaim(BaseModel, frozen=True, extra="forbid"):
    pull: float
    says: dict[Locale, str]
    kind: str = ""
    as_of: AwareDatetime | None = None


class PastVerdict(BaseModel, frozen=True, extra="forbid"):
    """The verdict before this one on the same symbol, with its claims by id as strong as they ended up."""

    session_id: UUID
    as_of: AwareDatetime
    action: Action
    confidence: float
    claims: dict[str, PastClaim]


class Holder(Strict):
    """Who asks: what they hold and at what cost, how long they mean to, and how much risk they bear.

    It changes the advice, never the claims.
    """

    holding: bool = False
    cost: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = None
    horizon: Literal["short", "medium", "long"] = "medium"
    risk: Literal["low", "medium", "high"] = "medium"
