"""Research in the terminal: how it goes, what was found, and sessions on record with their nodes and their replay.

A screen is no place for everything: each point is cut to a few lines here and stands whole in the report. What is on
record is told in the reader's language, whatever the session's.
"""

from __future__ import annotations

import json
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from typing import TYPE_CHECKING, Any

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.panel import Panel
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

from moot.cli.printing import Prose, field, line_field, list_facts, minute, print_table, tell
from moot.cli.texts import SAY, environment_locale, say
from moot.modules.coordinator.application.dtos.research_dtos import EXPERTS
from moot.modules.coordinator.application.report import spending, tell_ages, tell_view
from moot.modules.coordinator.application.report_case import Case
from moot.modules.coordinator.application.report_opening import Writer, name_company, number, tell_ruling
from moot.modules.coordinator.application.report_page import Pen
from moot.modules.coordinator.application.report_words import Wording
from moot.modules.coordinator.application.results import summarise
from moot.shared.domain.markdown import drop_unseen
from moot.shared.domain.messages import locale_of, shorten
from moot.shared.domain.symbol import Symbol

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from moot.modules.coordinator.application.contest import Move
    from moot.modules.coordinator.application.dtos.research_dtos import ResearchResult
    from moot.modules.coordinator.application.replay import Difference, NodeReplay, Replay
    from moot.modules.coordinator.application.run import Watch
    from moot.modules.coordinator.application.session_history import (
        NodeExecution,
        ResearchSession,
        SessionDetail,
        SessionEvent,
        SessionPage,
    )

CELLS_PER_POINT = 200
ACTION_COLOURS = {"BUY": "bold green", "SELL": "bold red", "HOLD": "bold yellow"}
COLOURS = {
    "started": "yellow",
    "retrying": "dark_orange",
    "finished": "green",
    "failed": "red",
    "skipped": "dim",
}
NODE_COLOURS = {"success": "green", "failed": "red", "skipped": "dim"}
REPLAY_COLOURS = {"same": "green", "failed_alike": "dim", "differs": "bold red", "unrecorded": "yellow"}
SIDES = {"for": ("+", "green"), "against": ("−", "red"), "neither": ("·", "dim")}
ROOM_FOR_ALL = 100
"""Cells that a row of sessions takes."""
LONGEST = 120
"""Characters of a value that are shown."""
MOST_LINES = 12
"""Lines of a changed prompt that are shown; `--json` has more."""


def show_result(console: Console, result: ResearchResult, report: Path | OSError, log: Path) -> None:
    say = Wording(result.locale)
    label = partial(_label, say)
    console.print()
    writer = Writer(Case(result), say, Pen(), drop_unseen)
    as_of = Symbol.parse(result.symbol).local_time(result.as_of) if result.as_of else ""
    title = Text(label("title", company=name_company(writer.case, say, drop_unseen), as_of=as_of))
    console.print(Panel(Group(*_first_page(writer)), title=title, title_align="left"))
    views = {item.expert_type: tell_view(item, say, drop_unseen) for item in result.expert_results.values()}
    console.print(list_facts({say(f"node.{expert}"): _cut(view) for expert, view in views.items()}))
    for line in tell_ages(result, say):
        console.print(Prose(line))
    if result.usage.requests:
        console.print(Text(spending(result, say)))
    for notice in result.notices:
        console.print(Text(notice, style="dim"))
    if result.audit_gaps:
        console.print(Text(label("gaps", count=result.audit_gaps, log=log), style="bold red"))
    if result.session_id:
        console.print(Text(label("session", session_id=result.session_id)))
        if result.overall_status == "partial" or result.verdict_status == "failed":
            console.print(Text(label("retry", session_id=result.session_id)))
    if isinstance(report, OSError):
        console.print(Text(label("no_report", why=report.strerror or report), style="bold red"))
    else:
        console.print(Text(label("report", path=report)), soft_wrap=True)


def show_expert(console: Console, result: ResearchResult) -> None:
    """What one expert says: its view and what would refute it, and its claims, the strongest first."""
    say, case = Wording(result.locale), Case(result)
    (item,) = result.expert_results.values()
    title = Text(f"{say(f'node.{item.expert_type}')} · {name_company(case, say, drop_unseen)}")
    told = (
        [summarise(item.expert_type, item.data).reasoning, item.data.get("risk_warning")] if item.data else []
    )
    said = [drop_unseen(text) for text in told if text]
    console.print()
    console.print(
        Panel(Group(*map(Prose, [tell_view(item, say, drop_unseen), *said])), title=title, title_align="left")
    )
    claims = Table.grid(padding=(0, 1))
    for claim in sorted(case.claims.values(), key=lambda claim: -abs(claim.pull)):
        sign, colour = SIDES[claim.side]
        strength = f"{sign}{claim.strength:.2f}" if claim.side != "neither" else sign
        claims.add_row(
            Text(strength, style=colour), Prose(drop_unseen(claim.text(result.locale)), style=colour)
        )
    console.print(claims)
    for line in tell_ages(result, say):
        console.print(Prose(line))
    if result.session_id:
        console.print(Text(_label(say, "session", session_id=result.session_id)))


def _first_page(writer: Writer) -> Iterator[RenderableType]:
    verdict = writer.case.verdict
    colour = ACTION_COLOURS.get(verdict.get("action", ""), "")
    yield from (Prose(line.replace("**", ""), style=colour) for line in writer.rule())
    yield from (Prose(f"! {line}", style="bold red") for line in writer.told.each(verdict.get("grave", [])))
    yield from list_warnings(writer.case.result)
    yield from map(Prose, writer.draw_prices())
    for name, lines in writer.explain().items():
        yield Text(writer.say(f"report.{name}"), style="bold")
        yield from (_cut_point(f"{mark} {line}") for mark, line in number(name, lines, "•"))


def describe_ruling(result: ResearchResult, say: Wording) -> Text:
    """The verdict in one line, or why there is none."""
    told, verdict = tell_ruling(result, say, drop_unseen), result.verdict
    return Text(told.replace("**", ""), ACTION_COLOURS[verdict["action"]]) if verdict else Text(told)


def list_warnings(result: ResearchResult) -> list[Prose]:
    """What is to be known about the verdict before it is believed, such as what the rules changed in it."""
    told = result.verdict.get("warnings", []) if result.verdict else []
    return [Prose(f"! {text}", style="yellow") for text in told]


def _cut(line: str, end: str = "") -> Prose:
    return Prose(line, most=CELLS_PER_POINT, end=end)


def _cut_point(line: str) -> Prose:
    """However long it is, the claim that it ends with is named: by its name it can be contested."""
    said, named, claim = line.removesuffix("`").rpartition(" `") if line.endswith("`") else (line, "", "")
    return _cut((said or claim).replace("`", ""), f" {claim}" if named else "")


def progress_for(
    console: Console, asked: dict[str, Any], *, quiet: bool
) -> AbstractContextManager[Watch | None]:
    """A `with` block around the run that gives the one who watches it. `quiet`: nothing but on a terminal."""
    say = Wording(locale_of(asked["locale"]))
    nodes = [name for name in asked["experts"] if name in EXPERTS]
    if console.is_terminal:
        return _live(console, say, nodes + ([] if asked["skip_debate"] else ["debate", "judge"]))
    return nullcontext(None if quiet else tell_lines(console, say))


def tell_lines(console: Console, say: Wording, *about: str) -> Watch:
    """A line for each thing that happens, with what it is `about` in front."""

    def watch(event: SessionEvent) -> None:
        if _phase(event):
            line = " · ".join(filter(None, (*about, *_cells(event, say))))
            console.print(line, soft_wrap=True, markup=False, highlight=False)

    return watch


def _label(say: Wording, key: str, **values: Any) -> str:
    return SAY(f"research.{key}", **values).in_locale(say.locale)


def _phase(event: SessionEvent) -> str:
    """What state of a node the event tells of, if any. What was reused has not run."""
    if not event.type.startswith("node_") or event.data.get("reused"):
        return ""
    return "skipped" if event.data.get("status") == "skipped" else event.type.removeprefix("node_")


def _cells(event: SessionEvent, say: Wording) -> tuple[str, str, str, str]:
    """Who; in which state; its signal, direction or action, or what went wrong; and how long it took."""
    told = event.data
    view = str(told.get("error") or told.get("reason") or "")
    if told.get("signal") is not None:
        view = f"{say.literal(told['signal'])} {told['confidence']:.0%}"
    ms = told.get("duration_ms")
    time = "" if ms is None else _label(say, "ms", ms=ms)
    return say(f"node.{told['node']}"), _label(say, _phase(event)), view, time


@contextmanager
def _live(console: Console, say: Wording, nodes: list[str]) -> Iterator[Watch]:
    events: dict[str, SessionEvent | None] = dict.fromkeys(nodes)

    def table() -> Table:
        head = [_label(say, column) for column in ("node", "state", "view", "time")]
        table = Table(*head, box=None, pad_edge=False, header_style="bold")
        for node, event in events.items():
            if event is None:
                table.add_row(say(f"node.{node}"), Text(_label(say, "waiting"), style="dim"))
                continue
            name, state, view, time = _cells(event, say)
            phase = _phase(event)
            text = Text(state, style=COLOURS[phase])
            shown = Spinner("dots", text) if phase in ("started", "retrying") else text
            table.add_row(name, shown, Text(view), time)
        return table

    live = Live(table(), console=console, refresh_per_second=10)

    def watch(event: SessionEvent) -> None:
        if _phase(event):
            events[event.data["node"]] = event
            live.start()  # with the first event: a question that is refused has nothing to show
            live.update(table())

    try:
        yield watch
    finally:
        live.stop()


def progress_console(*, as_json: bool) -> Console:
    """What is piped is the answer alone: how it comes about is told beside it."""
    shown = Console()
    return shown if shown.is_terminal and not as_json else Console(stderr=True)


def show_page(page: SessionPage) -> None:
    """An id is whole in a narrow terminal, as it is there to be copied; the verdict, or else the state, has to do."""
    if not page.total:
        tell("sessions.none")
        return
    wording = Wording(environment_locale())
    if page.items:
        state = field("sessions.column.status", lambda item: wording.literal(item.status))
        verdict = field("sessions.column.verdict", lambda item: _describe_verdict(item, wording))
        time = line_field("sessions.column.time", lambda item: _duration(item.duration_ms), justify="right")
        either = field("sessions.column.verdict", lambda item: _describe_verdict(item, wording, item.status))
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


def _describe_verdict(item: ResearchSession, wording: Wording, otherwise: str | None = None) -> Text:
    verdict = item.verdict_action or otherwise or item.verdict_status
    said = wording.literal(verdict) if verdict else "—"
    if item.contest:
        return Text(say("sessions.what_if", verdict=said))
    return Text(said, ACTION_COLOURS.get(item.verdict_action or "", ""))


def _describe_move(move: Move) -> str:
    key = move.kind if move.move == "add" else move.move
    return say(f"sessions.move_{key}", **dict(move))


def show_session(session: SessionDetail, result: ResearchResult | None) -> None:
    """`result` is None until the session has ended."""
    wording, console = Wording(environment_locale()), Console()
    as_of = say("sessions.as_of", moment=Symbol.parse(session.symbol).local_time(session.as_of))
    console.print(Text(f"{session.symbol} · {as_of} · {wording.literal(session.status)}", "bold"))
    told = {
        "column.id": str(session.id),
        "created": f"{minute(session.created_at)} UTC",
        "column.time": _duration(session.duration_ms),
        "trigger": session.trigger_source,
        "contested" if session.contest else "parent": str(session.parent_session_id or ""),
        "moves": "\n".join(map(_describe_move, session.contest)),
        "retries": "\n".join(map(str, session.retries)),
        "what_ifs": "\n".join(map(str, session.what_ifs)),
    }
    console.print(list_facts({say(f"sessions.{name}"): value for name, value in told.items()}))
    if session.nodes:
        console.print(Text())
        _show_nodes(session.nodes, wording)
        console.print(Text())
    if result is not None:
        console.print(*_first_page(Writer(Case(result), wording, Pen(), drop_unseen)), sep="\n")
        for line in (*tell_ages(result, wording), spending(result, wording)):
            console.print(Prose(line))
    elif session.status == "waiting":
        known = {"session_id": session.id, "why": session.reason or "", "id": session.escalation_id}
        key = "session_waits_for" if session.escalation_id else "session_waiting"
        console.print(Prose(wording(key, **known), style="bold red"))
    else:
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
