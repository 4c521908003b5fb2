"""What an answer is written from, its text before it is dressed, and whether that holds against the material."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Annotated, NamedTuple

from pydantic import BaseModel, StringConstraints, ValidationError

from moot.modules.intake.application.language import detect
from moot.modules.intake.application.report_text import (
    cited_in,
    clipped,
    headings_for,
    language_name,
    renumber,
    tongue_of,
    without_marks,
)
from moot.modules.intake.domain.answer import Style
from moot.modules.intake.domain.findings import Citation, Finding
from moot.modules.intake.domain.plan import Plan, Step, StepType
from moot.modules.intake.domain.question import Tongue
from moot.modules.intake.domain.texts import SAY
from moot.shared.domain.grounding import ground
from moot.shared.domain.messages import Message
from moot.shared.domain.validation import invalid_input

Text = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]

PROBLEMS_TOLD = 5


class Draft(BaseModel, frozen=True):
    """The answer in the order in which it is written. `[n]` in a text cites source n."""

    title: Text
    key_points: list[Text] = []
    overview: Text
    analysis: str = ""
    risks: list[Text] = []

    def parts(self) -> dict[str, str]:
        return {
            name: value if isinstance(value, str) else "\n".join(value)
            for name, value in self.model_dump().items()
        }


class Shape(NamedTuple):
    """What a style shows: how many key points at most, and whether it goes into the analysis."""

    key_points: int
    analysis: bool


SHAPES: Mapping[Style, Shape] = {
    "brief": Shape(key_points=3, analysis=False),
    "research": Shape(key_points=6, analysis=True),
    "academic": Shape(key_points=0, analysis=True),
    "news": Shape(key_points=0, analysis=True),
}


def fit_style(draft: Draft, style: Style) -> Draft:
    """Without what the style leaves out. Risks are never left out."""
    shape = SHAPES[style]
    analysis = draft.analysis.strip() if shape.analysis else ""
    return draft.model_copy(update={"key_points": draft.key_points[: shape.key_points], "analysis": analysis})


def read_draft(said: str, style: Style) -> Draft | Message:
    """The draft in what a model said, or what is wrong with it."""
    text = said.rpartition("</think>")[2]
    braced = text[max(text.find("{"), 0) : text.rfind("}") + 1]
    try:
        return fit_style(Draft.model_validate_json(braced), style)
    except ValidationError as e:
        problems = invalid_input(e.errors(include_url=False)[:PROBLEMS_TOLD]).message
        return SAY("report.unreadable", problems=problems)


LONGEST_FINDING = 12_000
LONGEST_QUOTE = 600
LONGEST_QUESTION = 4_000
MOST_SOURCES = 20
"""Of one step."""


class Gap(NamedTuple):
    """Something that was to be found out and was not. The reason is for the reader; no model is told it."""

    subject: str
    reason: str | Message


@dataclass(frozen=True)
class Material:
    """`findings` are those that can be read as evidence; source number n is `sources[n - 1]`."""

    question: str
    plan: Plan | None
    findings: tuple[Finding, ...]
    sources: tuple[Citation, ...]
    gaps: tuple[Gap, ...]

    @property
    def empty(self) -> bool:
        return not self.findings and not self.sources

    def numbers_of(self, cited: Sequence[Citation]) -> list[int]:
        known = {_place(source): number for number, source in enumerate(self.sources, start=1)}
        return sorted({known[_place(source)] for source in cited if _place(source) in known})

    def beside(self) -> Iterator[tuple[int, Citation]]:
        """Sources that no finding rests on: what was read before there was a plan."""
        cited = {number for finding in self.findings for number in self.numbers_of(finding.citations)}
        return ((n, source) for n, source in enumerate(self.sources, start=1) if n not in cited)

    def subject_of(self, step_id: str) -> str:
        return _titles(self.plan).get(step_id, step_id)

    def step_of(self, finding: Finding) -> Step | None:
        """None for what an earlier plan found."""
        steps = self.plan.steps if self.plan else ()
        return next((step for step in steps if step.id == finding.step_id), None)

    def type_of(self, finding: Finding) -> StepType | None:
        """None for what an earlier plan found, unless a session tells that it was research on a company."""
        step = self.step_of(finding)
        return step.type if step else "equity" if finding.session_id else None

    def shown(self) -> str:
        """All of it as a model is shown it: JSON, so that no text in it can pass for anything around it."""
        return json.dumps(
            {
                "question": clipped(self.question, LONGEST_QUESTION),
                "plan": self.plan.title if self.plan else None,
                "findings": [self._told(finding) for finding in self.findings],
                "sources": [_listed(number, source) for number, source in enumerate(self.sources, start=1)],
                "could_not_be_found_out": [gap.subject for gap in self.gaps],
            },
            ensure_ascii=False,
            indent=1,
        )

    def given(self) -> str:
        """Every text a model was shown, in which a number or link of its answer must stand."""
        plan = [self.plan.title] if self.plan else []
        told = [text for finding in self.findings for text in self._told(finding).values()]
        listed = [
            text for number, source in enumerate(self.sources, 1) for text in _listed(number, source).values()
        ]
        open_ = [gap.subject for gap in self.gaps]
        return "\n".join(
            text for text in [self.question, *plan, *told, *listed, *open_] if isinstance(text, str)
        )

    def _told(self, finding: Finding) -> dict[str, str | list[int]]:
        return {
            "step": self.subject_of(finding.step_id),
            "status": finding.status,
            "text": clipped(finding.text, LONGEST_FINDING),
            "sources": self.numbers_of(finding.citations),
        }


def gather(
    question: str, plan: Plan | None, findings: Sequence[Finding], background: Sequence[Citation]
) -> Material:
    """What a step cites by numbers of its own goes by the answer's numbers from here on."""
    usable = tuple(
        found.model_copy(update={"text": without_marks(found.text)}) for found in findings if found.usable
    )
    read = [citation for found in usable for citation in found.citations[:MOST_SOURCES]]
    gaps = tuple(_gaps(plan, findings))
    return Material(question, plan, usable, _each_once([*read, *background[:MOST_SOURCES]]), gaps)


def _gaps(plan: Plan | None, findings: Sequence[Finding]) -> Iterator[Gap]:
    """Steps that failed, found nothing, or were never carried out."""
    titles = _titles(plan)
    for finding in findings:
        if not finding.usable:
            reason = finding.error or SAY(f"report.gap.{finding.status}")
            yield Gap(titles.get(finding.step_id, finding.step_id), reason)
    told = {finding.step_id for finding in findings}
    yield from (Gap(title, SAY("report.gap.missing")) for step, title in titles.items() if step not in told)


def _titles(plan: Plan | None) -> dict[str, str]:
    return {step.id: step.title for step in plan.steps} if plan else {}


def _each_once(citations: Iterable[Citation]) -> tuple[Citation, ...]:
    places: dict[tuple[str, str], Citation] = {}
    for citation in citations:
        places.setdefault(_place(citation), citation)
    return tuple(places.values())


def _place(citation: Citation) -> tuple[str, str]:
    return (citation.url, "") if citation.url else (citation.title, citation.source)


def _listed(number: int, source: Citation) -> dict[str, int | str | None]:
    return {
        "number": number,
        "title": source.title,
        "source": source.source,
        "url": source.url,
        "published_at": source.published_at,
        "quote": clipped(source.quote, LONGEST_QUOTE),
    }


NAMED = 8
"""As many offenders are named; a reader or a model needs no longer list."""


def faults(draft: Draft, material: Material, *, locale: str, style: Style) -> list[Message]:
    """What the writer should correct, and the reader must know if it is not."""
    return [
        *_missing(draft, locale, style),
        *_invented(draft, material),
        *_in_another_language(draft, locale),
        *([] if cites(draft, material) else [SAY("report.uncited")]),
    ]


def keep_known(draft: Draft, material: Material) -> tuple[Draft, tuple[Citation, ...], list[Message]]:
    """The draft without sources and links that do not exist, those it cites in order, and what was taken out."""
    cited = cited_in(draft.parts().values())
    known = [number for number in cited if 1 <= number <= len(material.sources)]
    unknown = [f"[{number}]" for number in cited if number not in known]
    links = sorted(filter(_is_link, _ungrounded(draft, material)), key=len, reverse=True)
    numbers = {number: position for position, number in enumerate(known, start=1)}

    def kept(text: str) -> str:
        return renumber(reduce(lambda rest, link: rest.replace(link, "…"), links, text), numbers)

    texts = {
        name: kept(value) if isinstance(value, str) else [kept(line) for line in value]
        for name, value in draft.model_dump().items()
    }
    removed = [SAY("report.unknown_sources", numbers=unknown[:NAMED])] if unknown else []
    removed += [SAY("report.unknown_links", links=links[:NAMED])] if links else []
    return draft.model_copy(update=texts), tuple(material.sources[n - 1] for n in known), removed


def _missing(draft: Draft, locale: str, style: Style) -> Iterator[Message]:
    shape, say, parts = SHAPES[style], headings_for(locale), draft.parts()
    wanted = {"key_points": shape.key_points > 0, "analysis": shape.analysis, "risks": True}
    if absent := [say[part] for part, asked in wanted.items() if asked and not parts[part]]:
        yield SAY("report.missing", parts=absent)


def _invented(draft: Draft, material: Material) -> Iterator[Message]:
    if numbers := [stated for stated in _ungrounded(draft, material) if not _is_link(stated)]:
        yield SAY("report.invented", numbers=numbers[:NAMED])


def _ungrounded(draft: Draft, material: Material) -> list[str]:
    """Numbers and links of the text that stand in nothing its writer was shown."""
    texts = [without_marks(text) for text in draft.parts().values()]
    return ground(texts, (), given=material.given()).offenders


def _is_link(stated: str) -> bool:
    return "://" in stated or stated.startswith("www.")


def cites(draft: Draft, material: Material) -> bool:
    """Anything that it was given, if there is anything."""
    known = range(1, len(material.sources) + 1)
    return not known or any(number in known for number in cited_in(draft.parts().values()))


FEWEST_TO_TELL = 40
"""Of fewer characters, names among them, nobody can say which language they are in."""


def _in_another_language(draft: Draft, locale: str) -> Iterator[Message]:
    tongue, say, parts = tongue_of(locale), headings_for(locale), draft.parts()
    if tongue is None:
        return
    foreign = [part for part, text in parts.items() if _is_foreign(text, tongue)]
    if foreign or _is_foreign("\n".join(parts.values()), tongue):
        named = [say.get(part, part) for part in foreign or parts]
        yield SAY("report.wrong_language", language=language_name(locale), parts=named)


def _is_foreign(text: str, tongue: Tongue) -> bool:
    return len(text) >= FEWEST_TO_TELL and detect(text) not in (tongue, None)
