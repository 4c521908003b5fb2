"""Sessions in the terminal: many as a table, one with its nodes. The reader's language, whatever the session's."""

from collections.abc import Sequence
from datetime import datetime

import typer
from rich.console import Console
from rich.table import Column, Table
from rich.text import Text

from moot.cli.texts import SAY
from moot.cli.verdict_view import ACTION_COLOURS, Prose
from moot.modules.coordinator.application.dtos.research_dtos import ResearchResult
from moot.modules.coordinator.application.report import Wording, spending
from moot.modules.coordinator.application.session_history import NodeExecution, SessionDetail, SessionPage
from moot.shared.domain.messages import Locale

NODE_COLOURS = {"success": "green", "failed": "red", "skipped": "dim"}


class Labels:
    """The command line's words for sessions, in one language."""

    def __init__(self, locale: Locale) -> None:
        self._locale = locale

    def __call__(self, key: str, /, **values: object) -> str:
        return SAY(f"sessions.{key}", **values).in_locale(self._locale)


def show_page(page: SessionPage, locale: Locale) -> None:
    say, label = Wording(locale), Labels(locale)
    if not page.total:
        typer.echo(label("none"))
        return
    if page.items:
        Console().print(_table(page, say, label))
    pages = -(-page.total // page.page_size)
    key = "page_of_many" if page.total_is_more else "page"
    typer.echo(label(key, page=page.page, pages=pages, total=page.total))


def _table(page: SessionPage, say: Wording, label: Labels) -> Table:
    """Nothing is cut in a narrow terminal, and an id not even folded: it is there to be copied."""
    names = ("created", "symbol", "status", "verdict")
    columns = [Column(label(f"column.{name}"), overflow="fold") for name in names]
    time = Column(label("column.time"), justify="right", no_wrap=True)
    identity = Column(label("column.id"), no_wrap=True, min_width=36)
    table = Table(*columns, time, identity, box=None, pad_edge=False, header_style="bold")
    for item in page.items:
        verdict = item.verdict_action or item.verdict_status
        table.add_row(
            f"{item.created_at:%Y-%m-%d %H:%M}",
            item.symbol,
            say.literal(item.status),
            Text(say.literal(verdict) if verdict else "—", ACTION_COLOURS.get(item.verdict_action or "", "")),
            _took(item.duration_ms),
            str(item.id),
        )
    return table


def show_session(session: SessionDetail, result: ResearchResult | None, locale: Locale) -> None:
    """`result` is None while the session is running."""
    say, label, console = Wording(locale), Labels(locale), Console()
    headline = (
        f"{session.symbol} · {label('as_of', moment=_utc(session.as_of))} · {say.literal(session.status)}"
    )
    console.print(Text(headline, "bold"))
    console.print(_facts(session, label))
    if session.nodes:
        console.print(Text())
        console.print(_nodes(session.nodes, say, label))
        console.print(Text())
    if result is not None:
        console.print(_verdict(result, say))
        console.print(Text(spending(result, say)))
    for notice in _notices(session, label):
        console.print(Text(notice, "bold red"))


def _facts(session: SessionDetail, label: Labels) -> Table:
    facts = Table(box=None, show_header=False, pad_edge=False)
    facts.add_column(style="bold", no_wrap=True)
    facts.add_column(overflow="fold")
    facts.add_row(label("column.id"), str(session.id))
    facts.add_row(label("created"), _utc(session.created_at))
    facts.add_row(label("column.time"), _took(session.duration_ms))
    facts.add_row(label("trigger"), Text(session.trigger_source))
    if session.parent_session_id:
        facts.add_row(label("parent"), str(session.parent_session_id))
    if session.retries:
        facts.add_row(label("retries"), "\n".join(map(str, session.retries)))
    return facts


def _nodes(nodes: Sequence[NodeExecution], say: Wording, label: Labels) -> Table:
    table = Table(
        Column(label("node"), no_wrap=True),
        Column(label("column.status"), no_wrap=True),
        Column(label("column.time"), justify="right", no_wrap=True),
        Column(label("error"), overflow="fold"),
        box=None,
        pad_edge=False,
        header_style="bold",
    )
    for node in nodes:
        state = label("reused") if node.reused else label(f"state.{node.status}")
        table.add_row(
            say(f"node.{node.node_type}"),
            Text(state, NODE_COLOURS[node.status]),
            _took(node.duration_ms),
            Prose(f"{node.error_type}: {node.error_message}") if node.error_message else "",
        )
    return table


def _verdict(result: ResearchResult, say: Wording) -> Text:
    verdict = result.verdict
    if verdict is None:
        status = say.literal(result.verdict_status)
        return Text(say("report.no_verdict", status=status, reason=result.reason or ""))
    ruling = say(
        "report.ruling",
        action=say.literal(verdict["action"]),
        position=verdict["position_percent"],
        confidence=verdict["confidence"],
    )
    return Text(ruling.replace("**", ""), ACTION_COLOURS[verdict["action"]])


def _notices(session: SessionDetail, label: Labels) -> list[str]:
    running = [label("running")] if session.status == "running" else []
    gaps = [label("gaps", count=session.audit_gaps)] if session.audit_gaps else []
    return [*running, *gaps]


def _utc(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d %H:%M} UTC"


def _took(ms: int | None) -> str:
    if ms is None:
        return "—"
    return f"{ms} ms" if ms < 10_000 else f"{ms / 1000:,.0f} s"
