"""The debate's door for whoever asks how far a model has moved an argument."""

from collections.abc import Mapping
from math import copysign
from typing import Any

from moot.modules.debate.domain.argument import Weighing
from moot.shared.domain.claims import Claim, Relation
from moot.shared.domain.experts import ExpertType


def lean_unaided(argument: Mapping[str, Any]) -> float:
    """Where it leads without anything a model said, from -1 (do not buy) to 1 (do)."""
    claims = [Claim.model_validate(claim) for claim in argument["claims"]]
    relations = [Relation.model_validate(relation) for relation in argument["relations"]]
    heard = frozenset(map(ExpertType, argument["heard"]))
    unaided = Weighing(claims, [relation for relation in relations if relation.by != "llm"], heard)
    unaided = unaided.without(claim.id for claim in claims if claim.by == "llm")
    return round(copysign(unaided.conviction, unaided.lean), 4)
