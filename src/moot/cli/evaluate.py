"""`moot evaluate`: what the desk's judgements have been worth, measured on the past."""

import re
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from moot.cli.command import name_share, on_desk
from moot.cli.options import DAY, argument, group, list_typed, option, read_file, require_day
from moot.cli.printing import count_up, tell
from moot.cli.texts import SAY, environment_locale, say
from moot.modules.evaluation.application.page import Page
from moot.modules.evaluation.application.walk import Walk
from moot.shared.domain.errors import InvalidInput
from moot.shared.domain.symbol import Symbol

if TYPE_CHECKING:
    from moot.desk import Moot

MONTH = "YYYY-MM"

evaluate = group("help.evaluate")


@evaluate.callback()
def _keep_group() -> None:
    """So that `walk` stays a command of its own while it is the only one."""


@evaluate.command("walk", help=say("evaluate.help"))
def walk(
    symbols: Annotated[list[str] | None, argument("evaluate.symbols")] = None,
    file: Annotated[Path | None, option("evaluate.file", "--symbols")] = None,
    start: Annotated[str, option("evaluate.from", "--from", metavar=MONTH)] = "2020-07",
    end: Annotated[str, option("evaluate.to", "--to", metavar=MONTH)] = "2022-12",
    tune_until: Annotated[str, option("evaluate.tune_until", metavar=DAY)] = "2022-01-01",
    out: Annotated[Path | None, option("evaluate.out")] = None,
    json: Annotated[Path | None, option("evaluate.json", "--json", metavar="FILE")] = None,
) -> None:
    async def work(desk: "Moot") -> Walk:
        _make_sure_of(out, json)
        typed = [*(symbols or []), *(read_file(file).splitlines() if file else [])]
        named = [await name_share(desk, text) for text in (list_typed(typed) if typed else [])]
        service = desk.evaluation.walk_service()
        months = _month("--from", start), _month("--to", end)
        until = require_day("--tune-until", tune_until)
        plan = await service.plan([Symbol.parse(name) for name in named], *months, until)
        with count_up(say("evaluate.walking"), plan.steps) as count:
            return await service.walk(plan, count)

    on_desk(work, lambda done: _show(done, out, json))


def _month(name: str, text: str) -> date:
    if not re.fullmatch(r"\d{4}-\d\d", text):
        raise InvalidInput(SAY("evaluate.bad_month", option=name, text=text or "''"))
    return require_day(name, f"{text}-01")


def _show(done: Walk, out: Path | None, json: Path | None) -> None:
    page = Page(done, environment_locale())
    for said in page.read():
        typer.echo(said)
    for path, text in ((out, page.write), (json, done.to_json)):
        if path:
            path.write_text(text(), encoding="utf-8")
            tell("evaluate.written", err=True, path=path)


def _make_sure_of(*files: Path | None) -> None:
    """Nobody waits for minutes to learn that a file cannot be written."""
    for path in filter(None, files):
        try:
            path.touch()
        except OSError as e:
            raise InvalidInput(SAY("evaluate.unwritable", path=path, reason=e.strerror or e)) from None
