"""The verdict: what the judge is given, what it rules, and when it must not."""

from datetime import date
from math import copysign
from pathlib import Path
from typing import Annotated, Literal, Protocol, Self
from uuid import UUID

from pydantic import (
    AwareDatetime,
    BaseModel,
    Field,
    StringConstraints,
    ValidationInfo,
    field_validator,
    model_validator,
)

from moot.modules.judge.domain.levels import Levels, find_price
from moot.shared.domain.claims import GRAVE_KINDS, SIGNS, Action, ArgumentGraph, Claim, Holder, PastVerdict
from moot.shared.domain.errors import AppError
from moot.shared.domain.evidence import Evidence
from moot.shared.domain.experts import EXPERT_TEXTS, Direction
from moot.shared.domain.grounding import Grounding
from moot.shared.domain.messages import DEFAULT_LOCALE, Catalogue, Locale
from moot.shared.domain.symbol import Symbol
from moot.shared.domain.validation import refuse

SAY = Catalogue(EXPERT_TEXTS, Path(__file__).parent / "texts")

Fraction = Annotated[float, Field(ge=0, le=1)]
Text = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]

QUORUM_APPLIES_ABOVE = 2  # experts asked; whoever asks one or two has chosen so
FEWEST_LEFT = 2
"""Experts that failures must leave of several asked: one voice is not what was asked for."""


class JudgeInput(BaseModel, frozen=True, extra="forbid", allow_inf_nan=False):
    """A debate as the judge sees it: its outcome, never the raw research. `experts_asked` 0 means unknown.

    `lot_size` is the fewest shares that may be bought, `limit_percent` how far the price may move in a session; None
    where there is no such rule or it is not known.
    """

    symbol: str = Field(min_length=1)
    direction: Direction
    confidence: Fraction
    bull_thesis: str
    bear_thesis: str
    risk_factors: list[str]
    key_disagreements: list[str]
    conflict_resolution: str
    evidence: list[Evidence] = []
    argument: ArgumentGraph | None = None
    previous: PastVerdict | None = None
    holder: Holder | None = None
    lot_size: int | None = None
    limit_percent: float | None = None
    experts_asked: int = Field(default=0, ge=0)
    experts_heard: int = Field(default=0, ge=0)
    locale: Locale = DEFAULT_LOCALE
    as_of: AwareDatetime | None = None

    def require_quorum(self, quorum: int) -> None:
        needed = max(quorum, FEWEST_LEFT) if self.experts_asked > QUORUM_APPLIES_ABOVE else FEWEST_LEFT
        if self.experts_asked >= FEWEST_LEFT and self.experts_heard < needed:
            raise VerdictAbstained(self.experts_heard, self.experts_asked, needed)

    @property
    def conviction(self) -> float:
        """How far the argument is from undecided, to the digits that are shown."""
        exact = self.argument.conviction if self.argument else 2 * self.confidence - 1
        return max(0.0, round(exact, 2))

    @property
    def lean(self) -> float:
        """From -1 (do not buy) to 1 (do)."""
        if self.argument:
            return copysign(self.conviction, self.argument.motion - 0.5)
        return SIGNS[self.direction] * self.conviction

    @property
    def price(self) -> "Quote | None":
        found = find_price(self.evidence)
        if found is None:
            return None
        return Quote(value=float(found.value), day=Symbol.parse(self.symbol).local_date(found.as_of))

    @property
    def today(self) -> date | None:
        return Symbol.parse(self.symbol).local_date(self.as_of) if self.as_of else None

    @property
    def grave(self) -> list[Claim]:
        """What forbids a purchase, whatever else is argued."""
        claims = self.argument.claims if self.argument else []
        return [claim for claim in claims if claim.kind in GRAVE_KINDS]


class Ruling(BaseModel, frozen=True, allow_inf_nan=False):
    """What is ruled, in the order in which a model writes it.

    `position_percent` is the fraction of capital to hold in a new position: 0 unless the action is BUY.
    `risk_warnings` are about the stock.
    """

    action: Action
    position_percent: Fraction
    confidence: Fraction
    entry_strategy: Text
    stop_loss: Text
    take_profit: Text
    time_horizon: Text
    risk_warnings: list[Text] = Field(min_length=2)
    reasoning: Text
    narrative_report: str = ""

    @field_validator("position_percent")
    @classmethod
    def _only_a_purchase_opens_a_position(cls, position: float, so_far: ValidationInfo) -> float:
        action = so_far.data.get("action", "BUY")
        if action != "BUY" and position:
            raise refuse("out_of_range", got=position, allowed=[f"{action} 0"])
        return position


class Forecast(BaseModel, frozen=True, extra="forbid"):
    """How likely the share is to beat the benchmark over that many sessions; `n` past outcomes stand behind it."""

    horizon: int
    benchmark: str
    probability: Fraction
    n: int
    method: str


class Quote(BaseModel, frozen=True, extra="forbid"):
    """The price a verdict was given at, and the session it is of."""

    value: float
    day: date


class Sizing(BaseModel, frozen=True, extra="forbid"):
    """What a position follows from: `cap` and factors from 0 to 1; None: not known, and counted as caution.

    `days_to_sell` is how long the position takes to sell if the whole capital is `capital`.
    """

    cap: Fraction
    conviction: Fraction
    volatility: Fraction | None
    liquidity: Fraction | None
    days_to_sell: float | None
    capital: float
    lot: int | None


class NextDate(BaseModel, frozen=True, extra="forbid"):
    day: date
    what: str


class Moved(BaseModel, frozen=True, extra="forbid"):
    """A claim that came (`before` None), went (`after` None) or changed: how far it pulls, for (+) or against (-)."""

    claim: str
    says: str
    before: float | None
    after: float | None


class Since(BaseModel, frozen=True, extra="forbid"):
    """What changed against the last verdict on the symbol, what moved most first."""

    session_id: UUID
    as_of: AwareDatetime
    action: Action
    confidence: Fraction
    moved: list[Moved]


class Departure(BaseModel, frozen=True, extra="forbid"):
    """What the rule would have ruled where a model acts and it would not."""

    action: Action
    confidence: Fraction


class Verdict(Ruling, extra="forbid"):
    """`warnings` are about the text; `grounding` is None if nothing had to be checked.

    `headline` is the first line, in words that a reader must not miss; `would_change` is what refutes the verdict.
    `grave` are facts that forbid a purchase. `advice` is for the holder who asked.
    """

    headline: str = ""
    forecast: Forecast | None = None
    price: Quote | None = None
    sizing: Sizing | None = None
    would_change: list[str] = []
    next_dates: list[NextDate] = []
    grave: list[str] = []
    since: Since | None = None
    advice: str | None = None
    departs: Departure | None = None
    levels: Levels
    engine: Literal["rubric", "llm"]
    grounding: Grounding | None = None
    warnings: list[str] = []

    @model_validator(mode="after")
    def _levels_fit_the_action(self) -> Self:
        if not self.levels.fit(self.action):
            raise ValueError(f"stop, entry and target are not in the order of a {self.action}")
        return self


class VerdictDTO(Verdict):
    """The verdict and what it is about."""

    symbol: str


class VerdictAgent(Protocol):
    async def judge(self, judge_input: JudgeInput) -> Verdict:
        """Rule on the debate; raise rather than turn a failure into a HOLD."""


class VerdictAbstained(AppError):
    """Too few experts stand behind the debate for any verdict to mean something."""

    code = "VERDICT_ABSTAINED"

    def __init__(self, heard: int, asked: int, quorum: int) -> None:
        said = SAY("abstained", heard=heard, asked=asked, quorum=quorum)
        super().__init__(said, heard=heard, asked=asked, quorum=quorum)
