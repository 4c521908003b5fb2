"""The deterministic analyst: marks a snapshot by rules and says in words what the marks mean."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Generic, TypeVar

from moot.modules.research.domain.analyst import DimensionAnalysis, Opinion
from moot.modules.research.domain.evidence import Snapshot, rendered
from moot.modules.research.domain.facts import Case
from moot.modules.research.domain.scorecard import Band, Scorecard, bands
from moot.modules.research.domain.texts import SAY
from moot.modules.research.domain.voice import Voice
from moot.modules.research.domain.web_context import Reported, before_the_web
from moot.shared.domain.errors import InvalidInput
from moot.shared.domain.evidence import Evidence
from moot.shared.domain.messages import Catalogue

S = TypeVar("S", bound=Snapshot)
R = TypeVar("R")

NEUTRAL_SCORE = 50
MOST_PROS = 5
MOST_CONS = 4

GRADES = bands((20, 0, "poor"), (40, 0, "weak"), (60, 0, "middling"), (80, 0, "good"), rest=(0, "strong"))
AGREEMENT = bands((0.35, 0, "split"), (0.7, 0, "leaning"), rest=(0, "aligned"))
COMPLETENESS = bands((0.6, 0, "sparse"), (0.95, 0, "partial"), rest=(0, "full"))


@dataclass(frozen=True)
class Rubric(Generic[S, R]):
    """`marks` fills the scorecard, `concludes` turns it into the expert's result, both in the words of `texts`.

    A rubric cannot read prose: it judges, and cites, what was there before anybody searched the web.
    """

    texts: Catalogue
    marks: Callable[[S, Voice], Scorecard]
    concludes: Callable[[S, Scorecard, Voice], R]

    async def analyse(self, snapshot: S, evidence: Sequence[Evidence], case: Case) -> Opinion[R]:
        if isinstance(snapshot, Reported):
            snapshot, evidence = before_the_web(snapshot, evidence)
        say = Voice(self.texts, snapshot, case.locale)
        card = self.marks(snapshot, say)
        if card.score is None:
            raise InvalidInput(SAY("nothing_to_judge", missing=[hole.name for hole in card.holes]))
        return Opinion(self.concludes(snapshot, card, say), rendered(evidence), _as_text(card, say), "rubric")


def narrative(
    card: Scorecard, say: Voice, *, conclusion: str, risk: str, basis: Scorecard | None = None
) -> str:
    """Conclusion, evidence on both sides, risks, holes in the data, and how sure one can be.

    `basis` is the part of the card that the confidence rests on, if not all of it.
    """
    basis = basis or card
    holes = say.listing(hole.name for hole in card.holes)
    paragraphs = [
        say("narrative.conclusion", text=conclusion),
        say("narrative.pros", text=say.prose(card.pros[:MOST_PROS]) or say("narrative.no_pros")),
        say("narrative.cons", text=say.prose(card.cons[:MOST_CONS]) or say("narrative.no_cons")),
        say("narrative.risk", text=risk),
        *([say("narrative.holes", names=holes)] if holes else []),
        say(
            "narrative.confidence",
            confidence=f"{basis.confidence:.2f}",
            agreement=say(f"agreement.{_pick(AGREEMENT, basis.agreement)}"),
            completeness=say(f"completeness.{_pick(COMPLETENESS, basis.completeness)}"),
        ),
    ]
    return "\n\n".join(paragraphs)


def summary(card: Scorecard, say: Voice, conclusion: str, *, basis: Scorecard | None = None) -> str:
    """The conclusion, the strongest findings it rests on, and the strongest that stand against it."""
    downcast = ((basis or card).score or 0.0) < 0
    support, doubts = (card.cons, card.pros) if downcast else (card.pros, card.cons)
    sides = {"summary.support": support[:2], "summary.doubts": doubts[:2]}
    return say.prose(
        [conclusion, *(say(key, text=say.prose(found)) for key, found in sides.items() if found)]
    )


def analyses(dimensions: Iterable[StrEnum], card: Scorecard, say: Voice) -> list[DimensionAnalysis]:
    return [_analysis(dimension, card.of(dimension), say) for dimension in dimensions]


def with_extremes(dimensions: Iterable[StrEnum], card: Scorecard, say: Voice) -> Voice:
    """A voice that can name the `best` and the `worst` dimension that has data, and their scores."""
    scores = {d: score for d in dimensions if (score := card.of(d).score_100) is not None}
    best, worst = max(scores, key=lambda d: scores[d]), min(scores, key=lambda d: scores[d])
    return say.also(
        best=dimension_name(best, say),
        best_score=scores[best],
        worst=dimension_name(worst, say),
        worst_score=scores[worst],
    )


def dimension_name(dimension: StrEnum, say: Voice) -> str:
    return say(f"dimension.{dimension.name.lower()}")


def _analysis(dimension: StrEnum, card: Scorecard, say: Voice) -> DimensionAnalysis:
    name, score = dimension_name(dimension, say), card.score_100
    if score is None:
        empty = say("dimension.empty", dimension=name, score=NEUTRAL_SCORE)
        return DimensionAnalysis(dimension=dimension, score=NEUTRAL_SCORE, assessment=empty, key_findings=[])
    grade = say(f"grade.{_pick(GRADES, score)}")
    return DimensionAnalysis(
        dimension=dimension,
        score=score,
        assessment=say("dimension.assessment", dimension=name, score=score, grade=grade),
        key_findings=[finding.text for _, finding in card.marked],
    )


def _pick(table: tuple[Band, ...], value: float) -> str:
    return next(band.says for band in table if value < band.below)


def _as_text(card: Scorecard, say: Voice) -> str:
    lines = [f"{points:+g} / {f.weight:g}  {f.name}: {f.text}" for points, f in card.marked]
    holes = [f"   / {hole.weight:g}  {hole.name}: {hole.text}" for hole in card.holes]
    total = say(
        "scorecard_total",
        score=f"{card.score or 0:+.2f}",
        agreement=f"{card.agreement:.2f}",
        completeness=f"{card.completeness:.2f}",
    )
    return "\n".join([*lines, *holes, total])
