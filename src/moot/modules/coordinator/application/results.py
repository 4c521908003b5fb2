"""The answer of a session: what a run ends in, and the same from its record; of an expert, in four fields.

And from its record what it was asked, to be asked again.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID, uuid4

from moot.modules.coordinator.domain.dtos.research_dtos import (
    PANEL,
    ExpertResultItem,
    ModelUsage,
    ResearchRequest,
    ResearchResult,
)
from moot.modules.coordinator.domain.exceptions import Abstention, SessionNotRetryable
from moot.modules.coordinator.domain.model.enums import ExpertType
from moot.modules.coordinator.domain.model.session import (
    WHAT_IF,
    Judged,
    NodeExecution,
    OverallStatus,
    Past,
    ResearchSession,
    VerdictStatus,
)
from moot.modules.coordinator.domain.texts import SAY
from moot.shared.domain.claims import SIGNS, Move, PastClaim, PastVerdict
from moot.shared.domain.messages import Locale, Message
from moot.shared.domain.symbol import Symbol
from moot.shared.domain.texts import SAY as COMMON
from moot.shared.infrastructure.execution_context import Tally
from moot.shared.infrastructure.redaction import error_text

Results = dict[str, dict[str, Any]]


def conclude(
    request: ResearchRequest, state: Mapping[str, Any], failures: Mapping[str, Exception]
) -> ResearchResult:
    """What the last state of a run comes to, whatever engine ran it; `failures` are by node."""
    verdict_status, reason = _explain_ending(request, state, failures)
    found, errors = state["results"], state["errors"]
    skipped = SAY("sessions.skipped_node").in_locale(request.locale)
    return ResearchResult(
        symbol=request.symbol,
        overall_status=state["overall_status"],
        expert_results=[
            _item(expert, found.get(expert), errors.get(expert, skipped)) for expert in request.panel
        ],
        debate_outcome=state.get("debate_outcome") or None,
        verdict=state.get("verdict") or None,
        verdict_status=verdict_status,
        reason=reason.in_locale(request.locale) if isinstance(reason, Message) else reason,
        retry_count=request.retry_count,
    )


def past_result(
    session: ResearchSession,
    nodes: Sequence[NodeExecution],
    calls: Iterable[Mapping[str, Any]],
    currency: str,
) -> ResearchResult:
    """Of a session that has ended. Where the record has no row of an expert, the result says so."""
    found = _results(nodes)
    reused = [ExpertType(node.node_type) for node in nodes if node.reused and node.node_type in PANEL]
    missing = SAY("sessions.no_node").in_locale(session.locale)
    skipped = SAY("sessions.skipped_node").in_locale(session.locale)
    errors = {node.node_type: node.error_message or skipped for node in nodes}
    experts = [
        _item(expert, found.get(expert), errors.get(expert, missing))
        for expert in dict.fromkeys([*sorted(reused, key=PANEL.index), *session.experts])
    ]
    result = ResearchResult(
        symbol=session.symbol,
        overall_status=_overall(session, experts),
        expert_results=experts,
        debate_outcome=found.get("debate"),
        verdict=found.get("judge"),
        verdict_status=session.verdict_status or "failed",
        reason=session.reason,
        retry_count=session.retry_count,
    )
    return complete(result, session, tally_of(calls), currency)


def complete(result: ResearchResult, session: ResearchSession, tally: Tally, currency: str) -> ResearchResult:
    used = ModelUsage(**dict(tally.usage), currency=currency, uncounted=tally.uncounted)
    known = {
        "session_id": str(session.id),
        "as_of": session.as_of,
        "locale": session.locale,
        "audit_gaps": session.audit_gaps + tally.audit_gaps,
        "usage": used,
        "notices": notices_of(session),
    }
    return result.model_copy(update=known)


def tally_of(calls: Iterable[Mapping[str, Any]]) -> Tally:
    """What the calls took that were really made; an answer from the record costs nothing again."""
    live = [call for call in calls if call["origin"] == "live"]
    return Tally(
        requests=len(live),
        tokens=sum(call["total_tokens"] or 0 for call in live),
        cost=sum(call["cost"] or 0.0 for call in live),
        unpriced=sum(call["status"] == "success" and call["cost"] is None for call in live),
        uncounted=sum(call["status"] == "success" and call["total_tokens"] is None for call in live),
    )


def notices(symbol: str, locale: Locale) -> list[str]:
    """What a reader must know whatever the result says."""
    about = [COMMON("synthetic")] if Symbol.parse(symbol).synthetic else []
    return [message.in_locale(locale) for message in (*about, COMMON("not_advice"))]


def notices_of(session: ResearchSession) -> list[str]:
    """And, of a what-if, first that it is one: what it says is not what the desk found."""
    told = [SAY(f"contest.{move.move}", claim=move.claim, strength=move.strength) for move in session.contest]
    what_if = [SAY("contest.what_if", session=session.parent_session_id, moves=told)] if told else []
    return [
        *(message.in_locale(session.locale) for message in what_if),
        *notices(session.symbol, session.locale),
    ]


def to_columns(result: dict[str, Any]) -> dict[str, Any]:
    """What a node's result is in the journal, with the evidence in a column of its own; `result` is left as it is."""
    return {
        "evidence": result.get("evidence", []),
        "narrative_report": result.get("narrative_report"),
        "result_data": {name: value for name, value in result.items() if name != "evidence"},
    }


def from_columns(node: NodeExecution) -> dict[str, Any]:
    """The result as the node gave it. The judge cites no evidence of its own."""
    cited = {} if node.node_type == "judge" and not node.evidence else {"evidence": node.evidence}
    return {**(node.result_data or {}), **cited}


def _item(expert: ExpertType, data: dict[str, Any] | None, error: str | None) -> ExpertResultItem:
    if data is not None:
        return ExpertResultItem(expert_type=expert, status="success", data=data)
    return ExpertResultItem(expert_type=expert, status="failed", error=error)


def _overall(session: ResearchSession, experts: Sequence[ExpertResultItem]) -> OverallStatus:
    """How the experts fared; of a cancelled session nobody had said so yet."""
    if session.status in ("completed", "partial", "failed"):
        return session.status
    succeeded = sum(item.status == "success" for item in experts)
    return "failed" if not succeeded else "completed" if succeeded == len(experts) else "partial"


def _explain_ending(
    request: ResearchRequest, state: Mapping[str, Any], failures: Mapping[str, Exception]
) -> tuple[VerdictStatus, Message | str | None]:
    """How the verdict fared, and why there is none."""
    if state.get("verdict"):
        return "judged", None
    if state["overall_status"] == "failed":
        return "failed", SAY("no_verdict.no_expert")
    if request.skip_debate:
        return "skipped", SAY("no_verdict.skip_debate")
    for node in ("debate", "judge"):
        if node in failures:
            why = error_text(failures[node], request.locale)
            if isinstance(failures[node], Abstention):
                return "abstained", why
            return "failed", SAY("no_verdict.failed", node=SAY(f"node.{node}"), why=why)
    return "skipped", SAY("no_verdict.no_debate")


ALONE = {"batch_id": None, "batch_max_cost": None}
"""What follows from a session of a batch is no part of it."""


def request_of(session: ResearchSession, nodes: Iterable[NodeExecution]) -> ResearchRequest:
    taken_over = [node for node in nodes if node.reused]
    reused = _results(taken_over)
    return ResearchRequest(
        **session.pick_asked(),
        pre_populated_results=_answers(reused) or None,
        failures=_failures(taken_over) or None,
        debate_outcome=reused.get("debate"),
    )


def request_again(past: Past, *, skip_debate: bool | None = None) -> ResearchRequest:
    """The same question, as of the same moment, to those who owe an answer: failed, or never heard of again.

    The debate is skipped if it was, unless told; it is held again where an expert was missing in it. Where all had
    answered and no verdict could be reached, it runs alone, or the judge does if the debate had come to its end.
    """
    session, found = past.session, _results(past.nodes)
    reused = _answers(found)
    skip_debate = session.skip_debate if skip_debate is None else skip_debate
    owing = [expert for expert in session.experts if expert not in reused]
    no_verdict = session.verdict_status == "failed" and bool(reused)
    if not owing and (skip_debate or not no_verdict):
        raise SessionNotRetryable(session.id)
    return request_of(session, ()).model_copy(
        update={
            **ALONE,
            "experts": owing,
            "skip_debate": skip_debate,
            "pre_populated_results": reused,
            "failures": _failures(node for node in past.nodes if node.reused) or None,
            "debate_outcome": None if owing else found.get("debate"),
            "parent_session_id": session.id,
            "retry_count": session.retry_count + 1,
        }
    )


def request_what_if(past: Past, moves: Sequence[Move], debate: dict[str, Any]) -> ResearchRequest:
    """The same question to the judge alone, on that debate; the experts have said what they had to say."""
    return request_of(past.session, ()).model_copy(
        update={
            **ALONE,
            "experts": [],
            "skip_debate": False,
            "pre_populated_results": _answers(_results(past.nodes)),
            "failures": _failures(past.nodes) or None,
            "debate_outcome": debate,
            "parent_session_id": past.session.id,
            "retry_count": 0,
            "contest": list(moves),
            "trigger_source": WHAT_IF,
        }
    )


def remember(judged: Judged, locale: Locale) -> PastVerdict | None:
    """A verdict as the next one on the symbol looks back at it; None of one that no argument is kept of."""
    argument = judged.debate.get("argument")
    if not argument:
        return None
    return PastVerdict(
        session_id=judged.session_id,
        as_of=judged.as_of,
        action=judged.verdict["action"],
        confidence=judged.verdict["confidence"],
        claims={
            claim["id"]: PastClaim(
                pull=SIGNS[claim["side"]] * argument["strengths"][claim["id"]],
                says={locale: claim["says"][locale]} if locale in claim["says"] else claim["says"],
                kind=claim["kind"],
                as_of=claim["as_of"],
            )
            for claim in argument["claims"]
        },
    )


def copy_reused(request: ResearchRequest, session_id: UUID, now: datetime) -> Iterator[NodeExecution]:
    """Reused results as rows of the session that reuses them, so that it can be retried without its parents."""
    debate = {"debate": request.debate_outcome} if request.debate_outcome else {}
    results = {**(request.pre_populated_results or {}), **debate}
    rows: dict[str, dict[str, Any]] = {
        name: {"status": "success", **to_columns(result)} for name, result in results.items()
    }
    rows |= {name: {"status": "failed", **why} for name, why in (request.failures or {}).items()}
    for node_type, row in rows.items():
        yield NodeExecution(
            id=uuid4(),
            session_id=session_id,
            node_type=node_type,
            reused=True,
            started_at=now,
            completed_at=now,
            duration_ms=0,
            **row,
        )


def _results(nodes: Iterable[NodeExecution]) -> Results:
    return {node.node_type: from_columns(node) for node in nodes if node.status == "success"}


def _failures(nodes: Iterable[NodeExecution]) -> dict[str, dict[str, str | None]]:
    return {
        node.node_type: {"error_type": node.error_type, "error_message": node.error_message}
        for node in nodes
        if node.status == "failed" and node.node_type in PANEL
    }


def _answers(found: Results) -> Results:
    """In the order of the desk, not of the clock: the debate must not depend on who was quicker."""
    return {expert.value: found[expert] for expert in ExpertType if expert in found}


class Summary(NamedTuple):
    """What the debate, the report and the progress display know of an expert's result."""

    signal: str
    confidence: float
    reasoning: str
    risk_warning: str


def summarise(expert: ExpertType, result: dict[str, Any]) -> Summary:
    """The four fields of `result`, everything else dropped. A result without one of them is a `KeyError`."""
    *names, inside = expert.fields
    fields = result[inside] if inside else result
    signal, confidence, reasoning, risks = (fields[str(name)] for name in names)
    return Summary(signal, confidence, reasoning, _as_text(risks))


def _as_text(risks: str | list[str] | list[dict[str, str]]) -> str:
    """Risks as one string: a sentence as it is, a list joined, a catalyst by its event and impact."""
    if isinstance(risks, str):
        return risks
    told = [[item["event"], item["expected_impact"]] if isinstance(item, dict) else [item] for item in risks]
    return "; ".join(": ".join(said.rstrip(" .。") for said in parts if said) for parts in told)
