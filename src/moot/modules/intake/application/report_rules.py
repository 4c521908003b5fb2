"""An answer without a model: what the steps said, put in order and quoted, with nothing added."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from moot.modules.intake.application.report_draft import Draft, Material
from moot.modules.intake.application.report_text import (
    clipped,
    headings_for,
    plain,
    sentences,
    side_by_side,
    tamed,
)
from moot.modules.intake.domain.findings import Citation, Finding, View

FEW = 3
"""Experts whose field a question can name and still be about each of them."""


@dataclass(frozen=True)
class Company:
    """What was found about one. `asked`: whether the question named the fields of its experts."""

    name: str
    finding: Finding
    marks: str
    asked: bool

    @property
    def named_views(self) -> tuple[View, ...]:
        return self.finding.views if self.asked else ()


def together(companies: Sequence[Company]) -> str:
    """The marks of all of them."""
    return " " + "".join(company.marks.strip() for company in companies)


def ahead(companies: Sequence[Company], say: Mapping[str, str]) -> Iterator[str]:
    """On each field that was asked about, and by the verdict: a sentence, with its sources at the end."""
    marks = together(companies)
    for views in _shared(companies):
        ranked = sorted(views.items(), key=lambda held: held[1].leaning, reverse=True)
        told = [say["holds"].format(name=name, says=view.says) for name, view in ranked]
        first, second = ranked[0][1], ranked[1][1]
        parts = {"leader": told[0], "others": say["separator"].join(told[1:])}
        key = "ahead" if first.leaning > second.leaning else "level"
        sentence = say[key].format(what=first.who, all=say["separator"].join(told), **parts)
        yield sentence + marks


def _shared(companies: Sequence[Company]) -> Iterator[dict[str, View]]:
    """What the same expert holds of each company, by its name; a verdict on one alone leads nobody ahead."""
    fields = dict.fromkeys(view.who for company in companies for view in company.named_views)
    for who in list(fields)[:FEW]:
        held = {
            company.name: view for company in companies for view in company.named_views if view.who == who
        }
        if len(held) == len(companies):
            yield held
    verdicts = {company.name: company.finding.verdict for company in companies}
    given = {name: verdict for name, verdict in verdicts.items() if verdict is not None}
    if len(given) == len(companies):
        yield given


def table(companies: Sequence[Company]) -> str:
    """Empty where fewer than two have figures."""
    compared = [company.finding for company in companies if company.finding.figures]
    return side_by_side([{**finding.figures, **finding.facts} for finding in compared])


LONGEST_LINE = 240
LONGEST_PASSAGE = 600
NO_SENTENCE = re.compile(r"\s*(?:#|\||$)")
LIST_MARK = re.compile(r"^\s*(?:[-*+]|\d+[.)])\s+")
LEADS_ON = (":", "：")
"""A paragraph that ends so says nothing itself."""

Words = Mapping[str, str]


def compose(material: Material, locale: str) -> Draft:
    """What the desk's own experts and computations say stands as it is; all else is in quotes."""
    say, companies = headings_for(locale), _companies(material)
    return Draft(
        title=_title(material),
        key_points=[*_points(companies, say), *_quotes(material, say)],
        overview="\n\n".join(_overview(material, companies, say)),
        analysis="\n\n".join([*_told(material), *_beside(material)]),
        risks=list(_risks(companies, say)),
    )


def nothing_found(material: Material, locale: str) -> Draft:
    say = headings_for(locale)
    return Draft(title=_title(material), overview=say["nothing_found" if material.gaps else "nothing_done"])


def _title(material: Material) -> str:
    return (material.plan.title if material.plan else material.question).strip() or "—"


def _companies(material: Material) -> list[Company]:
    found = (finding for finding in material.findings if material.type_of(finding) == "equity")
    return [_company(material, finding) for finding in found]


def _company(material: Material, finding: Finding) -> Company:
    step = material.step_of(finding)
    name = step.symbol if step and step.symbol else material.subject_of(finding.step_id)
    return Company(plain(name), finding, _marks(material, finding), asked=bool(step and step.experts))


def _points(companies: Sequence[Company], say: Words) -> Iterator[str]:
    """A line for each company; of one alone also who speaks for it and who against it."""
    for company in companies:
        views = company.named_views if len(companies) > 1 else ()
        named = [say["about"].format(subject=view.who, text=view.says) for view in views]
        yield " · ".join([_first_line(company.finding), *named]) + company.marks
    if len(companies) == 1:
        yield from _sides(companies[0], say)


def _sides(company: Company, say: Words) -> Iterator[str]:
    views = _strongest_first(company.finding.views)
    sides = {
        "for": [view for view in views if view.leaning > 0],
        "against": [view for view in views if view.leaning < 0],
        "neither": [view for view in views if view.leaning == 0],
    }
    for side, held in sides.items():
        if held:
            told = say["separator"].join(say["holds"].format(name=view.who, says=view.says) for view in held)
            yield say["about"].format(subject=f"**{say[side]}**", text=told) + company.marks


def _quotes(material: Material, say: Words) -> Iterator[str]:
    for finding in _from_outside(material):
        if line := _passage(finding.citations[:1], LONGEST_LINE):
            subject = f"**{_subject(material, finding)}**"
            marks = _marks_of(material, finding.citations[:1])
            yield say["about"].format(subject=subject, text=f"{line}{marks}")


def _overview(material: Material, companies: Sequence[Company], say: Words) -> Iterator[str]:
    """The answer as far as rules can give it; how much of the plan was done, where that is not all of it."""
    side_by_side = table(companies)
    if len(companies) > 1:
        yield from ahead(companies, say)
    elif companies:
        yield from _in_short(companies[0])
    yield from filter(None, [side_by_side, *_computed(material, side_by_side)])
    if _from_outside(material) or any(material.beside()):
        yield say["quoted"]
    usable = len(material.findings)
    if material.gaps or not usable:
        yield say["steps_told"].format(usable=usable, asked=usable + len(material.gaps))


def _in_short(company: Company) -> Iterator[str]:
    """What was asked about first: the field of an expert, or else the whole."""
    verdict = [company.finding.verdict] if company.finding.verdict else []
    strongest = _strongest_first(company.finding.views)[:1]
    for view in [*strongest, *verdict] if company.asked else [*verdict, *strongest]:
        yield sentences(view.why, LONGEST_LINE, most=2) + company.marks
    if not verdict and not strongest:
        yield _first_line(company.finding) + company.marks


def _computed(material: Material, shown: str) -> Iterator[str]:
    """What processing steps made of it, without the table that is shown already."""
    head = shown.partition("\n")[0]
    for finding in material.findings:
        if material.type_of(finding) == "processing":
            blocks = tamed(finding.text, top=4).split("\n\n")
            yield "\n\n".join(block for block in blocks if not head or block.partition("\n")[0] != head)


def _told(material: Material) -> Iterator[str]:
    """Risks have a section of their own, so that what tells of them is left to it."""
    for finding in material.findings:
        if material.type_of(finding) == "processing":
            continue
        own = material.type_of(finding) == "equity"
        blocks = tamed(finding.text, top=4).split("\n\n")
        told = [block for block in blocks if not any(tamed(risk) in block for risk in finding.risks)]
        cited = [_cited(block, material, finding) for block in told]
        words = "\n\n".join(cited if own else map(_quoted, cited))
        yield f"### {_subject(material, finding)}\n\n{words}".rstrip()


def _cited(block: str, material: Material, finding: Finding) -> str:
    """With its sources at the end of the paragraph, or of each item of a list: those it names, or else all."""
    named = [source for source in finding.citations if source.url and source.url in block]
    marks = _marks_of(material, named or finding.citations)
    lines = block.split("\n")
    items = [bool(LIST_MARK.match(line)) for line in lines]
    if any(items):
        return "\n".join(line + marks if item else line for line, item in zip(lines, items, strict=True))
    return block if NO_SENTENCE.match(block) or block.endswith(LEADS_ON) else block + marks


def _beside(material: Material) -> Iterator[str]:
    """What was read before there was a plan."""
    for number, source in material.beside():
        yield f"> {_passage([source], LONGEST_PASSAGE)} [{number}]"


def _risks(companies: Sequence[Company], say: Words) -> Iterator[str]:
    """Those of each company, and then, once, those that all of them have."""
    shared = (
        set[str].intersection(*(set(company.finding.risks) for company in companies)) if companies else set()
    )
    several = len(companies) > 1
    for company in companies:
        for risk in company.finding.risks:
            if not several or risk not in shared:
                told = say["about"].format(subject=f"**{company.name}**", text=risk) if several else risk
                yield told + company.marks
    if several:
        marks = together(companies)
        yield from (risk + marks for risk in companies[0].finding.risks if risk in shared)


def _strongest_first(views: Sequence[View]) -> list[View]:
    return sorted(views, key=lambda view: abs(view.leaning), reverse=True)


def _from_outside(material: Material) -> list[Finding]:
    return [found for found in material.findings if material.type_of(found) not in ("equity", "processing")]


def _subject(material: Material, finding: Finding) -> str:
    return plain(material.subject_of(finding.step_id))


def _first_line(finding: Finding) -> str:
    lines = [line for line in tamed(finding.text).splitlines() if not NO_SENTENCE.match(line)]
    return clipped(LIST_MARK.sub("", lines[0]).strip(), LONGEST_LINE) if lines else ""


def _passage(sources: Sequence[Citation], longest: int) -> str:
    return "".join(f"“{plain(clipped(source.quote or source.title, longest))}”" for source in sources)


def _marks(material: Material, finding: Finding) -> str:
    return _marks_of(material, finding.citations)


def _marks_of(material: Material, sources: Sequence[Citation]) -> str:
    numbers = material.numbers_of(sources)
    return " " + "".join(f"[{number}]" for number in numbers) if numbers else ""


def _quoted(text: str) -> str:
    """Passages that others wrote: quoted to the last line."""
    return "\n".join(f"> {line}".rstrip() for line in text.splitlines())
