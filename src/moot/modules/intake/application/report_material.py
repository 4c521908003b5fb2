"""What an answer is written from: what steps brought back, the sources of it by number, and what stays open."""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from moot.modules.intake.application.report_citations import uncited
from moot.modules.intake.application.report_text import clipped
from moot.modules.intake.domain.findings import Citation, Finding
from moot.modules.intake.domain.plan import Plan, Step, StepType
from moot.modules.intake.domain.texts import SAY
from moot.shared.domain.messages import Message

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


def gathered(
    question: str, plan: Plan | None, findings: Sequence[Finding], background: Sequence[Citation]
) -> Material:
    """What a step cites by numbers of its own goes by the answer's numbers from here on."""
    usable = tuple(
        found.model_copy(update={"text": uncited(found.text)}) for found in findings if found.usable
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
