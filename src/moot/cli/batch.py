"""`moot batch`: many shares looked through, the leading ones judged, and a ranked table."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal
from uuid import UUID

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from moot.cli import options
from moot.cli.command import command, on_desk, refuse_existing, write_file
from moot.cli.options import AsJson, argument, group, option
from moot.cli.printing import Prose, in_words, line_field, price, print_json, print_table, progress_bar, tell
from moot.cli.texts import environment_locale, say
from moot.cli.universe import SkipUnknown, Top, naming_lines, read_universe, word_request
from moot.modules.jobs.application.batch_report import (
    FIGURES,
    NONE,
    name_column,
    name_status,
    render,
    tell_cells,
    tell_facts,
    tell_how,
)
from moot.modules.jobs.application.batches import BatchPage, BatchResults, BatchView, Format, Ranked
from moot.shared.domain.messages import Locale, shorten
from moot.shared.infrastructure.settings import Settings

if TYPE_CHECKING:
    from moot.desk import Moot

LOOK_AGAIN = 0.5
"""Seconds until somebody who waits looks at a batch again."""
SHOWN = 15
"""Shares that were not judged, of those that are listed in a terminal."""
Background = Annotated[bool, option("batch.help.background", "--background")]
BatchId = Annotated[str, argument("batch.help.id", metavar="[ID|last]")]

batch = group("help.batch")


@batch.command("run", help=say("batch.help.run"))
def run(
    universe: Annotated[
        list[str], option("batch.help.universe", "--universe", "-u", metavar="FILE|SYMBOL|…")
    ],
    name: Annotated[str | None, option("batch.help.name")] = None,
    top: Top = None,
    max_cost: Annotated[str | None, option("batch.help.max_cost", metavar="X")] = None,
    experts: options.Experts = options.EVERYBODY,
    as_of: options.AsOf = None,
    over: options.Over = None,
    rounds: options.Rounds = None,
    skip_debate: options.SkipDebate = False,
    skip_unknown: SkipUnknown = False,
    locale: options.Language = None,
    background: Background = False,
    as_json: AsJson = False,
) -> None:
    with command(locale, as_json=as_json) as settings:
        shares = read_universe(universe)
        asked = word_request(
            shares,
            experts,
            locale,
            {"top": top, "max_cost": max_cost, "horizon": over, "rounds": rounds},
            name=name or ", ".join(universe)[:64],
            as_of=as_of,
            skip_debate=skip_debate,
            skip_unknown=skip_unknown,
        )

        async def start(desk: "Moot") -> BatchView:
            with naming_lines(shares):
                return await desk.jobs.batches().start(asked)

        _see_through(settings, start, background=background, as_json=as_json)


@batch.command("list", help=say("batch.help.list"))
def find_all(
    name: Annotated[str | None, option("batch.help.of_name")] = None,
    page: Annotated[int, option("sessions.help.page", min=1)] = 1,
    as_json: AsJson = False,
) -> None:
    on_desk(lambda desk: desk.batches(name, page=page), _show_page, as_json=as_json)


@batch.command("show", help=say("batch.help.show"))
def show(batch_id: BatchId = "last", as_json: AsJson = False) -> None:
    on_desk(lambda desk: _results(desk, batch_id), _show_results, as_json=as_json)


@batch.command("pause", help=say("batch.help.pause"))
def pause(batch_id: BatchId = "last", as_json: AsJson = False) -> None:
    on_desk(lambda desk: _turn(desk.pause_batch, desk, batch_id), _show_turned, as_json=as_json)


@batch.command("resume", help=say("batch.help.resume"))
def resume(
    batch_id: BatchId = "last",
    background: Background = False,
    as_json: AsJson = False,
) -> None:
    async def start(desk: "Moot") -> BatchView:
        batches = desk.jobs.batches()
        return await batches.resume(await batches.find_id(batch_id))

    with command(as_json=as_json) as settings:
        _see_through(settings, start, background=background, as_json=as_json)


@batch.command("cancel", help=say("batch.help.cancel"))
def cancel(batch_id: BatchId = "last", as_json: AsJson = False) -> None:
    on_desk(lambda desk: _turn(desk.cancel_batch, desk, batch_id), _show_turned, as_json=as_json)


@batch.command("export", help=say("batch.help.export"))
def export(
    batch_id: BatchId = "last",
    to: Annotated[Format | None, option("batch.help.format", "--format")] = None,
    out: Annotated[Path | None, option("batch.help.out", "--out", "-o", metavar="FILE")] = None,
    force: Annotated[bool, option("session_files.help.force", "--force")] = False,
) -> None:
    with command():
        kind = to or _name_format(out)
        if out is not None:
            refuse_existing(out, force=force)
        results = on_desk(lambda desk: _results(desk, batch_id))
        data = render(results, kind, environment_locale())
        if out is None:
            typer.get_binary_stream("stdout").write(data)
            return
        write_file(out, data)
        tell("batch.exported", path=out, rows=len(results.rows))


def _see_through(
    settings: Settings, start: Callable[["Moot"], Awaitable[BatchView]], *, background: bool, as_json: bool
) -> None:
    """Work on it here, and on whatever else waits, until it has ended; or leave that to others."""
    from moot.desk import Moot

    async def work() -> BatchView | BatchResults:
        async with Moot(settings, trigger_source="cli") as desk:
            begun = await start(desk)
            if background:
                return begun
            desk.work()
            try:
                await _watch(desk, begun, quiet=as_json)
            except asyncio.CancelledError:
                tell("batch.left", err=True, id=str(begun.id)[:8])
                raise
            return await desk.batch_results(begun.id)

    done = asyncio.run(work())
    if as_json:
        print_json(done)
    elif isinstance(done, BatchResults):
        _show_results(done)
    else:
        tell("batch.started", name=done.name, id=str(done.id)[:8], shares=done.shares)
    if isinstance(done, BatchResults) and done.batch.status == "failed":
        raise typer.Exit(1)


async def _watch(desk: "Moot", batch: BatchView, *, quiet: bool) -> None:
    """Until it has ended, or is paused and nothing runs any more."""
    with progress_bar(say("batch.screening"), quiet=quiet) as update:
        while batch.ended_at is None and (batch.status != "paused" or batch.progress.states.get("running")):
            await asyncio.sleep(LOOK_AGAIN)
            batch = await desk.batch(batch.id)
            if batch.screened is not None:
                told = {"cost": price(batch.progress.cost, batch.progress.currency)}
                update(
                    description=say("batch.judging", **told),
                    completed=batch.progress.ended,
                    total=min(batch.request.top, batch.screened),
                )


async def _results(desk: "Moot", text: str) -> BatchResults:
    batches = desk.jobs.batches()
    return await batches.results(await batches.find_id(text))


async def _turn(turn: Callable[[UUID], Awaitable[BatchView]], desk: "Moot", text: str) -> BatchView:
    return await turn(await desk.jobs.batches().find_id(text))


def _show_turned(turned: BatchView) -> None:
    status = name_status(turned, environment_locale())
    tell("batch.turned", name=turned.name, id=str(turned.id)[:8], status=status)
    if running := turned.progress.states.get("running"):
        tell("batch.still_running", count=running)


def _name_format(out: Path | None) -> Format:
    """By the end of the file's name."""
    ends: dict[str, Format] = {".json": "json", ".parquet": "parquet", ".html": "html", ".htm": "html"}
    return ends.get(out.suffix.lower(), "csv") if out else "csv"


def _show_page(page: BatchPage) -> None:
    locale = environment_locale()
    print_table(
        page.items,
        line_field("batch.column.id", lambda one: str(one.id)[:8]),
        line_field("batch.column.name", lambda one: shorten(one.name, NAME)),
        line_field("batch.column.status", lambda one: name_status(one, locale)),
        line_field("batch.column.as_of", lambda one: f"{one.as_of:%Y-%m-%d}"),
        line_field("batch.column.shares", lambda one: str(one.shares), justify="right"),
        line_field(
            "batch.column.judged", lambda one: f"{one.progress.ended}/{one.progress.chosen}", justify="right"
        ),
        line_field("batch.column.cost", _tell_cost, justify="right"),
        none="batch.none",
    )


def _tell_cost(one: BatchView) -> str:
    return in_words(price(one.progress.cost, one.progress.currency))


def _show_results(results: BatchResults) -> None:
    """Everybody who was to be judged, and some of those that follow."""
    locale, console = environment_locale(), Console()
    status = name_status(results.batch, locale)
    console.print(
        Text(say("batch.title", name=results.batch.name, id=str(results.batch.id)[:8], status=status), "bold")
    )
    for line in tell_facts(results, locale):
        console.print(Prose(line))
    rest = [row for row in results.rows if not row.session_id]
    shown = [row for row in results.rows if row.session_id or row in rest[:SHOWN]]
    if not shown:
        return
    console.print()
    console.print(_list_shares(results, shown, locale))
    if len(shown) < len(results.rows):
        tell("batch.more", count=len(results.rows) - len(shown), id=str(results.batch.id)[:8])
    for row in results.rows:
        if row.session_id and row.state in ("failed", "abstained") and row.note:
            console.print(Prose(f"{row.symbol}: {row.note}", most=NOTE))
    console.print(Prose(tell_how(locale), style="dim"))


def _list_shares(results: BatchResults, shown: Sequence[Ranked], locale: Locale) -> Table:
    """Only a name takes more than a line; without columns that have nothing in them."""
    rows = [tell_cells(results, row, locale) for row in shown]
    filled = [name for name in rows[0] if name != "screen_rank" and any(row[name] != NONE for row in rows)]
    table = Table(box=None, pad_edge=False)
    for name in filled:
        justify: Literal["left", "right"] = "right" if name in FIGURES else "left"
        table.add_column(name_column(name, locale), justify=justify, no_wrap=name != "name", overflow="fold")
    for row, cells in zip(shown, rows, strict=True):
        style = ACTION_STYLES.get(row.action or "", "dim" if row.basis is None else "")
        table.add_row(*(Text(cells[name]) for name in filled), style=style)
    return table


ACTION_STYLES = {"BUY": "green", "SELL": "red", "HOLD": "yellow"}
NAME, NOTE = 18, 240
"""Signs of a batch's name in a list, and cells of why a share has no verdict."""
