"""A result as a document for people, in the session's language: Markdown, and a web page of its own.

One page first, then what it rests on. What others wrote, models among them, stands in it as text: no sign of theirs
is markup. A claim stands in it once, and is its id everywhere else; nothing is said twice.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from itertools import chain
from typing import Literal
from urllib.parse import urlsplit

from moot.modules.coordinator.application.report_case import Case, Data
from moot.modules.coordinator.application.report_opening import Writer, name_claim, name_company
from moot.modules.coordinator.application.report_page import BREAK, Pen, SvgPen, make_page
from moot.modules.coordinator.application.report_words import Wording
from moot.modules.coordinator.application.results import summarise
from moot.modules.coordinator.domain.dtos.research_dtos import ExpertResultItem, ResearchResult
from moot.modules.coordinator.domain.texts import SAY
from moot.shared.domain.claims import Claim, Relation
from moot.shared.domain.markdown import escape, escape_lines, list_lines
from moot.shared.domain.symbol import Symbol

Style = Literal["brief", "full"]
"""The first page alone, or all of it."""
ASSUMED = "assumption"
DAY = re.compile(r"\d{4}-\d\d-\d\d")


def render_report(result: ResearchResult, style: Style = "full") -> str:
    return _render(result, style, Pen())


def render_page(result: ResearchResult, style: Style = "full") -> str:
    pen, say = SvgPen(), Wording(result.locale)
    title = say("report.title", company=name_company(Case(result), say, str))
    return make_page(title, say.locale, _render(result, style, pen), pen.drawn)


def _render(result: ResearchResult, style: Style, pen: Pen) -> str:
    report = Report(Case(result), Wording(result.locale), pen)
    blocks = [*report.open(), *(report.go_on() if style == "full" else ())]
    return "\n\n".join(filter(None, blocks)) + "\n"


def tell_view(item: ExpertResultItem, say: Wording, spell: Callable[[str], str] = escape) -> str:
    """What view an expert takes, or why it has none."""
    if item.data is None:
        return say("report.expert_failed", error=spell(item.error or ""))
    summary = summarise(item.expert_type, item.data)
    return say("report.view", signal=say.literal(summary.signal), confidence=summary.confidence)


class Report(Writer):
    """The first page, and what it rests on."""

    def go_on(self) -> Iterator[str]:
        experts, words = self._experts, self._words
        for section in (self._argument, experts, self._risks, words, self._sources, self._record):
            blocks = list(filter(None, section()))
            heading = self.say(f"report.{section.__name__.removeprefix('_')}")
            yield from (f"## {heading}", *blocks) if blocks else ()

    def _argument(self) -> Iterator[str]:
        debate = self.case.debate
        if debate:
            direction = self.say.literal(debate["direction"])
            span = self.say(f"span.{self.case.argument.horizon if self.case.argument else 20}")
            yield self.say(
                "report.direction", direction=direction, confidence=debate["confidence"], span=span
            )
            yield self.told.once(debate["conflict_resolution"])
        if self.case.claims:
            yield self.say("report.legend")
            rows = chain.from_iterable(map(self._dimension, self.case.by_dimension()))
            yield self._table(("claim", "strength", "rests_on"), rows)

    def _dimension(self, claims: Sequence[Claim]) -> Iterator[list[str]]:
        first = claims[0]
        name = f"{self.say(f'node.{first.expert}')} · {escape(self.say.dimension(first))}"
        yield [f"**{name}**", f"{self.case.pull(first):+.2f}" if self.case.argument else "", ""]
        yield from ([self._row(claim), self.weigh(claim), self._rests(claim)] for claim in claims)

    def _row(self, claim: Claim) -> str:
        words = self.say("report.above") if claim in self.case.told_first else self.quote(claim)
        mark = " ◆" if claim in self.case.decisive else ""
        answers = map(self._answer, self.case.answers(claim))
        return BREAK.join([f"{name_claim(claim.id)}{mark} {words}", *answers])

    def _answer(self, relation: Relation) -> str:
        why = relation.why.get(self.say.locale) or next(iter(relation.why.values()), "")
        how = self.say(f"report.{relation.kind}", claim=name_claim(relation.source))
        told = "" if why in self._whys else self.told.once(why)
        self._whys.add(why)
        return f"↳ {self.item(how, told) if told else how}"

    def _rests(self, claim: Claim) -> str:
        """The numbers it cites, and where they stand in the table of numbers, which alone tells the members of a
        series; titles are in its words.
        """
        series = _group(self.case.facts[id_] for id_ in claim.evidence if id_ in self.case.facts)
        amounts = {name: self._amount(facts[0]) if len(facts) == 1 else "" for name, facts in series.items()}
        return " · ".join(f"{amount} [{self._places[name]}]".lstrip() for name, amount in amounts.items())

    def _amount(self, fact: Data) -> str:
        value = fact["value"]
        return "" if isinstance(value, str) else self.say.value(value, fact.get("unit", ""))

    @cached_property
    def _places(self) -> dict[str, int]:
        """Where each is in the table of numbers; the members of a series are one."""
        return {name: n for n, name in enumerate(dict.fromkeys(map(_series, self.case.facts)), 1)}

    def _experts(self) -> Iterator[str]:
        yield list_lines(self._warnings())
        rows = chain.from_iterable(map(self._measures, self.case.result.expert_results.values()))
        yield self._table(("number", "measure", "value", "as_of", "claims"), rows)

    def _measures(self, item: ExpertResultItem) -> Iterator[list[str]]:
        """Who it is and what view it takes; then what it measured, a series on a line."""
        view = tell_view(item, self.say, self.told.again)
        yield ["", f"**{self.say(f'node.{item.expert_type}')}**", view, "", ""]
        for name, facts in _group(item.data.get("evidence", []) if item.data else ()).items():
            measure = escape(self._name_measure(name, facts))
            values = " · ".join(self._value(fact, name) for fact in facts)
            citing = " ".join(map(name_claim, self._citing.get(name, ())))
            yield [str(self._places[name]), measure, values, max(map(self.case.day_of, facts)), citing]

    def _name_measure(self, name: str, facts: Sequence[Data]) -> str:
        measure = self.say.measure(name.partition(".")[2])
        assumed = all(fact["source"] == ASSUMED for fact in facts)
        return self.say("report.assumed", name=measure) if assumed else measure

    @cached_property
    def _citing(self) -> dict[str, dict[str, None]]:
        found: dict[str, dict[str, None]] = {}
        for claim in self.case.claims.values():
            for id_ in claim.evidence:
                found.setdefault(_series(id_), {})[claim.id] = None
        return found

    def _value(self, fact: Data, series: str) -> str:
        """A member of a series with its name; of what others wrote, where it can be read."""
        if isinstance(value := fact["value"], str):
            if DAY.fullmatch(value):
                return value
            told = any(value in claim.text(self.say.locale) for claim in self.case.claims.values())
            where, said = escape(fact["source"]), escape(self.say.source(fact["source"]))
            where = where if "://" in where else self.item(self.say("report.source"), said)
            return f"{'' if told else self.told.once(value)} {where}".lstrip()
        member = fact["id"].removeprefix(series).lstrip(".")
        name = "" if member.isdecimal() else escape(self.say.measure(member))
        return f"{name} {self._amount(fact)}".lstrip()

    def _risks(self) -> Iterator[str]:
        rows = list(map(self._risk, self.case.debate.get("risk_matrix", [])))
        yield self._table(("risk", "probability", "impact", "mitigation"), rows) if rows else ""
        yield list_lines(self.told.each(self.case.verdict.get("risk_warnings", [])))

    def _risk(self, row: Data) -> list[str]:
        levels = (self.say.literal(row[name]) for name in ("probability", "impact"))
        return [self._name_risk(row["risk"]), *levels, self.told.once(row["mitigation"])]

    def _name_risk(self, risk: str) -> str:
        """One that is a claim goes by what the claim is about, its id, and what else is said of it."""
        texts = {claim.text(self.say.locale).strip(): claim for claim in self.case.claims.values()}
        text = next((text for text in texts if text in risk), None)
        told = self.told.again(risk)
        if text is None:
            return told
        claim, beside = texts[text], risk.replace(text, "").strip(" :：,，.。")
        about = escape(self.say.dimension(claim))
        named = self.say("report.about", what=escape(beside) or about, claim=name_claim(claim.id))
        return self.item(about, named) if beside else named

    def _words(self) -> Iterator[str]:
        """What models said in their own words, and rules before claims were kept."""
        for node, part in self.case.parts.items():
            if part.get("narrative_report") and (not self.case.claims or part.get("engine") == "llm"):
                yield f"### {self.say(f'node.{node}')}\n\n{escape_lines(part['narrative_report'])}"

    def _sources(self) -> Iterator[str]:
        """Where the facts come from, each with its newest."""
        newest: dict[str, str] = {}
        for fact in self.case.facts.values():
            site = self.say.source(_site(fact["source"]))
            newest[site] = max(newest.get(site, ""), self.case.day_of(fact))
        yield from tell_ages(self.case.result, self.say)
        rows = [[escape(site), day] for site, day in sorted(newest.items())]
        yield self._table(("source", "newest"), rows) if rows else ""

    def _record(self) -> Iterator[str]:
        result, say = self.case.result, self.say
        engines = {say(f"engine.{data['engine']}") for data in self.case.found.values() if "engine" in data}
        joined = say("report.separator").join(sorted(engines))
        yield say("report.engine", engines=joined, usage=spending(result, say))
        yield list_lines(self._grounding())
        stored = say("report.session", session_id=result.session_id) if result.session_id else ""
        yield stored or say("report.not_stored")
        yield say("report.gaps", count=result.audit_gaps) if result.audit_gaps else ""

    def _grounding(self) -> Iterator[str]:
        """How far a model's statements stand in its evidence. Rules state nothing else."""
        for node, part in self.case.parts.items():
            if found := part.get("grounding"):
                checked = found["checked"]
                key = "report.grounding" if checked else "report.nothing_to_check"
                told = [self.say(key, held=checked - len(found["offenders"]), checked=checked)]
                for name, listed in (("offenders", "offenders"), ("reported", "only_reported")):
                    if said := escape(", ".join(found.get(name, []))):
                        told.append(self.say(f"report.{listed}", said=said))
                yield self.item(self.say(f"node.{node}"), " ".join(told))

    def _warnings(self) -> Iterator[str]:
        """What else was noticed, each once, with all whom it concerns; the first page has the judge's."""
        about: dict[str, list[str]] = {}
        for node, part in self.case.parts.items():
            for warning in part.get("warnings", []) if node != "judge" else []:
                about.setdefault(warning, []).append(self.say(f"node.{node}"))
        separator = self.say("report.separator")
        for warning, nodes in about.items():
            yield self.item(separator.join(nodes), self.told.once(warning))

    def _table(self, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
        cells = [[self.say(f"report.{name}") for name in columns], ["---"] * len(columns), *rows]
        return "\n".join("| " + " | ".join(row) + " |" for row in cells)


def _series(id_: str) -> str:
    """What a member of a series belongs to; events and pages stand alone."""
    series, _, _ = id_.rpartition(".")
    return id_ if "." not in series or series.endswith((".event", ".fact", ".web")) else series


def _group(facts: Iterable[Data]) -> dict[str, list[Data]]:
    series: dict[str, list[Data]] = {}
    for fact in facts:
        series.setdefault(_series(fact["id"]), []).append(fact)
    return series


def _site(source: str) -> str:
    """Of an address the place that answers there."""
    parts = urlsplit(source)
    return f"{parts.scheme}://{parts.netloc}" if parts.netloc else source


def tell_ages(result: ResearchResult, say: Wording) -> Iterator[str]:
    """How old each dataset was that the experts used, in a line; none where they used none."""
    if result.as_of is None or not result.data_until:
        return
    today = Symbol.parse(result.symbol).local_date(result.as_of)
    old = {name: (day, max(0, (today - day).days)) for name, day in result.data_until.items()}
    ages = [
        SAY(f"report.{'days' if age else 'same_day'}_old", dataset=SAY(f"dataset.{name}"), day=day, age=age)
        for name, (day, age) in old.items()
    ]
    yield say("report.data_until", ages=ages)


def spending(result: ResearchResult, say: Wording) -> str:
    used = result.usage
    if not used.requests:
        return say("usage.none")
    unknown = "uncounted" if used.uncounted else "unpriced"
    cost = say(f"usage.{unknown}") if used.cost is None else f"{used.currency} {used.cost:.4f}"
    return say("usage.some", requests=used.requests, tokens=f"{used.tokens:,}", cost=cost)
