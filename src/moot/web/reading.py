"""A result in its reader's language: the case it argues, its numbers with what they rest on, and what each part of
the page about it is made of. It is read by what reports are written with.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import date, timedelta
from functools import cached_property
from itertools import accumulate
from typing import Any, NamedTuple

from markupsafe import Markup

from moot.modules.coordinator.application.dtos.research_dtos import ResearchResult
from moot.modules.coordinator.application.report_case import Case, Data
from moot.modules.coordinator.application.report_words import Wording
from moot.modules.coordinator.application.results import Summary, summarise
from moot.shared.domain.claims import Claim, Relation
from moot.shared.domain.experts import ExpertType
from moot.shared.domain.facts import DailyBar
from moot.shared.domain.messages import Locale
from moot.shared.domain.symbol import Symbol
from moot.web.charts import Bar, Range, football_field
from moot.web.drawings import Candle, Event, Prices, Topic, argument_map, column_chart

AVERAGES = (20, 60)
MOST_CANDLES = 180
LEVELS = ("entry", "stop", "target")
DEGREES = ("LOW", "MEDIUM", "HIGH")
RANGES = {
    "residual": ("residual_low", "residual_high", "residual_value"),
    "graham": ("graham_intrinsic_val", "graham_intrinsic_val", None),
    "pe": ("pe_implied_value", "pe_implied_value", None),
    "pb": ("pb_implied_value", "pb_implied_value", None),
    "together": ("value_low", "value_high", None),
}
"""What the models of the valuation say a share is worth: from, to, most likely, by how the page calls them."""
TRENDS = ("revenue_by_quarter", "profit_by_quarter", "net_margin_by_quarter", "roe_by_quarter")
QUARTER = 6
"""The length of a quarter's name: 2026Q3."""


class Fact(NamedTuple):
    """A number, or words of others, that opens where it is from. `at` is its place on the page."""

    at: int
    id: str
    label: str
    shown: str
    source: str
    as_of: str
    reported: bool


class Line(NamedTuple):
    """A claim of the ledger, as it was made and as it was left by what others say of it."""

    claim: Claim
    text: str
    strength: float
    decisive: bool
    facts: Sequence[Fact]
    answers: Sequence[tuple[Relation, str]]


class Group(NamedTuple):
    """The claims about one dimension, and how far they pull."""

    expert: ExpertType
    name: str
    pull: float
    lines: Sequence[Line]


class Quarters(NamedTuple):
    """A table of numbers by quarter, oldest first."""

    names: Sequence[str]
    rows: Sequence[tuple[str, Mapping[str, Fact]]]


class Panel(NamedTuple):
    """What one expert says. Without `summary` it failed, for `error`."""

    expert: ExpertType
    summary: Summary | None
    error: str
    data: Data
    groups: Sequence[Group]
    numbers: Sequence[tuple[Fact, Sequence[str]]]
    """Each with the claims that rest on it."""
    quarters: Quarters

    @property
    def bars(self) -> list[Bar]:
        """How far each of its dimensions pulls."""
        return [Bar(group.name, group.pull, "for" if group.pull > 0 else "against") for group in self.groups]


class Reading:
    def __init__(self, result: ResearchResult, locale: Locale) -> None:
        self.result, self.case, self.words = result, Case(result), Wording(locale)
        self.verdict, self.debate = self.case.verdict, self.case.debate

    @cached_property
    def facts(self) -> dict[str, Fact]:
        return {id_: self._fact(at, fact) for at, (id_, fact) in enumerate(self.case.facts.items(), 1)}

    def _fact(self, at: int, fact: Data) -> Fact:
        words = isinstance(fact["value"], str)
        return Fact(
            at=at,
            id=fact["id"],
            label=self._name(fact["id"].partition(".")[2]),
            shown=self.words.value(fact["value"], fact.get("unit", "")),
            source=self.words.source(fact["source"]),
            as_of=str(fact["as_of"]),
            reported=(words and ".event." in fact["id"]) or ".web." in fact["id"],
        )

    def _name(self, measure: str) -> str:
        """A member of a series by the name of both."""
        series, _, member = measure.rpartition(".")
        if not series or (member.isdecimal() and "." not in series):
            return self.words.measure(measure)
        told = member if _is_quarter(member) else self.words.measure(member)
        return f"{self.words.measure(series)} · {told}"

    @cached_property
    def ledger(self) -> list[Group]:
        return [
            Group(
                claims[0].expert,
                self.words.dimension(claims[0]),
                self.case.pull(claims[0]),
                [self._line(claim) for claim in claims],
            )
            for claims in self.case.by_dimension()
        ]

    def _line(self, claim: Claim) -> Line:
        locale = self.words.locale
        answers = [
            (relation, relation.why.get(locale) or next(iter(relation.why.values()), ""))
            for relation in self.case.answers(claim)
        ]
        return Line(
            claim=claim,
            text=claim.text(locale),
            strength=self.case.strength(claim),
            decisive=claim in self.case.decisive,
            facts=[self.facts[id_] for id_ in claim.evidence if id_ in self.facts],
            answers=answers,
        )

    def find_price(self, value: float) -> Fact | None:
        """The fact that a level is, where it is one."""
        same = (
            id_ for id_, fact in self.case.facts.items() if fact["value"] == value and fact["unit"] == "CNY"
        )
        return self.facts.get(next(same, ""))

    def line(self, claim: Claim) -> Line:
        return self._lines[claim.id]

    @cached_property
    def _lines(self) -> dict[str, Line]:
        return {line.claim.id: line for group in self.ledger for line in group.lines}

    @cached_property
    def panels(self) -> list[Panel]:
        return list(map(self._panel, self.result.expert_results.values()))

    def _panel(self, item: Any) -> Panel:
        data, expert = item.data or {}, item.expert_type
        facts = [self.facts[fact["id"]] for fact in data.get("evidence", [])]
        series = [fact for fact in facts if _is_quarter(fact.id)]
        return Panel(
            expert=expert,
            summary=summarise(expert, data) if data else None,
            error=item.error or "",
            data=data,
            groups=[group for group in self.ledger if group.expert is expert],
            numbers=[(fact, self._citing[fact.id]) for fact in facts if fact not in series],
            quarters=self._quarters(series),
        )

    @cached_property
    def _citing(self) -> dict[str, list[str]]:
        found = defaultdict[str, list[str]](list)
        for claim in self.case.claims.values():
            for id_ in claim.evidence:
                found[id_].append(claim.id)
        return found

    def _quarters(self, facts: Sequence[Fact]) -> Quarters:
        rows: dict[str, dict[str, Fact]] = {}
        for fact in facts:
            series, _, quarter = fact.id.rpartition(".")
            rows.setdefault(series, {})[quarter] = fact
        names = sorted({quarter for row in rows.values() for quarter in row})
        told = [(self.words.measure(series.partition(".")[2]), row) for series, row in rows.items()]
        return Quarters(names, told)

    def draw_map(self, motion: str, label: str) -> Markup:
        """The claims that pull, and those that others are answered by."""
        argument = self.case.argument
        if argument is None:
            return Markup("")
        answering = {relation.source for relation in argument.relations}
        topics = [
            Topic(group.name, group.pull, [_point(line) for line in group.lines if _counts(line, answering)])
            for group in self.ledger
        ]
        return argument_map(argument, [topic for topic in topics if topic.claims], motion, label)

    def draw_values(self, names: Mapping[str, str], label: str) -> Markup:
        """What the models say it is worth, against the price; None of what was not measured."""
        known = {
            fact["id"].partition(".")[2]: float(fact["value"])
            for id_, fact in self.case.facts.items()
            if id_.startswith("valuation.") and not isinstance(fact["value"], str)
        }
        ranges = [
            Range(names[name], known[low], known[high], known.get(middle or ""))
            for name, (low, high, middle) in RANGES.items()
            if low in known and high in known
        ]
        return football_field(ranges, label=label, price=known.get("current_price"))

    def draw_trends(self) -> Iterator[tuple[str, Markup]]:
        found = self.case.found.get(ExpertType.FINANCIAL_AUDITOR, {}).get("financial_indicators", {})
        for name in TRENDS:
            known = (found.get(name) or {}).items()
            if columns := sorted((quarter, value) for quarter, value in known if value is not None):
                label = self.words.measure(name)
                yield label, column_chart(columns, label)

    @property
    def risks(self) -> dict[tuple[str, str], list[Data]]:
        """By how likely and how grave they are."""
        found = defaultdict[tuple[str, str], list[Data]](list)
        for risk in self.debate.get("risk_matrix", []):
            found[risk["probability"], risk["impact"]].append(risk)
        return found

    def prices(self, bars: Sequence[DailyBar], names: Mapping[str, str]) -> Prices:
        """The bars, or without any the closes that an expert saw; with averages, levels and what was published."""
        candles = [
            Candle(bar.trade_date, bar.open, bar.high, bar.low, bar.close, bar.volume) for bar in bars
        ] or [
            Candle(date.fromisoformat(day), close, close, close, close, 0) for day, close in self.case.prices
        ]
        shown = candles[-MOST_CANDLES:]
        known = self.verdict.get("levels") or {}
        return Prices(
            candles=shown,
            averages={f"MA{n}": _average(candles, n)[-len(shown) :] for n in AVERAGES if len(candles) > n},
            levels={names[name]: known[name] for name in LEVELS if known.get(name)},
            events=self._events([candle.day for candle in shown]),
        )

    def _events(self, days: Sequence[date]) -> list[Event]:
        symbol, found = Symbol.parse(self.result.symbol), list[Event]()
        for claim in sorted(self.case.claims.values(), key=lambda claim: claim.as_of):
            first = symbol.local_date(claim.as_of)
            day = next((day for day in days if day >= first), days[-1] if days else first)
            if claim.reported and days and first >= days[0]:
                found.append(Event(day, len(found) + 1, claim.side, claim.text(self.words.locale), claim.id))
        return found


def first_day(result: ResearchResult) -> date:
    """From which on bars are needed."""
    day = Symbol.parse(result.symbol).local_date(result.as_of) if result.as_of else date.max
    return day - timedelta(days=MOST_CANDLES * 2)


def _average(candles: Sequence[Candle], n: int) -> list[tuple[date, float]]:
    sums = [0.0, *accumulate(candle.close for candle in candles)]
    return [(candles[at - 1].day, (sums[at] - sums[at - n]) / n) for at in range(n, len(sums))]


def _is_quarter(id_: str) -> bool:
    quarter = id_.rpartition(".")[2]
    return len(quarter) == QUARTER and quarter[4] == "Q" and quarter.replace("Q", "").isdecimal()


def _counts(line: Line, answering: set[str]) -> bool:
    return line.strength > 0 or bool(line.answers) or line.claim.id in answering


def _point(line: Line) -> tuple[str, str, str, float, bool]:
    return line.claim.id, line.text, line.claim.side, line.strength, line.decisive
