"""Charts as SVG, made here and coloured by the style sheet: a page draws without a script, and prints.

A strict page allows no style attribute: what a mark looks like is its class. Each chart says in words what it shows.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import NamedTuple

from markupsafe import Markup, escape

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
    told = Markup("").join(
        Markup(' {}="{}"').format(
            key.rstrip("_").replace("_", "-"), f"{value:.2f}" if isinstance(value, float) else value
        )
        for key, value in attributes.items()
        if value is not None
    )
    return Markup("<{0}{1}>{2}</{0}>").format(Markup(name), told, escape(body))  # noqa: S704  # names are ours


def line_chart(
    values: Sequence[float],
    *,
    label: str,
    height: float = 120.0,
    area: bool = False,
    marks: Sequence[float] = (),
) -> Markup:
    """A series from left to right; `marks` are levels drawn across it."""
    if len(values) < 2:
        return Markup("")
    low, high = min([*values, *marks]), max([*values, *marks])
    across, up = _scale(0, len(values) - 1, EDGE, WIDTH - EDGE), _scale(low, high, height - EDGE, EDGE)
    points = [(across(at), up(value)) for at, value in enumerate(values)]
    path = "M" + " L".join(f"{x:.1f},{y:.1f}" for x, y in points)
    drawn = [
        tag("line", class_="mark", x1=EDGE, x2=WIDTH - EDGE, y1=up(level), y2=up(level)) for level in marks
    ]
    if area:
        closed = f"{path} L{points[-1][0]:.1f},{height:.1f} L{points[0][0]:.1f},{height:.1f} Z"
        drawn.append(tag("path", class_="area", d=closed))
    kind = "up" if values[-1] > values[0] else "down" if values[-1] < values[0] else ""
    return _svg([*drawn, tag("path", class_=f"line {kind}", d=path)], label, height)


def bar_chart(bars: Sequence[Bar], *, label: str, row: float = 26.0) -> Markup:
    """Horizontal, from a common zero: to the right what is for, to the left what is against."""
    if not bars:
        return Markup("")
    low, high = min(0.0, *(bar.value for bar in bars)), max(0.0, *(bar.value for bar in bars))
    across = _scale(low, high, WIDTH * 0.36, WIDTH - 60)
    drawn = [tag("line", class_="axis", x1=across(0), x2=across(0), y1=0.0, y2=row * len(bars))]
    for at, bar in enumerate(bars):
        start, end = sorted((across(0), across(bar.value)))
        drawn += _row(bar.label, at, row)
        drawn.append(
            tag(
                "rect",
                class_=f"bar {bar.kind}",
                x=start,
                y=at * row + 6,
                width=max(end - start, 1.0),
                height=row - 12,
                rx=2,
            )
        )
        drawn.append(tag("text", f"{bar.value:,.2f}", class_="figure", x=end + 6, y=at * row + row / 2))
    return _svg(drawn, label, row * len(bars))


def gantt_chart(spans: Sequence[Span], *, label: str, row: float = 26.0) -> Markup:
    """What ran when, one row each; what is short is still seen."""
    if not spans:
        return Markup("")
    first, last = min(span.start for span in spans), max(span.end for span in spans)
    across = _scale(0.0, (last - first).total_seconds(), WIDTH * 0.3, WIDTH - 70)
    drawn: list[Markup] = []
    for at, span in enumerate(spans):
        start, end = across((span.start - first).total_seconds()), across((span.end - first).total_seconds())
        drawn += _row(span.label, at, row)
        drawn.append(
            tag(
                "rect",
                class_=f"span {span.kind}",
                x=start,
                y=at * row + 5,
                width=max(end - start, 2.0),
                height=row - 10,
                rx=3,
            )
        )
        drawn.append(tag("text", span.note, class_="figure", x=max(end, start + 2) + 6, y=at * row + row / 2))
    return _svg(drawn, label, row * len(spans))


def football_field(
    ranges: Sequence[Range], *, label: str, price: float | None = None, row: float = 34.0
) -> Markup:
    """Ranges under each other on one scale, and the price across all of them."""
    if not ranges:
        return Markup("")
    ends = [end for one in ranges for end in (one.low, one.high)] + ([price] if price is not None else [])
    across, tall = _scale(min(ends), max(ends), WIDTH * 0.34, WIDTH - 64), row * len(ranges)
    drawn: list[Markup] = []
    for at, one in enumerate(ranges):
        y, middle = at * row, one.middle
        drawn += _row(one.label, at, row)
        drawn.append(
            tag(
                "rect",
                class_=f"range {one.kind}",
                x=across(one.low),
                y=y + 9,
                width=max(across(one.high) - across(one.low), 2.0),
                height=row - 18,
                rx=2,
            )
        )
        if one.low < one.high:
            drawn.append(
                tag(
                    "text",
                    f"{one.low:,.2f}",
                    class_="figure",
                    text_anchor="end",
                    x=across(one.low) - 5,
                    y=y + row / 2,
                )
            )
        drawn.append(tag("text", f"{one.high:,.2f}", class_="figure", x=across(one.high) + 5, y=y + row / 2))
        if middle is not None:
            drawn.append(
                tag("line", class_="middle", x1=across(middle), x2=across(middle), y1=y + 7, y2=y + row - 7)
            )
    if price is not None:
        drawn.append(tag("line", class_="price", x1=across(price), x2=across(price), y1=0.0, y2=tall))
        drawn.append(
            tag(
                "text",
                f"{price:,.2f}",
                class_="figure price",
                text_anchor="middle",
                x=across(price),
                y=tall + 10,
            )
        )
    return _svg(drawn, label, tall + 18)


def _row(text: str, at: int, row: float) -> list[Markup]:
    return [tag("text", text, class_="label", x=0.0, y=at * row + row / 2)]


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


def _svg(drawn: Iterable[Markup], label: str, height: float) -> Markup:
    body = tag("title", label) + Markup("").join(drawn)
    return tag("svg", body, class_="chart", viewBox=f"0 0 {WIDTH:.0f} {height:.0f}", role="img")


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
