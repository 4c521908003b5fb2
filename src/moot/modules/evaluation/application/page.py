"""The figures of a walk as a page: what they say at its top, made from them, and then all of them."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from moot.modules.evaluation.application.figures import MAIN, Estimates, Figures, Row, list_fading
from moot.modules.evaluation.application.walk import Walk
from moot.modules.evaluation.domain.observation import ARGUED, SAY, UNARGUED
from moot.modules.evaluation.domain.statistics import Estimate
from moot.shared.domain.claims import HORIZONS, Horizon
from moot.shared.domain.messages import Locale, Message

NONE = "–"
TABLES = {
    "voices": ("n", "share", "hits", "brier", "gain"),
    "signals": ("n", "share", "hits", "excess"),
    "hearings": ("n", "ranks", "hits", "gain"),
    "deciles": ("n", "weight", "excess"),
    "kinds": ("n", "weight", "horizon", "hits", "stronger", "weaker", "gain"),
    "fading": ("n", "horizon", "stronger", "weaker", "more"),
}
"""By table, the columns after the name; some are a column for each horizon."""
CELLS: dict[str, Callable[[Row], list[str]]] = {
    "n": lambda row: [str(row.n)],
    "share": lambda row: [f"{row.share * 100:.1f}"],
    "weight": lambda row: [_sign(row.weight, "+.3f")],
    "horizon": lambda row: [str(row.horizon)],
    "hits": lambda row: [_tell_hits(row, horizon) for horizon in HORIZONS],
    "brier": lambda row: [NONE if row.brier is None else f"{row.brier:.3f}"],
    "stronger": lambda row: [_sign(row.halves.stronger * 100, "+.2f") if row.halves else NONE],
    "weaker": lambda row: [_sign(row.halves.weaker * 100, "+.2f") if row.halves else NONE],
    "more": lambda row: [_tell(row.halves.more if row.halves else None, "+.2f", 100)],
    "excess": lambda row: _tell_each(row.excess, "+.2f", 100),
    "gain": lambda row: _tell_each(row.gain, "+.2f", 100),
    "ranks": lambda row: _tell_each(row.ranks, "+.3f"),
}
BY_HORIZON = ("hits", "excess", "gain", "ranks")
BEYOND = {1: "reading.better", -1: "reading.worse"}


@dataclass(frozen=True)
class Page:
    walk: Walk
    locale: Locale

    def write(self) -> str:
        walk = self.walk
        asked = {"companies": len(walk.symbols), "market": walk.market.value, "until": walk.tune_until}
        dates = {"days": len(walk.days), "start": walk.days[0], "end": walk.days[-1]}
        parts = [
            f"# {self.say('title')}",
            self.say("about", **asked, **dates).strip(),
            f"## {self.say('heading.reading')}",
            "\n".join(f"- {said}" for said in self.read()),
            *self._span("reporting", walk.reporting),
            *self._span("tuning", walk.tuning),
            *self._table("fading", list_fading(walk.tuning)),
        ]
        return "\n\n".join(parts) + "\n"

    def read(self) -> Iterator[str]:
        """What the reporting dates say, whatever that is, and which claims did worse the stronger they were."""
        figures, tuning = self.walk.reporting, self.walk.tuning
        yield from self._read_reported(figures) if figures.dates else [self.say("reading.none_reported")]
        compared = sum(row.halves is not None for row in tuning.tables.get("kinds", []))
        yield self.say("reading.fading", count=len(list_fading(tuning)), compared=compared)

    def _read_reported(self, figures: Figures) -> Iterator[str]:
        yield self.say("reading.coin", base=figures.base * 100, dates=figures.dates)
        voices, kinds = (figures.tables.get(name, []) for name in ("voices", "kinds"))
        found = [said for row in voices for said in self._judge(row)]
        tried = sum(gain.low is not None for row in voices for gain in row.gain.values())
        verdict = "beyond" if found else "nobody" if tried else "too_few"
        yield self.say(f"reading.{verdict}", found=found, tried=tried, chance=tried / 20)
        yield from self._warn(figures)
        own = [gain for row in kinds if (gain := row.gain.get(row.horizon)) and gain.low is not None]
        sides = [gain.side for gain in own]
        counts = {"better": sides.count(1), "worse": sides.count(-1), "chance": len(own) / 20}
        yield self.say("reading.kinds", tried=len(own), **counts)
        ranks = {row.name: _tell(row.ranks.get(MAIN), "+.3f") for row in figures.tables.get("hearings", [])}
        argued, unargued = (ranks.get(name, NONE) for name in (ARGUED, UNARGUED))
        yield self.say("reading.debate", argued=argued, unargued=unargued)

    def say(self, key: str, **values: Any) -> str:
        return SAY(key, **values).in_locale(self.locale)

    def _judge(self, row: Row) -> Iterator[Message]:
        for horizon, gain in row.gain.items():
            if gain.side:
                told = {"who": self._name("voices", row.name), "excess": _tell(gain, "+.2f", 100)}
                yield SAY(BEYOND[gain.side], horizon=horizon, **told)

    def _warn(self, figures: Figures) -> Iterator[str]:
        """Who cannot be judged by this, as it says the same whatever it is asked, or of whomever."""
        signals = [row.name.partition(" ")[0] for row in figures.tables.get("signals", [])]
        always = [name for name in signals if signals.count(name) == 1]
        voices = figures.tables.get("voices", [])
        alike = [row.name for row in voices if row.gain and not any(gain.mean for gain in row.gain.values())]
        for key, who in (("reading.one_answer", always), ("reading.same_of_all", alike)):
            if who:
                yield self.say(key, who=[self._name("voices", name) for name in who])

    def _span(self, name: str, figures: Figures) -> Iterator[str]:
        yield f"## {self.say(f'heading.{name}')}"
        yield self.say(f"about_{name}", dates=figures.dates, n=figures.n)
        for table, rows in figures.tables.items():
            yield from self._table(table, rows)
            if table == "voices":
                yield from self._bins(rows)

    def _table(self, table: str, rows: Sequence[Row]) -> Iterator[str]:
        columns = TABLES[table]
        heads = [
            f"{self.say(f'column.{name}')} {horizon or ''}".rstrip()
            for name in columns
            for horizon in (HORIZONS if name in BY_HORIZON else (None,))
        ]
        cells = (
            [self._name(table, row.name), *(c for name in columns for c in CELLS[name](row))] for row in rows
        )
        yield from self._lay_out(table, heads, cells)

    def _bins(self, rows: Sequence[Row]) -> Iterator[str]:
        heads = [self.say(f"column.{name}") for name in ("confidence", "n", "told", "right")]
        cells = (
            [self._name("voices", row.name), f"{one.low:.1f}–{one.low + 0.1:.1f}", str(one.n)]
            + [f"{share * 100:.1f}" for share in (one.told, one.right)]
            for row in rows
            for one in row.bins
        )
        yield from self._lay_out("bins", heads, cells)

    def _lay_out(self, table: str, heads: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
        yield f"### {self.say(f'heading.{table}')}"
        yield self.say(f"what.{table}")
        lines = [[self.say(f"column.{table}"), *heads], ["---", *("---:" for _ in heads)], *rows]
        yield "\n".join(f"| {' | '.join(line)} |" for line in lines)

    def _name(self, table: str, name: str) -> str:
        if table in ("kinds", "fading"):
            return f"`{name}`"
        first, _, rest = name.partition(" ")
        if table == "hearings":
            return self.say(f"hearing.{first}", **({"expert": SAY(f"node.{rest}")} if rest else {}))
        who = self.say(f"node.{first}") if table in ("voices", "signals") else first
        if not rest:
            return who
        known = f"literal.{rest.partition(' ')[0]}"
        return self.say("signal", who=who, signal=SAY(known) if known in SAY.texts(self.locale) else rest)


def _tell_hits(row: Row, horizon: Horizon) -> str:
    hits = row.hits.get(horizon)
    return f"{_tell(hits, '.1f', 100)} / {row.coin[horizon] * 100:.1f}" if hits else NONE


def _tell_each(found: Estimates, how: str, times: int = 1) -> list[str]:
    return [_tell(found.get(horizon), how, times) for horizon in HORIZONS]


def _tell(found: Estimate | None, how: str, times: int = 1) -> str:
    if found is None:
        return NONE
    mean, *ends = (_sign(times * end, how) for end in (found.mean, found.low, found.high) if end is not None)
    return f"{mean} [{', '.join(ends)}]" if ends else mean


def _sign(value: float, how: str) -> str:
    """Nothing has no sign."""
    told = f"{value:{how}}"
    return told if float(told) else told.lstrip("+-")
