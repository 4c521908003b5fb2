"""The debate's door for whoever asks how far a model has moved an argument."""

from collections.abc import Mapping
from math import copysign
from typing import Any

from moot.modules.debate.domain.argument import Weighing
from moot.shared.domain.claims import ArgumentGraph


def lean_unaided(argument: Mapping[str, Any]) -> float:
    """Where it leads without anything a model said, from -1 (do not buy) to 1 (do)."""
    graph = ArgumentGraph.model_validate(argument)
    relations = [relation for relation in graph.relations if relation.by != "llm"]
    said = [claim.id for claim in graph.claims if claim.by == "llm"]
    unaided = Weighing(graph.claims, relations, frozenset(graph.heard)).without(said)
    return round(copysign(unaided.conviction, unaided.lean), 4)
