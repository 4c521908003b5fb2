"""Bull, bear and narrator by a model: what each is shown, what it may answer, and what of that holds.

Nobody here is shown words from outside. A claim rests on figures that were shown, states no others, and is at most as
strong as the strongest claim on any of them. What does not hold is left out and named.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Literal, TypeVar

from pydantic import BaseModel, Field

from moot.modules.debate.domain.debate import DebateInput, Speech, Text, Turn
from moot.modules.llm_platform.application.speaker import Brief, EngineChoice, Prompts, Speaker, Spoken
from moot.shared.domain.claims import ArgumentGraph, Claim, Relation, Side, Strength
from moot.shared.domain.errors import AppError, ErrorKind
from moot.shared.domain.evidence import Evidence
from moot.shared.domain.exhibits import Exhibits
from moot.shared.domain.experts import EXPERT_TEXTS, ExpertType
from moot.shared.domain.grounding import ground
from moot.shared.domain.messages import Catalogue, Message

PROMPTS = Prompts(Path(__file__).parent / "prompts")
SAY = Catalogue(Path(__file__).parent / "texts", EXPERT_TEXTS)
RESOLUTION = "resolution"
MOST_CLAIMS = 4
MOST_RELATIONS = 8
UNTESTED = 0.5
"""How strong a claim may be on figures that no other claim rests on."""

Role = Literal["bull", "bear"]
SIDES: dict[Role, Side] = {"bull": "for", "bear": "against"}


class Answer(BaseModel, frozen=True, allow_inf_nan=False):
    """What a model writes, in the order in which it writes it."""


A = TypeVar("A", bound=Answer)
T = TypeVar("T")


class Point(Answer):
    says: Text
    dimension: str
    evidence: list[str]
    strength: Strength


class Reply(Answer):
    kind: Literal["attack", "support"]
    claim: str
    by: str
    why: Text


class Plea(Answer):
    core_thesis: Text
    claims: list[Point] = Field(max_length=MOST_CLAIMS)
    relations: list[Reply] = Field(max_length=MOST_RELATIONS)
    narrative_report: str = ""


class Account(Answer):
    bull_case_summary: Text
    bear_case_summary: Text
    conflict_resolution: Text
    narrative_report: str = ""


class NothingHolds(AppError):
    """All that a model said for its side had to be left out."""

    code = "NOTHING_HOLDS"
    kind = ErrorKind.ANSWER


class ModelPleader:
    """Speaks for one side; where no model can, the experts' claims speak for themselves."""

    def __init__(self, side: Role, choice: EngineChoice, speaker: Speaker) -> None:
        self._role, self._choice, self._speaker = side, choice, speaker

    async def speak(self, debate_input: DebateInput, so_far: ArgumentGraph, last: Turn | None) -> Turn:
        agent = f"{self._role}_advocate"

        async def plead() -> Turn:
            exhibits = Exhibits(so_far, debate_input.evidence, debate_input.locale)
            hearing = Hearing(self._role, exhibits)
            case = {"last": _tell_last(last, exhibits), "ids": hearing.ids}
            spoken = await _ask(self._speaker, agent, Plea, debate_input, exhibits, **case)
            turn = hearing.hear(spoken.answer)
            told = {"grounding": spoken.grounding, "warnings": [*spoken.warnings, *turn.warnings]}
            return turn.model_copy(update=told)

        return await self._choice.make(agent, plead, partial(_leave, Turn()))


class ModelNarrator:
    """Tells an argument that is over, after both sides' own reports; what it comes to was computed, and no word
    changes it.
    """

    def __init__(self, choice: EngineChoice, speaker: Speaker) -> None:
        self._choice, self._speaker = choice, speaker

    async def explain(
        self, debate_input: DebateInput, argument: ArgumentGraph, bull: Turn, bear: Turn
    ) -> Speech:
        async def tell() -> Speech:
            exhibits = Exhibits(argument, debate_input.evidence, debate_input.locale)
            case = {"direction": SAY(f"literal.{argument.direction}"), "confidence": argument.confidence}
            case |= {"bull": _thesis(bull), "bear": _thesis(bear)}
            spoken = await _ask(self._speaker, RESOLUTION, Account, debate_input, exhibits, **case)
            reports = (bull.narrative_report, bear.narrative_report, spoken.answer.narrative_report)
            told = spoken.answer.model_dump() | {"narrative_report": "\n\n".join(filter(None, reports))}
            return Speech(**told, engine="llm", grounding=spoken.grounding, warnings=spoken.warnings)

        return await self._choice.make(RESOLUTION, tell, partial(_leave, Speech()))


async def _leave(unsaid: T) -> T:
    """By rule nothing is added: the words are the argument's own."""
    return unsaid


async def _ask(
    speaker: Speaker,
    agent: str,
    answer: type[A],
    debate_input: DebateInput,
    exhibits: Exhibits,
    **told: Any,
) -> Spoken[A]:
    shown = {"symbol": debate_input.symbol, "claims": exhibits.claims, "relations": exhibits.relations}
    brief = Brief(
        module="debate",
        agent=agent,
        system=PROMPTS.text(agent, debate_input.locale),
        case=SAY(f"case.{answer.__name__}", **shown, **told).in_locale(debate_input.locale),
        evidence=exhibits.figures,
        answer=answer,
        locale=debate_input.locale,
        as_of=debate_input.as_of,
        own=frozenset({"strength"}),
        claims=exhibits.argument.claims,
    )
    return await speaker.ask(brief)


def _tell_last(last: Turn | None, exhibits: Exhibits) -> str | Message:
    """What a model said for the other side; rules have nothing to answer."""
    if last is None or last.engine == "rubric":
        return ""
    relations = exhibits.list_lines(map(exhibits.tell_relation, last.relations))
    claims = [claim.id for claim in last.claims] or SAY("none")
    return SAY("case.last", thesis=last.core_thesis, claims=claims, relations=relations)


def _thesis(turn: Turn) -> str | Message:
    """Only a model's: words by rule may quote what others wrote."""
    return turn.core_thesis if turn.engine == "llm" else SAY("none")


@dataclass(frozen=True)
class Hearing:
    """One side's turn against what is on the table already."""

    role: Role
    exhibits: Exhibits

    @cached_property
    def ids(self) -> list[str]:
        """What its next claims are called: numbered on from round to round."""
        stem = f"debate.{self.role}."
        taken = [int(id_.removeprefix(stem)) for id_ in self._table if id_.startswith(stem)]
        return [f"{stem}{max(taken, default=0) + n}" for n in range(1, MOST_CLAIMS + 1)]

    def hear(self, plea: Plea) -> Turn:
        """What holds of a plea, and what had to be left out of it; raises `NothingHolds`."""
        table, dropped = dict(self._table), list[Message]()
        for id_, point in zip(self.ids, plea.claims, strict=False):
            if fault := next(self._doubt_point(point), None):
                dropped.append(SAY("dropped.one", text=point.says, fault=fault))
            else:
                table[id_] = self._claim(id_, point)
        relations = {(r.source, r.target): r for r in self.exhibits.argument.relations}
        for reply in plea.relations:
            if fault := next(self._doubt_reply(reply, table), None):
                dropped.append(SAY("dropped.one", text=reply.why, fault=fault))
            else:
                relations.setdefault((reply.by, reply.claim), self._relation(reply))
        if dropped and len(dropped) == len(plea.claims) + len(plea.relations):
            raise NothingHolds(SAY("dropped.all", dropped=dropped))
        return Turn(
            claims=[claim for id_, claim in table.items() if id_ not in self._table],
            relations=[r for r in relations.values() if r not in self.exhibits.argument.relations],
            **plea.model_dump(include={"core_thesis", "narrative_report"}),
            engine="llm",
            warnings=[message.in_locale(self.exhibits.locale) for message in dropped],
        )

    def _doubt_point(self, point: Point) -> Iterator[Message]:
        if not point.evidence:
            yield SAY("dropped.no_evidence")
        if unknown := [id_ for id_ in point.evidence if id_ not in self._figures]:
            yield SAY("dropped.unknown", ids=unknown)
        if not self._place(point):
            yield SAY("dropped.misplaced", dimension=point.dimension)
        if offenders := ground([point.says], self._cite(point.evidence)).offenders:
            yield SAY("dropped.numbers", numbers=offenders)
        sides = {claim.side for claim in self._resting_on(point)}
        if len(sides) == 1 and not sides & {SIDES[self.role], "neither"}:
            yield SAY("dropped.otherwise")

    def _doubt_reply(self, reply: Reply, table: Mapping[str, Claim]) -> Iterator[Message]:
        if unknown := [id_ for id_ in (reply.claim, reply.by) if id_ not in table]:
            yield SAY("dropped.unknown", ids=unknown)
            return
        source, target = table[reply.by], table[reply.claim]
        if (target.side == SIDES[self.role]) == (reply.kind == "attack"):
            yield SAY("dropped.own_side", id=target.id)
        if source == target:
            yield SAY("dropped.itself", id=target.id)
        if offenders := ground([reply.why], self._cite([*source.evidence, *target.evidence])).offenders:
            yield SAY("dropped.numbers", numbers=offenders)

    def _claim(self, id_: str, point: Point) -> Claim:
        expert, dimension = self._place(point)[0]
        most = max((claim.strength for claim in self._resting_on(point)), default=UNTESTED)
        return Claim(
            id=id_,
            kind="debate.model",
            expert=expert,
            dimension=dimension,
            side=SIDES[self.role],
            strength=min(point.strength, most),
            says={self.exhibits.locale: point.says},
            evidence=list(dict.fromkeys(point.evidence)),
            as_of=max(item.as_of for item in self._cite(point.evidence)),
            by="llm",
        )

    def _relation(self, reply: Reply) -> Relation:
        why = {self.exhibits.locale: reply.why}
        return Relation(
            source=reply.by, target=reply.claim, kind=reply.kind, scheme="model", why=why, by="llm"
        )

    @cached_property
    def _table(self) -> dict[str, Claim]:
        return {claim.id: claim for claim in self.exhibits.argument.claims}

    @cached_property
    def _figures(self) -> dict[str, Evidence]:
        return {item.id: item for item in self.exhibits.figures}

    def _cite(self, ids: Sequence[str]) -> list[Evidence]:
        return [self._figures[id_] for id_ in ids if id_ in self._figures]

    def _resting_on(self, point: Point) -> list[Claim]:
        """Who else goes by the same figures."""
        return [claim for claim in self._table.values() if set(claim.evidence) & set(point.evidence)]

    def _place(self, point: Point) -> list[tuple[ExpertType, str]]:
        """The dimension it is about: of an expert who was heard and whose figures it cites; or none."""
        cited = {id_.partition(".")[0] for id_ in point.evidence}
        return [
            (expert, dimension)
            for expert in self.exhibits.argument.heard
            for dimension in expert.dimensions
            if f"{expert.prefix}.{dimension}" == point.dimension and expert.prefix in cited
        ]
