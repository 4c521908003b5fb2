"""What every expert does alike: it opens a case, has its analyst judge what it gathered, and reports.

An expert is a folder of its name beside this file: a service, the snapshot it takes, a rubric, prompts and texts.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Annotated, Any, ClassVar, Generic, TypeVar

from pydantic import AfterValidator, Field, ValidationError, create_model

from moot.modules.research.domain.evidence import Analyst, DimensionAnalysis, ExpertResult, Snapshot
from moot.modules.research.domain.facts import Case, MarketFacts
from moot.modules.research.domain.indicators import IndicatorCalculator
from moot.modules.research.domain.rubric import Rubric
from moot.modules.research.domain.web_context import (
    Reported,
    Web,
    WebSearch,
    beyond,
    told_with,
    web_evidence,
)
from moot.shared.domain.errors import InvalidInput
from moot.shared.domain.evidence import Evidence
from moot.shared.domain.experts import ExpertType
from moot.shared.domain.messages import Locale, Message
from moot.shared.domain.symbol import Symbol
from moot.shared.domain.validation import refuse

S = TypeVar("S", bound=Snapshot)
R = TypeVar("R", bound=ExpertResult)
Answer = dict[str, Any]


def as_answered(snapshot: Snapshot, answer: Answer) -> Answer:
    return answer


def as_it_is(result: R) -> tuple[R, Sequence[Message]]:
    return result, ()


@dataclass(frozen=True)
class Remit(Generic[S, R]):
    """`folder` holds the prompt, a file per locale.

    `shows` and `quotes` are the fields of the snapshot it sees beside the evidence: facts of the desk, and texts that
    others wrote. `checks` sees the parsed answer before it is validated and refuses what the snapshot contradicts.
    `settles` has the last word on what code decides, and tells the reader if it had to speak.
    """

    folder: Path
    answer: type[R]
    shows: tuple[str, ...]
    quotes: tuple[str, ...] = ()
    checks: Callable[[S, Answer], Answer] = as_answered
    settles: Callable[[R], tuple[R, Sequence[Message]]] = as_it_is


def judging_each(names: type[StrEnum], result: type[R]) -> type[R]:
    """`result` with one judgement on each of `names`, put into their order; its schema spells the names out."""
    judgement = create_model(f"{names.__name__}Analysis", __base__=DimensionAnalysis, dimension=(names, ...))
    judgements = Annotated[
        list[judgement],
        Field(min_length=len(names), max_length=len(names)),
        AfterValidator(partial(_in_order, list(names))),
    ]
    return create_model(result.__name__, __base__=result, dimension_analyses=(judgements, ...))


def _in_order(names: list[str], judged: list[DimensionAnalysis]) -> list[DimensionAnalysis]:
    found = [str(one.dimension) for one in judged]
    if len(set(found)) < len(names):
        raise refuse("out_of_range", got=found, allowed=names)
    return sorted(judged, key=lambda one: names.index(one.dimension))


def nothing_blank(answer: Answer) -> Answer:
    """Only the narrative may be left out."""
    for name, text in answer.items():
        if name != "narrative_report" and isinstance(text, str) and not text.strip():
            raise refuse_answer("blank", name, got=text)
    return answer


def sources_were_given(snapshot: Reported, answer: Answer) -> Answer:
    sources = answer.get("information_sources")
    foreign = [s for s in sources if s not in snapshot.all_source_urls] if isinstance(sources, list) else []
    if foreign:
        raise refuse_answer("enum", "information_sources", got=foreign, allowed=snapshot.all_source_urls)
    return answer


def refuse_answer(kind: str, *where: str, got: Any, **context: Any) -> ValidationError:
    """Reads as if the model of the answer had found it."""
    error = refuse(kind, got=got, **context)
    return ValidationError.from_exception_data("answer", [{"type": error, "loc": where, "input": got}])


W = TypeVar("W", bound=Reported)


@dataclass(frozen=True)
class Sources:
    """What an expert may draw on; without a `web`, nothing is searched."""

    facts: MarketFacts
    indicators: IndicatorCalculator
    web: Web | None = None


class ExpertService(Generic[S, R]):
    """Without another `analyst` the rubric judges. `run` takes its own arguments, the moment and the language."""

    expert: ClassVar[ExpertType]
    rubric: ClassVar[Rubric[Any, Any]]
    remit: ClassVar[Remit[Any, Any]]
    searches: ClassVar[Sequence[WebSearch]] = ()
    run: Callable[..., Awaitable[Any]]

    def __init__(self, sources: Sources, analyst: Analyst[S, R] | None = None) -> None:
        self._sources, self._facts = sources, sources.facts
        self._analyst: Analyst[S, R] = analyst or self.rubric

    async def _open(self, text: str, as_of: datetime, locale: Locale, *, field: str = "symbol") -> Case:
        if not text.strip():
            raise InvalidInput(self.rubric.texts("symbol_blank", field=field), field=field)
        symbol = Symbol.parse(text)
        company = await self._facts.company(symbol, as_of=as_of)
        return Case(symbol, company, as_of, symbol.local_date(as_of), locale)

    def _refusal(self, case: Case, why: str, *, field: str = "symbol", **values: Any) -> InvalidInput:
        said = self.rubric.texts(why, symbol=case.symbol.text, today=case.today, **values)
        return InvalidInput(said, field=field)

    async def _search(self, case: Case, known: W) -> tuple[W, list[Evidence]]:
        """What is known, with what the web adds to it."""
        web = self._sources.web
        if web is None:
            return known, []
        queries = {search: search.query(self.rubric.texts, case) for search in self.searches}
        found = beyond(known, await web.find(queries, case.symbol, as_of=case.as_of))
        return told_with(known, found, case.locale), web_evidence(self.expert.prefix, found)

    async def _report(self, case: Case, snapshot: S, evidence: Sequence[Evidence]) -> dict[str, Any]:
        """The documented fields of the result, and beside them what it rests on."""
        opinion = await self._analyst.analyse(snapshot, evidence, case)
        return {
            **opinion.result.model_dump(mode="json"),
            "input": opinion.input,
            "output": opinion.output,
            f"{self.expert.prefix}_indicators": snapshot.model_dump(mode="json"),
            "evidence": [item.model_dump(mode="json") for item in evidence],
            "engine": opinion.engine,
            "grounding": opinion.grounding and opinion.grounding.model_dump(mode="json"),
            "warnings": list(opinion.warnings),
        }
