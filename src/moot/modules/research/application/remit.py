"""What an expert's model is asked, and what is held against its answer beyond the shape of a result."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Generic, TypeVar

from pydantic import AfterValidator, Field, ValidationError, create_model

from moot.modules.research.domain.analyst import DimensionAnalysis, ExpertResult
from moot.modules.research.domain.evidence import Snapshot
from moot.modules.research.domain.web_context import Reported
from moot.shared.domain.messages import Message
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
