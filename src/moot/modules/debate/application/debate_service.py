"""The debate's door: what the experts claim in, an argument with its outcome out.

And for whoever contests what was argued: the argument is weighed again, and nobody speaks.
"""

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from math import copysign
from typing import Any

from moot.modules.debate.domain.argument import Weighing, close, extend
from moot.modules.debate.domain.debate import (
    SAY,
    DebateInput,
    DebateOutcomeDTO,
    ExpertSummary,
    Narrator,
    Pleader,
    Speech,
    Turn,
    UnknownSignal,
    combine,
    read_claims,
)
from moot.modules.debate.domain.reading import read_off
from moot.modules.debate.domain.schemes import relate
from moot.shared.domain.claims import ArgumentGraph, Claim, Move, Relation
from moot.shared.domain.experts import ExpertType
from moot.shared.domain.messages import Locale, Message

__all__ = ["DebateInput", "DebateOutcomeDTO", "ExpertSummary", "UnknownSignal"]

WORDS = ("bull_case_summary", "bear_case_summary", "conflict_resolution", "narrative_report")
"""What a narrator may put in its own."""
CONTEST = "contest"
"""The kind of what a person adds, and the scheme by which it bears on its target; its ids count from `contest.1`."""
HALF = 0.5


class DebateService:
    def __init__(self, bull: Pleader, bear: Pleader, narrator: Narrator) -> None:
        self._bull, self._bear, self._narrator = bull, bear, narrator

    async def run(self, debate_input: DebateInput) -> DebateOutcomeDTO:
        """Both sides at the same time, round by round; then all that was claimed is weighed, and told."""
        claims = read_claims(debate_input)
        heard = frozenset(map(ExpertType, debate_input.expert_summaries))
        weighing = extend(Weighing([], [], heard, debate_input.horizon), claims, relate(claims))
        argument, rounds = close(weighing), list[tuple[Turn, Turn]]()
        for _ in range(debate_input.rounds):
            turns = await self._hold_round(debate_input, argument, rounds)
            rounds.append(turns)
            for turn in turns:
                weighing = extend(weighing, turn.claims, turn.relations)
            if any(turn.claims or turn.relations for turn in turns):
                argument = close(weighing)
            if all(turn.engine == "rubric" for turn in turns):
                break
        bull, bear = (_sum_up(turns) for turns in zip(*rounds, strict=True))
        speech = await self._narrator.explain(debate_input, argument, bull, bear)
        return _outcome(debate_input, argument, bull, bear, speech)

    async def _hold_round(
        self, debate_input: DebateInput, so_far: ArgumentGraph, rounds: list[tuple[Turn, Turn]]
    ) -> tuple[Turn, Turn]:
        """Waits for both even if one fails, so that no paid call runs on behind a debate that is over."""
        last_bull, last_bear = rounds[-1] if rounds else (None, None)
        bull, bear = await asyncio.gather(
            self._bull.speak(debate_input, so_far, last_bear),
            self._bear.speak(debate_input, so_far, last_bull),
            return_exceptions=True,
        )
        if isinstance(bull, BaseException):
            raise bull
        if isinstance(bear, BaseException):
            raise bear
        return bull, bear


def _sum_up(turns: tuple[Turn, ...]) -> Turn:
    """What one side said in all rounds; its words are those it ended with."""
    return turns[-1].model_copy(
        update={
            "claims": [claim for turn in turns for claim in turn.claims],
            "relations": [relation for turn in turns for relation in turn.relations],
            "engine": "llm" if all(turn.engine == "llm" for turn in turns) else "rubric",
            "grounding": combine(*(turn.grounding for turn in turns)),
            "warnings": list(dict.fromkeys(warning for turn in turns for warning in turn.warnings)),
        }
    )


def _outcome(
    debate_input: DebateInput, argument: ArgumentGraph, bull: Turn, bear: Turn, speech: Speech
) -> DebateOutcomeDTO:
    """Read off the argument, whoever spoke; words are the speakers', and by rule where they left some unsaid."""
    theses = {"bull": bull.core_thesis, "bear": bear.core_thesis}
    read = read_off(argument, debate_input.evidence, debate_input.locale, **theses)
    said = {name: getattr(speech, name) for name in WORDS if getattr(speech, name)}
    return DebateOutcomeDTO(
        **read | said,
        symbol=debate_input.symbol,
        evidence=debate_input.evidence,
        experts=list(debate_input.expert_summaries),
        engine="llm" if all(part.engine == "llm" for part in (bull, bear, speech)) else "rubric",
        grounding=combine(bull.grounding, bear.grounding, speech.grounding),
        warnings=[w.in_locale(debate_input.locale) for w in _warnings(bull, bear, speech)],
    )


def _warnings(bull: Turn, bear: Turn, speech: Speech) -> Iterator[Message]:
    """What is odd about each text; and who spoke by rule, when others spoke by model."""
    spoken: dict[str, Turn | Speech] = {"bull": bull, "bear": bear, "resolution": speech}
    for role, part in spoken.items():
        for warning in part.warnings:
            yield SAY("says", who=SAY(f"role.{role}"), text=warning)
    by_rule = [SAY(f"role.{role}") for role, part in spoken.items() if part.engine == "rubric"]
    if 0 < len(by_rule) < len(spoken):
        yield SAY("mixed_engines", by_rule=by_rule)


def lean_unaided(argument: Mapping[str, Any]) -> float:
    """Where it leads without anything a model said, from -1 (do not buy) to 1 (do)."""
    claims = [Claim.model_validate(claim) for claim in argument["claims"]]
    relations = [Relation.model_validate(relation) for relation in argument["relations"]]
    by_rule = [relation for relation in relations if relation.by != "llm"]
    whole = Weighing(
        claims, by_rule, frozenset(map(ExpertType, argument["heard"])), argument.get("horizon", 20)
    )
    unaided = whole.without(claim.id for claim in claims if claim.by == "llm")
    return round(copysign(unaided.conviction, unaided.lean), 4)


def contest(outcome: Mapping[str, Any], moves: Sequence[Move], locale: Locale) -> dict[str, Any]:
    """The outcome of a debate as it is after these moves, which name claims of its argument."""
    before = DebateOutcomeDTO.model_validate(outcome)
    argument = close(move_on(before.argument, moves, locale))
    kept = before.model_dump(include={"symbol", "evidence", "experts"})
    again = read_off(argument, before.evidence, locale)
    return DebateOutcomeDTO(**kept, **again, engine="rubric").model_dump(mode="json")


def move_on(graph: ArgumentGraph, moves: Sequence[Move], locale: Locale) -> Weighing:
    """What is struck falls with what it said of others; what is added counts through its target alone. A person
    speaks of the horizon of the motion, so that what they say does not fade.
    """
    claims, relations = {claim.id: claim for claim in graph.claims}, list(graph.relations)
    struck = [move.claim for move in moves if move.move == "strike"]
    for move in moves:
        about = claims[move.claim].model_copy(update={"horizon": graph.horizon})
        if move.move == "strength":
            claims[move.claim] = about.model_copy(update={"strength": move.strength})
        elif move.move == "add":
            number = sum(claim.kind == CONTEST for claim in claims.values()) + 1
            added = _add(move, f"{CONTEST}.{number}", about, locale)
            claims[added.id] = added
            bears = {"source": added.id, "target": move.claim, "kind": move.kind, "why": added.says}
            relations.append(Relation(**bears, scheme=CONTEST, by="person"))
    again = replace(Weighing.reopen(graph), claims=list(claims.values()), relations=relations)
    return again.without(struck)


def _add(move: Move, id_: str, target: Claim, locale: Locale) -> Claim:
    said = {"id": id_, "kind": CONTEST, "side": "neither", "by": "person", "says": {locale: move.says}}
    strength = HALF if move.strength is None else move.strength
    return target.model_copy(update={**said, "strength": strength, "reported": False})
