"""What is held against a model's answer beyond the shape of a result."""

from collections.abc import Sequence
from enum import StrEnum
from functools import partial
from typing import Annotated, Any, TypeVar

from pydantic import AfterValidator, Field, ValidationError, create_model

from moot.modules.research.domain.analyst import DimensionAnalysis, ExpertResult
from moot.modules.research.domain.catalyst import CatalystContext
from moot.modules.research.domain.financial import FinancialResult, signal_for
from moot.modules.research.domain.macro import MacroSnapshot
from moot.modules.research.domain.technical import TechnicalSnapshot
from moot.modules.research.domain.texts import SAY
from moot.shared.domain.messages import Message
from moot.shared.domain.validation import refuse

R = TypeVar("R", bound=ExpertResult)
Answer = dict[str, Any]

HALF_A_CENT = 0.005 + 1e-9
GLOSSED = {
    f"{verdict}{gloss}": verdict
    for verdict, chinese in (("Undervalued", "低估"), ("Fair", "合理"), ("Overvalued", "高估"))
    for gloss in (f" ({chinese})", f"({chinese})", f"（{chinese}）", f" （{chinese}）")
}


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
            raise _refused("blank", name, got=text)
    return answer


def levels_were_given(snapshot: TechnicalSnapshot, answer: Answer) -> Answer:
    """A level others act on is never the model's own."""
    given = {
        "support": [snapshot.support, *snapshot.calculated_support_levels],
        "resistance": [snapshot.resistance, *snapshot.calculated_resistance_levels],
    }
    levels = answer.get("key_technical_levels")
    for side, allowed in given.items():
        if isinstance(levels, dict) and side in levels and not _is_one_of(levels[side], allowed):
            raise _refused("enum", "key_technical_levels", side, got=levels[side], allowed=allowed)
    return answer


def _is_one_of(level: Any, allowed: Sequence[float]) -> bool:
    try:
        return any(abs(float(level) - one) <= HALF_A_CENT for one in allowed)
    except (TypeError, ValueError):
        return False


def sources_were_given(snapshot: MacroSnapshot | CatalystContext, answer: Answer) -> Answer:
    sources = answer.get("information_sources")
    foreign = [s for s in sources if s not in snapshot.all_source_urls] if isinstance(sources, list) else []
    if foreign:
        raise _refused("enum", "information_sources", got=foreign, allowed=snapshot.all_source_urls)
    return answer


def without_gloss(snapshot: object, answer: Answer) -> Answer:
    """`Undervalued (低估)` is how some models write `Undervalued`."""
    plain = GLOSSED.get(str(answer.get("valuation_verdict")))
    return answer | {"valuation_verdict": plain} if plain else answer


def named_by_score(result: FinancialResult) -> tuple[FinancialResult, Sequence[Message]]:
    """The score decides; a model that named it otherwise is corrected, and the reader told."""
    score, signal = result.financial_score, signal_for(result.financial_score)
    if signal == result.signal:
        return result, ()
    remark = SAY("financial.signal_from_score", score=score, said=result.signal, signal=signal)
    return result.model_copy(update={"signal": signal}), [remark]


def _refused(kind: str, *where: str, got: Any, **context: Any) -> ValidationError:
    """Reads as if the model of the answer had found it."""
    error = refuse(kind, got=got, **context)
    return ValidationError.from_exception_data("answer", [{"type": error, "loc": where, "input": got}])
