"""`moot sessions decisions`: what a session was allowed to do, and why, a sentence each."""

from collections.abc import Sequence

import typer
from rich.console import Console
from rich.table import Column, Table
from rich.text import Text

from moot.cli.arguments import session_id_of
from moot.cli.on_desk import on_desk
from moot.cli.rule_view import STATUS_COLOURS, decision_name
from moot.cli.texts import environment_locale, say
from moot.desk import Moot
from moot.modules.governance.application.decision_log import DecisionRecord, in_one_sentence
from moot.shared.infrastructure.execution_context import DEFAULT_WORKSPACE


def show_decisions(session_id: str) -> None:
    async def work(desk: Moot) -> Sequence[DecisionRecord]:
        session = await desk.session(session_id_of(session_id))
        assert desk.governance.decisions is not None, "there was a session"
        return await desk.governance.decisions.of_session(session.id, DEFAULT_WORKSPACE)

    records = on_desk(work)
    if not records:
        typer.echo(say("decide.none_of_session"))
        return
    Console().print(_table(records))


def _table(records: Sequence[DecisionRecord]) -> Table:
    columns = [
        Column(say("rules.column.request"), overflow="fold"),
        Column(say("rules.column.status"), no_wrap=True),
        Column(say("rules.column.why"), overflow="fold"),
    ]
    table = Table(*columns, box=None, pad_edge=False, header_style="bold")
    for record in records:
        status = Text(record.status, STATUS_COLOURS[record.status])
        why = in_one_sentence(record, environment_locale())
        table.add_row(Text(decision_name(record)), status, Text(why))
    return table
