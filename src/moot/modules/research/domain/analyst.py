"""The port behind which an expert's judgement is made, by rules or by a model, and the shape of what comes back."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Generic, Literal, Protocol, TypeVar

from pydantic import BaseModel, ConfigDict, Field

from moot.modules.research.domain.facts import Case
from moot.shared.domain.evidence import Evidence
from moot.shared.domain.grounding import Grounding

Engine = Literal["rubric", "llm"]
Confidence = Annotated[float, Field(ge=0, le=1)]
Score = Annotated[int, Field(ge=0, le=100)]


class ExpertResult(BaseModel):
    """What an expert concludes. Every text is in the reader's language; enum literals never change."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    narrative_report: str = ""


class DimensionAnalysis(BaseModel):
    model_config = ConfigDict(frozen=True)

    dimension: str
    score: Score
    assessment: str
    key_findings: list[str]


S_contra = TypeVar("S_contra", contravariant=True)
R_co = TypeVar("R_co", covariant=True)


@dataclass(frozen=True)
class Opinion(Generic[R_co]):
    """A result, and for the record what the analyst was shown (`input`) and what it answered (`output`).

    `grounding` says how much of what a model stated is in the evidence; a rubric states nothing else and has none.
    `warnings` are for the reader of the result, in its language.
    """

    result: R_co
    input: str
    output: str
    engine: Engine
    grounding: Grounding | None = None
    warnings: tuple[str, ...] = ()


class Analyst(Protocol[S_contra, R_co]):
    """Judges a snapshot by the evidence alone: no number and no event that was not given."""

    async def analyse(
        self, snapshot: S_contra, evidence: Sequence[Evidence], case: Case
    ) -> Opinion[R_co]: ...
