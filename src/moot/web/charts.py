"""Charts as SVG, made here and coloured by the style sheet: a page draws without a script, and prints.

A strict page allows no style attribute: what a mark looks like is its class. Each chart says in words what it shows.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import NamedTuple

from markupsafe import Markup, escape

from moot.web.formats import number

WIDTH = 640.0
EDGE = 6.0


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
    kind: str = ""


def tag(name: str, /, body: str = "", **attributes: object) -> Markup:
    """One element; what is put in is escaped, unless it is markup. `class_` is class."""
    told = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{f"{value:.2f}" if isinstance(value, float) else escape(value)}"'
        for key, value in attributes.items()
        if value is not None
    )
    return Markup(f"<{name}{told}>{escape(body)}</{name}>")  # noqa: S704  # names are ours


def line_chart(
    values: Sequence[float],
    *,
    label: str,
    width: float = WIDTH,
    height: float = 120.0,
    area: bool = False,
    marks: Sequence[float] = (),
) -> Markup:
    """A series from left to right; `marks` are levels drawn across it."""
    if len(values) < 2:
        return Markup("")
    low, high = min([*values, *marks]), max([*values, *marks])
    across, up = _scale(0, len(values) - 1, EDGE, width - EDGE), _scale(low, high, height - EDGE, EDGE)
    points = [(across(at), up(value)) for at, value in enumerate(values)]
    path = "M" + " L".join(f"{x:.1f},{y:.1f}" for x, y in points)
    drawn = [
        tag("line", class_="mark", x1=EDGE, x2=width - EDGE, y1=up(level), y2=up(level)) for level in marks
    ]
    if area:
        closed = f"{path} L{points[-1][0]:.1f},{height:.1f} L{points[0][0]:.1f},{height:.1f} Z"
        drawn.append(tag("path", class_="area", d=closed))
    kind = "up" if values[-1] > values[0] else "down" if values[-1] < values[0] else ""
    return _svg([*drawn, tag("path", class_=f"line {kind}", d=path)], label, height, width)


def bar_chart(bars: Sequence[Bar], *, label: str, row: float = 26.0) -> Markup:
    """Horizontal, from a common zero: to the right what is for, to the left what is against."""
    if not bars:
        return Markup("")
    values = [bar.value for bar in bars]
    across = _scale(min(0.0, *values), max(0.0, *values), WIDTH * 0.36, WIDTH - 60)
    drawn = [_upright("axis", across(0), 0.0, row * len(bars))]
    for bar, top in zip(bars, _tops(bars, row), strict=True):
        start, end = sorted((across(0), across(bar.value)))
        drawn += [_label(bar.label, top, row), _box(f"bar {bar.kind}", start, end, top + 6, row - 12)]
        drawn.append(_figure(number(bar.value, 2), end + 6, top + row / 2))
    return _svg(drawn, label, row * len(bars))


def gantt_chart(spans: Sequence[Span], *, label: str, row: float = 26.0) -> Markup:
    """What ran when, one row each; what is short is still seen."""
    if not spans:
        return Markup("")
    first, last = min(span.start for span in spans), max(span.end for span in spans)
    across = _scale(0.0, (last - first).total_seconds(), WIDTH * 0.3, WIDTH - 70)
    drawn: list[Markup] = []
    for span, top in zip(spans, _tops(spans, row), strict=True):
        start, end = (across((at - first).total_seconds()) for at in (span.start, span.end))
        drawn += [_label(span.label, top, row), _box(f"span {span.kind}", start, end, top + 5, row - 10)]
        drawn.append(_figure(span.note, max(end, start + 2) + 6, top + row / 2))
    return _svg(drawn, label, row * len(spans))


def football_field(
    ranges: Sequence[Range], *, label: str, price: float | None = None, row: float = 34.0
) -> Markup:
    """Ranges under each other on one scale, and the price across all of them."""
    if not ranges:
        return Markup("")
    ends = [end for one in ranges for end in (one.low, one.high)] + ([] if price is None else [price])
    across, tall = _scale(min(ends), max(ends), WIDTH * 0.34, WIDTH - 64), row * len(ranges)
    drawn: list[Markup] = []
    for one, top in zip(ranges, _tops(ranges, row), strict=True):
        low, high, half = across(one.low), across(one.high), top + row / 2
        drawn += [_label(one.label, top, row), _box(f"range {one.kind}", low, high, top + 9, row - 18)]
        drawn.append(_figure(f"{one.high:,.2f}", high + 5, half))
        if one.low < one.high:
            drawn.append(_figure(f"{one.low:,.2f}", low - 5, half, "end"))
        if one.middle is not None:
            drawn.append(_upright("middle", across(one.middle), top + 7, top + row - 7))
    if price is not None:
        drawn.append(_upright("price", across(price), 0.0, tall))
        drawn.append(_figure(f"{price:,.2f}", across(price), tall + 10, "middle"))
    return _svg(drawn, label, tall + 18)


def _tops(rows: Sequence[object], row: float) -> list[float]:
    return [at * row for at in range(len(rows))]


def _label(text: str, top: float, row: float) -> Markup:
    return tag("text", text, class_="label", x=0.0, y=top + row / 2)


def _figure(text: str, x: float, y: float, anchor: str = "start") -> Markup:
    return tag("text", text, class_="figure", text_anchor=anchor, x=x, y=y)


def _box(kind: str, start: float, end: float, top: float, tall: float) -> Markup:
    return tag("rect", class_=kind, x=start, y=top, width=max(end - start, 2.0), height=tall, rx=2)


def _upright(kind: str, x: float, top: float, bottom: float) -> Markup:
    return tag("line", class_=kind, x1=x, x2=x, y1=top, y2=bottom)


class _Scale(NamedTuple):
    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        share = (value - self.low) / (self.high - self.low) if self.high != self.low else 0.5
        return self.start + share * (self.end - self.start)


def _scale(low: float, high: float, start: float, end: float) -> _Scale:
    return _Scale(low, high, start, end)


def _svg(drawn: Iterable[Markup], label: str, height: float, width: float = WIDTH) -> Markup:
    body = tag("title", label) + Markup("").join(drawn)
    return tag("svg", body, class_="chart", viewBox=f"0 0 {width:.0f} {height:.0f}", role="img")


CHARTS = {
    "line_chart": line_chart,
    "bar_chart": bar_chart,
    "gantt_chart": gantt_chart,
    "football_field": football_field,
    "Bar": Bar,
    "Span": Span,
    "Range": Range,
}
"""For templates, which may put their own rows together."""
