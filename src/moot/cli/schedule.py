"""`moot schedule`: what is researched on trading days without being asked again."""

from datetime import datetime
from typing import TYPE_CHECKING, Annotated

from rich.console import Console
from rich.text import Text

from moot.cli import options
from moot.cli.command import command, on_desk
from moot.cli.options import AsJson, argument, group, option
from moot.cli.printing import field, line_field, list_facts, print_table, tell
from moot.cli.texts import say
from moot.cli.universe import SkipUnknown, Top, naming_lines, read_universe, word_request
from moot.modules.coordinator.application.dtos.research_dtos import EXPERTS
from moot.modules.jobs.application.schedules import FIGURES_OUT, ScheduleList, ScheduleRun, ScheduleView
from moot.shared.domain.symbol import TIME_ZONES, Market
from moot.shared.infrastructure.execution_context import DEFAULT_WORKSPACE

if TYPE_CHECKING:
    from moot.desk import Moot
    from moot.modules.jobs.application.schedules import ScheduleService

Name = Annotated[str, argument("schedule.help.name", metavar="NAME")]
Workspace = Annotated[str, option("schedule.help.workspace")]

schedule = group("help.schedule")


@schedule.command("add", help=say("schedule.help.add"))
def add(
    name: Name,
    universe: Annotated[
        list[str], option("schedule.help.universe", "--universe", "-u", metavar="FILE|SYMBOL|…")
    ],
    at: Annotated[str | None, option("schedule.help.at", metavar="HH:MM")] = None,
    weekly: Annotated[bool, option("schedule.help.weekly", "--weekly")] = False,
    market: Annotated[
        str | None, option("schedule.help.market", metavar="|".join(Market), case_sensitive=False)
    ] = None,
    top: Top = None,
    max_cost: Annotated[str | None, option("schedule.help.max_cost", metavar="X")] = None,
    experts: options.Experts = options.EVERYBODY,
    over: options.Over = None,
    rounds: options.Rounds = None,
    skip_debate: options.SkipDebate = False,
    skip_unknown: SkipUnknown = False,
    locale: options.Language = None,
    workspace: Workspace = DEFAULT_WORKSPACE,
    as_json: AsJson = False,
) -> None:
    with command(as_json=as_json):
        shares = read_universe(universe)
        numbers = {"top": top, "max_cost": max_cost, "horizon": over, "rounds": rounds}
        flags = {"skip_debate": skip_debate, "skip_unknown": skip_unknown}
        request = word_request(shares, experts, locale, numbers, **flags)
        every = "week" if weekly else "day"
        body = {"name": name, "request": request, "at": at, "every": every, "market": market}

        async def work(desk: "Moot") -> ScheduleView:
            with naming_lines(shares):
                return await _of(desk, workspace).add(body)

        on_desk(work, _tell_added, as_json=as_json)


@schedule.command("list", help=say("schedule.help.list"))
def show_all(workspace: Workspace = DEFAULT_WORKSPACE, as_json: AsJson = False) -> None:
    on_desk(lambda desk: _of(desk, workspace).list(), _show_all, as_json=as_json)


@schedule.command("show", help=say("schedule.help.show"))
def show(name: Name, workspace: Workspace = DEFAULT_WORKSPACE, as_json: AsJson = False) -> None:
    on_desk(lambda desk: _of(desk, workspace).find(name), _show, as_json=as_json)


def _add_turn(name: str, said: str) -> None:
    """A command that does something to one schedule, and tells so."""
    method = name.replace("-", "_")

    @schedule.command(name, help=say(f"schedule.help.{method}"))
    def turn(name: Name, workspace: Workspace = DEFAULT_WORKSPACE, as_json: AsJson = False) -> None:
        on_desk(
            lambda desk: getattr(_of(desk, workspace), method)(name),
            lambda view: tell(f"schedule.{said}", name=view.name, due=_moment(view, view.next_due)),
            as_json=as_json,
        )


for _name, _said in {"pause": "paused", "resume": "resumed", "remove": "removed", "run-now": "asked"}.items():
    _add_turn(_name, _said)


def _of(desk: "Moot", workspace: str) -> "ScheduleService":
    return desk.jobs.schedules(workspace, "cli")


def _tell_added(view: ScheduleView) -> None:
    tell("schedule.added", name=view.name, when=_when(view), due=_moment(view, view.next_due))
    if view.at < FIGURES_OUT and view.market is not Market.DEMO:
        tell("schedule.early", at=view.at, out=FIGURES_OUT)
    tell("schedule.needs_worker")


def _show_all(schedules: ScheduleList) -> None:
    print_table(
        schedules.items,
        field("schedule.column.name", lambda view: Text(view.name, "bold")),
        field("schedule.column.what", _what),
        field("schedule.column.when", _when),
        line_field("schedule.column.next", _next),
        field("schedule.column.last", _last),
        none="schedule.none",
    )


def _show(view: ScheduleView) -> None:
    request = view.request
    told = {
        "what": _what(view),
        "when": _when(view),
        "next": _next(view),
        "top": str(request.top),
        "experts": ", ".join(request.experts) if len(request.experts) < len(EXPERTS) else "",
        "max_cost": f"{request.max_cost:g}" if request.max_cost else "",
        "locale": request.locale,
        "by": view.created_by or "",
    }
    Console().print(list_facts({say(f"schedule.fact.{name}"): value for name, value in told.items()}))
    Console().print()
    print_table(
        view.runs,
        line_field("schedule.column.due", lambda run: _moment(view, run.due_at)),
        line_field("schedule.column.begun", lambda run: _moment(view, run.begun_at)),
        field("schedule.column.outcome", _outcome),
        line_field("schedule.column.batch", lambda run: str(run.batch_id)[:8] if run.batch_id else "—"),
        none="schedule.no_runs",
    )
    for run in view.runs[:1]:
        _tell_troubles(run)
    if any(run.batch_id for run in view.runs):
        tell("schedule.see_batch")


def _tell_troubles(run: ScheduleRun) -> None:
    if run.error:
        tell("schedule.error", error=run.error)
    if run.synced and run.synced.failed:
        tell("schedule.stale", count=run.synced.failed)
        for error in run.synced.errors:
            tell("schedule.stale_line", error=error)


def _what(view: ScheduleView) -> str:
    named, more = view.request.universe[:3], len(view.request.universe) - 3
    return ", ".join(named) + (say("schedule.more", count=more) if more > 0 else "")


def _when(view: ScheduleView) -> str:
    return say(f"schedule.every.{view.every}", at=view.at, market=view.market)


def _next(view: ScheduleView) -> str:
    return say("schedule.is_paused") if view.paused else _moment(view, view.next_due)


def _last(view: ScheduleView) -> str:
    return f"{_moment(view, view.runs[0].due_at)}\n{_outcome(view.runs[0])}" if view.runs else "—"


def _moment(view: ScheduleView, moment: datetime | None) -> str:
    """As the clocks of its exchange show it."""
    return f"{moment.astimezone(TIME_ZONES[view.market]):%Y-%m-%d %H:%M}" if moment else "—"


def _outcome(run: ScheduleRun) -> str:
    batch = run.batch_status
    told = [say(f"schedule.batch.{batch}") if batch else say(f"schedule.status.{run.status}")]
    if run.missed:
        told.append(say("schedule.missed", count=run.missed))
    if run.requested_by:
        told.append(say("schedule.by", who=run.requested_by))
    if run.synced:
        told.append(say("schedule.synced", **run.synced.model_dump()))
    return say("schedule.and").join(told)
