"""An answer without a model: what the steps said, put in order and quoted, with nothing added."""

import re
from collections.abc import Iterator, Mapping, Sequence

from moot.modules.intake.application.report_draft import Draft, Found, Material
from moot.modules.intake.application.report_text import clip, shorten, side_by_side, tame
from moot.modules.intake.domain.question import Citation, View
from moot.shared.domain.markdown import escape

FEW = 3
"""Experts whose field a question can name and still be about each of them."""
LONGEST_LINE = 240
LONGEST_PASSAGE = 600
NO_SENTENCE = re.compile(r"\s*(?:#|\||$)")
LIST_MARK = re.compile(r"^\s*(?:[-*+]|\d+[.)])\s+")
LEADS_ON = (":", "：")
"""A paragraph that ends so says nothing itself."""

Words = Mapping[str, str]


def compose(material: Material) -> Draft:
    """What the desk's own experts and computations say stands as it is; all else is in quotes."""
    title = (material.plan.title if material.plan else material.question).strip() or "—"
    if not material.sources and not material.found:
        return Draft(title=title, overview=material.say["nothing_found" if material.gaps else "nothing_done"])
    companies = [found for found in material.found if found.type == "equity"]
    return Draft(
        title=title,
        key_points=[*_points(companies, material.say), *_quotes(material)],
        overview="\n\n".join(_overview(material, companies)),
        analysis="\n\n".join([*_tell(material), *_beside(material)]),
        risks=list(_risks(companies, material.say)),
    )


def _name(company: Found) -> str:
    step = company.step
    return escape(step.symbol if step and step.symbol else company.subject)


def _asked(company: Found) -> bool:
    """Whether the question named the fields of its experts."""
    return bool(company.step and company.step.experts)


def _marks(companies: Sequence[Found]) -> str:
    return " " + "".join(company.marks().strip() for company in companies)


def _points(companies: Sequence[Found], say: Words) -> Iterator[str]:
    """A line for each company; of one alone also who speaks for it and who against it."""
    several = len(companies) > 1
    for company in companies:
        named = [
            say["about"].format(subject=view.who, text=view.says)
            for view in (company.finding.views if several and _asked(company) else ())
        ]
        yield " · ".join([_first_line(company), *named]) + company.marks()
    for company in [] if several else companies:
        views = _strongest_first(company.finding.views)
        for side, sign in (("for", 1), ("against", -1), ("neither", 0)):
            held = [view for view in views if (view.leaning > 0) - (view.leaning < 0) == sign]
            told = say["separator"].join(say["holds"].format(name=view.who, says=view.says) for view in held)
            if held:
                yield say["about"].format(subject=f"**{say[side]}**", text=told) + company.marks()


def _quotes(material: Material) -> Iterator[str]:
    for found in _from_outside(material):
        first = found.finding.citations[:1]
        if first:
            subject, text = f"**{escape(found.subject)}**", _passage(first[0], LONGEST_LINE)
            yield material.say["about"].format(subject=subject, text=text + found.marks(first))


def _overview(material: Material, companies: Sequence[Found]) -> Iterator[str]:
    """The answer as far as rules can give it; how much of the plan was done, where that is not all of it."""
    figures = [company.finding for company in companies if company.finding.figures]
    table = side_by_side([{**finding.figures, **finding.facts} for finding in figures])
    if len(companies) > 1:
        yield from _rank(companies, material.say)
    elif companies:
        yield from _in_short(companies[0])
    yield from filter(None, [table, *_find_computed(material, table)])
    if _from_outside(material) or any(material.beside()):
        yield material.say["quoted"]
    usable = len(material.found)
    if material.gaps or not usable:
        yield material.say["steps_told"].format(usable=usable, asked=usable + len(material.gaps))


def _rank(companies: Sequence[Found], say: Words) -> Iterator[str]:
    """Who is ahead on each field that was asked about, and by the verdict: a sentence, its sources at the end."""
    for views in _find_shared(companies):
        ranked = sorted(views.items(), key=lambda held: held[1].leaning, reverse=True)
        told = [say["holds"].format(name=name, says=view.says) for name, view in ranked]
        first, second = ranked[0][1], ranked[1][1]
        parts = {"leader": told[0], "others": say["separator"].join(told[1:])}
        key = "ahead" if first.leaning > second.leaning else "level"
        sentence = say[key].format(what=first.who, all=say["separator"].join(told), **parts)
        yield sentence + _marks(companies)


def _find_shared(companies: Sequence[Found]) -> Iterator[dict[str, View]]:
    """What the same expert holds of each company, by its name; a verdict on one alone leads nobody ahead."""
    held: dict[str, dict[str, View]] = {}
    for company in companies:
        for view in company.finding.views if _asked(company) else ():
            held.setdefault(view.who, {})[_name(company)] = view
    verdicts = {_name(each): each.finding.verdict for each in companies if each.finding.verdict}
    for views in (*list(held.values())[:FEW], verdicts):
        if len(views) == len(companies):
            yield views


def _in_short(company: Found) -> Iterator[str]:
    """What was asked about first: the field of an expert, or else the whole."""
    verdict = [company.finding.verdict] if company.finding.verdict else []
    strongest = _strongest_first(company.finding.views)[:1]
    for view in [*strongest, *verdict] if _asked(company) else [*verdict, *strongest]:
        yield shorten(view.why, LONGEST_LINE, most=2) + company.marks()
    if not verdict and not strongest:
        yield _first_line(company) + company.marks()


def _find_computed(material: Material, shown: str) -> Iterator[str]:
    """What processing steps made of it, without the table that is shown already."""
    head = shown.partition("\n")[0]
    for found in material.found:
        if found.type == "processing":
            blocks = tame(found.finding.text, top=4).split("\n\n")
            yield "\n\n".join(block for block in blocks if not head or block.partition("\n")[0] != head)


def _tell(material: Material) -> Iterator[str]:
    """Risks have a section of their own, so that what tells of them is left to it."""
    for found in material.found:
        if found.type == "processing":
            continue
        blocks = tame(found.finding.text, top=4).split("\n\n")
        told = [block for block in blocks if not any(tame(risk) in block for risk in found.finding.risks)]
        words = "\n\n".join(_cite(block, found) for block in told)
        if found.type != "equity":  # passages that others wrote are quoted to the last line
            words = re.sub(r"^(?=.)", "> ", words, flags=re.MULTILINE)
        yield f"### {escape(found.subject)}\n\n{words}".rstrip()


def _cite(block: str, found: Found) -> str:
    """With its sources at the end of the paragraph, or of each item of a list: those it names, or else all."""
    named = [source for source in found.finding.citations if source.url and source.url in block]
    marks = found.marks(named or None)
    lines = block.split("\n")
    if any(map(LIST_MARK.match, lines)):
        return "\n".join(line + marks if LIST_MARK.match(line) else line for line in lines)
    return block if NO_SENTENCE.match(block) or block.endswith(LEADS_ON) else block + marks


def _beside(material: Material) -> Iterator[str]:
    """What was read before there was a plan."""
    for number, source in material.beside():
        yield f"> {_passage(source, LONGEST_PASSAGE)} [{number}]"


def _risks(companies: Sequence[Found], say: Words) -> Iterator[str]:
    """Those of each company, and then, once, those that all of them have."""
    several = len(companies) > 1
    held: dict[str, list[Found]] = {}
    for company in companies:
        for risk in company.finding.risks:
            held.setdefault(risk, []).append(company)
    shared = [risk for risk, of in held.items() if several and len(of) == len(companies)]
    for company in companies:
        for risk in company.finding.risks:
            if risk not in shared:
                told = say["about"].format(subject=f"**{_name(company)}**", text=risk) if several else risk
                yield told + company.marks()
    yield from (risk + _marks(companies) for risk in shared)


def _strongest_first(views: Sequence[View]) -> list[View]:
    return sorted(views, key=lambda view: abs(view.leaning), reverse=True)


def _from_outside(material: Material) -> list[Found]:
    return [found for found in material.found if found.type not in ("equity", "processing")]


def _first_line(found: Found) -> str:
    lines = [line for line in tame(found.finding.text).splitlines() if not NO_SENTENCE.match(line)]
    return clip(LIST_MARK.sub("", lines[0]).strip(), LONGEST_LINE) if lines else ""


def _passage(source: Citation, longest: int) -> str:
    return f"“{escape(clip(source.quote or source.title, longest))}”"
