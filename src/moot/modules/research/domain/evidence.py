"""What an analyst is given to read, and what comes back.

What it is given are numbers and events, each with its unit, its source and when it was known.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any, Generic, Literal, TypeVar

from pydantic import BaseModel, Field

from moot.modules.research.domain.facts import SAY, Cited, Factor, Trade
from moot.shared.domain.claims import Claim
from moot.shared.domain.evidence import Evidence
from moot.shared.domain.facts import Fact
from moot.shared.domain.grounding import Grounding
from moot.shared.domain.messages import LIST_SEPARATOR, Locale, fill
from moot.shared.domain.units import Unit

Engine = Literal["rubric", "llm"]
Confidence = Annotated[float, Field(ge=0, le=1)]
Score = Annotated[int, Field(ge=0, le=100)]
Counted = Annotated[int | None, Unit("plain", "", 0)]


class ExpertResult(BaseModel, frozen=True, extra="forbid", allow_inf_nan=False):
    """What an expert concludes. Every text is in the reader's language; enum literals never change."""

    narrative_report: str = ""


class DimensionAnalysis(BaseModel, frozen=True):
    dimension: str
    score: Score
    assessment: str
    key_findings: list[str]


R = TypeVar("R")


@dataclass(frozen=True)
class Opinion(Generic[R]):
    """A result, and for the record what the analyst was shown (`input`) and what it answered (`output`).

    `grounding` says how much of what a model stated is in the evidence; a rubric states nothing else and has none.
    `claims` are what it asserts. `warnings` are for the reader of the result, in its language.
    """

    result: R
    input: str
    output: str
    engine: Engine
    grounding: Grounding | None = None
    warnings: tuple[str, ...] = ()
    claims: tuple[Claim, ...] = ()


class Snapshot(BaseModel, frozen=True, extra="forbid", allow_inf_nan=False):
    """What code computed for one expert. Absent means that the data did not allow it, never zero.

    `trade` is the kind of business, where the rules differ by it; `exposure` what it is exposed to, where they do.
    """

    trade: Trade = "company"
    exposure: Mapping[Factor, float] = {}

    @classmethod
    @cache
    def units(cls) -> dict[str, Unit]:
        """Of the fields that are measurements."""
        return {
            name: item
            for name, info in cls.model_fields.items()
            for item in info.metadata
            if isinstance(item, Unit)
        }


MOST_DIGITS = 2
"""Decimal places of what is not less than one."""


@dataclass(frozen=True)
class Shown:
    """A number as people read it: `{x}` with its sign, `{x.size}` without, for texts that say "fell by"."""

    text: str
    size: str

    def __str__(self) -> str:
        return self.text


def show(value: Any, unit: Unit, locale: Locale) -> Any:
    if isinstance(value, list):
        return LIST_SEPARATOR[locale].join(str(show(member, unit, locale)) for member in value)
    if value is None:
        return SAY("not_available").in_locale(locale)
    text, scale = _spell(unit.name, locale)
    if unit.name == "amount" and abs(value) < scale:
        text, scale = _spell("million", locale)
    number = value / scale
    digits = unit.digits if abs(number) < 1 else min(unit.digits, MOST_DIGITS)
    whole = fill(text, {"amount": f"{number:z,.{digits}f}"})
    return Shown(whole, whole if number >= 0 else fill(text, {"amount": f"{-number:,.{digits}f}"}))


@cache
def _spell(unit: str, locale: Locale) -> tuple[str, float]:
    """How an amount is written in that unit, and how much of it that unit is."""
    texts = SAY.texts(locale)
    return texts[f"unit.{unit}"], float(texts[f"scale.{unit}"])


def cite(
    expert: str,
    snapshot: Snapshot,
    origin: Fact | Cited,
    *,
    origins: Mapping[str, Fact | Cited] | None = None,
    labels: Sequence[str] | None = None,
) -> list[Evidence]:
    """Every measurement of `snapshot`, as `<expert>.<field>`; members of a series are told apart by `labels`.

    `origin` is the fact the numbers come from; `origins` names the fields, or members of a series, that come from
    another one.
    """
    others = origins or {}
    return [
        evidence_of(others.get(name) or others.get(field) or origin, f"{expert}.{name}", value, unit.symbol)
        for field, unit in snapshot.units().items()
        for name, value in _members(field, getattr(snapshot, field), labels)
        if value is not None
    ]


def evidence_of(fact: Fact | Cited, name: str, value: Any, unit: str = "") -> Evidence:
    """A number or a text, and where a reader can look it up."""
    source = getattr(fact, "url", fact.source)
    return Evidence(id=name, value=value, unit=unit, source=source, as_of=fact.available_at)


def write_evidence(evidence: Iterable[Evidence]) -> str:
    return "\n".join(
        f"{e.id} = {e.value}{f' {e.unit}' if e.unit else ''} [{e.source}, {e.as_of:%Y-%m-%d}]"
        for e in evidence
    )


def _members(field: str, value: Any, labels: Sequence[str] | None) -> Iterable[tuple[str, Any]]:
    """A mapping names its own."""
    if isinstance(value, dict):
        return [(f"{field}.{name}", member) for name, member in value.items()]
    if not isinstance(value, list):
        return [(field, value)]
    names = labels or [str(n) for n in range(1, len(value) + 1)]
    return [(f"{field}.{name}", member) for name, member in zip(names, value, strict=True)]
