"""The verdict: what the judge is given, what it rules at which prices and in which words, and when it must not."""

from collections.abc import Mapping, Sequence
from datetime import date
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, Literal, Protocol, Self
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

from moot.shared.domain.claims import ArgumentGraph, Holder, PastVerdict
from moot.shared.domain.errors import AppError
from moot.shared.domain.evidence import Evidence
from moot.shared.domain.experts import Direction, ExpertType
from moot.shared.domain.grounding import Grounding
from moot.shared.domain.messages import DEFAULT_LOCALE, Catalogue, Locale, Message
from moot.shared.domain.validation import refuse, validate

SAY = Catalogue(Path(__file__).parent / "texts")

Action = Literal["BUY", "SELL", "HOLD"]
Fraction = Annotated[float, Field(ge=0, le=1)]
Text = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]

QUORUM_APPLIES_ABOVE = 2  # experts asked; whoever asks one or two has chosen so
UP, DOWN = 1, -1
STOP_IN_ATR = 2
TARGET_IN_ATR = 3


class Levels(BaseModel, frozen=True, extra="forbid", allow_inf_nan=False):
    """Prices in the market's currency. `entry` is the price the other two are measured from."""

    entry: Annotated[float, Field(gt=0)] | None = None
    stop: Annotated[float, Field(gt=0)] | None = None
    target: Annotated[float, Field(gt=0)] | None = None

    def fit(self, action: Action) -> bool:
        """Whether the known levels run from stop over entry to target the way the action hopes to go."""
        known = [
            level * direction_of(action)
            for level in (self.stop, self.entry, self.target)
            if level is not None
        ]
        return all(near < far for near, far in pairwise(known))


def direction_of(action: Action) -> int:
    """Which way the price should go. A HOLD is watched like a BUY: for the sake of what is held."""
    return DOWN if action == "SELL" else UP


def levels_for(action: Action, evidence: Sequence[Evidence]) -> Levels:
    """Stop and target at their ATR distance, or at the nearest support or resistance where that is farther."""
    price = _positive(evidence, "current_price")
    if price is None:
        return Levels()
    atr, walls = _positive(evidence, "atr_value"), {DOWN: "support", UP: "resistance"}

    def level(side: int, distance: int) -> float | None:
        step = None if atr is None else price + side * distance * atr
        return _farthest(price, side, step, _positive(evidence, walls[side]))

    side = direction_of(action)
    return Levels(entry=price, stop=level(-side, STOP_IN_ATR), target=level(side, TARGET_IN_ATR))


def _positive(evidence: Sequence[Evidence], field: str) -> float | None:
    """What the technical analyst measured."""
    wanted = f"{ExpertType.TECHNICAL_ANALYST.prefix}.{field}"
    for item in evidence:
        if item.id == wanted and isinstance(item.value, int | float) and item.value > 0:
            return item.value
    return None


def _farthest(price: float, side: int, *candidates: float | None) -> float | None:
    """The candidate farthest from `price` on that side of it, to the cent; a level on the wrong side is stale."""
    prices = [round(candidate, 2) for candidate in candidates if candidate is not None]
    beyond = [level for level in prices if level > 0 and (level - price) * side > 0]
    return max(beyond, key=lambda level: level * side, default=None)


class JudgeInput(BaseModel, frozen=True, extra="forbid", allow_inf_nan=False):
    """A debate as the judge sees it: its outcome, never the raw research. `experts_asked` 0 means unknown."""

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
    experts_asked: int = Field(default=0, ge=0)
    experts_heard: int = Field(default=0, ge=0)
    locale: Locale = DEFAULT_LOCALE
    as_of: AwareDatetime | None = None

    def require_quorum(self, quorum: int) -> None:
        if self.experts_asked > QUORUM_APPLIES_ABOVE and self.experts_heard < quorum:
            raise VerdictAbstained(self.experts_heard, self.experts_asked, quorum)


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
    """What a position follows from, each a factor from 0 to 1; None: not known, and counted as caution."""

    conviction: Fraction
    volatility: float | None
    days_to_sell: float | None
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


def word_ruling(action: Action, position: float, levels: Levels) -> dict[str, Message]:
    """What to do, in words that follow the figures."""
    return {
        "entry_strategy": SAY(f"entry.{action}", position=position, at=_word("at", levels.entry)),
        "stop_loss": _word(f"stop.{action}", levels.stop),
        "take_profit": _word(f"target.{action}", levels.target),
        "time_horizon": SAY(f"horizon.{action}"),
    }


def _word(key: str, level: float | None) -> Message:
    return SAY("unpriced") if level is None else SAY(key, level=level)


def narrate(ruled: Mapping[str, Any]) -> Message:
    """A whole ruling on a `symbol` as one text."""
    return SAY("narrative", **{**ruled, "risks": list_lines(ruled["risk_warnings"])})


def list_lines(lines: Sequence[str]) -> str | Message:
    return "\n".join(f"- {line}" for line in lines) or SAY("case.none")


def restate(was: Mapping[str, Any], now: Mapping[str, Any], locale: Locale) -> dict[str, Any]:
    """A verdict in which somebody else changed figures: words and levels follow, but for those changed as well.

    The judge's reasons stay the judge's. Levels that were meant for the other direction are dropped.
    """
    levels = validate(Levels, now["levels"])
    kept = levels if levels.fit(now["action"]) else Levels(entry=levels.entry)
    position = now["position_percent"] if now["action"] == "BUY" else 0.0
    ruled = validate(VerdictDTO, {**now, "position_percent": position, "levels": kept})
    before = validate(VerdictDTO, was)
    told, meant = (
        {
            name: text.in_locale(locale)
            for name, text in word_ruling(v.action, v.position_percent, v.levels).items()
        }
        for v in (before, ruled)
    )
    own = {name for name in now if now[name] != was.get(name)}
    new = {name: text for name, text in meant.items() if text != told[name] and name not in own}
    worded = {**ruled.model_dump(mode="json"), **new}
    narrative = {} if "narrative_report" in own else {"narrative_report": narrate(worded).in_locale(locale)}
    return worded | narrative


class VerdictAgent(Protocol):
    async def judge(self, judge_input: JudgeInput) -> Verdict:
        """Rule on the debate; raise rather than turn a failure into a HOLD."""


class VerdictAbstained(AppError):
    """Too few experts stand behind the debate for any verdict to mean something."""

    code = "VERDICT_ABSTAINED"

    def __init__(self, heard: int, asked: int, quorum: int) -> None:
        said = SAY("abstained", heard=heard, asked=asked, quorum=quorum)
        super().__init__(said, heard=heard, asked=asked, quorum=quorum)
