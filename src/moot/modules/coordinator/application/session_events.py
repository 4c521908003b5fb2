"""What a session tells, to whoever listens: from the beginning or from where they left, until it is done."""

from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from typing import Any, Literal

from pydantic import AwareDatetime, BaseModel, ConfigDict

from moot.modules.coordinator.application.expert_summary import summarise
from moot.modules.coordinator.domain.model.enums import ExpertType
from moot.modules.coordinator.domain.model.events import SessionEvent, Told
from moot.modules.coordinator.domain.model.session import NodeExecution, ResearchSession
from moot.modules.coordinator.domain.ports.research_session_repository import IResearchSessionRepository

LOOK_AGAIN = 1.0
"""Seconds until a session that runs in another process is looked at again."""

SIGNALS = {"debate": "direction", "judge": "action"}
Progress = Literal["waiting", "running", "retrying", "success", "failed", "skipped"]


class NodeProgress(BaseModel):
    """How far a node is. `said` is why it tries again, or what it failed with."""

    model_config = ConfigDict(frozen=True)

    node: str
    status: Progress = "waiting"
    started_at: AwareDatetime | None = None
    ended_at: AwareDatetime | None = None
    said: str | None = None


def tell_start(session: ResearchSession, *, resumed: bool = False) -> dict[str, Any]:
    told = {"status", "symbol", "locale", "skip_debate", "experts"}
    return session.model_dump(include=told, by_alias=False) | {"resumed": resumed}


def tell_node(node: NodeExecution) -> Iterator[Told]:
    """How a node ended; what debate and judge came to is told by itself too."""
    known = {"node": node.node_type, "duration_ms": node.duration_ms}
    if node.status == "failed":
        yield "node_failed", known | {"error": node.error_message}
        return
    result = node.result_data or {}
    ended = {"status": node.status, "reused": node.reused}
    yield "node_finished", known | ended | _view(node.node_type, result)
    if result and node.node_type == "debate":
        yield "debate", _some(result, "direction", "confidence")
    if result and node.node_type == "judge":
        yield "verdict", _some(result, "action", "position_percent", "confidence")


def tell_end(session: ResearchSession) -> dict[str, Any]:
    return session.model_dump(include={"status", "verdict_status", "verdict_action", "reason"})


def _view(node_type: str, result: Mapping[str, Any]) -> dict[str, Any]:
    """Which way an expert, the debate or the judge points, and how sure they are of it."""
    if node_type in SIGNALS:
        return (
            {"signal": result.get(SIGNALS[node_type]), "confidence": result.get("confidence")}
            if result
            else {}
        )
    try:
        summary = summarise(ExpertType(node_type), dict(result))
    except (KeyError, TypeError, ValueError):  # whoever reads the result will say what is missing in it
        return {}
    return {"signal": summary.signal, "confidence": summary.confidence}


def _some(result: Mapping[str, Any], *names: str) -> dict[str, Any]:
    return {name: result.get(name) for name in names}


async def events_of(
    repository: IResearchSessionRepository,
    session: ResearchSession,
    *,
    after: int = 0,
    closing: Callable[[], bool] = lambda: False,
) -> AsyncIterator[SessionEvent | None]:
    """The events after that one, as they come; nothing (None) now and then while there is nothing to tell.

    Ends with `done`, or without it when the desk is `closing`: whoever listens asks again after the last they heard.
    """
    last = after
    while True:
        # before the events: a session's end is stored together with its `done`
        ended = (await repository.known_session(session.id, session.workspace_id)).ended
        for event in await repository.events_after(session.id, last):
            yield event
            last = event.seq
            if event.type == "done":
                return
        if ended or closing():
            return
        yield None
        await repository.wait_for_events(session.id, LOOK_AGAIN)


def progress_of(session: ResearchSession, events: Iterable[SessionEvent]) -> list[NodeProgress]:
    """Every node the session has or will have, in the order of the desk."""
    nodes = {name: NodeProgress(node=name) for name in session.node_types}
    for event in events:
        name = event.data.get("node")
        if isinstance(name, str) and event.type.startswith("node_"):
            before = nodes.get(name) or NodeProgress(node=name)
            nodes[name] = before.model_copy(update=_step(event))
    return list(nodes.values())


def _step(event: SessionEvent) -> dict[str, Any]:
    match event.type:
        case "node_started":
            return {"status": "running", "started_at": event.at, "said": None}
        case "node_retrying":
            return {"status": "retrying", "said": event.data.get("reason")}
        case "node_failed":
            return {"status": "failed", "ended_at": event.at, "said": event.data.get("error")}
        case _:
            return {"status": event.data.get("status", "success"), "ended_at": event.at, "said": None}
