"""How a run ends: from the final state of a graph to the desk's answer, whatever engine ran it."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from moot.modules.coordinator.domain.dtos.research_dtos import (
    ExpertResultItem,
    ResearchRequest,
    ResearchResult,
)
from moot.modules.coordinator.domain.exceptions import Abstention
from moot.modules.coordinator.domain.model.enums import ExpertType
from moot.modules.coordinator.domain.model.session import VerdictStatus
from moot.modules.coordinator.domain.texts import SAY
from moot.shared.domain.errors import AppError
from moot.shared.domain.messages import Locale, Message


def conclude(
    request: ResearchRequest, state: Mapping[str, Any], failures: Mapping[str, Exception]
) -> ResearchResult:
    ending = _ending(request, state, failures)
    return ResearchResult(
        symbol=request.symbol,
        overall_status=state["overall_status"],
        expert_results=_expert_results(request, state),
        debate_outcome=state.get("debate_outcome") or None,
        verdict=state.get("verdict") or None,
        verdict_status=ending.status,
        reason=ending.reason.in_locale(request.locale) if ending.reason else None,
        retry_count=request.retry_count,
    )


def error_text(error: Exception, locale: Locale) -> str:
    """What an error says to a reader; one that says nothing is at least named."""
    said = error.in_locale(locale) if isinstance(error, AppError) else str(error)
    return said or type(error).__name__


def _expert_results(request: ResearchRequest, state: Mapping[str, Any]) -> list[ExpertResultItem]:
    reused = [ExpertType(name) for name in request.pre_populated_results or {}]
    return [
        ExpertResultItem(expert_type=expert, status="success", data=state["results"][expert])
        if expert in state["results"]
        else ExpertResultItem(expert_type=expert, status="failed", error=state["errors"][expert])
        for expert in dict.fromkeys([*reused, *request.experts])
    ]


class _Ending(NamedTuple):
    status: VerdictStatus
    reason: Message | None


def _ending(request: ResearchRequest, state: Mapping[str, Any], failures: Mapping[str, Exception]) -> _Ending:
    if state.get("verdict"):
        return _Ending("judged", None)
    if state["overall_status"] == "failed":
        return _Ending("failed", SAY("no_verdict.no_expert"))
    if request.skip_debate:
        return _Ending("skipped", SAY("no_verdict.skip_debate"))
    for node in ("debate", "judge"):
        if node in failures:
            return _of_failure(node, failures[node], request.locale)
    return _Ending("skipped", SAY("no_verdict.no_debate"))


def _of_failure(node: str, error: Exception, locale: Locale) -> _Ending:
    why = error_text(error, locale)
    if isinstance(error, Abstention):
        return _Ending("abstained", SAY("no_verdict.abstained", why=why))
    return _Ending("failed", SAY("no_verdict.failed", node=SAY(f"node.{node}"), why=why))
