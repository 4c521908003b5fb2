"""Running text in a terminal. Chinese has no spaces to break at, so it breaks between characters."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions
from rich.measure import Measurement
from rich.text import Text

WIDE = "\u2e80-\u9fff\uac00-\ud7af\uff00-\uffef"
CLOSING = "，。；：、？！）》」』”’］"
UNITS = re.compile(rf"[{WIDE}][{CLOSING}]*|[^\s{WIDE}]+[{CLOSING}]*|\s+")
"""A wide character or a narrow word, with the punctuation that must not begin a line."""


@dataclass(frozen=True)
class Prose:
    """A paragraph that fills the width it is given, cut after `most` cells."""

    text: str
    most: int | None = None

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Text]:
        text = Text(" ".join(self.text.split("\n")))
        if self.most is not None:
            text.truncate(self.most, overflow="ellipsis")
        for line in wrap(text.plain, options.max_width):
            yield Text(line)

    def __rich_measure__(self, console: Console, options: ConsoleOptions) -> Measurement:
        return Measurement(min(20, options.max_width), min(cell_len(self.text), options.max_width))


def wrap(text: str, width: int) -> list[str]:
    """Lines of at most `width` cells; only a single unit that is wider than that stands out."""
    lines, line = [], ""
    for unit in UNITS.findall(text):
        if line and cell_len(line) + cell_len(unit.rstrip()) > width:
            lines.append(line.rstrip())
            line = unit.lstrip()
        else:
            line += unit
    return [*lines, line.rstrip()] if line.strip() or not lines else lines
