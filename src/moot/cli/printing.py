"""How things are printed: JSON, tables, moments, sizes, amounts, and paragraphs in any script."""

import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any, NamedTuple

import typer
from pydantic import BaseModel
from pydantic_core import to_json
from rich.cells import cell_len, set_cell_size
from rich.console import Console, ConsoleOptions, RenderableType
from rich.measure import Measurement
from rich.table import Column, Table
from rich.text import Text

from moot.cli.texts import SAY, environment_locale, say
from moot.shared.domain.messages import Message, shorten

SMALLEST = 0.0001

WIDE = "\u2e80-\u9fff\uac00-\ud7af\uff00-\uffef"
OPENING, CLOSING = "（《「『“‘［(", "，。；：、？！）》」』”’］);,"
UNITS = re.compile(rf"[{OPENING}]*(?:[{WIDE}]|[^\s{WIDE}]+)[{CLOSING}]*|\s+")
"""A wide character or a narrow word, with the punctuation that must not stand alone."""


def print_json(body: Any) -> None:
    """Models are printed exactly as the REST API gives them."""
    model = isinstance(body, BaseModel)
    text = body.model_dump_json(indent=2) if model else to_json(body, indent=2).decode()
    sys.stdout.write(text + "\n")


def tell(key: str, /, *, err: object = False, **values: object) -> None:
    """A text of the catalogue on a line of its own."""
    typer.echo(say(key, **values), err=bool(err))


class Field(NamedTuple):
    """A column of a table, and what stands in it of each row."""

    column: Column
    cell: Callable[[Any], RenderableType]


def field(key: str, cell: Callable[[Any], RenderableType], **more: Any) -> Field:
    """Nothing of it is cut in a narrow terminal."""
    return Field(Column(say(key), overflow="fold", **more), cell)


def line_field(key: str, cell: Callable[[Any], RenderableType], **more: Any) -> Field:
    """On one line, whatever the width."""
    return Field(Column(say(key), no_wrap=True, **more), cell)


def print_table(rows: Sequence[Any], *fields: Field, none: str = "", summed: bool = False) -> None:
    """`none` is what to tell when there are no rows; `summed`: the last of them sums up the others."""
    if none and not rows:
        tell(none)
        return
    table = Table(*(field.column for field in fields), box=None, pad_edge=False)
    for row in rows:
        cells = [field.cell(row) for field in fields]
        style = "bold" if summed and row is rows[-1] else None
        table.add_row(*(Text(cell) if isinstance(cell, str) else cell for cell in cells), style=style)
    Console().print(table)


def list_facts(told: Mapping[str, RenderableType]) -> Table:
    """A line each, with its name; what is empty is left out."""
    rows = Table(box=None, show_header=False, pad_edge=False)
    rows.add_column(style="bold", no_wrap=True)
    rows.add_column(overflow="fold")
    for name, value in told.items():
        if value:
            rows.add_row(name, Text(value) if isinstance(value, str) else value)
    return rows


def minute(moment: datetime | None) -> str:
    return f"{moment:%Y-%m-%d %H:%M}" if moment else "—"


def amount(cost: float) -> str:
    """Single calls cost fractions of a cent; less than that is said to be less."""
    return f"< {SMALLEST:.4f}" if 0 < cost < SMALLEST else f"{cost:,.4f}"


def in_words(text: Message | str) -> str:
    """In the language of the terminal."""
    return text if isinstance(text, str) else text.in_locale(environment_locale())


def price(cost: float | None, currency: str) -> Message | str:
    return SAY("research.price_unknown") if cost is None else f"{amount(cost)} {currency}"


@contextmanager
def progress_bar(
    text: str, total: int | None = None, *, quiet: bool = False
) -> Iterator[Callable[..., None]]:
    """On a terminal, how many are done, and of how many if that is known. Nothing anywhere else."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    hidden = quiet or not console.is_terminal
    with Progress(*columns, console=console, disable=hidden, transient=True) as progress:
        yield partial(progress.update, progress.add_task(text, total=total))


@contextmanager
def count_up(text: str, total: int | None = None) -> Iterator[Callable[[int], None]]:
    with progress_bar(text, total) as update:
        yield lambda done: update(completed=done)


@dataclass(frozen=True)
class Prose:
    """A paragraph that fills the width it is given, cut after `most` cells, of which `end` is always kept.

    Chinese has no spaces to break at, so it breaks between characters.
    """

    text: str
    most: int | None = None
    style: str = ""
    end: str = ""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Text]:
        text = " ".join(self.text.split("\n"))
        if self.most is not None and cell_len(text + self.end) > self.most:
            room = self.most - cell_len(self.end)
            text = shorten(text, len(set_cell_size(text, room - 1)) + 1)
        yield from flow(Text(text + self.end, self.style), options.max_width)

    def __rich_measure__(self, console: Console, options: ConsoleOptions) -> Measurement:
        return Measurement(min(20, options.max_width), min(cell_len(self.text + self.end), options.max_width))


def flow(text: Text, width: int) -> Iterator[Text]:
    """Lines of at most `width` cells; only a single unit that is wider than that stands out."""
    for paragraph in text.split("\n", allow_blank=True):
        for line in paragraph.divide(_find_breaks(paragraph.plain, width)):
            line.rstrip()
            yield line


def _find_breaks(text: str, width: int) -> list[int]:
    """Where a new line begins: never before a space."""
    found, filled = [], 0
    for unit in UNITS.finditer(text):
        if filled and not unit[0].isspace() and filled + cell_len(unit[0]) > width:
            found.append(unit.start())
            filled = 0
        filled += cell_len(unit[0])
    return found
