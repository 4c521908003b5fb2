"""What is read off an argument: each side's case, where the two clash, what could go wrong, which dimensions pulled
how far, what decides it, and the whole of it in prose.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

from moot.modules.debate.domain.argument import Trial
from moot.modules.debate.domain.debate import SAY, BearCase, BullCase, RiskItem, RiskLevel
from moot.modules.debate.domain.weighing import (
    AS_GOOD_AS_SURE,
    NEUTRAL_BAND,
    Dimension,
    Weighing,
    count_over,
    round_down,
)
from moot.shared.domain.claims import ArgumentGraph, Claim, Relation, Side
from moot.shared.domain.evidence import Evidence
from moot.shared.domain.experts import Direction, ExpertType
from moot.shared.domain.messages import DEFAULT_LOCALE, Locale, Message

MOST_ARGUMENTS = 5
MOST_ACKNOWLEDGED = 3
MOST_DISAGREEMENTS = 5
FEWEST_RISKS = 3
LEADS = 2
"""Claims in a thesis."""
LIKELY: tuple[tuple[float, RiskLevel], ...] = ((0.55, "HIGH"), (0.25, "MEDIUM"), (0.0, "LOW"))
"""By how strong the claim is that says so."""
GRAVE: tuple[tuple[float, RiskLevel], ...] = ((0.04, "HIGH"), (0.015, "MEDIUM"), (0.0, "LOW"))
"""By how far the motion leans on the claim."""
QUARTERS = 4
THREATS: Mapping[Direction, tuple[Side, Side]] = {
    "BULLISH": ("against", "for"),
    "NEUTRAL": ("against", "for"),
    "BEARISH": ("for", "against"),
}
"""By outcome, whose claims would weaken it, and whose it rests on."""
MOST_TOLD = 3
MOST_DECISIVE = 5
"""Claims up to which it is told what those are about that decide together."""
PLACES: Mapping[str, Dimension] = {
    f"{expert.prefix}.{name}": (expert, name) for expert, name in count_over(20).places
}


class Reading:
    """An argument, for readers of one language."""

    def __init__(self, argument: ArgumentGraph, evidence: Sequence[Evidence], locale: Locale) -> None:
        self.argument, self._evidence, self.locale = argument, evidence, locale
        self.claims = {claim.id: claim for claim in argument.claims}
        self.weighing = Weighing.reopen(argument)

    def plead(self, side: Side, thesis: str) -> dict[str, Any]:
        """`thesis` is what somebody said for that side, if anybody did."""
        arguments = list(self._argue(side))
        return {"core_thesis": thesis or self._thesis(side), "supporting_arguments": arguments}

    def list_disagreements(self) -> list[str]:
        """Claims of two sides with an attack between them, the strongest pairs first."""
        return [
            self.say(
                "disagreement",
                one=self.tell(self.claims[clash.target]),
                other=self.tell(self.claims[clash.source]),
                target=self.argument.strengths[clash.target],
                source=self.argument.strengths[clash.source],
                prevails=SAY(f"prevails.{self._compare(clash)}"),
                why=self.why(clash),
            )
            for clash in self.clashes[:MOST_DISAGREEMENTS]
        ]

    def list_risks(self) -> list[RiskItem]:
        """Of each expert the strongest claim against the outcome; or else what it gives to it, which may cease to
        hold. Where that makes too few, the next of each.
        """
        threat, ground = THREATS[self.argument.direction]
        leads = [*self.leads(threat), *self.leads(ground)]
        first = one_each(leads)
        second = one_each(claim for claim in leads if claim not in first)[: max(0, FEWEST_RISKS - len(first))]
        trial = Trial(self.weighing)
        return [
            *(self._risk(claim, threat, trial, self._mitigate(claim)) for claim in first),
            *(self._risk(c, threat, trial, self.say(f"mitigation.{c.expert}")) for c in second),
        ]

    def _risk(self, claim: Claim, threat: Side, trial: Trial, mitigation: str) -> RiskItem:
        """A threat is as likely as it is strong, a loss as what was said against it."""
        strength, threatens = self._strength(claim), claim.side == threat
        moved = abs(trial.lean(frozenset([claim.id])) - self.weighing.lean)
        return RiskItem(
            risk=self.say(f"risk.{'threat' if threatens else 'loss'}", claim=self.tell(claim)),
            probability=_grade(LIKELY, strength if threatens else max(0.0, claim.strength - strength)),
            impact="HIGH" if claim.id in self.argument.decisive else _grade(GRAVE, moved),
            mitigation=mitigation,
        )

    def _thesis(self, side: Side) -> str:
        """Its strongest claims, those that others only reported last."""
        leads = sorted(one_each(self.leads(side)), key=lambda claim: claim.reported)[:LEADS]
        return self.join(map(self.tell, leads)) or self.say(f"unbacked.{side}")

    def _argue(self, side: Side) -> Iterator[str]:
        """Each with the strongest answer it got; an answer that was given before is not given again."""
        given: set[str] = set()
        for claim in self.leads(side)[:MOST_ARGUMENTS]:
            told = {"claim": self.tell(claim), "base": claim.strength, "strength": self._strength(claim)}
            answer = next(self._answers(claim), None)
            if answer is None:
                yield self.say("argument.unanswered", **told)
                continue
            key, by = "answered_so" if answer.scheme in given else "answered", self.claims[answer.source]
            yield self.say(f"argument.{key}", **told, why=self.why(answer), by=self.place(by))
            given.add(answer.scheme)

    def acknowledge(self, side: Side) -> list[str]:
        """What the other side claims and nobody answers."""
        unanswered = [claim for claim in self.leads(side) if next(self._answers(claim), None) is None]
        return [self.tell(claim) for claim in unanswered[:MOST_ACKNOWLEDGED]]

    def leads(self, side: Side) -> list[Claim]:
        """The strongest claim of each dimension, the strongest first."""
        ranked = sorted(
            (claim for claim in self.claims.values() if claim.side == side and self._strength(claim) > 0),
            key=lambda c: (
                -self._strength(c),
                -self.weighing.counting.places.get((c.expert, c.dimension), 0.0),
                c.id,
            ),
        )
        leads: dict[tuple[ExpertType, str], Claim] = {}
        for claim in ranked:
            leads.setdefault((claim.expert, claim.dimension), claim)
        return list(leads.values())

    def _answers(self, claim: Claim) -> Iterator[Relation]:
        attacks = (r for r in self.argument.relations if r.kind == "attack" and r.target == claim.id)
        yield from sorted(attacks, key=lambda r: (-self.argument.strengths[r.source], r.source))

    @cached_property
    def clashes(self) -> list[Relation]:
        """One of each kind of reason, and no claim in two."""
        attacks = [r for r in self.argument.relations if r.kind == "attack" and self._opposed(r)]
        attacks.sort(key=lambda r: (-self._heat(r), r.source, r.target))
        clashes: list[Relation] = []
        seen: set[str] = set()
        for clash in attacks:
            names = {clash.source, clash.target, *({clash.scheme} if clash.by == "rubric" else ())}
            if not names & seen:
                clashes.append(clash)
                seen |= names
        return clashes

    def _opposed(self, relation: Relation) -> bool:
        return {self.claims[relation.source].side, self.claims[relation.target].side} == {"for", "against"}

    def _heat(self, relation: Relation) -> float:
        return self._strength(self.claims[relation.source]) * self.claims[relation.target].strength

    def _compare(self, clash: Relation) -> str:
        source, target = (round(self.argument.strengths[id_], 2) for id_ in (clash.source, clash.target))
        return "neither" if source == target else "source" if source > target else "target"

    def watch(self, expert: ExpertType) -> str:
        """The level or date at which more will be known of what an expert looks at."""
        key, found = f"watch.{expert}", self._signs(expert)
        known = found and key in SAY.texts(self.locale)
        return self.say(key, **found) if known else self.say(f"mitigation.{expert}")

    def _mitigate(self, claim: Claim) -> str:
        """What to watch or to do about it; where nothing is told of its kind, of what its expert looks at."""
        own = f"mitigation.kind.{claim.id}"
        return self.say(own) if own in SAY.texts(self.locale) else self.watch(claim.expert)

    def _signs(self, expert: ExpertType) -> dict[str, Any]:
        if expert is ExpertType.TECHNICAL_ANALYST:
            known = {item.id: item.value for item in self._evidence}
            levels = {name: known.get(f"{expert.prefix}.{name}") for name in ("support", "resistance")}
            return levels if None not in levels.values() else {}
        if not expert.sees_events:
            return {"period": period} if (period := self._next_period()) else {}
        days = [claim.as_of.date() for claim in self.claims.values() if claim.expert is expert]
        return {"day": max(days)} if days else {}

    def _next_period(self) -> str:
        """The quarter after the newest that was reported."""
        known = (item.id.rpartition(".")[2] for item in self._evidence if "_series." in item.id)
        newest = max(known, default="")
        if not newest:
            return ""
        year, quarter = map(int, newest.split("Q"))
        return f"{year + quarter // QUARTERS}Q{quarter % QUARTERS + 1}"

    def tell(self, claim: Claim) -> str:
        text = claim.text(self.locale).strip()
        return self.say("reported", text=text) if claim.reported else text

    def why(self, relation: Relation) -> str:
        return relation.why.get(self.locale) or next(iter(relation.why.values()))

    def place(self, claim: Claim) -> str:
        return name_place(claim.expert, claim.dimension).in_locale(self.locale)

    def say(self, key: str, /, **values: Any) -> str:
        return SAY(key, **values).in_locale(self.locale)

    def join(self, sentences: Iterable[str]) -> str:
        return self.say("glue").join(sentences)

    def _strength(self, claim: Claim) -> float:
        return self.argument.strengths[claim.id]


def name_place(expert: ExpertType, dimension: str) -> Message:
    """What an expert's dimension is called; one without a name goes by the expert's."""
    key = f"dimension.{expert.prefix}.{dimension}"
    return SAY(key if key in SAY.texts(DEFAULT_LOCALE) else f"node.{expert}")


def one_each(claims: Iterable[Claim]) -> list[Claim]:
    """The first of every expert."""
    first: dict[ExpertType, Claim] = {}
    for claim in claims:
        first.setdefault(claim.expert, claim)
    return list(first.values())


def _grade(table: Iterable[tuple[float, RiskLevel]], value: float) -> RiskLevel:
    return next(level for least, level in table if value >= least)


def read_off(
    argument: ArgumentGraph, evidence: Sequence[Evidence], locale: Locale, *, bull: str = "", bear: str = ""
) -> dict[str, Any]:
    """All that an outcome says of its argument; `bull` and `bear` are theses that somebody put in words."""
    reading = Reading(argument, evidence, locale)
    return {
        "direction": argument.direction,
        "confidence": argument.confidence,
        "bull_case": BullCase(
            **reading.plead("for", bull), acknowledged_risks=reading.acknowledge("against")
        ),
        "bear_case": BearCase(
            **reading.plead("against", bear), acknowledged_strengths=reading.acknowledge("for")
        ),
        "risk_matrix": reading.list_risks(),
        "key_disagreements": reading.list_disagreements(),
        "conflict_resolution": _resolve(reading),
        "narrative_report": _narrate(reading),
        "argument": argument,
    }


def _resolve(reading: Reading) -> str:
    argument = reading.argument
    counts, pulls = reading.weighing.counting.places, argument.dimensions
    ranked = sorted(
        (name for name in pulls if name in PLACES),
        key=lambda name: (-abs(round(pulls[name], 2)), -counts[PLACES[name]], name),
    )
    said = {name: SAY("pull", place=name_place(*PLACES[name]), pull=pulls[name]) for name in ranked}
    pro, con = [said[n] for n in ranked if pulls[n] > 0], [said[n] for n in ranked if pulls[n] < 0]
    sides = {"for": pro[:MOST_TOLD], "against": con[:MOST_TOLD]}
    told = [SAY(f"pulled.{side}", places=places) for side, places in sides.items() if places]
    scale = {"sure": AS_GOOD_AS_SURE, "least": NEUTRAL_BAND * AS_GOOD_AS_SURE}
    direction = SAY(f"literal.{argument.direction}")
    outcome = SAY("balance", lean=round_down(reading.weighing.lean), direction=direction, **scale)
    return _speak(reading, [*told, *_miss(reading), outcome, _decide(reading)])


def _miss(reading: Reading) -> Iterator[Message]:
    silent = [SAY(f"node.{expert}") for expert in ExpertType if expert not in reading.argument.heard]
    if silent:
        yield SAY("silent", experts=silent, doubt=reading.weighing.doubt)


def _decide(reading: Reading) -> Message:
    decisive = [reading.claims[id_] for id_ in reading.argument.decisive]
    if not decisive:
        return SAY("decisive.none")
    places = list(dict.fromkeys(reading.place(claim) for claim in decisive))
    other = reading.weighing.without(reading.argument.decisive).direction
    key = "one" if len(decisive) == 1 else "several" if len(decisive) <= MOST_DECISIVE else "many"
    return SAY(f"decisive.{key}", n=len(decisive), places=places, direction=SAY(f"literal.{other}"))


def _narrate(reading: Reading) -> str:
    """The outcome, both sides by their strongest claims, where they clash, what decides, and what to watch."""
    clashes = [_tell_clash(reading, clash) for clash in reading.clashes[:MOST_TOLD]]
    watched = [SAY("as_it_is", text=reading.watch(expert)) for expert in reading.argument.heard]
    span = SAY(f"span.{reading.argument.horizon}")
    paragraphs = [
        [SAY(f"outcome.{reading.argument.direction}", span=span), *_miss(reading)],
        _tell_side(reading, "for"),
        _tell_side(reading, "against"),
        [SAY("clashes"), *clashes] if clashes else [],
        [_decide(reading)],
        [SAY("watched"), *watched],
    ]
    return "\n\n".join(_speak(reading, messages) for messages in paragraphs if messages)


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
