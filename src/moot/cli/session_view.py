"""Sessions in the terminal: many, one with its nodes, its replay.

All in the reader's language, whatever the session's.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from rich.console import Console, Group
from rich.text import Text

from moot.cli.printing import Prose, field, line_field, list_facts, minute, print_table, tell
from moot.cli.research_view import ACTION_COLOURS, describe_ruling, list_warnings
from moot.cli.texts import environment_locale, say
from moot.modules.coordinator.application.report import Wording, spending
from moot.shared.domain.messages import shorten

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from moot.modules.coordinator.application.dtos.research_dtos import ResearchResult
    from moot.modules.coordinator.application.replay import Difference, NodeReplay, Replay
    from moot.modules.coordinator.application.session_history import (
        NodeExecution,
        ResearchSession,
        SessionDetail,
        SessionPage,
    )

NODE_COLOURS = {"success": "green", "failed": "red", "skipped": "dim"}
REPLAY_COLOURS = {"same": "green", "failed_alike": "dim", "differs": "bold red", "unrecorded": "yellow"}
ROOM_FOR_ALL = 100
"""Cells that a row of sessions takes."""
LONGEST = 120
"""Characters of a value that are shown."""
MOST_LINES = 12
"""Lines of a changed prompt that are shown; `--json` has more."""


def show_page(page: SessionPage) -> None:
    """An id is whole in a narrow terminal, as it is there to be copied; the verdict, or else the state, has to do."""
    if not page.total:
        tell("sessions.none")
        return
    wording = Wording(environment_locale())
    if page.items:
        state = field("sessions.column.status", lambda item: wording.literal(item.status))
        verdict = field("sessions.column.verdict", lambda item: _verdict(item, wording))
        time = line_field("sessions.column.time", lambda item: _duration(item.duration_ms), justify="right")
        either = field("sessions.column.verdict", lambda item: _verdict(item, wording, item.status))
        print_table(
            page.items,
            line_field("sessions.column.created", lambda item: minute(item.created_at)),
            line_field("sessions.column.symbol", lambda item: item.symbol),
            *((state, verdict, time) if Console().width >= ROOM_FOR_ALL else (either,)),
            line_field("sessions.column.id", lambda item: str(item.id), min_width=36),
        )
    pages = -(-page.total // page.page_size)
    key = "page_of_many" if page.total_is_more else "page"
    tell(f"sessions.{key}", page=page.page, pages=pages, total=page.total)


def _verdict(item: ResearchSession, wording: Wording, otherwise: str | None = None) -> Text:
    verdict = item.verdict_action or otherwise or item.verdict_status
    colour = ACTION_COLOURS.get(item.verdict_action or "", "")
    return Text(wording.literal(verdict) if verdict else "—", colour)


def show_session(session: SessionDetail, result: ResearchResult | None) -> None:
    """`result` is None while the session is running."""
    wording, console = Wording(environment_locale()), Console()
    as_of = say("sessions.as_of", moment=f"{minute(session.as_of)} UTC")
    console.print(Text(f"{session.symbol} · {as_of} · {wording.literal(session.status)}", "bold"))
    told = {
        "column.id": str(session.id),
        "created": f"{minute(session.created_at)} UTC",
        "column.time": _duration(session.duration_ms),
        "trigger": session.trigger_source,
        "parent": str(session.parent_session_id or ""),
        "retries": "\n".join(map(str, session.retries)),
    }
    console.print(list_facts({say(f"sessions.{name}"): value for name, value in told.items()}))
    if session.nodes:
        console.print(Text())
        _show_nodes(session.nodes, wording)
        console.print(Text())
    if result is not None:
        console.print(describe_ruling(result, wording), *list_warnings(result), sep="\n")
        console.print(Text(spending(result, wording)))
    if session.status == "running":
        console.print(Text(say("sessions.running"), "bold red"))
    if session.audit_gaps:
        console.print(Text(say("sessions.gaps", count=session.audit_gaps), "bold red"))


def _show_nodes(nodes: Sequence[NodeExecution], wording: Wording) -> None:
    print_table(
        nodes,
        line_field("sessions.node", lambda node: wording(f"node.{node.node_type}")),
        line_field("sessions.column.status", _state),
        line_field("sessions.column.time", lambda node: _duration(node.duration_ms), justify="right"),
        field(
            "sessions.error",
            lambda node: Prose(f"{node.error_type}: {node.error_message}") if node.error_message else "",
        ),
    )


def _state(node: NodeExecution) -> Text:
    state = "reused" if node.reused else f"state.{node.status}"
    return Text(say(f"sessions.{state}"), NODE_COLOURS[node.status])


def _duration(ms: int | None) -> str:
    if ms is None:
        return "—"
    return f"{ms} ms" if ms < 10_000 else f"{ms / 1000:,.0f} s"


def show_replay(replayed: Replay) -> None:
    """Every step, and where it comes out otherwise."""
    console, wording = Console(), Wording(environment_locale())
    as_of = f"{minute(replayed.as_of)} UTC"
    console.print(Text(say("replay.title", symbol=replayed.symbol, as_of=as_of), "bold"))
    console.print()
    steps = [
        (wording(f"node.{node.node_type}"), _outcome(node), Group(*_describe_node(node)))
        for node in replayed.nodes
    ]
    if replayed.ending:
        differs = Text(say("replay.state.differs"), REPLAY_COLOURS["differs"])
        steps.append((say("replay.ending"), differs, Group(*map(_describe_difference, replayed.ending))))
    print_table(
        steps,
        line_field("replay.step", lambda step: step[0]),
        line_field("replay.result", lambda step: step[1]),
        field("replay.difference", lambda step: step[2]),
    )
    console.print()
    console.print(Text(_conclusion(replayed), "green" if replayed.equal else "bold red"))


def _outcome(node: NodeReplay) -> Text:
    state = "reused" if node.reused and node.outcome == "same" else node.outcome
    return Text(say(f"replay.state.{state}"), REPLAY_COLOURS[node.outcome])


def _describe_node(node: NodeReplay) -> Iterator[Prose]:
    yield from map(_describe_difference, node.differences)
    if node.more:
        yield Prose(say("replay.more", count=node.more))
    if node.prompt:
        yield Prose(say("replay.prompt"))
        yield from (Prose(shorten(line, LONGEST)) for line in node.prompt[:MOST_LINES])


def _describe_difference(difference: Difference) -> Prose:
    return Prose(f"{difference.path}: {_value(difference.then)} → {_value(difference.now)}")


def _value(value: Any) -> str:
    return "—" if value is None else shorten(json.dumps(value, ensure_ascii=False), LONGEST)


def _conclusion(replayed: Replay) -> str:
    if replayed.equal:
        return say("replay.equal", count=len(replayed.nodes))
    wrong = sum(node.outcome in ("differs", "unrecorded") for node in replayed.nodes)
    if not wrong:
        return say("replay.ending_only")
    return say("replay.unequal", wrong=wrong, count=len(replayed.nodes))
