"""What an expert claims: what its rubric found, and what a model adds. That is held against the evidence it cites:
dropped where this does not carry it, and never stronger than it can.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, Field, create_model

from moot.modules.research.domain.evidence import ExpertResult
from moot.modules.research.domain.facts import SAY
from moot.modules.research.domain.rubric import SIDES, Scorecard, plain_name, sign_of
from moot.shared.domain.claims import Claim, Side, Strength
from moot.shared.domain.evidence import Evidence
from moot.shared.domain.experts import ExpertType
from moot.shared.domain.grounding import ground
from moot.shared.domain.messages import Locale, Message, shorten

STRENGTH_OF_A_POINT = 0.25


def make_claims(
    expert: ExpertType,
    card: Scorecard,
    evidence: Sequence[Evidence],
    told: Mapping[Locale, Scorecard],
) -> list[Claim]:
    """What a rubric found as claims, as its card tells it in each language. What rests on no evidence is no claim."""
    known = {item.id: item for item in evidence}
    texts = {locale: {f.id: f.text for f in same.findings} for locale, same in told.items()}
    claims = []
    for points, found in card.marked:
        cited = list(_cited(known, [f"{expert.prefix}.{name}" for name in found.rests]))
        if not cited:
            continue
        claims.append(
            Claim(
                id=f"{expert.prefix}.{found.id}",
                kind=f"{expert.prefix}.{found.kind}",
                expert=expert,
                dimension=plain_name(found.dimension),
                side=SIDES[sign_of(points)],
                strength=min(1.0, abs(points) * STRENGTH_OF_A_POINT),
                says={locale: text[found.id] for locale, text in texts.items()},
                evidence=[item.id for item in cited],
                as_of=max(item.as_of for item in cited),
                reported=found.reported,
                horizon=found.horizon,
            )
        )
    return claims


def _cited(known: Mapping[str, Evidence], ids: Iterable[str]) -> Iterable[Evidence]:
    """Each once; a series is all of its members."""
    for id_ in dict.fromkeys(ids):
        if id_ in known:
            yield known[id_]
        else:
            yield from (item for member, item in known.items() if member.startswith(f"{id_}."))


STRONGEST_ALONE = 0.5
"""On evidence that no rule judges."""
STRONGEST_REPORTED = 0.25
MOST_PROPOSED = 8
OPPOSITE = {"for": "against", "against": "for"}


class ProposedClaim(BaseModel, frozen=True, extra="forbid", allow_inf_nan=False):
    """What a model asserts, and the ids of the evidence it says it rests on."""

    says: Annotated[str, Field(min_length=1)]
    side: Side
    strength: Strength
    evidence: list[str]
    dimension: str
    contests: str | None = None


R = TypeVar("R", bound=ExpertResult)


@cache
def with_claims(result: type[R]) -> type[R]:
    """`result` and the claims that a model may add; they are weighed before anybody reads them."""
    proposed: Any = Field(default_factory=list, max_length=MOST_PROPOSED, exclude=True)
    return create_model(result.__name__, __base__=result, claims=(list[ProposedClaim], proposed))


@dataclass
class Proposals:
    """Accepts claims one by one; `dropped` tells the reader of the others. `foreign` are in another language."""

    expert: ExpertType
    locale: Locale
    foreign: Sequence[str]
    rubric: Sequence[Claim]
    evidence: Mapping[str, Evidence]
    accepted: list[Claim] = field(default_factory=list)
    dropped: list[Message] = field(default_factory=list)

    def weigh(self, proposed: Iterable[ProposedClaim]) -> None:
        for claim in proposed:
            if why := self._fault(claim):
                self.dropped.append(SAY("dropped.claim", says=shorten(claim.says), why=why))
            else:
                self.accepted.append(self._accept(claim))

    def _fault(self, claim: ProposedClaim) -> Message | None:
        unknown = [id_ for id_ in claim.evidence if id_ not in self.evidence]
        if not claim.evidence or unknown:
            return SAY("dropped.unknown", ids=unknown) if unknown else SAY("dropped.unfounded")
        if claim.says in self.foreign:
            return SAY("dropped.language")
        if claim.dimension not in self.expert.dimensions:
            return SAY("dropped.dimension", name=claim.dimension)
        if offenders := ground([claim.says], self._cited(claim)).offenders:
            return SAY("dropped.numbers", numbers=offenders)
        return self._clash(claim) if claim.contests is None else self._miss(claim)

    def _clash(self, claim: ProposedClaim) -> Message | None:
        if other := self._denied_by(claim) or self._repeated_from(claim):
            return SAY("dropped.denied" if other.side != claim.side else "dropped.repeated", id=other.id)
        return None

    def _miss(self, claim: ProposedClaim) -> Message | None:
        """Nobody contests what the rules do not claim, nor what takes no side."""
        contested = any(c.id == claim.contests and c.side != "neither" for c in self.rubric)
        return None if contested else SAY("dropped.contests", id=claim.contests)

    def _denied_by(self, claim: ProposedClaim) -> Claim | None:
        """A rule's claim on this evidence that takes the other side, if none of them takes this one."""
        within = [c for c in self.rubric if c.side != "neither" and set(c.evidence) <= set(claim.evidence)]
        agreed = any(c.side == claim.side for c in within)
        return next((c for c in within if not agreed and c.side == OPPOSITE.get(claim.side)), None)

    def _repeated_from(self, claim: ProposedClaim) -> Claim | None:
        """The same evidence on the same side counts once, whoever says it how often."""
        said = [*self.rubric, *self.accepted]
        same = (c for c in said if c.side == claim.side and set(c.evidence) == set(claim.evidence))
        return next(same, None)

    def _accept(self, claim: ProposedClaim) -> Claim:
        """What contests another counts through that alone."""
        cited = self._cited(claim)
        measured = [item for item in cited if not isinstance(item.value, str)]
        reported = not measured or bool(ground([claim.says], measured).offenders)
        return Claim(
            id=f"{self.expert.prefix}.model.{len(self.accepted) + 1}",
            kind=f"{self.expert.prefix}.model",
            expert=self.expert,
            dimension=claim.dimension,
            side="neither" if claim.contests else claim.side,
            strength=min(claim.strength, STRONGEST_REPORTED if reported else self._most(claim)),
            says={self.locale: " ".join(claim.says.split())},
            evidence=list(dict.fromkeys(claim.evidence)),
            as_of=max(item.as_of for item in cited),
            reported=reported,
            by="llm",
            contests=claim.contests,
        )

    def _most(self, claim: ProposedClaim) -> float:
        """As strong as the strongest that a rule makes of any of it."""
        shared = [c.strength for c in self.rubric if not set(c.evidence).isdisjoint(claim.evidence)]
        return max(shared, default=STRONGEST_ALONE)

    def _cited(self, claim: ProposedClaim) -> list[Evidence]:
        return [self.evidence[id_] for id_ in claim.evidence]
