"""The answer a session gave, put together again from its record."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from moot.modules.coordinator.application.node_results import whole
from moot.modules.coordinator.application.research_run import notices, tally_of, usage
from moot.modules.coordinator.domain.dtos.research_dtos import ExpertResultItem, ModelUsage, ResearchResult
from moot.modules.coordinator.domain.model.enums import ExpertType
from moot.modules.coordinator.domain.model.session import NodeExecution, OverallStatus, ResearchSession
from moot.modules.coordinator.domain.texts import SAY
from moot.shared.domain.messages import Locale

EXPERTS = set(ExpertType)


def past_result(
    session: ResearchSession, nodes: Sequence[NodeExecution], usage: ModelUsage
) -> ResearchResult:
    """Of a session that has ended. Where the record has no row of an expert, the result says so."""
    rows = {node.node_type: node for node in nodes}
    reused = [node.node_type for node in nodes if node.reused and node.node_type in EXPERTS]
    asked = dict.fromkeys([*reused, *session.selected_experts])
    experts = [_expert(ExpertType(name), rows.get(name), session.locale) for name in asked]
    return ResearchResult(
        symbol=session.symbol,
        overall_status=_overall(session, experts),
        expert_results=experts,
        debate_outcome=_found(rows, "debate"),
        verdict=_found(rows, "judge"),
        verdict_status=session.verdict_status or "failed",
        reason=session.reason,
        session_id=str(session.id),
        retry_count=session.retry_count,
        as_of=session.as_of,
        locale=session.locale,
        audit_gaps=session.audit_gaps,
        usage=usage,
        notices=notices(session.symbol, session.locale),
    )


def past_usage(calls: Iterable[Mapping[str, Any]], currency: str) -> ModelUsage:
    return usage(tally_of(calls), currency)


def _expert(expert: ExpertType, node: NodeExecution | None, locale: Locale) -> ExpertResultItem:
    if node is None:
        missing = SAY("sessions.no_node").in_locale(locale)
        return ExpertResultItem(expert_type=expert, status="failed", error=missing)
    if node.status == "success":
        return ExpertResultItem(expert_type=expert, status="success", data=whole(node))
    return ExpertResultItem(expert_type=expert, status="failed", error=node.error_message)


def _found(rows: Mapping[str, NodeExecution], node_type: str) -> dict[str, Any] | None:
    """What debate or judge said."""
    node = rows.get(node_type)
    if node is None or node.status != "success":
        return None
    return whole(node)


def _overall(session: ResearchSession, experts: Sequence[ExpertResultItem]) -> OverallStatus:
    """How the experts fared; of a cancelled session nobody had said so yet."""
    if session.status in ("completed", "partial", "failed"):
        return session.status
    succeeded = sum(item.status == "success" for item in experts)
    return "failed" if not succeeded else "completed" if succeeded == len(experts) else "partial"
