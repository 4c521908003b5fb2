"""What an answer is written from, its text before it is dressed, and whether that holds against the material."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Annotated, Any

from pydantic import BaseModel, StringConstraints

from moot.modules.intake.application.intake_state import IntakeState
from moot.modules.intake.application.language import detect, tongue_of
from moot.modules.intake.application.report_text import clip, headings_for, language_name
from moot.modules.intake.domain.conversation import Style
from moot.modules.intake.domain.question import Citation, Finding, Plan, Step, StepType, Tongue
from moot.modules.intake.domain.texts import SAY
from moot.shared.domain.grounding import ground
from moot.shared.domain.messages import Locale, Message, reading_language

Text = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]
LONGEST_FINDING, LONGEST_QUOTE, LONGEST_QUESTION = 12_000, 600, 4_000
MOST_SOURCES = 20
"""Of one step."""
NAMED = 8
"""As many offenders are named; a reader or a model needs no longer list."""
VERDICT = re.compile(r"\b(?:BUY|SELL|HOLD)\b")
FEWEST_TO_TELL = 40
"""Of fewer characters, names among them, nobody can say which language they are in."""


CITED = re.compile(r"[ \t]*[\[【]\s*(\d{1,3}(?:\s*[,，、;；]\s*\d{1,3})*)\s*[\]】]")


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

    def fit(self, style: Style) -> "Draft":
        """Without what the style leaves out. Risks are never left out."""
        analysis = "" if style == WITHOUT_ANALYSIS else self.analysis.strip()
        points = self.key_points[: MOST_POINTS[style]]
        return self.model_copy(update={"key_points": points, "analysis": analysis})


MOST_POINTS: Mapping[Style, int] = {"brief": 3, "research": 6, "academic": 0, "news": 0}
"""Key points that a style shows."""
WITHOUT_ANALYSIS: Style = "brief"


@dataclass(frozen=True)
class Found:
    """A finding that can be read as evidence. `step` None: an earlier plan found it."""

    finding: Finding
    step: Step | None
    known: Mapping[tuple[str, str], int]
    """The numbers of all sources."""

    @property
    def subject(self) -> str:
        return self.step.title if self.step else self.finding.step_id

    @property
    def type(self) -> StepType | None:
        """A session tells that it was research on a company."""
        return self.step.type if self.step else "equity" if self.finding.session_id else None

    def numbers(self, sources: Sequence[Citation] | None = None) -> list[int]:
        """Of these sources, or of all that it rests on."""
        cited = self.finding.citations if sources is None else sources
        return sorted({self.known[_place(source)] for source in cited if _place(source) in self.known})

    def marks(self, sources: Sequence[Citation] | None = None) -> str:
        numbers = self.numbers(sources)
        return " " + "".join(f"[{number}]" for number in numbers) if numbers else ""


@dataclass(frozen=True)
class Material:
    """What an answer is to be written from, in which language and style; source number n is `sources[n - 1]`.

    `gaps` were to be found out and were not: what, and why. The reason is for the reader; no model is told it.
    """

    question: str
    plan: Plan | None
    found: tuple[Found, ...]
    sources: tuple[Citation, ...]
    gaps: tuple[tuple[str, str | Message], ...]
    locale: str
    style: Style

    @property
    def reader(self) -> Locale:
        return reading_language(self.locale)

    @property
    def say(self) -> Mapping[str, str]:
        return headings_for(self.locale)

    def beside(self) -> Iterator[tuple[int, Citation]]:
        """Sources that no finding rests on: what was read before there was a plan."""
        cited = {number for found in self.found for number in found.numbers()}
        return ((n, source) for n, source in enumerate(self.sources, start=1) if n not in cited)

    def show(self) -> str:
        """All of it as a model is shown it: JSON, so that no text in it can pass for anything around it."""
        return json.dumps(self._tell(), ensure_ascii=False, indent=1)

    def join_shown(self) -> str:
        """Every text a model was shown, in which a number or link of its answer must stand."""
        told = self._tell()
        listed = [text for each in (*told["findings"], *told["sources"]) for text in each.values()]
        texts = [told["question"], told["plan"], *told["could_not_be_found_out"], *listed]
        return "\n".join(text for text in texts if isinstance(text, str))

    def find_faults(self, draft: Draft) -> list[Message]:
        """What the writer should correct, and the reader must know if it is not.

        `overruled` are verdicts that nothing it was shown speaks of: the rules may have taken them back.
        """
        say, parts, style, shown = self.say, draft.parts(), self.style, self.join_shown()
        ruled = set(VERDICT.findall("\n".join(parts.values())))
        overruled = [verdict for verdict in ruled if verdict not in shown]
        known = range(1, len(self.sources) + 1)
        cites = not known or any(number in known for number in find_cited(parts.values()))
        wanted = {"key_points": MOST_POINTS[style], "analysis": style != WITHOUT_ANALYSIS, "risks": True}
        absent = [say[part] for part, asked in wanted.items() if asked and not parts[part]]
        invented = [stated for stated in _find_ungrounded(draft, self) if not _is_link(stated)]
        foreign = [say.get(part, part) for part in _foreign(parts, tongue_of(self.locale))]
        language = language_name(self.locale)
        return [
            *([SAY("report.missing", parts=absent)] if absent else []),
            *([SAY("report.invented", numbers=invented[:NAMED])] if invented else []),
            *([SAY("report.wrong_language", language=language, parts=foreign)] if foreign else []),
            *([SAY("report.overruled", verdicts=overruled)] if overruled else []),
            *([] if cites else [SAY("report.uncited")]),
        ]

    def _tell(self) -> dict[str, Any]:
        findings = [
            {
                "step": found.subject,
                "status": found.finding.status,
                "text": clip(found.finding.text, LONGEST_FINDING),
                "sources": found.numbers(),
            }
            for found in self.found
        ]
        sources = [
            {"number": number, **source.model_dump(), "quote": clip(source.quote, LONGEST_QUOTE)}
            for number, source in enumerate(self.sources, start=1)
        ]
        return {
            "question": clip(self.question, LONGEST_QUESTION),
            "plan": self.plan.title if self.plan else None,
            "findings": findings,
            "sources": sources,
            "could_not_be_found_out": [subject for subject, _ in self.gaps],
        }


def gather(state: IntakeState, style: Style) -> Material:
    """What a step cites by numbers of its own goes by the answer's numbers from here on.

    Where the rules refused a step, what strangers say of it takes its place no more than a model does.
    """
    plan, findings = state.plan, state.findings
    background = [] if any(found.refused for found in findings) else state.background
    steps = {step.id: step for step in plan.steps} if plan else {}
    usable = [found for found in findings if found.usable]
    read = [citation for found in usable for citation in found.citations[:MOST_SOURCES]]
    sources: dict[tuple[str, str], Citation] = {}
    for citation in (*read, *background[:MOST_SOURCES]):
        sources.setdefault(_place(citation), citation)
    known = {place: number for number, place in enumerate(sources, start=1)}
    found = tuple(
        Found(each.model_copy(update={"text": drop_marks(each.text)}), steps.get(each.step_id), known)
        for each in usable
    )
    gaps = tuple(_gaps(steps, findings))
    return Material(state.question, plan, found, tuple(sources.values()), gaps, state.locale, style)


def _gaps(steps: Mapping[str, Step], findings: Sequence[Finding]) -> Iterator[tuple[str, str | Message]]:
    """Steps that failed, found nothing, or were never carried out."""
    for finding in findings:
        if not finding.usable:
            step = steps.get(finding.step_id)
            reason = finding.error or SAY(f"report.gap.{finding.status}")
            yield step.title if step else finding.step_id, reason
    told = {finding.step_id for finding in findings}
    yield from ((step.title, SAY("report.gap.missing")) for step in steps.values() if step.id not in told)


def _place(citation: Citation) -> tuple[str, str]:
    return (citation.url, "") if citation.url else (citation.title, citation.source)


def keep_known(draft: Draft, material: Material) -> tuple[Draft, tuple[Citation, ...], list[Message]]:
    """The draft without sources and links that do not exist, those it cites in order, and what was taken out."""
    cited = find_cited(draft.parts().values())
    known = [number for number in cited if 1 <= number <= len(material.sources)]
    unknown = [f"[{number}]" for number in cited if number not in known]
    links = sorted(filter(_is_link, _find_ungrounded(draft, material)), key=len, reverse=True)
    numbers = {number: position for position, number in enumerate(known, start=1)}

    def keep(text: str) -> str:
        return renumber(reduce(lambda rest, link: rest.replace(link, "…"), links, text), numbers)

    texts = {
        name: keep(value) if isinstance(value, str) else [keep(line) for line in value]
        for name, value in draft.model_dump().items()
    }
    removed = [SAY("report.unknown_sources", numbers=unknown[:NAMED])] if unknown else []
    removed += [SAY("report.unknown_links", links=links[:NAMED])] if links else []
    return draft.model_copy(update=texts), tuple(material.sources[n - 1] for n in known), removed


def _find_ungrounded(draft: Draft, material: Material) -> list[str]:
    """Numbers and links of the text that stand in nothing its writer was shown."""
    texts = [drop_marks(text) for text in draft.parts().values()]
    return ground(texts, (), given=material.join_shown()).offenders


def _is_link(stated: str) -> bool:
    return "://" in stated or stated.startswith("www.")


def _foreign(parts: Mapping[str, str], tongue: Tongue | None) -> Iterable[str]:
    """Parts in another language; all of them, where only all together tell."""

    def is_foreign(text: str) -> bool:
        return tongue is not None and len(text) >= FEWEST_TO_TELL and detect(text) not in (tongue, None)

    foreign = [part for part, text in parts.items() if is_foreign(text)]
    return foreign or (parts if is_foreign("\n".join(parts.values())) else ())


def find_cited(texts: Iterable[str]) -> list[int]:
    """Source numbers in the order in which they are cited, each once."""
    found = [number for text in texts for marks in CITED.findall(text) for number in _numbers(marks)]
    return list(dict.fromkeys(found))


def renumber(text: str, numbers: Mapping[int, int]) -> str:
    """The text with each citation under its new number, and without those that have none."""

    def again(found: re.Match[str]) -> str:
        kept = dict.fromkeys(numbers[number] for number in _numbers(found[1]) if number in numbers)
        lead = " " if found[0][0] in " \t" else ""
        return lead + "".join(f"[{number}]" for number in kept) if kept else ""

    return CITED.sub(again, text)


def _numbers(marks: str) -> list[int]:
    return [int(digits) for digits in re.findall(r"\d+", marks)]


def drop_marks(text: str) -> str:
    return CITED.sub("", text)
