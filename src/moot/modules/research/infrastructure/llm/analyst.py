"""The analyst that is a language model: it reads the same evidence as the rubric and answers in the same shape."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Generic, TypeVar

from moot.modules.llm_platform.application.engine_choice import EngineChoice
from moot.modules.llm_platform.application.prompt_files import Prompts
from moot.modules.llm_platform.application.speaker import Brief, Speaker
from moot.modules.research.domain.analyst import Analyst, ExpertResult, Opinion
from moot.modules.research.domain.evidence import Snapshot
from moot.modules.research.infrastructure.llm.answers import nothing_blank
from moot.modules.research.infrastructure.llm.case import case_of
from moot.shared.domain.evidence import Evidence
from moot.shared.domain.messages import Locale, Message

S = TypeVar("S", bound=Snapshot)
R = TypeVar("R", bound=ExpertResult)

PROMPTS = Prompts(Path(__file__).parents[1] / "prompts")
OWN_NUMBERS = frozenset({"confidence", "confidence_score", "score", "financial_score"})


def as_answered(snapshot: Any, answer: dict[str, Any]) -> dict[str, Any]:
    return answer


def as_it_is(result: R) -> tuple[R, Sequence[Message]]:
    return result, ()


@dataclass(frozen=True)
class Remit(Generic[S, R]):
    """What one expert is asked; `agent` also names its prompt.

    `shows` and `quotes` are the fields of the snapshot it sees beside the evidence: facts of the desk, and texts that
    others wrote. `checks` sees the parsed answer before it is validated and refuses what the snapshot contradicts.
    `settles` has the last word on what code decides, and tells the reader if it had to speak.
    """

    agent: str
    answer: type[R]
    shows: tuple[str, ...]
    quotes: tuple[str, ...] = ()
    checks: Callable[[S, dict[str, Any]], dict[str, Any]] = as_answered
    settles: Callable[[R], tuple[R, Sequence[Message]]] = as_it_is


@dataclass(frozen=True)
class LLMAnalyst(Generic[S, R]):
    remit: Remit[S, R]
    speaker: Speaker

    async def analyse(self, snapshot: S, evidence: Sequence[Evidence], locale: Locale) -> Opinion[R]:
        spoken = await self.speaker.ask(self._brief(snapshot, evidence, locale))
        result, remarks = self.remit.settles(spoken.answer)
        warnings = (*spoken.warnings, *(remark.in_locale(locale) for remark in remarks))
        return Opinion(result, spoken.input, spoken.output, "llm", spoken.grounding, warnings)

    def _brief(self, snapshot: S, evidence: Sequence[Evidence], locale: Locale) -> Brief[R]:
        return Brief(
            module="research",
            agent=self.remit.agent,
            system=PROMPTS.text(self.remit.agent, locale),
            case=case_of(snapshot, self.remit.shows, self.remit.quotes),
            evidence=evidence,
            answer=self.remit.answer,
            locale=locale,
            normalise=lambda answer: self.remit.checks(snapshot, nothing_blank(answer)),
            own=OWN_NUMBERS,
        )


@dataclass(frozen=True)
class ChosenAnalyst(Generic[S, R]):
    """The rubric or the model, as the desk is set up; the opinion says which of them it was."""

    rubric: Analyst[S, R]
    model: LLMAnalyst[S, R]
    choice: EngineChoice

    async def analyse(self, snapshot: S, evidence: Sequence[Evidence], locale: Locale) -> Opinion[R]:
        return await self.choice.make(
            self.model.remit.agent,
            partial(self.model.analyse, snapshot, evidence, locale),
            partial(self.rubric.analyse, snapshot, evidence, locale),
        )
