"""Charts as SVG, made here and coloured by the style sheet: a page draws without a script, and prints.

A strict page allows no style attribute: what a mark looks like is its class. Each chart says in words what it shows.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import NamedTuple

from markupsafe import Markup, escape

from moot.web.formats import number

WIDTH = 640.0
SMALL, LOW = 144.0, 44.0
"""How wide and high a line is."""
EDGE = 6.0
ROW, TALL_ROW = 26.0, 34.0


class Bar(NamedTuple):
    label: str
    value: float
    kind: str = ""


class Span(NamedTuple):
    """Of time, in a row of a Gantt chart."""

    label: str
    start: datetime
    end: datetime
    kind: str = ""
    note: str = ""


class Range(NamedTuple):
    """What a model thinks a share is worth: from, to, and most likely."""

    label: str
    low: float
    high: float
    middle: float | None = None


class Scale(NamedTuple):
    """From what is measured to where it stands: `low` at `start`, `high` at `end`."""

    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        share = (value - self.low) / (self.high - self.low) if self.high != self.low else 0.5
        return self.start + share * (self.end - self.start)


def tag(name: str, /, body: str = "", **attributes: object) -> Markup:
    """One element; what is put in is escaped, unless it is markup. `class_` is class."""
    told = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{f"{value:.2f}" if isinstance(value, float) else escape(value)}"'
        for key, value in attributes.items()
        if value is not None
    )
    return Markup(f"<{name}{told}>{escape(body)}</{name}>")  # noqa: S704  # names are ours


def line_chart(values: Sequence[float], *, label: str) -> Markup:
    """A series from left to right, small enough for a row of a table."""
    if len(values) < 2:
        return Markup("")
    across = Scale(0, len(values) - 1, EDGE, SMALL - EDGE)
    up = Scale(min(values), max(values), LOW - EDGE, EDGE)
    points = [(across(at), up(value)) for at, value in enumerate(values)]
    path = "M" + " L".join(f"{x:.1f},{y:.1f}" for x, y in points)
    area = f"{path} L{points[-1][0]:.1f},{LOW:.1f} L{points[0][0]:.1f},{LOW:.1f} Z"
    kind = "up" if values[-1] > values[0] else "down" if values[-1] < values[0] else ""
    drawn = [tag("path", class_="area", d=area), tag("path", class_=f"line {kind}", d=path)]
    return svg(drawn, label, LOW, SMALL)


def bar_chart(bars: Sequence[Bar], *, label: str) -> Markup:
    """Horizontal, from a common zero: to the right what is for, to the left what is against."""
    if not bars:
        return Markup("")
    values = [bar.value for bar in bars]
    across = Scale(min(0.0, *values), max(0.0, *values), WIDTH * 0.36, WIDTH - 60)
    drawn = [_upright("axis", across(0), 0.0, ROW * len(bars))]
    for at, bar in enumerate(bars):
        top, half = at * ROW, (at + 0.5) * ROW
        start, end = sorted((across(0), across(bar.value)))
        drawn += [_label(bar.label, half), _box(f"bar {bar.kind}", start, end, top + 6, ROW - 12)]
        drawn.append(figure(number(bar.value, 2), end + 6, half))
    return svg(drawn, label, ROW * len(bars))


def gantt_chart(spans: Sequence[Span], *, label: str) -> Markup:
    """What ran when, one row each; what is short is still seen."""
    if not spans:
        return Markup("")
    first, last = min(span.start for span in spans), max(span.end for span in spans)
    across = Scale(0.0, (last - first).total_seconds(), WIDTH * 0.3, WIDTH - 70)
    drawn: list[Markup] = []
    for at, span in enumerate(spans):
        top, half = at * ROW, (at + 0.5) * ROW
        start, end = (across((moment - first).total_seconds()) for moment in (span.start, span.end))
        drawn += [_label(span.label, half), _box(f"span {span.kind}", start, end, top + 5, ROW - 10)]
        drawn.append(figure(span.note, max(end, start + 2) + 6, half))
    return svg(drawn, label, ROW * len(spans))


def football_field(ranges: Sequence[Range], *, label: str, price: float | None = None) -> Markup:
    """Ranges under each other on one scale, and the price across all of them."""
    if not ranges:
        return Markup("")
    ends = [end for one in ranges for end in (one.low, one.high)] + ([] if price is None else [price])
    across, tall = Scale(min(ends), max(ends), WIDTH * 0.34, WIDTH - 64), TALL_ROW * len(ranges)
    drawn: list[Markup] = []
    for at, one in enumerate(ranges):
        top, half = at * TALL_ROW, (at + 0.5) * TALL_ROW
        low, high = across(one.low), across(one.high)
        drawn += [_label(one.label, half), _box("range", low, high, top + 9, TALL_ROW - 18)]
        drawn.append(figure(f"{one.high:,.2f}", high + 5, half))
        if one.low < one.high:
            drawn.append(figure(f"{one.low:,.2f}", low - 5, half, "end"))
        if one.middle is not None:
            drawn.append(_upright("middle", across(one.middle), top + 7, top + TALL_ROW - 7))
    if price is not None:
        drawn.append(_upright("price", across(price), 0.0, tall))
        drawn.append(figure(f"{price:,.2f}", across(price), tall + 10, "middle"))
    return svg(drawn, label, tall + 18)


def _label(text: str, y: float) -> Markup:
    return tag("text", text, class_="label", x=0.0, y=y)


def figure(text: str, x: float, y: float, anchor: str = "start") -> Markup:
    return tag("text", text, class_="figure", text_anchor=anchor, x=x, y=y)


def _box(kind: str, start: float, end: float, top: float, tall: float) -> Markup:
    return tag("rect", class_=kind, x=start, y=top, width=max(end - start, 2.0), height=tall, rx=2)


def _upright(kind: str, x: float, top: float, bottom: float) -> Markup:
    return tag("line", class_=kind, x1=x, x2=x, y1=top, y2=bottom)


def svg(
    drawn: Iterable[Markup],
    label: str,
    height: float,
    width: float = WIDTH,
    *,
    class_: str = "chart",
    role: str = "img",
) -> Markup:
    body = tag("title", label) + Markup("").join(drawn)
    return tag("svg", body, class_=class_, viewBox=f"0 0 {width:.0f} {height:.0f}", role=role)
