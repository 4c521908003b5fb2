"""The verdict: what the judge is given, what it rules, and when it must not rule."""

from typing import Annotated, Literal, Protocol, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from moot.modules.judge.domain.levels import Action, Levels
from moot.modules.judge.domain.texts import SAY
from moot.shared.domain.errors import AppError
from moot.shared.domain.evidence import Evidence
from moot.shared.domain.grounding import Grounding
from moot.shared.domain.messages import DEFAULT_LOCALE, Locale

Direction = Literal["BULLISH", "BEARISH", "NEUTRAL"]
Fraction = Annotated[float, Field(ge=0, le=1)]

QUORUM_APPLIES_ABOVE = 2  # experts asked; whoever asks one or two has chosen so


class JudgeInput(BaseModel):
    """A debate as the judge sees it: its outcome, never the raw research. `experts_asked` 0 means unknown."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    symbol: str = Field(min_length=1)
    direction: Direction
    confidence: Fraction
    bull_thesis: str
    bear_thesis: str
    risk_factors: list[str]
    key_disagreements: list[str]
    conflict_resolution: str
    evidence: list[Evidence] = []
    experts_asked: int = Field(default=0, ge=0)
    experts_heard: int = Field(default=0, ge=0)
    locale: Locale = DEFAULT_LOCALE

    def require_quorum(self, quorum: int) -> None:
        if self.experts_asked > QUORUM_APPLIES_ABOVE and self.experts_heard < quorum:
            raise VerdictAbstained(self.experts_heard, self.experts_asked, quorum)


class Verdict(BaseModel):
    """`position_percent` is the fraction of capital to hold in a new position: 0 unless the action is BUY.

    `risk_warnings` are about the stock, `warnings` about the text; `grounding` is None if nothing had to be checked.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    action: Action
    position_percent: Fraction
    confidence: Fraction
    entry_strategy: str
    stop_loss: str
    take_profit: str
    time_horizon: str
    risk_warnings: list[str] = Field(min_length=2)
    reasoning: str
    narrative_report: str
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
