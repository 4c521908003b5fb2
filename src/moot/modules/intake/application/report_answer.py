"""From a text to the answer: harmless words under headings in the reader's language, gaps and age told."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import Literal

from moot.modules.intake.application.headings import headings_for
from moot.modules.intake.application.report_draft import Draft
from moot.modules.intake.application.report_material import Material
from moot.modules.intake.application.report_text import (
    clipped,
    day_of,
    markdown_of,
    plain,
    safe_url,
    tamed,
)
from moot.modules.intake.domain.answer import Answer, Section, Style
from moot.modules.intake.domain.findings import Citation, Spent
from moot.modules.intake.domain.question import reading_language
from moot.modules.intake.domain.texts import SAY
from moot.shared.domain.messages import LOCALES, Locale, Message
from moot.shared.domain.texts import SAY as COMMON

LONGEST_TITLE = 200
NO_ADVICE = frozenset(COMMON("not_advice").in_locale(locale) for locale in LOCALES)
"""Said of every session; an answer says it once, at its end."""


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


def finished(written: Written, asked: Commission, warnings: Sequence[str], spent: Spent | None) -> Answer:
    """`spent` is what models took beside the findings; None: nobody has counted."""
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
        disclaimer=_disclaimer(written.citations, asked, spent),
        warnings=tuple(note for note in dict.fromkeys([*warnings, *found, *told]) if note not in NO_ADVICE),
        markdown="",
    )
    return answer.model_copy(update={"markdown": markdown_of(answer)})


def _sections(draft: Draft, asked: Commission) -> Iterator[Section]:
    say = headings_for(asked.locale)
    texts = {
        "overview": tamed(draft.overview),
        "analysis": tamed(draft.analysis),
        "risks": "\n".join(f"- {_one_line(risk)}" for risk in draft.risks),
        "gaps": "\n".join(f"- {told}" for told in _gaps(asked)),
    }
    yield from (Section(heading=say[part], text=text) for part, text in texts.items() if text)


def _gaps(asked: Commission) -> Iterator[str]:
    """What is missing for the same reason is told together."""
    by_reason: dict[str, list[str]] = {}
    for gap in asked.material.gaps:
        reason = gap.reason if isinstance(gap.reason, str) else gap.reason.in_locale(asked.reader)
        by_reason.setdefault(reason, []).append(gap.subject)
    about = headings_for(asked.locale)["about"]
    for reason, subjects in by_reason.items():
        yield about.format(subject=plain(" · ".join(subjects)), text=plain(reason))


def _limits_reached(material: Material) -> Iterator[Message]:
    for finding in material.findings:
        if finding.status == "partial":
            yield SAY("report.partial", step=material.subject_of(finding.step_id))


def _one_line(text: str) -> str:
    return tamed(" ".join(text.split()))


def _disclaimer(citations: Sequence[Citation], asked: Commission, spent: Spent | None) -> str:
    """That it is no advice, how old it is as far as its sources say, and what it took as far as that is known."""
    say = headings_for(asked.locale)
    parts = [say["not_advice"], *_age(citations, say)]
    if spent is not None:
        parts.append(_took(sum((finding.spent for finding in asked.material.findings), spent), say))
    return reduce(lambda said, more: say["and_also"].format(said=said, more=more), parts)


def _age(citations: Sequence[Citation], say: Mapping[str, str]) -> Iterator[str]:
    if not citations:
        return
    days = sorted(filter(None, map(day_of, citations)))
    key = ("sources_dated" if days[0] < days[-1] else "sources_of_a_day") if days else "sources_undated"
    yield say[key].format(oldest=min(days, default=""), newest=max(days, default=""))


def _took(spent: Spent, say: Mapping[str, str]) -> str:
    if not spent.requests:
        return say["no_calls"]
    known = spent.cost is not None
    cost = f"{spent.cost:,.4f} {spent.currency or say['own_currency']}" if known else say["unpriced"]
    return say["calls"].format(requests=spent.requests, tokens=f"{spent.tokens:,}", cost=cost)
