"""`moot data`: fetch, look up, import, examine and query market data."""

import csv
import itertools
import sys
from collections import Counter
from collections.abc import Callable
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console, JustifyMethod
from rich.table import Column, Table
from rich.text import Text

from moot.cli.command import at_desk, command, name_share, on_desk
from moot.cli.options import DAY, AsJson, argument, day, group, list_typed, option
from moot.cli.printing import Field, count_up, field, in_words, minute, print_json, print_table, tell
from moot.cli.texts import SAY, environment_locale, say
from moot.modules.market_data.application.directory import Match
from moot.modules.market_data.application.imports import Import, Imports
from moot.modules.market_data.application.sql import TABLES, QueryResult
from moot.modules.market_data.application.sync import SyncEvent
from moot.modules.market_data.application.upkeep import Holding, Remark
from moot.shared.domain.errors import InvalidInput

if TYPE_CHECKING:
    from moot.desk import Moot

MOST_REMARKS = 50
FIRST_FEW = 5
NUMBERS = (int, float, Decimal)

data = group("help.data")


@data.command("sync", help=say("help.data_sync"))
def sync(
    symbols: Annotated[list[str] | None, argument("help.data_symbols")] = None,
    universe: Annotated[str | None, option("help.data_universe")] = None,
    start: Annotated[str | None, option("help.data_from", "--from", metavar=DAY)] = None,
    end: Annotated[str | None, option("help.data_to", "--to", metavar=DAY)] = None,
) -> None:
    async def work(desk: "Moot") -> list[SyncEvent]:
        upkeep = desk.market_data.upkeep()
        named = [await name_share(desk, text) for text in (list_typed(symbols) if symbols else [])]
        plan = await upkeep.plan(named, universe, day("--from", start), day("--to", end))
        done, told = itertools.count(1), set[str]()
        with count_up(say("data.syncing"), plan.steps) as count:

            def watch(event: SyncEvent) -> None:
                count(next(done))
                if (event.errors or event.refused) and (said := _describe(event)) not in told:
                    told.add(said)
                    typer.echo(said, err=True)

            return await upkeep.sync(plan, watch=watch)

    events = on_desk(work)
    outcomes = Counter(event.outcome for event in events)
    counts = {outcome: outcomes[outcome] for outcome in ("fetched", "up_to_date", "failed")}
    rows, refused = sum(e.rows for e in events), sum(len(e.refused) for e in events if not e.lacking)
    tell("data.synced", rows=rows, refused=refused, **counts)
    if counts["failed"]:
        raise typer.Exit(1)


@data.command("status", help=say("help.data_status"))
def status() -> None:
    on_desk(lambda desk: desk.market_data.upkeep().holdings(), _show_holdings)


@data.command("find", help=say("help.data_find"))
def find(text: Annotated[str, argument("help.data_text")]) -> None:
    async def work(desk: "Moot") -> list[Match]:
        directory = desk.market_data.directory()
        found = await directory.find(text)
        if not found:
            await directory.resolve(text)  # says why there is nothing
        return found

    found = Table(box=None, show_header=False, pad_edge=False)
    for match in on_desk(work):
        company = match.company
        gone = say("data.delisted", day=company.delist_date) if company.delist_date else ""
        told = (company.symbol, company.name, company.name_en, company.industry, gone)
        found.add_row(*map(Text, told))
    Console().print(found)


@data.command("import", help=say("help.data_import"))
def bring_in(
    file: Annotated[Path, argument("help.data_file")],
    mapping: Annotated[Path | None, option("help.data_mapping")] = None,
) -> None:
    async def work(desk: "Moot") -> Imports:
        for path in (file, mapping):
            if path is not None and not path.is_file():  # nothing else runs here
                raise InvalidInput(SAY("data.no_file", path=path))
        return await desk.market_data.imports().bring_in(file, mapping)

    imported = on_desk(work)
    for note in imported.notes:
        typer.echo(in_words(note))
    for done in imported.done:
        _show_import(done)
    if imported.next_step:
        typer.echo(in_words(imported.next_step))


def _show_import(done: Import) -> None:
    named = ", ".join(done.symbols[:FIRST_FEW]) + (" …" if len(done.symbols) > FIRST_FEW else "")
    told = {"dataset": in_words(done.name), "rows": done.rows, "count": len(done.symbols), "named": named}
    tell("data.imported_for" if done.symbols else "data.imported", **told)
    if done.refused:
        tell("data.import_refused", count=len(done.refused), all=done.rows + len(done.refused))
    for refusal in done.refused[:FIRST_FEW]:
        typer.echo(f"  {refusal.in_locale(environment_locale())}")
    if more := len(done.refused[FIRST_FEW:]):
        typer.echo(f"  {say('data.more_refused', count=more)}")


@data.command("check", help=say("help.data_check"))
def check(symbol: Annotated[str, argument("help.symbol")]) -> None:
    async def work(desk: "Moot") -> tuple[str, list[Remark]]:
        share = await name_share(desk, symbol)
        return share, await desk.market_data.upkeep().examine(share)

    share, remarks = on_desk(work)
    for remark in remarks[:MOST_REMARKS]:
        typer.echo(in_words(remark.text))
    tell("data.checked", symbol=share, count=len(remarks))


@data.command("sql", help=say("data_sql.help"))
def run_query(
    sql: Annotated[str, argument("data_sql.sql", metavar="SELECT", told={"tables": list(TABLES)})],
    as_of: Annotated[str | None, option("data_sql.as_of", metavar=DAY)] = None,
    as_json: AsJson = False,
    as_csv: Annotated[bool, option("data_sql.csv", "--csv")] = False,
) -> None:
    with command(as_json=as_json) as settings:
        if as_json and as_csv:
            raise InvalidInput(SAY("data_sql.one_format"))
        locale = environment_locale()
        result = at_desk(settings, lambda desk: desk.query(sql, as_of=as_of, locale=locale))
        if as_json:
            print_json(result)
        elif as_csv:
            _print_csv(result)
        else:
            show_rows(result)


def _show_holdings(holdings: list[Holding]) -> None:
    cells: dict[str, Callable[[Any], str]] = {
        "dataset": lambda held: in_words(held.coverage.label),
        "subject": lambda held: held.coverage.subject,
        "rows": lambda held: f"{held.coverage.rows:,}",
        "from": lambda held: str(held.coverage.span[0] or "—"),
        "to": lambda held: str(held.coverage.span[1] or "—"),
        "gaps": lambda held: str(max(len(held.coverage.ranges) - 1, 0)),
        "newest": _tell_age,
        "source": lambda held: ", ".join(held.coverage.sources),
    }
    fields = [field(f"data.column.{name}", cell) for name, cell in cells.items()]
    print_table(holdings, *fields, none="data.empty")


def _tell_age(held: Holding) -> str:
    """Its newest day and how old that is; the day it was fetched for what has no days."""
    day = held.coverage.newest
    if day is None or held.age is None or held.limit is None:
        return str(day or say("data.fetched", day=held.coverage.stored_at.date()))
    newest = say(f"data.{'days' if held.limit.sessions is None else 'sessions'}_old", day=day, age=held.age)
    return say("data.too_old", newest=newest) if held.too_old else newest


def _describe(event: SyncEvent) -> str:
    what = f"{event.subject} {in_words(event.dataset.label)}"
    errors = [f"{source}: {in_words(error)}" if source else in_words(error) for source, error in event.errors]
    if event.outcome == "failed":
        return say("data.failed", what=what, why="; ".join(errors))
    if event.lacking:
        why = errors or list(dict.fromkeys(map(in_words, event.missing)))
        return say("data.not_offered", dataset=in_words(event.dataset.label), why="; ".join(why))
    if not event.refused:
        return say("data.fell_back", what=what, source=event.source, why="; ".join(errors))
    first = event.refused[0].in_locale(environment_locale())
    return say("data.refused", what=what, count=len(event.refused), first=first)


def _print_csv(result: QueryResult) -> None:
    """What is to be said about the rows is not part of them."""
    lines = csv.writer(sys.stdout, lineterminator="\n")
    lines.writerow(result.columns)
    lines.writerows(result.rows)
    _remark(result, err=True)


def show_rows(result: QueryResult) -> None:
    fields = [_field(result, place) for place in range(len(result.columns))]
    print_table(result.rows, *fields, none="data_sql.empty")
    _remark(result)


def _field(result: QueryResult, place: int) -> Field:
    """Numbers stand on the right."""
    known = [row[place] for row in result.rows if row[place] is not None]
    side: JustifyMethod = "right" if all(isinstance(value, NUMBERS) for value in known) else "left"
    column = Column(Text(result.columns[place]), overflow="fold", justify=side)
    return Field(column, lambda row: _cell(row[place]))


def _cell(value: Any) -> str:
    if value is None:
        return "—"
    if isinstance(value, datetime):
        return minute(value)
    return f"{value:.10g}" if isinstance(value, float) else str(value)


def _remark(result: QueryResult, *, err: bool = False) -> None:
    if result.truncated:
        tell("data_sql.cut", err=err, rows=len(result.rows))
    for notice in result.notices:
        tell("data_sql.notice", err=err, notice=notice)
    if result.notices:
        tell("data_sql.ran", err=err, sql=result.sql)
