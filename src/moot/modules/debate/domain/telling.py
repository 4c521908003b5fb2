"""How an argument is told: which dimensions pulled how far, what decides it, and the whole of it in prose."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from moot.modules.debate.domain.debate import SAY
from moot.modules.debate.domain.reading import Reading, name_place, one_each
from moot.modules.debate.domain.weighing import Dimension, count_over
from moot.shared.domain.claims import ArgumentGraph, Relation, Side
from moot.shared.domain.evidence import Evidence
from moot.shared.domain.experts import ExpertType
from moot.shared.domain.messages import Locale, Message

MOST_TOLD = 3
PLACES: Mapping[str, Dimension] = {
    f"{expert.prefix}.{name}": (expert, name) for expert, name in count_over(20).places
}


def read_off(
    argument: ArgumentGraph, evidence: Sequence[Evidence], locale: Locale, *, bull: str = "", bear: str = ""
) -> dict[str, Any]:
    """All that an outcome says of its argument; `bull` and `bear` are theses that somebody put in words."""
    reading = Reading(argument, evidence, locale)
    return {
        "direction": argument.direction,
        "confidence": argument.confidence,
        "bull_case": reading.plead_bull(bull),
        "bear_case": reading.plead_bear(bear),
        "risk_matrix": reading.list_risks(),
        "key_disagreements": reading.list_disagreements(),
        "conflict_resolution": _resolve(reading),
        "narrative_report": _narrate(reading),
        "argument": argument,
    }


def _resolve(reading: Reading) -> str:
    argument = reading.argument
    known = [pulled for pulled in argument.dimensions.items() if pulled[0] in PLACES]
    ranked = sorted(known, key=lambda pulled: (-_force(reading, *pulled), pulled[0]))
    sides = {"for": [p for p in ranked if p[1] > 0], "against": [p for p in ranked if p[1] < 0]}
    told = [
        SAY(f"pulled.{side}", places=[_pull(*pulled) for pulled in pulls[:MOST_TOLD]])
        for side, pulls in sides.items()
        if pulls
    ]
    outcome = SAY("balance", lean=reading.weighing.lean, direction=SAY(f"literal.{argument.direction}"))
    return _speak(reading, [*told, outcome, *_miss(reading), _decide(reading)])


def _force(reading: Reading, dimension: str, pull: float) -> float:
    return abs(pull) * reading.weighing.counting.places[PLACES[dimension]]


def _pull(dimension: str, pull: float) -> Message:
    return SAY("pull", place=name_place(*PLACES[dimension]), pull=pull)


def _miss(reading: Reading) -> Iterator[Message]:
    silent = [SAY(f"node.{expert}") for expert in ExpertType if expert not in reading.argument.heard]
    if silent:
        yield SAY("silent", experts=silent)


def _decide(reading: Reading) -> Message:
    decisive = [reading.claims[id_] for id_ in reading.argument.decisive]
    if not decisive:
        return SAY("decisive.none")
    places = list(dict.fromkeys(reading.place(claim) for claim in decisive))
    other = reading.weighing.without(reading.argument.decisive).direction
    key = "one" if len(decisive) == 1 else "several"
    return SAY(f"decisive.{key}", places=places, direction=SAY(f"literal.{other}"))


def _narrate(reading: Reading) -> str:
    """The outcome, both sides by their strongest claims, where they clash, what decides, and what to watch."""
    clashes = [_tell_clash(reading, clash) for clash in reading.clashes[:MOST_TOLD]]
    watched = [SAY("as_it_is", text=reading.watch(expert)) for expert in reading.argument.heard]
    paragraphs = [
        [_conclude(reading.argument), *_miss(reading)],
        _tell_side(reading, "for"),
        _tell_side(reading, "against"),
        [SAY("clashes"), *clashes] if clashes else [],
        [_decide(reading)],
        [SAY("watched"), *watched],
    ]
    return "\n\n".join(_speak(reading, messages) for messages in paragraphs if messages)


def _conclude(argument: ArgumentGraph) -> Message:
    return SAY(f"outcome.{argument.direction}", span=SAY(f"span.{argument.horizon}"))


def _tell_clash(reading: Reading, clash: Relation) -> Message:
    target, source = (reading.place(reading.claims[id_]) for id_ in (clash.target, clash.source))
    key = "clash_within" if target == source else "clash"
    return SAY(key, target=target, source=source, why=reading.why(clash))


def _tell_side(reading: Reading, side: Side) -> list[Message]:
    """By the strongest claim of each expert, and by others where few experts have any."""
    leads = reading.leads(side)
    told = dict.fromkeys(claim.id for claim in (*one_each(leads), *leads))
    claims = [SAY("as_it_is", text=reading.tell(reading.claims[id_])) for id_ in list(told)[:MOST_TOLD]]
    return [SAY(f"case.{side}"), *claims] if claims else [SAY(f"unbacked.{side}")]


def _speak(reading: Reading, messages: Iterable[Message]) -> str:
    return reading.join(message.in_locale(reading.locale) for message in messages)
