"""The debate's door for whoever contests what was argued: the argument is weighed again, and nobody speaks."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from moot.modules.debate.domain.argument import close
from moot.modules.debate.domain.debate import DebateOutcomeDTO
from moot.modules.debate.domain.reading import read_off
from moot.modules.debate.domain.weighing import Weighing
from moot.shared.domain.claims import ArgumentGraph, Claim, Move, Relation
from moot.shared.domain.messages import Locale

CONTEST = "contest"
"""The kind of what a person adds, and the scheme by which it bears on its target; its ids count from `contest.1`."""
HALF = 0.5


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
            relations.append(_relate(move, added))
    again = replace(Weighing.reopen(graph), claims=list(claims.values()), relations=relations)
    return again.without(struck)


def _add(move: Move, id_: str, target: Claim, locale: Locale) -> Claim:
    said = {"id": id_, "kind": CONTEST, "side": "neither", "by": "person", "says": {locale: move.says}}
    strength = HALF if move.strength is None else move.strength
    return target.model_copy(update={**said, "strength": strength, "reported": False})


def _relate(move: Move, added: Claim) -> Relation:
    return Relation(
        source=added.id, target=move.claim, kind=move.kind, scheme=CONTEST, why=added.says, by="person"
    )
