"""An answer without a model: what the steps said, put in order and quoted, with nothing added."""

import re
from collections.abc import Iterator, Sequence

from moot.modules.intake.application.headings import headings_for
from moot.modules.intake.application.report_draft import Draft
from moot.modules.intake.application.report_material import Material
from moot.modules.intake.application.report_text import clipped, plain, tamed
from moot.modules.intake.domain.findings import Citation, Finding

LONGEST_LINE = 240
LONGEST_PASSAGE = 600
NO_SENTENCE = re.compile(r"\s*(?:#|\||$)")
LIST_MARK = re.compile(r"^\s*(?:[-*+>]|\d+[.)])\s+")


def composed(material: Material, locale: str) -> Draft:
    """What the desk's own experts and computations say stands as it is; all else is in quotes."""
    return Draft(
        title=_title(material),
        key_points=list(_key_points(material, locale)),
        overview="\n\n".join(_overview(material, locale)),
        analysis="\n\n".join([*_told(material), *_beside(material)]),
    )


def nothing_found(material: Material, locale: str) -> Draft:
    say = headings_for(locale)
    return Draft(title=_title(material), overview=say["nothing_found" if material.gaps else "nothing_done"])


def _title(material: Material) -> str:
    return (material.plan.title if material.plan else material.question).strip() or "—"


def _key_points(material: Material, locale: str) -> Iterator[str]:
    about = headings_for(locale)["about"]
    for finding in _not_compared(material):
        own = material.type_of(finding) == "equity"
        line = _first_line(finding) if own else _passage(finding.citations[:1], LONGEST_LINE)
        if line:
            subject = f"**{_subject(material, finding)}**"
            yield about.format(subject=subject, text=f"{line}{_marks(material, finding)}")


def _overview(material: Material, locale: str) -> Iterator[str]:
    """How much of the plan was done, and the tables of the steps that compare."""
    usable = len(material.findings)
    yield headings_for(locale)["steps_told"].format(usable=usable, asked=usable + len(material.gaps))
    compared = [finding for finding in material.findings if material.type_of(finding) == "processing"]
    yield from (tamed(finding.text, top=4) for finding in compared)


def _told(material: Material) -> Iterator[str]:
    for finding in _not_compared(material):
        text = tamed(finding.text, top=4)
        words = text if material.type_of(finding) == "equity" else _quoted(text)
        yield f"### {_subject(material, finding)}\n\n{words}\n\n{_marks(material, finding).strip()}".rstrip()


def _beside(material: Material) -> Iterator[str]:
    """What was read before there was a plan."""
    for number, source in material.beside():
        yield f"> {_passage([source], LONGEST_PASSAGE)} [{number}]"


def _not_compared(material: Material) -> list[Finding]:
    return [finding for finding in material.findings if material.type_of(finding) != "processing"]


def _subject(material: Material, finding: Finding) -> str:
    return plain(material.subject_of(finding.step_id))


def _first_line(finding: Finding) -> str:
    lines = [line for line in tamed(finding.text).splitlines() if not NO_SENTENCE.match(line)]
    return clipped(LIST_MARK.sub("", lines[0]).strip(), LONGEST_LINE) if lines else ""


def _passage(sources: Sequence[Citation], longest: int) -> str:
    return "".join(f"“{plain(clipped(source.quote or source.title, longest))}”" for source in sources)


def _marks(material: Material, finding: Finding) -> str:
    numbers = material.numbers_of(finding)
    return " " + "".join(f"[{number}]" for number in numbers) if numbers else ""


def _quoted(text: str) -> str:
    """Passages that others wrote: quoted to the last line."""
    return "\n".join(f"> {line}".rstrip() for line in text.splitlines())
