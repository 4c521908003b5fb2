"""How a rubric judges: rules look up a measure in a table of bands, and a scorecard adds up what they found."""

import tomllib
from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cache
from math import inf
from pathlib import Path

from moot.modules.research.domain.evidence import Snapshot
from moot.modules.research.domain.voice import Voice


@dataclass(frozen=True)
class Band:
    """Values below `below` (and not in an earlier band) count `points`; `says` picks the sentence."""

    below: float
    points: float
    says: str


def bands(*steps: tuple[float, float, str], rest: tuple[float, str]) -> tuple[Band, ...]:
    """Ascending upper limits, and what holds above the last of them."""
    return (*(Band(*step) for step in steps), Band(inf, *rest))


@dataclass(frozen=True)
class Rule:
    """One question to the data; `measure` names it in the snapshot, where None is no answer."""

    name: str
    measure: str
    bands: tuple[Band, ...]
    dimension: str = ""

    @property
    def weight(self) -> float:
        return max(abs(band.points) for band in self.bands)

    def judge(self, snapshot: Snapshot) -> Band | None:
        value = getattr(snapshot, self.measure)
        return None if value is None else next(band for band in self.bands if value < band.below)


@cache
def load_rules(folder: Path, dimensions: type[StrEnum] | None = None) -> tuple[Rule, ...]:
    """Those in an expert's `rules.toml`; its tables are named for the members of `dimensions`, if it has any."""
    tables = tomllib.loads((folder / "rules.toml").read_text("utf-8"))
    return tuple(
        Rule(name, rule["measure"], tuple(Band(*band) for band in rule["bands"]), dimension)
        for table, rules in tables.items()
        for dimension in [dimensions[table.upper()] if dimensions else table]
        for name, rule in rules.items()
    )


@dataclass(frozen=True)
class Finding:
    """What came of one rule: for (+), against (−), or no data (`points` is None)."""

    name: str
    text: str
    points: float | None
    weight: float
    dimension: str = ""


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

    @property
    def pros(self) -> list[str]:
        """What speaks for it, the weightiest first."""
        return [f.text for points, f in sorted(self.marked, key=lambda m: -m[0]) if points > 0]

    @property
    def cons(self) -> list[str]:
        return [f.text for points, f in sorted(self.marked, key=lambda m: m[0]) if points < 0]

    @property
    def score(self) -> float | None:
        """From -1 (all against) to +1 (all for); None when nothing could be marked."""
        weight = sum(f.weight for _, f in self.marked)
        return sum(points for points, _ in self.marked) / (weight + self.doubt) if weight else None

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


def mark(rules: Iterable[Rule], snapshot: Snapshot, say: Voice) -> Scorecard:
    """Apply the rules; the sentence of a finding is `<rule>.<band>` in the expert's catalogue."""
    return Scorecard(tuple(_finding(rule, snapshot, say) for rule in rules))


def _finding(rule: Rule, snapshot: Snapshot, say: Voice) -> Finding:
    name, band = say(f"{rule.name}.name"), rule.judge(snapshot)
    if band is None:
        return Finding(name, say("no_data"), None, rule.weight, rule.dimension)
    return Finding(name, say(f"{rule.name}.{band.says}"), band.points, rule.weight, rule.dimension)
