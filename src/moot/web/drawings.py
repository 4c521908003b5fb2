"""The larger drawings of a report, as SVG: prices with what is drawn across them, the argument as a map, and
quarters as columns. They are made like the smaller ones of `charts` and coloured by the style sheet.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from typing import NamedTuple
from unicodedata import east_asian_width

from markupsafe import Markup

from moot.shared.domain.claims import ArgumentGraph
from moot.shared.domain.markdown import drop_unseen
from moot.web.charts import Scale, figure, svg, tag
from moot.web.formats import number

DRAWING = "chart drawing"
WIDE = 960.0
ROW = 19.0
GAP = 9.0
"""Between the claims of one dimension and the next."""
DOT, WORDS, END, PLACE, PULL, MOTION = 122.0, 134.0, 490.0, 552.0, 752.0, 862.0
"""Where things stand on the map, from left to right: a claim, its words and their end, its dimension, how far that
pulls, and the motion."""
SIGN, BOLD = 6.4, 7.2
"""Room that a narrow sign takes, of ordinary and of bold words; a wide one takes twice as much, nearly."""


class Candle(NamedTuple):
    day: date
    open: float
    high: float
    low: float
    close: float
    volume: float


class Event(NamedTuple):
    """Something published, on the day of trading on which it could first matter."""

    day: date
    number: int
    side: str
    text: str
    claim: str


class Prices(NamedTuple):
    """What a chart of prices shows. `averages` and `levels` are by what they are called."""

    candles: Sequence[Candle]
    averages: Mapping[str, Sequence[tuple[date, float]]]
    levels: Mapping[str, float]
    events: Sequence[Event]


class Topic(NamedTuple):
    """A dimension of the argument with its claims, as (id, words, side, strength, decisive)."""

    name: str
    pull: float
    claims: Sequence[tuple[str, str, str, float, bool]]


def price_chart(prices: Prices, label: str) -> Markup:
    """Closes, averages, levels and events above, volume below."""
    days, tall, floor = [candle.day for candle in prices.candles], 300.0, 250.0
    if len(days) < 2:
        return Markup("")
    closes = [candle.close for candle in prices.candles]
    near = {name: at for name, at in prices.levels.items() if min(closes) / 2 < at < max(closes) * 2}
    shown = [*closes, *near.values()]
    up = Scale(min(shown), max(shown), floor - 10, 14)
    place = {day: 6 + at * (WIDE - 150) / (len(days) - 1) for at, day in enumerate(days)}
    drawn = _volumes(prices.candles, place, tall, tall - floor)
    for n, line in enumerate([zip(days, closes, strict=True), *prices.averages.values()]):
        points = " ".join(f"{place[day]:.1f},{up(price):.1f}" for day, price in line if day in place)
        drawn.append(tag("polyline", class_=f"line average-{n}" if n else "line", points=points))
    for at in near.values():
        drawn.append(tag("line", class_="mark", x1=6.0, x2=WIDE - 144, y1=up(at), y2=up(at)))
    for (name, at), y in _apart({(name, at): up(at) for name, at in near.items()}):
        drawn.append(figure(f"{name} {at:,.2f}", WIDE - 138, y))
    for event in prices.events:
        if event.day in place:
            drawn.append(tag("circle", class_=f"event {event.side}", cx=place[event.day], cy=14.0, r=8.0))
            drawn.append(_middle(str(event.number), "number", place[event.day], 14.5))
    drawn += [
        figure(str(days[0]), 6.0, tall + 10),
        figure(str(days[-1]), WIDE - 144, tall + 10, "end"),
    ]
    return svg(drawn, label, tall + 18, WIDE, class_=DRAWING)


def _volumes(
    candles: Sequence[Candle], place: Mapping[date, float], bottom: float, room: float
) -> list[Markup]:
    most = max(candle.volume for candle in candles) or 1.0
    step = max((WIDE - 150) / len(candles) - 1, 1.0)
    return [
        tag(
            "rect",
            class_="volume up" if candle.close >= candle.open else "volume down",
            x=place[candle.day] - step / 2,
            y=bottom - room * candle.volume / most,
            width=step,
            height=room * candle.volume / most,
        )
        for candle in candles
    ]


def _apart(
    places: Mapping[tuple[str, float], float], room: float = 14.0
) -> Iterable[tuple[tuple[str, float], float]]:
    """Labels in their order, none closer to the one above it than a line of text."""
    above = 0.0
    for name, y in sorted(places.items(), key=lambda item: item[1]):
        above = max(y, above + room)
        yield name, above


def column_chart(columns: Sequence[tuple[str, float]], label: str) -> Markup:
    """Quarters from left to right, from a common zero."""
    if not columns:
        return Markup("")
    width, tall = 300.0, 96.0
    values = [0.0, *(value for _, value in columns)]
    up = Scale(min(values), max(values), tall - 14, 14)
    zero, step = up(0.0), width / len(columns)
    drawn = [tag("line", class_="axis", x1=0.0, x2=width, y1=zero, y2=zero)]
    for at, (name, value) in enumerate(columns):
        top, bottom = sorted((up(value), zero))
        middle = at * step + step / 2
        drawn.append(
            tag(
                "rect",
                class_="bar below" if value < 0 else "bar",
                x=at * step + step * 0.18,
                y=top,
                width=step * 0.64,
                height=max(bottom - top, 0.5),
            )
        )
        drawn.append(figure(f"{value:,.1f}", middle, top - 6 if value >= 0 else bottom + 8, "middle"))
        drawn.append(_middle(name[2:], "label", middle, tall + 8))
    return svg(drawn, label, tall + 18, width, class_=DRAWING)


def argument_map(argument: ArgumentGraph, topics: Sequence[Topic], motion: str, label: str) -> Markup:
    """Claims to the left, what each dimension comes to in the middle, the motion to the right; who weakens or
    strengthens whom is drawn along the left edge."""
    heights: dict[str, float] = {}
    drawn: list[Markup] = []
    tall = sum(len(topic.claims) * ROW + GAP for topic in topics) + GAP
    top, middle = GAP, tall / 2
    for topic in topics:
        y = top + len(topic.claims) * ROW / 2
        side = "for" if topic.pull > 0 else "against" if topic.pull < 0 else "neither"
        for claim in topic.claims:
            at = heights[claim[0]] = top + ROW / 2
            top += ROW
            drawn += [_bend(END, at, PLACE - 6, y, f"edge {claim[2]}", claim[3]), *_claim(claim, at)]
        drawn.append(_bend(PULL + 44, y, MOTION, middle, f"edge {side}", abs(topic.pull)))
        drawn.append(tag("text", _fit(topic.name, PULL - PLACE, BOLD), class_="topic", x=PLACE, y=y))
        drawn.append(tag("text", number(topic.pull, 2, signed=True), class_=f"pull {side}", x=PULL, y=y))
        top += GAP
    drawn += [
        _answer(heights[relation.source], heights[relation.target], relation.kind)
        for relation in argument.relations
        if relation.source in heights and relation.target in heights
    ]
    drawn.append(tag("rect", class_="motion", x=MOTION, y=middle - 26, width=94.0, height=52.0, rx=6))
    drawn.append(_middle(motion, "label", MOTION + 47, middle - 10))
    weight = argument.confidence if argument.motion >= 0.5 else 1 - argument.confidence
    drawn.append(_middle(f"{weight:.2f}", "sum", MOTION + 47, middle + 11))
    # What can be followed inside a drawing is not an image to whoever hears it.
    return svg(drawn, label, max(tall, 70.0), WIDE, class_=DRAWING, role="group")


def _claim(claim: tuple[str, str, str, float, bool], y: float) -> list[Markup]:
    id_, words, side, strength, decisive = claim
    dot = tag("circle", class_=f"dot {side}", cx=DOT, cy=y, r=2 + 6 * strength)
    told = _fit(f"◆ {words}", END - WORDS, BOLD) if decisive else _fit(words, END - WORDS)
    text = tag("text", told, class_="label", x=WORDS, y=y)
    return [dot, tag("a", text, href=f"#claim-{id_}", class_="decisive" if decisive else None)]


def _bend(x1: float, y1: float, x2: float, y2: float, class_: str, weight: float) -> Markup:
    half = (x1 + x2) / 2
    path = f"M{x1:.1f},{y1:.1f} C{half:.1f},{y1:.1f} {half:.1f},{y2:.1f} {x2:.1f},{y2:.1f}"
    return tag("path", class_=class_, d=path, stroke_width=0.5 + 5 * weight)


def _answer(start: float, end: float, kind: str) -> Markup:
    """An arc on the left: the farther apart the two, the wider."""
    reach = DOT - 12 - min(100.0, 16 + abs(end - start) / 6)
    path = (
        f"M{DOT - 8:.1f},{start:.1f} C{reach:.1f},{start:.1f} {reach:.1f},{end:.1f} {DOT - 10:.1f},{end:.1f}"
    )
    tip = f"M{DOT - 15:.1f},{end - 4:.1f} L{DOT - 9:.1f},{end:.1f} L{DOT - 15:.1f},{end + 4:.1f}"
    return tag("path", class_=f"answer {kind}", d=path) + tag("path", class_=f"tip {kind}", d=tip)


def _middle(text: str, class_: str, x: float, y: float) -> Markup:
    return tag("text", text, class_=class_, x=x, y=y, text_anchor="middle")


def _fit(text: str, room: float, sign_room: float = SIGN) -> str:
    """As much of it as there is room for."""
    kept = ""
    for sign in " ".join(drop_unseen(text).split()):
        room -= sign_room * (1.9 if east_asian_width(sign) in "WF" else 1)
        if room < sign_room * 2:
            return kept + "…"
        kept += sign
    return kept
