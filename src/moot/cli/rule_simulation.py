"""`moot rules simulate`: what other rules would have made of what was decided."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, date, datetime, time
from pathlib import Path
from typing import NamedTuple

import typer
from rich.console import Console
from rich.padding import Padding
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Column, Table
from rich.text import Text

from moot.cli.arguments import day
from moot.cli.on_desk import at_desk
from moot.cli.outcome import command
from moot.cli.rule_files import accepted_rules, shipped_beside
from moot.cli.rule_view import STATUS_COLOURS, decision_name
from moot.cli.texts import SAY, environment_locale, say
from moot.desk import Moot
from moot.modules.governance.application.simulation import Difference, SimulationReport, simulate
from moot.shared.domain.errors import Unavailable
from moot.shared.domain.validation import refused
from moot.shared.infrastructure.execution_context import DEFAULT_WORKSPACE

SHOWN = 20


class Simulated(NamedTuple):
    report: SimulationReport
    shipped: int


def simulate_rules(file: Path, since: str, profile: str) -> None:
    async def work(desk: Moot) -> Simulated:
        book, log = desk.governance.book, desk.governance.decisions
        if log is None:
            raise Unavailable(SAY("rules.not_stored"), code="PERSISTENCE_OFF")
        own = accepted_rules(book, file)
        shipped = shipped_beside(book, own, profile)
        past = log.history(DEFAULT_WORKSPACE, datetime.combine(first, time(), UTC))
        with _progress() as watch:
            report = await simulate(
                [*shipped, *own], past, lambda rules: book.validator(book.repository(rules)), watch
            )
        return Simulated(report, len(shipped))

    with command() as settings:
        first = _day(since)
        _tell(at_desk(settings, work), file, first)


def _day(since: str) -> date:
    found = day("--since", since)
    if found is None:
        raise refused("date_malformed", "--since", since)
    return found


def _tell(simulated: Simulated, file: Path, first: date) -> None:
    report, shipped = simulated
    if not report.total:
        typer.echo(say("rules.nothing_to_simulate", day=first))
        return
    key = "rules.simulated_beside" if shipped else "rules.simulated"
    typer.echo(say(key, count=report.total, day=first, file=file, shipped=shipped))
    if not report.changed:
        typer.echo(say("rules.all_the_same"))
        return
    typer.echo(say("rules.same", same=report.same, changed=len(report.changed)) + "\n")
    console = Console()
    console.print(_counts(report))
    for difference in report.changed[:SHOWN]:
        _show(console, difference)
    if (more := len(report.changed) - SHOWN) > 0:
        typer.echo("\n" + say("rules.more", count=more))


def _counts(report: SimulationReport) -> Table:
    columns = [
        Column(say("rules.column.was"), no_wrap=True),
        Column(say("rules.column.now"), no_wrap=True),
        Column(say("rules.column.count"), justify="right", no_wrap=True),
    ]
    table = Table(*columns, box=None, pad_edge=False, header_style="bold")
    changed = [(difference.was, difference.now) for difference in report.changed]
    for was, now in sorted(set(changed), key=changed.index):
        table.add_row(
            Text(was, STATUS_COLOURS[was]),
            Text(say("rules.otherwise", status=now) if was is now else now, STATUS_COLOURS[now]),
            str(changed.count((was, now))),
        )
    return table


def _show(console: Console, difference: Difference) -> None:
    decision = difference.decision
    headline = f"\n{decision.decided_at:%Y-%m-%d %H:%M}  {decision_name(decision)}  "
    ending = (f"{difference.was} → {difference.now}", STATUS_COLOURS[difference.now])
    console.print(Text.assemble(headline, ending))
    if decision.session_id is not None:
        console.print(Text(f"  {say('rules.in_session', session_id=decision.session_id)}", "dim"))
    console.print(Padding(Text(difference.because.in_locale(environment_locale())), (0, 0, 0, 2)))


@contextmanager
def _progress() -> Iterator[Callable[[int], None]]:
    """A count on a terminal, nothing anywhere else."""
    console = Console(stderr=True)
    columns = (SpinnerColumn(), TextColumn("{task.description} {task.completed:,}"), TimeElapsedColumn())
    with Progress(*columns, console=console, disable=not console.is_terminal, transient=True) as progress:
        task = progress.add_task(say("rules.simulating"), total=None)
        yield lambda done: progress.update(task, completed=done)
