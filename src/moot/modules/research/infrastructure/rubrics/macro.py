"""How the macro intelligence officer reads the environment by rule."""

from collections.abc import Sequence
from functools import partial

from moot.modules.research.domain.macro import (
    MacroDimension,
    MacroEnvironment,
    MacroResult,
    MacroSnapshot,
)
from moot.modules.research.domain.scorecard import Rule, Scorecard, bands, mark
from moot.modules.research.domain.voice import Voice
from moot.modules.research.infrastructure.rubrics.rubric import (
    Rubric,
    analyses,
    narrative,
    summary,
    with_extremes,
)

MONETARY = MacroDimension.MONETARY
POLICY = MacroDimension.POLICY
ECONOMY = MacroDimension.ECONOMY
INDUSTRY = MacroDimension.INDUSTRY

RULES: tuple[Rule[MacroSnapshot], ...] = (
    Rule("m2", lambda s: s.m2_yoy, bands((7, -1, "tight"), (9, 0, "normal"), rest=(1, "ample")), MONETARY),
    Rule(
        "m2_change",
        lambda s: s.m2_yoy_change,
        bands((-0.3, -1, "slowing"), (0.3, 0, "steady"), rest=(1, "quickening")),
        MONETARY,
    ),
    Rule(
        "lpr",
        lambda s: s.lpr_1y_change,
        bands((-0.01, 2, "cut"), (0.01, 0, "held"), rest=(-2, "raised")),
        MONETARY,
    ),
    Rule(
        "cgb",
        lambda s: s.cgb_10y_change,
        bands((-0.1, 1, "down"), (0.1, 0, "steady"), rest=(-1, "up")),
        MONETARY,
    ),
    Rule(
        "policy",
        lambda s: s.policy_balance,
        bands(
            (-0.6, -2, "restrictive"),
            (-0.2, -1, "leaning_against"),
            (0.2, 0, "mixed"),
            (0.6, 1, "leaning_for"),
            rest=(2, "supportive"),
        ),
        POLICY,
    ),
    Rule(
        "pmi",
        lambda s: s.pmi_manufacturing,
        bands((49, -2, "contracting"), (50, -1, "soft"), (51, 1, "expanding"), rest=(2, "brisk")),
        ECONOMY,
    ),
    Rule(
        "pmi_change",
        lambda s: s.pmi_manufacturing_change,
        bands((-0.5, -1, "down"), (0.5, 0, "steady"), rest=(1, "up")),
        ECONOMY,
    ),
    Rule(
        "cpi", lambda s: s.cpi_yoy, bands((0.2, -1, "deflation"), (3, 1, "mild"), rest=(-1, "hot")), ECONOMY
    ),
    Rule(
        "ppi",
        lambda s: s.ppi_yoy,
        bands((-1, -1, "falling"), (0, 0, "soft"), (4, 1, "firm"), rest=(-1, "hot")),
        ECONOMY,
    ),
    Rule(
        "prosperity",
        lambda s: s.industry_prosperity,
        bands((42, -3, "poor"), (50, -1, "weak"), (58, 1, "good"), rest=(3, "strong")),
        INDUSTRY,
    ),
    Rule(
        "prosperity_change",
        lambda s: s.industry_prosperity_change,
        bands((-1, -1, "down"), (1, 0, "steady"), rest=(1, "up")),
        INDUSTRY,
    ),
)


def environment_for(scores: Sequence[int]) -> MacroEnvironment:
    """Most dimensions decide, but one that is very bad spoils it."""
    most = len(scores) / 2
    if min(scores) < 20 or sum(score < 40 for score in scores) > most:
        return "Unfavorable (不利)"
    return "Favorable (有利)" if sum(score >= 60 for score in scores) > most else "Neutral (中性)"


def _concludes(s: MacroSnapshot, card: Scorecard, say: Voice) -> MacroResult:
    dimensions = analyses("macro", MacroDimension, card, say)
    environment = environment_for([dimension.score for dimension in dimensions])
    say = with_extremes("macro", MacroDimension, card, say)
    view = environment.partition(" ")[0].lower()
    conclusion, risk = say(f"macro.conclusion.{view}"), say(f"macro.risk.{view}")
    return MacroResult(
        macro_environment=environment,
        confidence_score=card.confidence,
        macro_summary=summary(card, say, conclusion),
        dimension_analyses=dimensions,
        key_opportunities=card.pros or [say("macro.no_opportunity")],
        key_risks=card.cons or [say("macro.no_risk")],
        information_sources=s.all_source_urls,
        narrative_report=narrative(card, say, conclusion=conclusion, risk=risk),
    )


MACRO_RUBRIC = Rubric(partial(mark, "macro", RULES), _concludes)
