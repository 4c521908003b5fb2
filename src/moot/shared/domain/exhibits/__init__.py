"""What of an argument a model is shown that pleads or judges: claims, the figures they rest on and price levels.

No words from outside. What others reported is shown by its kind, as is what a model claims that has read it.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from moot.shared.domain.claims import ArgumentGraph, Claim, Relation
from moot.shared.domain.evidence import Evidence
from moot.shared.domain.experts import ExpertType
from moot.shared.domain.messages import Catalogue, Locale, Message

SAY = Catalogue(Path(__file__).parent)

PRICES = frozenset(
    f"{ExpertType.TECHNICAL_ANALYST.prefix}.{name}"
    for name in ("current_price", "atr_value", "support", "resistance")
)


@dataclass(frozen=True)
class Exhibits:
    argument: ArgumentGraph
    evidence: Sequence[Evidence]
    locale: Locale

    @cached_property
    def figures(self) -> list[Evidence]:
        """The numbers that claims rest on, and the prices."""
        cited = PRICES.union(*(claim.evidence for claim in self.argument.claims))
        return [item for item in self.evidence if item.id in cited and not isinstance(item.value, str)]

    @property
    def claims(self) -> str:
        """Each as strong as it is by now, the strongest first."""
        strengths = self.argument.strengths
        ranked = sorted(self.argument.claims, key=lambda claim: (-strengths[claim.id], claim.id))
        return self.list_lines(self._tell(claim) for claim in ranked)

    @property
    def relations(self) -> str:
        return self.list_lines(map(self.tell_relation, self.argument.relations))

    def tell_relation(self, relation: Relation) -> Message:
        why = relation.why.get(self.locale) or next(iter(relation.why.values()))
        return SAY(f"relation.{relation.kind}", source=relation.source, target=relation.target, why=why)

    def list_lines(self, lines: Iterable[Message]) -> str:
        """An empty list says that it is empty."""
        return "\n".join(line.in_locale(self.locale) for line in [*lines] or [SAY("none")])

    def _tell(self, claim: Claim) -> Message:
        shown = {item.id for item in self.figures}
        return SAY(
            "claim",
            id=claim.id,
            side=SAY(f"side.{claim.side}"),
            strength=self.argument.strengths[claim.id],
            mark=SAY("decisive" if claim.id in self.argument.decisive else "ordinary"),
            dimension=f"{claim.expert.prefix}.{claim.dimension}",
            says=self._words(claim),
            evidence=[id_ for id_ in claim.evidence if id_ in shown] or SAY("none"),
        )

    def _words(self, claim: Claim) -> str | Message:
        words = " ".join(claim.text(self.locale).split())
        read = claim.by == "llm" and claim.id.partition(".")[0] in self._readers
        quoted = any(id_ in claim.evidence or text in words for id_, text in self._outside.items())
        if claim.reported or read or quoted:
            return SAY("reported", kind=claim.kind, day=claim.as_of.date())
        return words

    @cached_property
    def _readers(self) -> set[str]:
        """Who is shown what others wrote, in evidence or beside it."""
        named = {id_.partition(".")[0] for id_ in self._outside}
        return named | {expert.prefix for expert in ExpertType if expert.sees_events}

    @cached_property
    def _outside(self) -> dict[str, str]:
        """What others wrote, by id."""
        texts = {item.id: item.value for item in self.evidence if isinstance(item.value, str)}
        return {id_: " ".join(text.split()) for id_, text in texts.items() if text.strip()}
