"""Replay: a session run again from its record, with the network off, and compared with it node by node."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import Any, Literal
from uuid import UUID

from pydantic import AwareDatetime, BaseModel, Field
from pydantic_core import to_json

from moot.modules.coordinator.application.results import from_columns, request_of
from moot.modules.coordinator.domain.dtos.research_dtos import ResearchRequest, ResearchResult
from moot.modules.coordinator.domain.model.enums import ExpertType
from moot.modules.coordinator.domain.model.session import NodeExecution, Past, ResearchSession, SessionEvent
from moot.modules.coordinator.domain.ports.research_orchestration import IResearchOrchestrationPort
from moot.modules.coordinator.domain.ports.research_session_repository import IResearchSessionRepository
from moot.modules.coordinator.domain.texts import SAY
from moot.shared.domain.errors import AppError, Conflict
from moot.shared.infrastructure.execution_context import ReplayContext
from moot.shared.infrastructure.redaction import REDACT

NODES = (*(expert.value for expert in ExpertType), "debate", "judge")
SHOWN = 5
"""Differences of a node that are told; the others are counted."""
WEB_SEARCH = "web-search"
UNANSWERED = {"REPLAY_MISMATCH", "NOT_KEPT"}
"""What a replay fails with where nobody had an answer then either."""


class Difference(BaseModel):
    """What the record says at a place of a result, and what came out now; None where there is nothing."""

    path: str
    then: Any = None
    now: Any = None


class NodeReplay(BaseModel):
    """`failed_alike`: it failed then, and does now, for the same reason or still for want of an answer.

    `unrecorded` is a node without a row to compare with. `prompt` is where a model's prompt is not the recorded one.
    """

    node_type: str
    outcome: Literal["same", "failed_alike", "differs", "unrecorded"]
    reused: bool = False
    differences: list[Difference] = Field(default_factory=list)
    more: int = 0
    prompt: list[str] = Field(default_factory=list)


class Replay(BaseModel):
    """`ending` is how the outcome of the session differs."""

    session_id: UUID
    symbol: str
    as_of: AwareDatetime
    equal: bool
    nodes: list[NodeReplay]
    ending: list[Difference]


class Rerun(IResearchSessionRepository):
    """What came out now, node by node; it lasts no longer than the replay."""

    def __init__(self) -> None:
        self.nodes: dict[str, NodeExecution] = {}

    async def save_node_execution(self, node: NodeExecution, *, events: Sequence[SessionEvent] = ()) -> None:
        self.nodes[node.node_type] = node


class ReplayService:
    """`engine` makes an orchestrator that journals where it is told: a replay leaves no trace on the record."""

    def __init__(
        self,
        engine: Callable[[IResearchSessionRepository], IResearchOrchestrationPort],
        repository: IResearchSessionRepository,
    ) -> None:
        self._engine, self._repository = engine, repository

    async def replay(self, session_id: UUID, workspace_id: str) -> Replay:
        """Raises `SessionNotFound`; `Conflict` for a session that cannot be replayed, which says why."""
        past = await self._repository.past_session(session_id, workspace_id)
        calls = await self._repository.calls(session_id, "models", include_text=True)
        others = await self._repository.calls(session_id, "others", include_text=False)
        if not past.nodes:
            raise Conflict(SAY("replay.nothing", session_id=session_id), code="NOTHING_ON_RECORD")
        if any(call["status"] == "success" and call["completion_text"] is None for call in calls):
            raise Conflict(SAY("replay.pruned", session_id=session_id), code="BODIES_PRUNED")
        rerun = Rerun()
        with _context(past, calls, others).active() as context:
            result = await self._engine(rerun).run(_request(past))
        return _compare(past, result, rerun.nodes, context.tally.failures)


def _request(past: Past) -> ResearchRequest:
    """The question as it was asked; of a cancelled session, as far as it had got."""
    session, rows = past.session, {node.node_type for node in past.nodes}
    broken_off = session.status == "cancelled"
    skipped = session.verdict_status == "skipped" or broken_off
    asked = request_of(session, past.nodes)
    return asked.model_copy(
        update={
            "experts": [expert for expert in asked.experts if not broken_off or expert in rows],
            "skip_debate": session.skip_debate or (skipped and "debate" not in rows),
        }
    )


def _context(
    past: Past, calls: Sequence[Mapping[str, Any]], others: Iterable[Mapping[str, Any]]
) -> ReplayContext:
    session = past.session
    engines = {(node.result_data or {}).get("engine") for node in past.nodes if not node.reused}
    engines |= {"rubric"} if session.contest else set()
    return ReplayContext(
        session_id=str(session.id),
        as_of=session.as_of,
        locale=session.locale,
        workspace=session.workspace_id,
        experts=tuple(request_of(session, past.nodes).panel),
        began_at=session.created_at,
        asked=session,
        analyst="llm" if calls or "llm" in engines else "rubric" if "rubric" in engines else None,
        fallback="rubric" if "rubric" in engines else "none",
        searched=any(call["operation"] == WEB_SEARCH for call in others),
    )


def _compare(
    past: Past, result: ResearchResult, rerun: Mapping[str, NodeExecution], failures: Mapping[str, Exception]
) -> Replay:
    session, rows = past.session, {node.node_type: node for node in past.nodes}
    ran = [name for name in NODES if name in rows or name in rerun]
    nodes = [_compare_node(name, rows.get(name), rerun.get(name), failures.get(name)) for name in ran]
    broken_off = session.status == "cancelled"
    ending = [] if broken_off else list(_compare_ending(session, result))
    wrong = {"differs"} if broken_off else {"differs", "unrecorded"}
    return Replay(
        session_id=session.id,
        symbol=session.symbol,
        as_of=session.as_of,
        equal=not ending and not any(node.outcome in wrong for node in nodes),
        nodes=nodes,
        ending=ending,
    )


def _compare_node(
    name: str, then: NodeExecution | None, now: NodeExecution | None, error: Exception | None
) -> NodeReplay:
    """Two results; or, where one side has none, how the node ended. Reused results are not run again."""
    if then is None:
        return NodeReplay(node_type=name, outcome="unrecorded")
    prompt = list(error.details.get("difference", ())) if isinstance(error, AppError) else []
    unanswered = now is not None and now.error_type in UNANSWERED and not prompt
    if then.status == "failed" and now and (unanswered or _state(then) == _state(now)):
        return NodeReplay(node_type=name, outcome="failed_alike")
    sides = (_state(then), _state(now))
    if now and then.status == now.status == "success":
        sides = (_result(then), _result(now))
    found = [] if then.reused else list(differences(*sides))
    return NodeReplay(
        node_type=name,
        outcome="differs" if found else "same",
        reused=then.reused,
        differences=found[:SHOWN],
        more=len(found[SHOWN:]),
        prompt=prompt,
    )


def _result(node: NodeExecution) -> dict[str, Any]:
    return from_columns(node) | {"narrative_report": node.narrative_report}


def _state(node: NodeExecution | None) -> dict[str, Any]:
    """A node that was not reached skipped its work."""
    return {"status": node.status, "error": node.error_message} if node else {"status": "skipped"}


def _compare_ending(session: ResearchSession, now: ResearchResult) -> Iterator[Difference]:
    """The reason is compared where it is no error, whose words may tell of the network."""
    then = {"status": session.status, "verdict_status": session.verdict_status, "reason": session.reason}
    after = {"status": now.overall_status, "verdict_status": now.verdict_status, "reason": now.reason}
    if session.verdict_status not in ("abstained", "skipped"):
        then["reason"] = after["reason"] = None
    yield from differences(then, after)


def differences(then: Any, now: Any) -> Iterator[Difference]:
    """Where two results differ, once both are what a database makes of them: JSON, without secrets."""
    kept = [json.loads(to_json(REDACT(value), inf_nan_mode="null")) for value in (then, now)]
    return _differences(kept[0], kept[1], "")


def _differences(then: Any, now: Any, path: str) -> Iterator[Difference]:
    if isinstance(then, dict) and isinstance(now, dict):
        for name in dict.fromkeys([*then, *now]):
            yield from _differences(then.get(name), now.get(name), f"{path}.{name}" if path else name)
    elif isinstance(then, list) and isinstance(now, list):
        for place, (before, after) in enumerate(zip_longest(then, now)):
            yield from _differences(before, after, f"{path}[{place}]")
    elif then != now or isinstance(then, bool) is not isinstance(now, bool):
        yield Difference(path=path, then=then, now=now)
