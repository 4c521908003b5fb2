"""How a rubric judges: rules look up a measure in a table of bands, a scorecard adds up what they found, and a voice
says it in the reader's language.
"""

import tomllib
from collections import ChainMap
from collections.abc import Iterable, Mapping
from copy import copy
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cache
from math import inf
from pathlib import Path
from string import Formatter
from typing import Any, NamedTuple

from moot.modules.research.domain.evidence import DimensionAnalysis, Shown, Snapshot, show
from moot.modules.research.domain.facts import Factor, Trade, difference
from moot.shared.domain.claims import Horizon, Side
from moot.shared.domain.messages import DEFAULT_LOCALE, LIST_SEPARATOR, Catalogue, Locale, Message


class Voice:
    """Templates may name every field of the snapshot: `{rsi_value}`, `{gross_margin_change.size}`."""

    def __init__(self, texts: Catalogue, snapshot: Snapshot, locale: Locale) -> None:
        self._texts, self.locale = texts, locale
        self._values: ChainMap[str, Any] = ChainMap({}, _Fields(snapshot, locale))

    def also(self, **values: Any) -> "Voice":
        """The same voice, with more to name than the snapshot holds, or by another name."""
        wider = copy(self)
        wider._values = self._values.new_child(values)
        return wider

    def __call__(self, key: str, /, **values: Any) -> str:
        named = self._values.new_child(values) if values else self._values
        return Message(self._texts, key, named).in_locale(self.locale)

    def brief(self, name: str, fields: Iterable[str]) -> str:
        """What was looked at, with the numbers it is measured by."""
        values = [str(v) for field in fields if isinstance(v := self._values[field], Shown)]
        return self("brief", name=name, values=values) if values else name

    def names_in(self, key: str) -> tuple[str, ...]:
        """What the text names, in whatever language: that much of the snapshot it rests on."""
        return _names(self._texts.texts(DEFAULT_LOCALE)[key])

    def prose(self, sentences: Iterable[str]) -> str:
        return self("glue").join(sentences)

    def list_names(self, names: Iterable[str]) -> str:
        return LIST_SEPARATOR[self.locale].join(names)


@cache
def _names(text: str) -> tuple[str, ...]:
    fields = [field.partition(".")[0] for _, field, _, _ in Formatter().parse(text) if field]
    return tuple(dict.fromkeys(fields))


class _Fields(dict[str, Any]):
    """The fields of a snapshot as people read them, each once somebody names it."""

    def __init__(self, snapshot: Snapshot, locale: Locale) -> None:
        super().__init__()
        self._snapshot, self._units, self._locale = snapshot, snapshot.units(), locale

    def __missing__(self, name: str) -> Any:
        value, unit = getattr(self._snapshot, name), self._units.get(name)
        self[name] = value if unit is None else show(value, unit, self._locale)
        return self[name]


LEAST_FELT = 0.5
"""What a company is less exposed to than this leaves room for doubt."""


class Band(NamedTuple):
    """Values below `below` (and not in an earlier band) count `points`; `says` picks the sentence."""

    below: float
    points: float
    says: str


@dataclass(frozen=True)
class Rule:
    """One question to the data; `measure` names it in the snapshot, where None is no answer.

    `of`: it is measured in per cent of another field; `less`: by what it is more than another. `rests`: the fields it
    goes by, where its sentence does not name them. `reported`: they tell what others wrote. `horizon`: over how many
    sessions it says something. `trades`: the kinds of business it is asked of, or all. `factor`: it counts as far as
    the company is exposed to that.
    """

    name: str
    measure: str
    bands: tuple[Band, ...]
    dimension: str = ""
    of: str = ""
    less: str = ""
    rests: tuple[str, ...] = ()
    reported: bool = False
    horizon: Horizon = 20
    trades: tuple[Trade, ...] = ()
    factor: Factor | None = None

    @property
    def weight(self) -> float:
        return max(abs(band.points) for band in self.bands)

    def concerns(self, snapshot: Snapshot) -> bool:
        return not self.trades or snapshot.trade in self.trades

    def find(self, snapshot: Snapshot, say: Voice, trust: float = 1.0) -> "Finding":
        """The sentence of a finding is `<rule>.<band>` in the expert's catalogue; `trust`: how much of it counts."""
        name, band = say(f"{self.name}.name"), self.judge(snapshot)
        if band is None:
            return Finding(
                name, say("no_data"), None, self.weight, self.dimension, self.name, horizon=self.horizon
            )
        kind = f"{self.name}.{band.says}"
        felt = snapshot.exposure.get(self.factor, 0.0) if self.factor else 1.0
        goes_by = [n for n in (self.measure, self.of, self.less) if n in type(snapshot).model_fields]
        named = say.names_in(kind)
        return Finding(
            name,
            say(kind),
            band.points * felt * trust,
            self.weight * max(abs(felt), LEAST_FELT),
            self.dimension,
            self.name,
            kind,
            rests=(*named, *goes_by, *self.rests),
            reported=self.reported,
            brief=name if self.reported else say.brief(name, [n for n in goes_by if n in named] or named),
            horizon=self.horizon,
        )

    def judge(self, snapshot: Snapshot) -> Band | None:
        value = self.value_in(snapshot)
        return None if value is None else next(band for band in self.bands if value < band.below)

    def value_in(self, snapshot: Any) -> float | None:
        """What it goes by, in a snapshot or in whatever else has fields of these names."""
        value: float | None = getattr(snapshot, self.measure)
        if self.of:
            base = getattr(snapshot, self.of)
            return 100 * value / base if value is not None and base else None
        return difference(value, getattr(snapshot, self.less)) if self.less else value


@cache
def load_rules(folder: Path, dimensions: type[StrEnum] | None) -> tuple[Rule, ...]:
    """Those in an expert's `rules.toml`; its tables are named for the members of `dimensions`, if it has any."""
    tables = tomllib.loads((folder / "rules.toml").read_text("utf-8"))
    usual = {"horizon": tables.pop("horizon", 20)}
    return tuple(
        Rule(
            name,
            dimension=dimension,
            **usual | rule | {"bands": tuple(Band(*band) for band in rule["bands"])},
        )
        for table, rules in tables.items()
        for dimension in [dimensions[table.upper()] if dimensions else table]
        for name, rule in rules.items()
    )


NEUTRAL_SCORE = 50
DECIDED_AT = 0.2
MOST_TOLD = 10
SIDES: Mapping[int, Side] = {1: "for", 0: "neither", -1: "against"}

GRADES = ((20, "poor"), (40, "weak"), (60, "middling"), (80, "good"), (inf, "strong"))
AGREEMENT = ((0.35, "split"), (0.7, "leaning"), (inf, "aligned"))
COMPLETENESS = ((0.6, "sparse"), (0.95, "partial"), (inf, "full"))


@dataclass(frozen=True)
class Finding:
    """What came of one rule: for (+), against (−), or no data (`points` is None).

    `id` tells it from the expert's other findings, `kind` says what it is, `rests` are the fields it goes by; `brief`
    is what was looked at, without what it means.
    """

    name: str
    text: str
    points: float | None
    weight: float
    dimension: str = ""
    id: str = ""
    kind: str = ""
    rests: tuple[str, ...] = ()
    reported: bool = False
    brief: str = ""
    horizon: Horizon = 20


@dataclass(frozen=True)
class Scorecard:
    """`doubt` is the weight of what has not been heard: it keeps a lone finding from filling the scale."""

    findings: tuple[Finding, ...]
    doubt: float = 0.0

    def of(self, dimension: str) -> "Scorecard":
        return replace(self, findings=tuple(f for f in self.findings if f.dimension == dimension))

    @property
    def marked(self) -> list[tuple[float, Finding]]:
        return [(f.points, f) for f in self.findings if f.points is not None]

    @property
    def holes(self) -> list[Finding]:
        return [f for f in self.findings if f.points is None]

    def on_side(self, sign: int) -> list[Finding]:
        """What speaks for it (1), against it (-1), the weightiest first; or neither way (0)."""
        weightiest = sorted(self.marked, key=lambda mark: -abs(mark[0]))
        return [f for points, f in weightiest if sign_of(points) == sign]

    @property
    def score(self) -> float | None:
        """From -1 (all against) to +1 (all for); None when nothing could be marked."""
        weight = sum(f.weight for _, f in self.marked)
        return sum(points for points, _ in self.marked) / (weight + self.doubt) if weight else None

    @property
    def side(self) -> int:
        """1 for it, -1 against it, 0 where the two nearly balance."""
        score = self.score or 0.0
        return 0 if abs(score) < DECIDED_AT else 1 if score > 0 else -1

    @property
    def score_100(self) -> int | None:
        return None if self.score is None else round(50 + 50 * self.score)

    @property
    def agreement(self) -> float:
        """1 when every finding points the same way, 0 when they cancel out."""
        gross = sum(abs(points) for points, _ in self.marked)
        return abs(sum(points for points, _ in self.marked)) / gross if gross else 0.0

    @property
    def completeness(self) -> float:
        """The share of the rules, by weight, that had data."""
        total = sum(f.weight for f in self.findings)
        return sum(f.weight for _, f in self.marked) / total if total else 0.0

    @property
    def confidence(self) -> float:
        """At most 0.95: full data, one direction, and every rule as far out as it goes."""
        one_sided = 0.30 + 0.35 * self.agreement + 0.30 * abs(self.score or 0.0)
        return round(self.completeness * one_sided, 2)

    def narrate(
        self,
        say: Voice,
        *,
        view: str,
        stance: float,
        risk: str = "",
        basis: "Scorecard | None" = None,
        most: int = MOST_TOLD,
    ) -> str:
        """The view, the evidence on both sides, risks, holes in the data, and how sure one can be.

        `stance` is the side the view takes, 0 for neither. Without a `risk` it is that what the view rests on turns.
        `basis` is the part of the card that the confidence rests on, if not all; `most` findings are told.
        """
        basis, told = basis or self, self._weightiest(most)
        sides = {sign: say.prose(f.text for f in told.on_side(sign)) for sign in (1, -1, 0)}
        holes = say.list_names(hole.name for hole in self.holes)
        paragraphs = [
            say("narrative.conclusion", text=view),
            say("narrative.dimensions", sides=self._take_sides(say)),
            say("narrative.pros", text=sides[1] or say("narrative.no_pros")),
            say("narrative.cons", text=sides[-1] or say("narrative.no_cons")),
            *([say("narrative.even", text=sides[0])] if sides[0] else []),
            say("narrative.risk", text=risk or basis._lean(stance, say)),
            *([say("narrative.holes", names=holes)] if holes else []),
            say(
                "narrative.confidence",
                confidence=f"{basis.confidence:.2f}",
                agreement=say(f"agreement.{_pick(AGREEMENT, basis.agreement)}"),
                completeness=say(f"completeness.{_pick(COMPLETENESS, basis.completeness)}"),
            ),
        ]
        return "\n\n".join(paragraphs)

    def _weightiest(self, most: int) -> "Scorecard":
        """Half of the room is for either side, and what is left of it for whatever else weighs most."""
        first = [f for sign in (1, -1) for f in self.on_side(sign)[: most // 2]]
        rest = sorted((f for _, f in self.marked if f not in first), key=lambda f: -abs(f.points or 0))
        return replace(self, findings=(*first, *rest[: most - len(first)]))

    def _take_sides(self, say: Voice) -> list[str]:
        """Which way each dimension points that has data."""
        sides = {d: self.of(d).side for d in dict.fromkeys(f.dimension for _, f in self.marked)}
        return [say(f"side.{SIDES[side]}", name=dimension_name(d, say)) for d, side in sides.items()]

    def _lean(self, stance: float, say: Voice) -> str:
        """What the view rests on; where it takes no side, the weightiest of each."""
        sign = sign_of(stance)
        chosen = self.on_side(sign)[:2] if sign else [*self.on_side(1)[:1], *self.on_side(-1)[:1]]
        names = say.list_names(f.name for f in chosen or [f for _, f in self.marked][:2])
        return say("narrative.lean", names=names)

    def summarise(self, say: Voice, conclusion: str, stance: float) -> str:
        """The conclusion, and what was looked at: the strongest it rests on, the strongest against it."""
        sign = sign_of(stance)
        support, doubts = ("support", "doubts") if sign else ("pros", "cons")
        sides = {support: self.on_side(sign or 1)[:2], doubts: self.on_side(-sign or -1)[:2]}
        told = [
            say(f"summary.{key}", names=[f.brief for f in found]) for key, found in sides.items() if found
        ]
        return say.prose([conclusion, *told])

    def grade(self, dimensions: Iterable[StrEnum], say: Voice) -> list[DimensionAnalysis]:
        return [self.of(dimension)._analyse(dimension, say) for dimension in dimensions]

    def _analyse(self, dimension: StrEnum, say: Voice) -> DimensionAnalysis:
        name, score = dimension_name(dimension, say), self.score_100
        shown = NEUTRAL_SCORE if score is None else score
        said = {"dimension": name, "score": shown, "grade": say(f"grade.{_pick(GRADES, shown)}")}
        return DimensionAnalysis(
            dimension=dimension,
            score=shown,
            assessment=say("dimension.empty" if score is None else "dimension.assessment", **said),
            key_findings=[finding.brief for _, finding in self.marked],
        )

    def with_extremes(self, dimensions: Iterable[StrEnum], say: Voice) -> Voice:
        """A voice that can name the `best` and the `worst` dimension that has data, their scores, and both in one
        clause, `extremes`, which says so where they do not differ.
        """
        scores = {d: score for d in dimensions if (score := self.of(d).score_100) is not None}
        ends = {"best": max(scores, key=lambda d: scores[d]), "worst": min(scores, key=lambda d: scores[d])}
        named = {end: dimension_name(dimension, say) for end, dimension in ends.items()}
        say = say.also(**named, **{f"{end}_score": scores[dimension] for end, dimension in ends.items()})
        level = len(set(scores.values())) == 1
        spread = "alone" if len(scores) == 1 else "level" if level else "apart"
        return say.also(extremes=say(f"extremes.{spread}"))

    def write(self, say: Voice) -> str:
        lines = [f"{points:+g} / {f.weight:g}  {f.name}: {f.text}" for points, f in self.marked]
        holes = [f"   / {hole.weight:g}  {hole.name}: {hole.text}" for hole in self.holes]
        total = say(
            "scorecard_total",
            score=f"{self.score or 0:+.2f}",
            agreement=f"{self.agreement:.2f}",
            completeness=f"{self.completeness:.2f}",
        )
        return "\n".join([*lines, *holes, total])


def dimension_name(dimension: str, say: Voice) -> str:
    return say(f"dimension.{plain_name(dimension)}")


def plain_name(dimension: str) -> str:
    """A member of an expert's own dimensions by its name, for its value is in one language."""
    return dimension.name.lower() if isinstance(dimension, StrEnum) else dimension


def _pick(table: Iterable[tuple[float, str]], value: float) -> str:
    return next(name for below, name in table if value < below)


def sign_of(value: float) -> int:
    return (value > 0) - (value < 0)
