"""The debate's door for whoever asks how far a model has moved an argument."""

from collections.abc import Mapping
from dataclasses import replace
from math import copysign
from typing import Any

from moot.modules.debate.domain.argument import Weighing
from moot.shared.domain.claims import ArgumentGraph


def lean_unaided(argument: Mapping[str, Any]) -> float:
    """Where it leads without anything a model said, from -1 (do not buy) to 1 (do)."""
    whole = Weighing.reopen(ArgumentGraph.model_validate(argument))
    unaided = replace(whole, relations=[relation for relation in whole.relations if relation.by != "llm"])
    unaided = unaided.without(claim.id for claim in whole.claims if claim.by == "llm")
    return round(copysign(unaided.conviction, unaided.lean), 4)
