"""A debate: what it is about, what each side pleads, how it is resolved, and the roles that do so."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal, Protocol

from pydantic import AwareDatetime, BaseModel, Field, StringConstraints

from moot.shared.domain.claims import ArgumentGraph, Claim, Relation
from moot.shared.domain.errors import AppError
from moot.shared.domain.evidence import Evidence
from moot.shared.domain.experts import EXPERT_TEXTS, STANCES, Direction
from moot.shared.domain.grounding import Grounding
from moot.shared.domain.messages import DEFAULT_LOCALE, Catalogue, Locale, Message

SAY = Catalogue(Path(__file__).parent / "texts", EXPERT_TEXTS)

Side = Literal["BULLISH", "BEARISH"]
RiskLevel = Literal["HIGH", "MEDIUM", "LOW"]
Engine = Literal["rubric", "llm"]
Confidence = Annotated[float, Field(ge=0, le=1)]
Text = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]


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
    locale: Locale = DEFAULT_LOCALE
    as_of: AwareDatetime | None = None


class UnknownSignal(AppError):
    """A signal outside the table has no meaning here, and a guess would be worse than none."""

    code = "UNKNOWN_SIGNAL"


@dataclass(frozen=True)
class Opinion:
    """An expert's finding, weighed."""

    expert: str
    stance: float
    summary: ExpertSummary

    @property
    def pull(self) -> float:
        """How far it moves the debate: positive towards the bull."""
        return self.stance * self.summary.confidence

    @property
    def name(self) -> Message:
        return SAY(f"node.{self.expert}")

    @property
    def label(self) -> Message:
        signal, confidence = self.summary.signal, self.summary.confidence
        return SAY("label", expert=self.name, signal=signal, confidence=confidence)

    @property
    def argues(self) -> Message:
        return SAY("says", who=self.label, text=self.summary.reasoning)

    @property
    def warns(self) -> Message:
        return SAY("says", who=self.name, text=self.summary.risk_warning)


def weigh(summaries: Mapping[str, ExpertSummary]) -> list[Opinion]:
    """Every expert's opinion, the strongest first; raises `UnknownSignal`."""
    opinions = [Opinion(expert, _stance(expert, s.signal), s) for expert, s in summaries.items()]
    return sorted(opinions, key=lambda o: (-abs(o.pull), -o.summary.confidence, o.expert))


def camps(opinions: Sequence[Opinion]) -> tuple[list[Opinion], list[Opinion]]:
    """Bulls and bears, the smaller camp first; the undecided are in neither."""
    bulls = [opinion for opinion in opinions if opinion.stance > 0]
    bears = [opinion for opinion in opinions if opinion.stance < 0]
    return (bulls, bears) if len(bulls) < len(bears) else (bears, bulls)


def _stance(expert: str, signal: str) -> float:
    if signal not in STANCES:
        raise UnknownSignal(
            SAY("unknown_signal", expert=SAY(f"node.{expert}"), signal=signal, known=list(STANCES)),
            expert=expert,
            signal=signal,
        )
    return STANCES[signal]


class Argument(Frozen):
    """One side's plea: `acknowledged` is what it grants the other side, `triggers` what would prove it right.

    `confidence` of a plea by rule is the weight behind the side, so that bull's less bear's is the net of the debate;
    of a plea by a model it is the model's own conviction. `grounding` is None where nothing had to be checked.
    """

    direction: Side
    confidence: Confidence
    core_thesis: str
    supporting_arguments: list[str]
    acknowledged: list[str]
    triggers: list[str]
    narrative_report: str
    engine: Engine = "rubric"
    grounding: Grounding | None = None
    warnings: list[str] = []


class RiskItem(BaseModel, frozen=True):
    risk: Text
    probability: RiskLevel
    impact: RiskLevel
    mitigation: Text


class Resolution(Frozen):
    direction: Direction
    confidence: Confidence
    risk_matrix: list[RiskItem]
    key_disagreements: list[str]
    conflict_resolution: str
    narrative_report: str
    engine: Engine
    bull_case_summary: str = ""
    bear_case_summary: str = ""
    grounding: Grounding | None = None
    warnings: list[str] = []


class Case(Frozen):
    core_thesis: str
    supporting_arguments: list[str]


class BullCase(Case):
    acknowledged_risks: list[str]


class BearCase(Case):
    acknowledged_strengths: list[str]


class DebateOutcomeDTO(Resolution):
    """The resolution with both cases, the evidence passed through, and `experts`: who stands behind it.

    `engine`, `grounding` and `warnings` are of all three who spoke.
    """

    symbol: str
    bull_case: BullCase
    bear_case: BearCase
    evidence: list[Evidence]
    experts: list[str]
    argument: ArgumentGraph


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


class Advocate(Protocol):
    async def advocate(self, debate_input: DebateInput) -> Argument:
        """Plead one side, from the experts' findings alone."""


class Resolver(Protocol):
    async def resolve(self, debate_input: DebateInput, bull: Argument, bear: Argument) -> Resolution:
        """Weigh both pleas; a NEUTRAL has a confidence near 0.5."""


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
