"""The analyst that is a language model: it reads the same evidence as the rules and answers in the same shape."""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, partial
from itertools import groupby
from pathlib import Path
from typing import Any, TypeVar

from moot.modules.llm_platform.application.answer_schema import find_foreign_fields
from moot.modules.llm_platform.application.speaker import Brief, EngineChoice, Speaker
from moot.modules.research.application.expert_service import Answer, ExpertService, refuse_answer
from moot.modules.research.domain.claims import Proposals, with_claims
from moot.modules.research.domain.evidence import ExpertResult, Opinion, Snapshot
from moot.modules.research.domain.facts import SAY, Case
from moot.modules.research.domain.rubric import sign_of
from moot.shared.domain.claims import Claim
from moot.shared.domain.evidence import Evidence
from moot.shared.domain.experts import EXPERT_TEXTS, ExpertType
from moot.shared.domain.messages import Catalogue, Locale, Message

S = TypeVar("S", bound=Snapshot)
R = TypeVar("R", bound=ExpertResult)

OWN_NUMBERS = frozenset({"confidence", "confidence_score", "score", "financial_score"})
MISSING = "N/A"
NAMES = Catalogue(EXPERT_TEXTS)


@dataclass(frozen=True)
class LLMAnalyst:
    """The model or the rules, as the desk is set up; the opinion says which of them it was."""

    speaker: Speaker
    choice: EngineChoice

    async def __call__(
        self, expert: ExpertService[S, R], snapshot: S, evidence: Sequence[Evidence], case: Case
    ) -> Opinion[R]:
        by_model = partial(self._ask, expert, snapshot, evidence, case)
        by_rule = partial(expert.judge_by_rule, snapshot, evidence, case)
        return await self.choice.make(expert.expert, by_model, by_rule)

    async def _ask(
        self, expert: ExpertService[S, R], snapshot: S, evidence: Sequence[Evidence], case: Case
    ) -> Opinion[R]:
        card, ruled = expert.rule(snapshot, case)
        rubric = expert.claim(snapshot, card, evidence, case)
        brief: Brief[Any] = Brief(
            module="research",
            agent=expert.expert.value,
            system=prompt(expert.folder, case.locale),
            case=case_of(
                snapshot, expert.shows, expert.quotes, tell_claims(expert.expert, rubric, case.locale)
            ),
            evidence=evidence,
            answer=with_claims(expert.answer),
            locale=case.locale,
            as_of=case.as_of,
            normalise=lambda answer: expert.check(snapshot, _refuse_blank(answer)),
            own=OWN_NUMBERS,
            claims=rubric,
        )
        spoken = await self.speaker.ask(brief)
        result, remarks = expert.settle(spoken.answer)
        proposed, known = spoken.answer.claims, {item.id: item for item in evidence}
        foreign = find_foreign_fields({c.says: [c.says] for c in proposed}, case.locale, spoken.input)
        proposals = Proposals(expert.expert, case.locale, foreign, rubric, known)
        proposals.weigh(proposed)
        remarks = [*remarks, *proposals.dropped, *_depart(expert.expert, result, ruled)]
        told = (remark.in_locale(case.locale) for remark in remarks)
        warnings, claims = (*spoken.warnings, *told), (*rubric, *proposals.accepted)
        return Opinion(result, spoken.input, spoken.output, "llm", spoken.grounding, warnings, claims)


def _depart(expert: ExpertType, result: ExpertResult, ruled: ExpertResult | None) -> Iterator[Message]:
    """That a model is on another side than the rules: its words tell why."""
    said, by_rule = (str(getattr(one, expert.fields.signal)) for one in (result, ruled or result))
    if sign_of(expert.stances[said]) != sign_of(expert.stances[by_rule]):
        names = (NAMES(f"literal.{signal.partition(' ')[0]}") for signal in (said, by_rule))
        yield SAY("departs", **dict(zip(("said", "ruled"), names, strict=True)))


def _refuse_blank(answer: Answer) -> Answer:
    """Only the narrative may be left out."""
    for name, text in answer.items():
        if name != "narrative_report" and isinstance(text, str) and not text.strip():
            raise refuse_answer("blank", name, got=text)
    return answer


@cache
def prompt(folder: Path, locale: Locale) -> str:
    return (folder / f"{locale}.md").read_text("utf-8").strip()


def tell_claims(expert: ExpertType, claims: Iterable[Claim], locale: Locale) -> list[str]:
    """What the rubric claims, for a model to add to. What others wrote stands in the evidence, quoted, alone."""
    lines = [
        (c.id, c.side, f"{c.strength:g}", c.dimension, " ".join(_name_series(c.evidence)), _says(c, locale))
        for c in claims
    ]
    return [f"dimensions: {' '.join(expert.dimensions)}", "claims:", *(" | ".join(line) for line in lines)]


def _name_series(ids: Iterable[str]) -> Iterator[str]:
    """Each by its id, but several of a series by that of the series."""
    for series, members in groupby(ids, key=lambda id_: id_.rpartition(".")[0]):
        listed = list(members)
        yield from [f"{series}.*"] if "." in series and len(listed) > 1 else listed


def _says(claim: Claim, locale: Locale) -> str:
    return claim.kind if claim.reported else claim.text(locale)


def case_of(
    snapshot: Snapshot, shows: Iterable[str], quotes: Iterable[str], claims: Iterable[str] = ()
) -> str:
    """What a model is shown beside the evidence: whom it is about, what is missing, what others wrote.

    Measurements come with the evidence; here they appear only where one is missing, lest it be overlooked.
    """
    measured = {name: getattr(snapshot, name) for name in snapshot.units()}
    told = {name: getattr(snapshot, name) for name in shows} | {
        name: value for name, value in measured.items() if isinstance(value, list) and None in value
    }
    holes = [name for name, value in {**told, **measured}.items() if value is None]
    return "\n".join(
        [
            *(f"{name}: {_show(value)}" for name, value in told.items() if value is not None),
            *([f"{MISSING}: {', '.join(holes)}"] if holes else []),
            *map(_no_markup, claims),
            *(f"{name}:\n{_quote(getattr(snapshot, name))}" for name in quotes),
        ]
    )


def _show(value: Any) -> str:
    """On one line."""
    if isinstance(value, list):
        value = [MISSING if member is None else member for member in value]
    return _no_markup(" ".join(json.dumps(value, ensure_ascii=False, default=str).splitlines()))


def _quote(text: str) -> str:
    """Every line is marked, so that nothing in a text can pose as a line of the desk's own."""
    return "\n".join(f"> {_no_markup(line)}" for line in text.splitlines())


def _no_markup(text: str) -> str:
    """Nor as one of the tags that frame the evidence."""
    return text.replace("<", "\\u003c")
