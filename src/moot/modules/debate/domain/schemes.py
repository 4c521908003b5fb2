"""Argument schemes: which kinds of claims bear on which others, and why; one table, `schemes.toml`."""

import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Literal, NamedTuple

from moot.modules.debate.domain.debate import SAY
from moot.shared.domain.claims import Claim, Relation, Side
from moot.shared.domain.messages import LOCALES, Locale

Bearing = Literal["attack", "support"]
WEIGHTS: Mapping[Bearing, float] = {"attack": 1.0, "support": 1 / 3}
"""What bears a claim out speaks for the motion by itself already, and must not make it the strongest of all."""


class Scheme(NamedTuple):
    """`by` and `on` are kinds of claims, or how they begin and which side they take (`valuation.pe:for`)."""

    name: str
    kind: Bearing
    by: tuple[str, ...]
    on: tuple[str, ...]

    def relate(self, claims: Mapping[str, Sequence[Claim]]) -> Iterator[Relation]:
        """On each claim that fits, by the strongest that does: what comes to the same is said once."""
        sources = [claim for named in self.by for claim in claims.get(named, ()) if claim.strength]
        if not sources:
            return
        bearing = self._sort_sources(sources)
        for target in [claim for named in self.on for claim in claims.get(named, ())]:
            for source in bearing.get(target.side, ()):
                if source != target.id:
                    yield self._relate(source, target.id)
                    break

    def _relate(self, source: str, target: str) -> Relation:
        why, weight = _explain(self.name), WEIGHTS[self.kind]
        return Relation(
            source=source, target=target, kind=self.kind, scheme=self.name, why=why, weight=weight
        )

    def _sort_sources(self, sources: Sequence[Claim]) -> Mapping[Side, list[str]]:
        """By the side they bear on, the strongest first. Those of one side support each other, those of two attack;
        who takes none does neither.
        """
        ranked = sorted(sources, key=lambda claim: (claim.strength, claim.id), reverse=True)
        pro, con = ([claim.id for claim in ranked if claim.side == side] for side in ("for", "against"))
        return {"for": pro, "against": con} if self.kind == "support" else {"for": con, "against": pro}


@cache
def load_schemes() -> tuple[Scheme, ...]:
    tables: dict[Bearing, dict[str, dict[str, list[str]]]] = tomllib.loads(  # type: ignore[assignment]
        Path(__file__).with_name("schemes.toml").read_text("utf-8")
    )
    return tuple(
        Scheme(name, kind, tuple(scheme["by"]), tuple(scheme["on"]))
        for kind, schemes in tables.items()
        for name, scheme in schemes.items()
    )


def relate(claims: Sequence[Claim]) -> list[Relation]:
    """What bears on what, by the table alone, or because a claim says so; their order does not matter."""
    named: dict[str, list[Claim]] = {}
    for claim in sorted(claims, key=lambda claim: claim.id):
        for name in _names(claim):
            named.setdefault(name, []).append(claim)
    return [*(relation for scheme in load_schemes() for relation in scheme.relate(named)), *_answers(claims)]


def _answers(claims: Iterable[Claim]) -> Iterator[Relation]:
    """Claims that say themselves which other they contest."""
    known = {claim.id: claim for claim in claims}
    for claim in known.values():
        if claim.contests in known:
            yield Relation(
                source=claim.id,
                target=claim.contests,
                kind="attack",
                scheme="model",
                why=claim.says,
                by=claim.by,
            )


def _names(claim: Claim) -> Iterator[str]:
    """How a table may call it."""
    beginning = claim.kind
    yield beginning
    while beginning:
        yield f"{beginning}:{claim.side}"
        beginning = beginning.rpartition(".")[0]


@cache
def _explain(scheme: str) -> dict[Locale, str]:
    return {locale: SAY(f"scheme.{scheme}").in_locale(locale) for locale in LOCALES}
