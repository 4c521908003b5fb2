"""The figures of a walk as a page: what they say at its top, made from them, and then all of them."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from moot.modules.evaluation.application.figures import (
    UNARGUED,
    Decile,
    Expert,
    Figures,
    Hearing,
    Kind,
    Row,
    list_fading,
)
from moot.modules.evaluation.application.walk import Walk
from moot.modules.evaluation.domain.observation import HORIZONS, SAY
from moot.modules.evaluation.domain.statistics import Calibration, Estimate
from moot.shared.domain.messages import Locale, Message

NONE = "–"
BEYOND = {1: "reading.better", -1: "reading.worse"}
Cells = Sequence[str]


@dataclass(frozen=True)
class Page:
    walk: Walk
    locale: Locale

    def write(self) -> str:
        reported, tuned = self.walk.reporting, self.walk.tuning
        lines = [
            f"# {self.say('title')}",
            "",
            *self._flow(self.say("about", **self._asked())),
            "",
            f"## {self.say('heading.reading')}",
            "",
            *(f"- {said}" for said in self.read()),
            "",
            *self._span("reporting", reported),
            *self._span("tuning", tuned),
            *self._section("heading.fading", "fading", map(self._fade, list_fading(tuned)), "fading"),
        ]
        return "\n".join(lines).rstrip("\n") + "\n"

    def read(self) -> Iterator[str]:
        """What the reporting dates say, whatever that is."""
        figures = self.walk.reporting
        yield self.say("reading.coin", base=figures.base[20] * 100, dates=figures.dates)
        named = [(self.say(f"node.{expert.name}"), expert.sided) for expert in figures.experts]
        rows = [*named, (self.say("verdicts"), figures.verdicts)]
        found = [told for name, row in rows for told in self._judge(name, row)]
        tried = sum(len(row.excess) for _, row in rows)
        yield self.say("reading.beyond", found=found) if found else self.say("reading.nobody")
        yield self.say("reading.chance", tried=tried, chance=tried / 20)
        yield from self._warn(figures)
        yield self._read_kinds(figures)
        hearings = {hearing.name: hearing.ranks.get(20) for hearing in figures.hearings}
        ranks = {"argued": hearings.get("all"), UNARGUED: hearings.get(UNARGUED)}
        yield self.say("reading.debate", **{name: _number(rank) for name, rank in ranks.items()})
        fading = list_fading(self.walk.tuning)
        compared = sum(kind.halves is not None for kind in self.walk.tuning.kinds)
        yield self.say("reading.fading", count=len(fading), compared=compared)

    def say(self, key: str, **values: Any) -> str:
        return SAY(key, **values).in_locale(self.locale)

    def _asked(self) -> dict[str, Any]:
        walk = self.walk
        told = {"companies": len(walk.symbols), "market": walk.market.value, "until": walk.tune_until}
        return {**told, "days": len(walk.days), "start": walk.days[0], "end": walk.days[-1]}

    def _judge(self, name: str, row: Row) -> Iterator[Message]:
        for horizon, excess in row.excess.items():
            if beyond := excess.beyond(0.0):
                yield SAY(BEYOND[beyond], who=name, horizon=horizon, excess=_percent(excess))

    def _warn(self, figures: Figures) -> Iterator[str]:
        """Who cannot be judged by this, as it says the same whatever it is asked."""
        if len(figures.actions) == 1:
            yield self.say("reading.one_verdict", action=figures.actions[0].name)
        always = [expert for expert in figures.experts if len(expert.signals) == 1]
        alike = [
            e for e in figures.experts if e.sided.excess and not any(x.mean for x in e.sided.excess.values())
        ]
        for key, who in (("reading.one_answer", always), ("reading.same_of_all", alike)):
            if who:
                yield self.say(key, who=[SAY(f"node.{expert.name}") for expert in who])

    def _read_kinds(self, figures: Figures) -> str:
        own = [kind.row.excess.get(kind.row.horizon) for kind in figures.kinds]
        known = [excess for excess in own if excess and excess.low is not None]
        sides = [excess.beyond(0.0) for excess in known]
        counts = {"better": sides.count(1), "worse": sides.count(-1), "chance": len(known) / 20}
        return self.say("reading.kinds", tried=len(known), **counts)

    def _span(self, name: str, figures: Figures) -> Iterator[str]:
        yield from (f"## {self.say(f'heading.{name}')}", "")
        yield from self._flow(
            self.say(f"about_{name}", dates=figures.dates, n=figures.observations, **self._asked())
        )
        yield ""
        experts = figures.experts
        yield from self._section("heading.experts", "experts", map(self._expert, experts), "experts")
        signals = (cells for expert in experts for cells in self._signals(expert))
        yield from self._section("heading.signals", "signals", signals)
        verdicts = [*(self._row(row.name, row) for row in figures.actions)]
        yield from self._section(
            "heading.actions", "signals", (("", *cells) for cells in verdicts), "actions"
        )
        told = {self.say(f"node.{expert.name}"): expert.calibration for expert in experts}
        bins = (
            cells
            for name, one in (told | {self.say("verdicts"): figures.calibration}).items()
            for cells in _bins(name, one)
        )
        yield from self._section("heading.calibration", "calibration", bins, "calibration")
        yield from self._section(
            "heading.hearings", "hearings", map(self._hearing, figures.hearings), "hearings"
        )
        yield from self._section("heading.deciles", "deciles", map(self._decile, figures.deciles))
        yield from self._section("heading.kinds", "kinds", map(self._kind, figures.kinds), "kinds")

    def _section(self, heading: str, columns: str, rows: Iterable[Cells], about: str = "") -> Iterator[str]:
        yield from (f"### {self.say(heading)}", "")
        if about:
            yield from (*self._flow(self.say(f"what.{about}")), "")
        names = self.say(f"columns.{columns}")
        yield from (f"| {names} |", "|---|" + "---:|" * names.count(" | "))
        yield from (f"| {' | '.join(cells)} |" for cells in rows)
        yield ""

    def _flow(self, text: str) -> list[str]:
        return text.strip().splitlines()

    def _expert(self, expert: Expert) -> Cells:
        brier = expert.calibration
        shares = " / ".join(f"{row.share * 100:.0f}" for row in expert.signals)
        return (
            self.say(f"node.{expert.name}"),
            f"{expert.heard} / {expert.asked}",
            shares or NONE,
            *_hit(expert.sided),
            f"{brier.brier:.3f}" if brier else NONE,
            *_excess(expert.sided),
        )

    def _signals(self, expert: Expert) -> Iterator[Cells]:
        for row in expert.signals:
            yield (
                self.say(f"node.{expert.name}"),
                *self._row(self.say(f"literal.{row.name.partition(' ')[0]}"), row),
            )

    def _row(self, name: str, row: Row) -> Cells:
        return name, str(row.n), f"{row.share * 100:.1f}", *_hit(row), *_excess(row)

    def _kind(self, kind: Kind) -> Cells:
        row, halves = kind.row, kind.halves
        told = (f"{halves.stronger * 100:+.2f}", f"{halves.weaker * 100:+.2f}") if halves else (NONE, NONE)
        return (
            f"`{kind.name}`",
            str(row.n),
            f"{kind.pull:+.2f}",
            str(row.horizon),
            *_hit(row),
            *told,
            *_excess(row),
        )

    def _fade(self, kind: Kind) -> Cells:
        cells = self._kind(kind)
        return cells[0], cells[1], cells[3], *cells[6:8], _percent(kind.halves.more if kind.halves else None)

    def _hearing(self, hearing: Hearing) -> Cells:
        how, _, expert = hearing.name.partition(" ")
        name = self.say(f"hearing.{how}", **({"expert": SAY(f"node.{expert}")} if expert else {}))
        ranks = (_number(hearing.ranks.get(horizon)) for horizon in HORIZONS)
        return name, str(hearing.sided.n), *ranks, *_hit(hearing.sided), *_excess(hearing.sided)

    def _decile(self, decile: Decile) -> Cells:
        return decile.row.name, str(decile.row.n), f"{decile.lean:+.3f}", *_excess(decile.row)


def _bins(name: str, told: Calibration | None) -> Iterator[Cells]:
    for one in told.bins if told else ():
        yield (
            name,
            f"{one.low:.1f}–{one.high:.1f}",
            str(one.n),
            f"{one.told * 100:.1f}",
            f"{one.right * 100:.1f}",
        )


def _hit(row: Row) -> Cells:
    coin = NONE if row.coin is None else f"{row.coin * 100:.1f}"
    return _percent(row.hits, ".1f"), coin


def _excess(row: Row) -> Cells:
    return [_percent(row.excess.get(horizon)) for horizon in HORIZONS]


def _percent(found: Estimate | None, how: str = "+.2f") -> str:
    return _number(found, how, 100)


def _number(found: Estimate | None, how: str = "+.3f", times: int = 1) -> str:
    if found is None:
        return NONE
    mean, *ends = (_sign(times * end, how) for end in (found.mean, found.low, found.high) if end is not None)
    return f"{mean} [{', '.join(ends)}]" if ends else mean


def _sign(value: float, how: str) -> str:
    """Nothing has no sign."""
    told = f"{value:{how}}"
    return told if float(told) else told.lstrip("+-")
