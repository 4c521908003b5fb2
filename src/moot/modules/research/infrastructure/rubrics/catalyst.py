"""How the catalyst detective weighs events by rule: what kind, which way, how fresh."""

from collections.abc import Callable

from moot.modules.research.domain.catalyst import (
    TOPICS,
    Catalyst,
    CatalystAssessment,
    CatalystContext,
    CatalystDimension,
    CatalystResult,
)
from moot.modules.research.domain.events import DOUBT, Event
from moot.modules.research.domain.scorecard import Finding, Scorecard
from moot.modules.research.domain.voice import Voice
from moot.modules.research.infrastructure.rubrics.rubric import (
    Rubric,
    analyses,
    dimension_name,
    narrative,
    summary,
)

ASSESSED_AT = 0.2
SILENCE_WEIGHT = 2.0
"""What a dimension without any event is missing."""
MOST_CATALYSTS = 5
WEIGHT_FOR: dict[CatalystAssessment, Callable[[Event], float]] = {
    "Positive (正面催化)": lambda event: event.points,
    "Neutral (中性)": lambda event: abs(event.points),
    "Negative (负面催化)": lambda event: -event.points,
}


def _marks(context: CatalystContext, say: Voice) -> Scorecard:
    findings = [f for dimension in CatalystDimension for f in _findings(context, dimension, say)]
    return Scorecard(tuple(findings), doubt=DOUBT)


def _findings(context: CatalystContext, dimension: CatalystDimension, say: Voice) -> list[Finding]:
    name, events = dimension_name("catalyst", dimension, say), context.about(TOPICS[dimension])
    if not events:
        return [Finding(name, say("no_results"), None, SILENCE_WEIGHT, dimension)]
    return [Finding(name, _sentence(event, say), event.points, event.weight, dimension) for event in events]


def _sentence(event: Event, say: Voice) -> str:
    return say("catalyst.event", published=event.published, title=event.title, impact=_impact(event, say))


def _impact(event: Event, say: Voice) -> str:
    return say(f"catalyst.impact.{event.category}")


def assessment_for(score: float) -> CatalystAssessment:
    if abs(score) < ASSESSED_AT:
        return "Neutral (中性)"
    return "Positive (正面催化)" if score > 0 else "Negative (负面催化)"


def _catalysts(events: list[Event], say: Voice) -> list[Catalyst]:
    weightiest = sorted(events, key=lambda event: -abs(event.points))
    return [
        Catalyst(
            event=say("event_name", published=event.published, title=event.title),
            expected_impact=_impact(event, say),
            timeframe=event.timeframe,
            probability=event.probability,
        )
        for event in weightiest[:MOST_CATALYSTS]
    ]


def _lead(context: CatalystContext, assessment: CatalystAssessment, say: Voice) -> str:
    """The weightiest event on the side of the assessment."""
    pointing = [event for event in context.events if event.points]
    return max(pointing, key=WEIGHT_FOR[assessment]).title if pointing else say("catalyst.no_lead")


def _none_found(side: str, say: Voice) -> list[Catalyst]:
    """One side may be silent; that is said, and no event is made up for it."""
    return [
        Catalyst(
            event=say(f"catalyst.none_{side}"),
            expected_impact=say("catalyst.none_impact"),
            timeframe="近期",
            probability="低",
        )
    ]


def _concludes(context: CatalystContext, card: Scorecard, say: Voice) -> CatalystResult:
    assessment = assessment_for(card.score or 0.0)
    view = assessment.partition(" ")[0].lower()
    say = say.also(lead=_lead(context, assessment, say))
    good = _catalysts([event for event in context.events if event.points > 0], say)
    bad = _catalysts([event for event in context.events if event.points < 0], say)
    conclusion, risk = say(f"catalyst.conclusion.{view}"), say(f"catalyst.risk.{view}")
    return CatalystResult(
        catalyst_assessment=assessment,
        confidence_score=card.confidence,
        catalyst_summary=summary(card, say, conclusion),
        dimension_analyses=analyses("catalyst", CatalystDimension, card, say),
        positive_catalysts=good or _none_found("positive", say),
        negative_catalysts=bad or _none_found("negative", say),
        information_sources=context.all_source_urls,
        narrative_report=narrative(card, say, conclusion=conclusion, risk=risk),
    )


CATALYST_RUBRIC = Rubric(_marks, _concludes)
