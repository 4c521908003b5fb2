"""`moot sessions replay`: a session run again from its record, and where it comes out otherwise."""

import json
import sys
from collections.abc import Iterator
from typing import Any

from rich.console import Console, Group
from rich.table import Column, Table
from rich.text import Text
from typer import Exit

from moot.cli.arguments import session_id_of
from moot.cli.on_desk import at_desk
from moot.cli.outcome import command
from moot.cli.texts import SAY, environment_locale
from moot.cli.verdict_view import Prose
from moot.desk import Moot
from moot.modules.coordinator.application.replay import Difference, NodeReplay, Replay
from moot.modules.coordinator.application.report import Wording
from moot.shared.domain.messages import Locale
from moot.shared.infrastructure.execution_context import DEFAULT_WORKSPACE

COLOURS = {"same": "green", "failed_alike": "dim", "differs": "bold red", "unrecorded": "yellow"}
LONGEST = 120
"""Characters of a value that are shown."""
MOST_LINES = 12
"""Lines of a changed prompt that are shown; `--json` has more."""


def replay(session_id: str, *, as_json: bool) -> None:
    """Exit code 0: everything came out as it is on record; 1: something did not, or could not be replayed."""

    async def work(desk: Moot) -> Replay:
        return await desk.coordinator.replay_service().replay(session_id_of(session_id), DEFAULT_WORKSPACE)

    with command(as_json=as_json) as settings:
        replayed = at_desk(settings, work)
        if as_json:
            sys.stdout.write(replayed.model_dump_json(indent=2) + "\n")
        else:
            _show(replayed, environment_locale())
        if not replayed.equal:
            raise Exit(1)


def _show(replayed: Replay, locale: Locale) -> None:
    console, say = Console(), Wording(locale)
    as_of = f"{replayed.as_of:%Y-%m-%d %H:%M} UTC"
    console.print(Text(_label("title", locale, symbol=replayed.symbol, as_of=as_of), "bold"))
    console.print()
    table = Table(
        Column(_label("step", locale), no_wrap=True),
        Column(_label("result", locale), no_wrap=True),
        Column(_label("difference", locale), overflow="fold"),
        box=None,
        pad_edge=False,
        header_style="bold",
    )
    for node in replayed.nodes:
        state = "reused" if node.reused and node.outcome == "same" else node.outcome
        shown = Text(_label(f"state.{state}", locale), COLOURS[node.outcome])
        table.add_row(say(f"node.{node.node_type}"), shown, Group(*_lines(node, locale)))
    if replayed.ending:
        differs = Text(_label("state.differs", locale), COLOURS["differs"])
        table.add_row(_label("ending", locale), differs, Group(*map(_line, replayed.ending)))
    console.print(table)
    console.print()
    console.print(Text(_summary(replayed, locale), "green" if replayed.equal else "bold red"))


def _lines(node: NodeReplay, locale: Locale) -> Iterator[Prose]:
    yield from map(_line, node.differences)
    if node.more:
        yield Prose(_label("more", locale, count=node.more))
    if node.prompt:
        yield Prose(_label("prompt", locale))
        yield from (Prose(_cut(line)) for line in node.prompt[:MOST_LINES])


def _line(difference: Difference) -> Prose:
    return Prose(f"{difference.path}: {_value(difference.then)} → {_value(difference.now)}")


def _value(value: Any) -> str:
    return "—" if value is None else _cut(json.dumps(value, ensure_ascii=False))


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"


def _summary(replayed: Replay, locale: Locale) -> str:
    if replayed.equal:
        return _label("equal", locale, count=len(replayed.nodes))
    wrong = sum(node.outcome in ("differs", "unrecorded") for node in replayed.nodes)
    if not wrong:
        return _label("ending_only", locale)
    return _label("unequal", locale, wrong=wrong, count=len(replayed.nodes))


def _label(key: str, locale: Locale, **values: object) -> str:
    return SAY(f"replay.{key}", **values).in_locale(locale)
