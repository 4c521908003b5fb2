"""What a result argues, as a report and the terminal show it: the claims by what they are about, as strong as they
ended up, with what others said of them; which of them explain the outcome, and which decide it.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import cached_property
from typing import Any

from moot.modules.coordinator.domain.dtos.research_dtos import ResearchResult
from moot.shared.domain.claims import SIGNS, ArgumentGraph, Claim, Relation, Side
from moot.shared.domain.experts import ExpertType
from moot.shared.domain.symbol import Symbol
from moot.shared.domain.validation import validate

MOST_REASONS = 3
MOST_DECISIVE = 5
MOST_MOVED = 5
WINNERS: Mapping[Any, Side] = {"BUY": "for", "SELL": "against", "BULLISH": "for", "BEARISH": "against"}
Day = tuple[str, float]
Data = Mapping[str, Any]


class Case:
    """Without an argument, as nothing was debated or none was kept yet, claims are as strong as their experts made
    them, and there may be none.
    """

    def __init__(self, result: ResearchResult) -> None:
        self.result = result
        self.verdict: Data = result.verdict or {}
        self.debate: Data = result.debate_outcome or {}
        self.found: dict[str, Data] = {
            expert: item.data for expert, item in result.expert_results.items() if item.data
        }

    @cached_property
    def argument(self) -> ArgumentGraph | None:
        stored = self.debate.get("argument")
        return validate(ArgumentGraph, stored) if stored else None

    @cached_property
    def claims(self) -> dict[str, Claim]:
        told = (claim for data in self.found.values() for claim in data.get("claims", []))
        claims = self.argument.claims if self.argument else [validate(Claim, claim) for claim in told]
        return {claim.id: claim for claim in claims}

    @cached_property
    def facts(self) -> dict[str, Data]:
        return {fact["id"]: fact for data in self.found.values() for fact in data.get("evidence", [])}

    @property
    def parts(self) -> dict[str, Data]:
        parts = {**self.found, "debate": self.debate, "judge": self.verdict}
        return {node: part for node, part in parts.items() if part}

    @property
    def name(self) -> str:
        """The company's, in the session's language, as the experts were given it; empty if nobody was."""
        snapshots = (part for data in self.found.values() for part in data.values() if isinstance(part, dict))
        return next((str(part["stock_name"]) for part in snapshots if part.get("stock_name")), "")

    @property
    def prices(self) -> Sequence[Day]:
        """The last closes, if the technical analyst kept them."""
        found = self.found.get(ExpertType.TECHNICAL_ANALYST, {})
        return [tuple(day) for day in found.get("price_series", [])]

    @property
    def price(self) -> Data | None:
        """At which price and of which `day` the verdict was given, or else the newest that an expert saw."""
        seen = [fact for id_, fact in self.facts.items() if id_.endswith(".current_price")]
        newest = max(seen, key=lambda fact: str(fact["as_of"]), default=None)
        known = newest and {"value": newest["value"], "day": self.day_of(newest)}
        return self.verdict.get("price") or known

    def day_of(self, fact: Data) -> str:
        """When the fact was known, where the share is traded."""
        moment = datetime.fromisoformat(str(fact["as_of"]))
        return Symbol.parse(self.result.symbol).local_date(moment).isoformat()

    def strength(self, claim: Claim) -> float:
        return self.argument.strengths.get(claim.id, claim.strength) if self.argument else claim.strength

    def answers(self, claim: Claim) -> list[Relation]:
        return [r for r in self.argument.relations if r.target == claim.id] if self.argument else []

    def pull(self, claim: Claim) -> float:
        """How far what the claim is about leans, for (+) or against (-), if it was weighed."""
        weighed = self.argument.dimensions if self.argument else {}
        return weighed.get(f"{claim.expert.prefix}.{claim.dimension}", 0.0)

    def weight(self, claim: Claim) -> float:
        """How far what the claim is about leans its way; without an argument, how strong it is itself."""
        return SIGNS[claim.side] * self.pull(claim) if self.argument else claim.strength

    @cached_property
    def reasons(self) -> list[Claim]:
        """What explains the outcome, the weightiest first: of each dimension that leans to the side that won, or of
        both where none did, of either at least one, its strongest claim.
        """
        winner = WINNERS.get(self.verdict.get("action")) or WINNERS.get(self.debate.get("direction"))
        sides = {winner} if winner else {"for", "against"}
        able = [claim for claim in self.claims.values() if claim.side in sides and self.strength(claim) > 0]
        able = [claim for claim in able if round(self.weight(claim), 2) > 0]
        able.sort(key=lambda claim: (-self.weight(claim), -self.strength(claim)))
        first = list({(claim.expert, claim.dimension): claim for claim in reversed(able)}.values())[::-1]
        leads = {claim.side: claim for claim in reversed(first)}.values()
        chosen = sorted(first, key=lambda claim: claim not in leads)[:MOST_REASONS]
        return sorted(chosen, key=first.index)

    @property
    def grounds(self) -> str:
        """Why this action and no other, as a rule says first; a model's reasons stand with the claims."""
        by_rule = self.reasons and self.verdict.get("engine") == "rubric"
        return str(self.verdict["reasoning"]).partition("\n")[0] if by_rule else ""

    @cached_property
    def decisive(self) -> list[Claim]:
        """The strongest first."""
        ids = self.argument.decisive if self.argument else []
        known = [self.claims[id_] for id_ in ids if id_ in self.claims]
        return sorted(known, key=lambda claim: -self.strength(claim))

    @property
    def leading(self) -> list[Claim]:
        """Those that the first page tells for what they come to."""
        return [*self.reasons, *(self.decisive if len(self.decisive) <= MOST_DECISIVE else ())]

    @cached_property
    def told_first(self) -> list[Claim]:
        """Those that the first page tells, also for having moved since the last verdict."""
        moved = (self.verdict.get("since") or {}).get("moved", [])[:MOST_MOVED]
        ids = [each["claim"] for each in moved if each["after"] is not None]
        return [*self.leading, *(self.claims[id_] for id_ in ids if id_ in self.claims)]

    def by_dimension(self) -> list[list[Claim]]:
        """The claims in the order of the desk; of each dimension the strongest first."""
        groups: dict[tuple[ExpertType, str], list[Claim]] = {
            (expert, dimension): [] for expert in ExpertType for dimension in expert.dimensions
        }
        for claim in sorted(self.claims.values(), key=lambda claim: -self.strength(claim)):
            groups.setdefault((claim.expert, claim.dimension), []).append(claim)
        return list(filter(None, groups.values()))
