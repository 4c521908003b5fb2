"""`moot research`: ask the desk, watch it work, show what it found.

A screen is no place for everything: each point is cut to a few lines here and stands whole in the report.
"""

from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.panel import Panel
from rich.spinner import Spinner
from rich.table import Column, Table
from rich.text import Text

from moot.cli.options import DAY, AsJson, SkipDebate, Symbol, number_or_text, option
from moot.cli.outcome import at_desk, command, log_file
from moot.cli.printing import Prose, amount, list_facts, minute, price, print_json
from moot.cli.texts import SAY, environment_locale, say
from moot.modules.coordinator.application.dtos.research_dtos import EXPERTS, ResearchResult
from moot.modules.coordinator.application.report import Wording, spending
from moot.modules.coordinator.application.run import Watch
from moot.modules.coordinator.application.session_history import SessionEvent
from moot.modules.llm_platform.application.call_logs import Estimate
from moot.shared.domain.errors import InvalidInput, Unavailable
from moot.shared.domain.messages import LOCALES, Message, locale_of
from moot.shared.infrastructure.settings import Settings

if TYPE_CHECKING:
    from moot.desk import Moot

Run = Callable[["Moot", Watch | None], Awaitable[ResearchResult]]

AFTER_THE_EXPERTS = [["bull_advocate", "bear_advocate"], ["resolution"], ["verdict"]]
"""Who speaks next, and who at the same time, unless the debate is skipped."""
CELLS_PER_POINT = 200
ACTION_COLOURS = {"BUY": "bold green", "SELL": "bold red", "HOLD": "bold yellow"}
COLOURS = {
    "started": "yellow",
    "retrying": "dark_orange",
    "finished": "green",
    "failed": "red",
    "skipped": "dim",
}

research = typer.Typer(add_completion=False)


@research.command(help=say("help.research"))
def run_research(
    symbol: Symbol,
    experts: Annotated[
        str, option("help.experts", show_default=False, told={"experts": ", ".join(EXPERTS)})
    ] = ",".join(EXPERTS),
    as_of: Annotated[str | None, option("help.as_of", metavar=DAY)] = None,
    skip_debate: SkipDebate = False,
    limit: Annotated[str | None, option("help.limit", metavar="N")] = None,
    locale: Annotated[str | None, option("help.locale", told={"locales": LOCALES})] = None,
    max_cost: Annotated[str | None, option("help.max_cost", metavar="X")] = None,
    as_json: AsJson = False,
) -> None:
    """The desk, not the command line, decides whether what was typed makes sense."""
    with command(locale, as_json=as_json) as settings:
        asked: dict[str, Any] = {
            "symbol": symbol,
            "experts": [name.strip() for name in experts.split(",") if name.strip()],
            "options": {"financial_auditor": {"limit": number_or_text(limit)}} if limit else {},
            "as_of": as_of,
            "skip_debate": skip_debate,
            "locale": locale or environment_locale(),
            "max_cost": number_or_text(max_cost) if max_cost else None,
        }

        async def ask(desk: "Moot", watch: Watch | None) -> ResearchResult:
            estimate = await estimate_of(desk, asked["experts"], skip_debate=skip_debate)
            if estimate is not None:
                text = _describe(estimate).in_locale(locale_of(asked["locale"]))
                Console(stderr=as_json).print(text, soft_wrap=True, markup=False, highlight=False)
                _refuse_too_dear(estimate, asked["max_cost"])
            return await desk.research(**asked, watch=watch)

        run_and_show(settings, asked, ask, as_json=as_json)


def run_and_show(settings: Settings, asked: dict[str, Any], run: Run, *, as_json: bool) -> None:
    """What is `asked`: the experts, whether they debate, and the locale."""

    async def work(desk: "Moot") -> tuple[ResearchResult, Path | OSError]:
        result = await run(desk, watch)
        try:
            return result, desk.write_report(result)
        except OSError as e:  # the result is shown all the same
            return result, e

    console = Console()
    with progress_for(console, asked, quiet=as_json) as watch:
        result, report = at_desk(settings, work)
    if as_json:
        print_json(result)
    else:
        show_result(console, result, report, log_file(settings))


async def estimate_of(desk: "Moot", experts: Sequence[str], *, skip_debate: bool) -> Estimate | None:
    """What the models are likely to take; None when no model is asked, or nobody can tell."""
    if not desk.llm_platform.engine_choice().by_model:
        return None
    asked = [name for name in experts if name in EXPERTS]
    stages = [asked] if skip_debate else [asked, *AFTER_THE_EXPERTS]
    try:
        model = desk.llm_platform.llm_service().candidates()[0]
        agents = [agent for stage in stages for agent in stage]
        return await desk.llm_platform.usage_service().estimate(agents, model, stages)
    except Unavailable:  # the run itself will say what is missing, or do without
        return None


def _describe(estimate: Estimate) -> Message:
    return SAY(
        "research.estimate",
        calls=estimate.calls,
        tokens=estimate.tokens,
        cost=price(estimate.cost, estimate.currency),
        seconds=round(estimate.seconds),
        basis=SAY("research.measured" if estimate.measured else "research.typical"),
    )


def _refuse_too_dear(estimate: Estimate, limit: Any) -> None:
    """A limit that is no number is refused by the desk, a model without a price by the budget."""
    if estimate.cost is not None and isinstance(limit, int | float) and estimate.cost > limit > 0:
        told = {"cost": amount(estimate.cost), "limit": f"{limit:g}", "currency": estimate.currency}
        said = SAY("research.too_dear", **told)
        raise InvalidInput(said, code="ESTIMATE_EXCEEDS_MAX_COST", estimate=estimate.cost, max_cost=limit)


def show_result(console: Console, result: ResearchResult, report: Path | OSError, log: Path) -> None:
    say = Wording(result.locale)
    label = partial(_label, say)
    console.print()
    if result.debate_outcome:
        console.print(_debate(result.debate_outcome, say))
    as_of = f"{minute(result.as_of)} UTC" if result.as_of else ""
    title = Text(label("title", symbol=result.symbol, as_of=as_of))
    console.print(Panel(_verdict(result, say), title=title, title_align="left"))
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


def describe_ruling(result: ResearchResult, say: Wording) -> Text:
    """The verdict in one line, or why there is none."""
    verdict = result.verdict
    if verdict is None:
        status = say.literal(result.verdict_status)
        return Text(say("report.no_verdict", status=status, reason=result.reason or ""))
    text = say(
        "report.ruling",
        action=say.literal(verdict["action"]),
        position=verdict["position_percent"],
        confidence=verdict["confidence"],
    )
    return Text(text.replace("**", ""), ACTION_COLOURS[verdict["action"]])


def _verdict(result: ResearchResult, say: Wording) -> RenderableType:
    verdict = result.verdict
    if verdict is None:
        return describe_ruling(result, say)
    parts = ("entry_strategy", "stop_loss", "take_profit", "time_horizon")
    told: dict[str, RenderableType] = {say(f"report.{part}"): Prose(verdict[part]) for part in parts}
    told[say("report.risk_warnings")] = _points(verdict["risk_warnings"])
    why = [_cut(line) for line in verdict["reasoning"].splitlines()]
    return Group(describe_ruling(result, say), *why, Text(), list_facts(told))


def _debate(outcome: dict[str, Any], say: Wording) -> Table:
    bull, bear = outcome["bull_case"], outcome["bear_case"]
    table = Table(
        "",
        Column(say("report.bull"), header_style="bold green", ratio=1),
        Column(say("report.bear"), header_style="bold red", ratio=1),
        title=say("report.debate"),
        title_justify="left",
        show_lines=True,
    )
    rows = {
        "thesis": (_cut(bull["core_thesis"]), _cut(bear["core_thesis"])),
        "arguments": (_points(bull["supporting_arguments"]), _points(bear["supporting_arguments"])),
        "concedes": (_points(bull["acknowledged_risks"]), _points(bear["acknowledged_strengths"])),
    }
    for key, (for_it, against_it) in rows.items():
        table.add_row(say(f"report.{key}"), for_it, against_it)
    return table


def _points(items: Sequence[str]) -> RenderableType:
    return Group(*(_cut(f"• {item}") for item in items)) if items else Text("—")


def _cut(line: str) -> Prose:
    return Prose(line, most=CELLS_PER_POINT)


def progress_for(
    console: Console, asked: dict[str, Any], *, quiet: bool
) -> AbstractContextManager[Watch | None]:
    """A `with` block around the run that gives the one who watches it."""
    if quiet:
        return nullcontext()
    say = Wording(locale_of(asked["locale"]))
    nodes = [name for name in asked["experts"] if name in EXPERTS]
    if console.is_terminal:
        return _live(console, say, nodes + ([] if asked["skip_debate"] else ["debate", "judge"]))

    def watch(event: SessionEvent) -> None:
        if _phase(event):
            line = " · ".join(filter(None, _cells(event, say)))
            console.print(line, soft_wrap=True, markup=False, highlight=False)

    return nullcontext(watch)


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
            table.add_row(name, shown, view, time)
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
