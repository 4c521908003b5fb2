"""Drawings in a report, in signs for Markdown and a terminal, as SVG on a page; and the page itself.

It has no script and loads nothing. Drawings are put in after the Markdown was read, so that no text can hold one.
"""

from collections.abc import Mapping, Sequence
from functools import cache
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING
from unicodedata import east_asian_width

from moot.modules.coordinator.application.report_case import Day
from moot.shared.domain.claims import Side
from moot.shared.domain.markdown import drop_unseen
from moot.shared.domain.messages import Locale

if TYPE_CHECKING:
    from markdown_it import MarkdownIt

TICKS, FULL, HALF, EMPTY = "▁▂▃▄▅▆▇█", "█", "▌", "░"
CELLS = 5
MOST_TICKS = 48
ACTIVE = ["autolink", "image", "link", "reference"]
"""What Markdown can do that a report must not."""
BREAK, FIRST_PLACE = "<br>", 0xF0000
"""The only tag that a report writes itself, and the first of the signs that keep the place of one: nobody else's text
can hold either."""
WIDTH, HEIGHT, MARGIN = 640, 160, 16
TEXT, GAP, WIDE, NARROW = 14, 6, 12, 7
"""Of labels: from line to line, from what they label, and how wide a sign is."""
COLOURS: Mapping[Side, str] = {"for": "pro", "against": "con", "neither": "mid"}


class Pen:
    """Draws in signs that any text can hold."""

    def bar(self, strength: float, side: Side) -> str:
        full, half = divmod(round(2 * CELLS * strength), 2)
        return FULL * full + HALF * half + EMPTY * (CELLS - full - half)

    def chart(self, days: Sequence[Day], levels: Mapping[str, float]) -> str:
        """A sparkline; of more closes than it has room for, every so many."""
        step = max(1, -(-len(days) // MOST_TICKS))
        shown = [close for _, close in days[::-1][::step]][::-1]
        low, high = min(shown), max(shown)
        return "".join(TICKS[round((len(TICKS) - 1) * _part(close, low, high))] for close in shown)


class SvgPen(Pen):
    """Keeps what it drew until the page is there."""

    def __init__(self) -> None:
        self.drawn: list[str] = []

    def bar(self, strength: float, side: Side) -> str:
        return self._keep(
            f'<svg class="bar" viewBox="0 0 60 8" role="img" aria-label="{strength:.2f}">'
            '<rect class="rail" width="60" height="8" rx="2"></rect>'
            f'<rect class="{COLOURS[side]}" width="{60 * strength:.1f}" height="8" rx="2"></rect></svg>'
        )

    def chart(self, days: Sequence[Day], levels: Mapping[str, float]) -> str:
        return self._keep(_chart(days, levels))

    def _keep(self, drawing: str) -> str:
        self.drawn.append(drawing)
        return chr(FIRST_PLACE + len(self.drawn))


def _part(value: float, low: float, high: float) -> float:
    """How far from low to high; halfway where there is no way."""
    return (value - low) / (high - low) if high > low else 0.5


def _chart(days: Sequence[Day], levels: Mapping[str, float]) -> str:
    closes = [close for _, close in days]
    low, high = min(closes), max(closes)
    room = (high - low) / 2 or 1.0
    near = {name: level for name, level in levels.items() if low - room <= level <= high + room}
    low, high = min([low, *near.values()]), max([high, *near.values()])

    def height(price: float) -> float:
        return MARGIN + (HEIGHT - 2 * MARGIN) * (1 - _part(price, low, high))

    labels = {f"{name} {level:,.2f}": height(level) for name, level in near.items()}
    right = WIDTH - max(map(_measure, labels), default=0)
    step = right / max(1, len(days) - 1)
    line = " ".join(f"{n * step:.1f},{height(close):.1f}" for n, close in enumerate(closes))
    label = f"{days[0][0]} – {days[-1][0]}: {closes[0]:,.2f} – {closes[-1]:,.2f}"
    return (
        f'<svg class="chart" viewBox="0 0 {WIDTH} {HEIGHT + 18}" role="img" aria-label="{escape(label)}">'
        f'<polygon class="area" points="0,{HEIGHT} {line} {right},{HEIGHT}"></polygon>'
        f'<polyline class="line" points="{line}"></polyline>{_mark(labels, right)}'
        f'<text x="0" y="{HEIGHT + 14}">{escape(days[0][0])}</text>'
        f'<text class="end" x="{right}" y="{HEIGHT + 14}">{escape(days[-1][0])}</text></svg>'
    )


def _mark(labels: Mapping[str, float], right: int) -> str:
    """A line at the height of each, and what it is beside the prices: no two closer than a line of text, all within
    the frame.
    """
    marks, above = "", 0.0
    for n, (label, height) in enumerate(sorted(labels.items(), key=lambda label: label[1]), 1):
        lowest = HEIGHT - TEXT * (len(labels) - n)
        above = min(max(height + TEXT / 4, above + TEXT), lowest)
        marks += (
            f'<line class="level" x1="0" x2="{right}" y1="{height:.1f}" y2="{height:.1f}"></line>'
            f'<text x="{right + GAP}" y="{above:.1f}">{escape(label)}</text>'
        )
    return marks


def _measure(label: str) -> int:
    """How much room it takes beside the prices, rather too much than too little."""
    return GAP + sum(WIDE if east_asian_width(sign) in "WF" else NARROW for sign in label)


STYLE = Path(__file__).with_name("report.css")


def make_page(title: str, locale: Locale, markdown: str, drawn: Sequence[str]) -> str:
    return (
        f'<!doctype html>\n<html lang="{locale}">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(drop_unseen(title))}</title>\n<style>{STYLE.read_text('utf-8')}</style>\n</head>\n"
        f"<body>\n{to_html(markdown, drawn)}</body>\n</html>\n"
    )


def to_html(markdown: str, drawn: Sequence[str] = ()) -> str:
    tags = {FIRST_PLACE + n: tag for n, tag in enumerate([BREAK, *drawn])}
    return str(_markdown().render(markdown.replace(BREAK, chr(FIRST_PLACE)))).translate(tags)


@cache
def _markdown() -> "MarkdownIt":
    from markdown_it import MarkdownIt  # noqa: PLC0415  # takes a while, and only pages need it

    return (
        MarkdownIt("commonmark", {"html": False, "breaks": True, "xhtmlOut": False})
        .enable("table")
        .disable(ACTIVE)
    )
