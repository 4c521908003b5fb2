"""`moot data`: fetch, look up, import and examine market data."""

from collections.abc import Iterable, Sequence
from pathlib import Path

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from moot.cli.arguments import day
from moot.cli.on_desk import on_desk
from moot.cli.texts import SAY, environment_locale, say
from moot.desk import Moot
from moot.modules.market_data.application.directory import Match
from moot.modules.market_data.application.examination import Remark
from moot.modules.market_data.application.sync import SyncEvent
from moot.modules.market_data.application.upkeep import Holding, Imports
from moot.shared.domain.errors import InvalidInput
from moot.shared.domain.messages import Message

MOST_REMARKS = 50


def sync(symbols: Sequence[str], universe: str | None, start: str | None, end: str | None) -> None:
    async def work(desk: Moot) -> list[SyncEvent]:
        upkeep = desk.market_data.upkeep()
        plan = await upkeep.plan(symbols, universe, day("--from", start), day("--to", end))
        with _progress() as progress:
            task = progress.add_task(say("data.syncing"), total=plan.steps)

            def watch(event: SyncEvent) -> None:
                progress.advance(task)
                if event.errors or event.refused:
                    progress.console.print(_line(event), soft_wrap=True, markup=False)

            return await upkeep.sync(plan, watch=watch)

    events = on_desk(work)
    counts = {
        outcome: sum(e.outcome == outcome for e in events) for outcome in ("fetched", "up_to_date", "failed")
    }
    rows, refused = sum(e.rows for e in events), sum(len(e.refused) for e in events)
    typer.echo(say("data.synced", rows=rows, refused=refused, **counts))
    if counts["failed"]:
        raise typer.Exit(1)


def status() -> None:
    async def work(desk: Moot) -> list[Holding]:
        return await desk.market_data.upkeep().holdings()

    holdings = on_desk(work)
    if not holdings:
        typer.echo(say("data.empty"))
        return
    columns = ("dataset", "subject", "rows", "from", "to", "gaps", "age", "source")
    table = Table(*(say(f"data.column.{name}") for name in columns), box=None, pad_edge=False)
    for h in holdings:
        span = (h.first.isoformat() if h.first else "—", h.last.isoformat() if h.last else "—")
        age = say("data.hours", hours=round(h.age.total_seconds() / 3600))
        table.add_row(_said(h.name), h.subject, f"{h.rows:,}", *span, str(h.gaps), age, ", ".join(h.sources))
    Console().print(table)


def find(text: str) -> None:
    async def work(desk: Moot) -> list[Match]:
        directory = desk.market_data.directory()
        found = await directory.find(text)
        if not found:
            await directory.resolve(text)  # says why there is nothing
        return found

    matches = on_desk(work)
    table = Table(box=None, show_header=False, pad_edge=False)
    for match in matches:
        company = match.company
        gone = say("data.delisted", day=company.delist_date) if company.delist_date else ""
        table.add_row(company.symbol, company.name, company.name_en, company.industry, gone)
    Console().print(table)


def bring_in(file: Path, mapping: Path | None) -> None:
    async def work(desk: Moot) -> Imports:
        for path in (file, mapping):
            if path is not None and not path.is_file():  # nothing else runs here
                raise InvalidInput(SAY("data.no_file", path=path))
        return await desk.market_data.upkeep().bring_in(file, mapping)

    imports = on_desk(work)
    for guess in imports.guessed:
        typer.echo(_said(guess))
    for done in imports.done:
        typer.echo(say("data.imported", dataset=_said(done.name), rows=done.rows, subjects=done.subjects))
        _refusals(done.refused)


def check(symbol: str) -> None:
    async def work(desk: Moot) -> list[Remark]:
        return await desk.market_data.upkeep().examine(symbol)

    remarks = on_desk(work)
    for remark in remarks[:MOST_REMARKS]:
        typer.echo(_said(remark.text))
    typer.echo(say("data.checked", symbol=symbol, count=len(remarks)))


def _progress() -> Progress:
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    return Progress(*columns, console=Console(stderr=True))


def _line(event: SyncEvent) -> str:
    what = f"{event.subject} {_said(event.name)}"
    errors = [f"{source}: {_said(error)}" if source else _said(error) for source, error in event.errors]
    if event.outcome == "failed":
        return say("data.failed", what=what, why="; ".join(errors))
    if not event.refused:
        return say("data.fell_back", what=what, source=event.source, why="; ".join(errors))
    first = event.refused[0]
    return say("data.refused", what=what, count=len(event.refused), row=first.row, why=first.why)


def _refusals(refused: Iterable[object]) -> None:
    for refusal in list(refused)[:MOST_REMARKS]:
        typer.echo(f"  {refusal}")


def _said(text: Message | str) -> str:
    return text if isinstance(text, str) else text.in_locale(environment_locale())
