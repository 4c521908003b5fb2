"""From a text to the answer: harmless words under headings in the reader's language, gaps and age told."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal

from moot.modules.intake.application.headings import headings_for
from moot.modules.intake.application.report_draft import Draft
from moot.modules.intake.application.report_material import Gap, Material
from moot.modules.intake.application.report_text import (
    clipped,
    day_of,
    markdown_of,
    plain,
    safe_url,
    tamed,
)
from moot.modules.intake.domain.answer import Answer, Section, Style
from moot.modules.intake.domain.findings import Citation
from moot.modules.intake.domain.question import reading_language
from moot.modules.intake.domain.texts import SAY
from moot.shared.domain.messages import Locale, Message

LONGEST_TITLE = 200


@dataclass(frozen=True)
class Commission:
    """What an answer is to be written from, in which language and style."""

    material: Material
    locale: str
    style: Style

    @property
    def reader(self) -> Locale:
        return reading_language(self.locale)


@dataclass(frozen=True)
class Written:
    """A text and the sources it cites, in the order of their numbers."""

    draft: Draft
    citations: tuple[Citation, ...]
    engine: Literal["llm", "rules"]
    notes: list[Message] = field(default_factory=list)


def finished(written: Written, asked: Commission, warnings: Sequence[str]) -> Answer:
    draft, findings = written.draft, asked.material.findings
    told = [note.in_locale(asked.reader) for note in [*written.notes, *_limits_reached(asked.material)]]
    found = [warning for finding in findings for warning in finding.warnings]
    answer = Answer(
        locale=asked.locale,
        style=asked.style,
        title=plain(clipped(draft.title, LONGEST_TITLE)),
        key_points=tuple(map(_one_line, draft.key_points)),
        sections=tuple(_sections(draft, asked)),
        citations=tuple(c.model_copy(update={"url": safe_url(c.url)}) for c in written.citations),
        engine=written.engine,
        disclaimer=_disclaimer(written.citations, asked.locale),
        warnings=tuple(dict.fromkeys([*warnings, *found, *told])),
        markdown="",
    )
    return answer.model_copy(update={"markdown": markdown_of(answer)})


def _sections(draft: Draft, asked: Commission) -> Iterator[Section]:
    say = headings_for(asked.locale)
    texts = {
        "overview": tamed(draft.overview),
        "analysis": tamed(draft.analysis),
        "risks": "\n".join(f"- {_one_line(risk)}" for risk in draft.risks),
        "gaps": "\n".join(f"- {_told(gap, asked)}" for gap in asked.material.gaps),
    }
    yield from (Section(heading=say[part], text=text) for part, text in texts.items() if text)


def _told(gap: Gap, asked: Commission) -> str:
    reason = gap.reason if isinstance(gap.reason, str) else gap.reason.in_locale(asked.reader)
    return headings_for(asked.locale)["about"].format(subject=plain(gap.subject), text=plain(reason))


def _limits_reached(material: Material) -> Iterator[Message]:
    for finding in material.findings:
        if finding.status == "partial":
            yield SAY("report.partial", step=material.subject_of(finding.step_id))


def _one_line(text: str) -> str:
    return tamed(" ".join(text.split()))


def _disclaimer(citations: Sequence[Citation], locale: str) -> str:
    """That it is no advice, and how old it is as far as its sources say."""
    say = headings_for(locale)
    if not citations:
        return say["not_advice"]
    days = sorted(filter(None, map(day_of, citations)))
    key = ("sources_dated" if days[0] < days[-1] else "sources_of_a_day") if days else "sources_undated"
    age = say[key].format(oldest=min(days, default=""), newest=max(days, default=""))
    return say["and_also"].format(said=say["not_advice"], more=age)
