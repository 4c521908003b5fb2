"""`moot data sql`: a query as the rules allow it, for people, for programs and for spreadsheets."""

import csv
import sys
from datetime import datetime
from decimal import Decimal
from typing import Any

import typer
from rich.console import Console
from rich.table import Column, Table
from rich.text import Text

from moot.cli.on_desk import at_desk
from moot.cli.outcome import command
from moot.cli.texts import SAY, environment_locale, say
from moot.desk import Moot
from moot.modules.market_data.application.sql import QueryResult
from moot.shared.domain.errors import InvalidInput

NUMBERS = (int, float, Decimal)


def run_query(sql: str, as_of: str | None, *, as_json: bool, as_csv: bool) -> None:
    async def work(desk: Moot) -> QueryResult:
        return await desk.query(sql, as_of=as_of, locale=environment_locale())

    with command(as_json=as_json) as settings:
        if as_json and as_csv:
            raise InvalidInput(SAY("data_sql.one_format"))
        result = at_desk(settings, work)
        if as_json:
            sys.stdout.write(result.model_dump_json(indent=2) + "\n")
        elif as_csv:
            _print_csv(result)
        else:
            _show(result)


def _print_csv(result: QueryResult) -> None:
    """What is to be said about the rows is not part of them."""
    lines = csv.writer(sys.stdout, lineterminator="\n")
    lines.writerow(result.columns)
    lines.writerows(result.rows)
    _remark(result, err=True)


def _show(result: QueryResult) -> None:
    if result.rows:
        Console().print(_table(result))
    else:
        typer.echo(say("data_sql.empty"))
    _remark(result)


def _table(result: QueryResult) -> Table:
    columns = [
        Column(Text(name), overflow="fold", justify="right" if _of_numbers(result, place) else "left")
        for place, name in enumerate(result.columns)
    ]
    table = Table(*columns, box=None, pad_edge=False, header_style="bold")
    for row in result.rows:
        table.add_row(*(Text(_shown(value)) for value in row))
    return table


def _of_numbers(result: QueryResult, place: int) -> bool:
    known = [row[place] for row in result.rows if row[place] is not None]
    return bool(known) and all(isinstance(value, NUMBERS) for value in known)


def _shown(value: Any) -> str:
    if value is None:
        return "—"
    if isinstance(value, datetime):
        return f"{value:%Y-%m-%d %H:%M}"
    return f"{value:.10g}" if isinstance(value, float) else str(value)


def _remark(result: QueryResult, *, err: bool = False) -> None:
    if result.truncated:
        typer.echo(say("data_sql.cut", rows=len(result.rows)), err=err)
    for notice in result.notices:
        typer.echo(say("data_sql.notice", notice=notice), err=err)
    if result.notices:
        typer.echo(say("data_sql.ran", sql=result.sql), err=err)
