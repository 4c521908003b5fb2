"""A debate: what it is about, who speaks in it, and what comes of it."""

from pathlib import Path
from typing import Annotated, Literal, Protocol

from pydantic import AwareDatetime, BaseModel, Field, StringConstraints

from moot.shared.domain.claims import ArgumentGraph, Claim, Horizon, Relation
from moot.shared.domain.clock import SystemClock
from moot.shared.domain.errors import AppError
from moot.shared.domain.evidence import Evidence
from moot.shared.domain.experts import EXPERT_TEXTS, STANCES, VIEW, Direction, ExpertType
from moot.shared.domain.grounding import Grounding
from moot.shared.domain.messages import DEFAULT_LOCALE, LOCALES, Catalogue, Locale, shorten

SAY = Catalogue(Path(__file__).parent / "texts", EXPERT_TEXTS)

RiskLevel = Literal["HIGH", "MEDIUM", "LOW"]
Engine = Literal["rubric", "llm"]
Confidence = Annotated[float, Field(ge=0, le=1)]
Text = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]
LONGEST_VIEW = 120


class Frozen(BaseModel, frozen=True, extra="forbid", allow_inf_nan=False):
    """Exactly what is declared."""


class ExpertSummary(Frozen):
    """An expert's finding without its raw data. `signal` is the expert's own literal, never translated."""

    signal: str
    confidence: Confidence
    reasoning: str
    risk_warning: str


class DebateInput(Frozen):
    """Any subset of the experts may be heard, but not none."""

    symbol: str = Field(min_length=1)
    expert_summaries: dict[str, ExpertSummary] = Field(min_length=1)
    evidence: list[Evidence] = []
    claims: list[Claim] = []
    rounds: int = Field(default=1, ge=1, le=3)
    horizon: Horizon = 20
    locale: Locale = DEFAULT_LOCALE
    as_of: AwareDatetime | None = None


class UnknownSignal(AppError):
    """A signal outside the table has no meaning here, and a guess would be worse than none."""

    code = "UNKNOWN_SIGNAL"


def read_claims(debate_input: DebateInput) -> list[Claim]:
    """What the experts claim; of one who brought no claims, its view is one. Raises `UnknownSignal`."""
    claimed = {claim.expert for claim in debate_input.claims}
    views = [_view(ExpertType(name), debate_input) for name in debate_input.expert_summaries]
    return [*debate_input.claims, *(view for view in views if view.expert not in claimed)]


def _view(expert: ExpertType, debate_input: DebateInput) -> Claim:
    """What an expert concludes, as sure as it is of that; it counts as all of its dimensions would."""
    summary = debate_input.expert_summaries[expert]
    if summary.signal not in STANCES:
        told = {"expert": SAY(f"node.{expert}"), "signal": summary.signal, "known": list(STANCES)}
        raise UnknownSignal(SAY("unknown_signal", **told), expert=expert, signal=summary.signal)
    pull = STANCES[summary.signal] * summary.confidence
    cited = [item for item in debate_input.evidence if item.id.startswith(f"{expert.prefix}.")]
    said = SAY(
        "view",
        expert=SAY(f"node.{expert}"),
        signal=SAY(f"literal.{summary.signal.partition(' ')[0]}"),
        reasoning=shorten(summary.reasoning.strip(), LONGEST_VIEW),
    )
    return Claim(
        id=f"{expert.prefix}.{VIEW}",
        kind=f"{expert.prefix}.{VIEW}",
        expert=expert,
        dimension=VIEW,
        side="for" if pull > 0 else "against" if pull < 0 else "neither",
        strength=abs(pull),
        says={locale: said.in_locale(locale) for locale in LOCALES},
        evidence=[item.id for item in cited] or [f"{expert.prefix}.{VIEW}"],
        as_of=max((item.as_of for item in cited), default=debate_input.as_of or SystemClock().now()),
    )


class RiskItem(BaseModel, frozen=True):
    risk: Text
    probability: RiskLevel
    impact: RiskLevel
    mitigation: Text


class Case(Frozen):
    core_thesis: str
    supporting_arguments: list[str]


class BullCase(Case):
    acknowledged_risks: list[str]


class BearCase(Case):
    acknowledged_strengths: list[str]


class DebateOutcomeDTO(Frozen):
    """What the argument comes to and both cases in it, the evidence passed through, and `experts`: who stands behind
    it. `engine`, `grounding` and `warnings` are of all three who spoke.
    """

    symbol: str
    direction: Direction
    confidence: Confidence
    bull_case: BullCase
    bear_case: BearCase
    risk_matrix: list[RiskItem]
    key_disagreements: list[str]
    conflict_resolution: str
    narrative_report: str
    bull_case_summary: str = ""
    bear_case_summary: str = ""
    argument: ArgumentGraph
    evidence: list[Evidence]
    experts: list[str]
    engine: Engine
    grounding: Grounding | None = None
    warnings: list[str] = []


def combine(*groundings: Grounding | None) -> Grounding | None:
    """One grounding for several texts, each counting by what was checked in it; None if none was checked."""
    known = [grounding for grounding in groundings if grounding]
    if not known:
        return None
    checked = sum(grounding.checked for grounding in known)
    held = sum(grounding.score * grounding.checked for grounding in known)
    return Grounding(
        score=held / checked if checked else 1.0,
        checked=checked,
        offenders=[offender for grounding in known for offender in grounding.offenders],
        reported=[stated for grounding in known for stated in grounding.reported],
    )


class Turn(Frozen):
    """What one side says in a round: claims of its own, and which claims it attacks or supports, and why.

    By rule there is nothing new to say: the experts' claims and the schemes between them are on the table already.
    """

    claims: list[Claim] = []
    relations: list[Relation] = []
    core_thesis: str = ""
    narrative_report: str = ""
    engine: Engine = "rubric"
    grounding: Grounding | None = None
    warnings: list[str] = []


class Speech(Frozen):
    """What is said of an argument that has been weighed: the outcome is the argument's, the words the speaker's."""

    bull_case_summary: str = ""
    bear_case_summary: str = ""
    conflict_resolution: str = ""
    narrative_report: str = ""
    engine: Engine = "rubric"
    grounding: Grounding | None = None
    warnings: list[str] = []


class Pleader(Protocol):
    async def speak(self, debate_input: DebateInput, so_far: ArgumentGraph, last: Turn | None) -> Turn:
        """One side's turn: `so_far` is all that was claimed before this round, `last` what the other side said in
        the round before, to be answered; None in the first.
        """


class Narrator(Protocol):
    async def explain(
        self, debate_input: DebateInput, argument: ArgumentGraph, bull: Turn, bear: Turn
    ) -> Speech: ...
