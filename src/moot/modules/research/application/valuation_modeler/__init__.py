"""The valuation modeler weighs a price by rule: first whether it is low, then whether it deserves to be."""

from datetime import datetime, timedelta
from typing import Any, Literal

import structlog

from moot.modules.research.application.expert_service import ExpertService
from moot.modules.research.application.remit import Answer, Remit
from moot.modules.research.application.valuation_modeler.snapshot import (
    FOLDER,
    FROM_REPORTS,
    SAY,
    IntrinsicValueRange,
    ValuationResult,
    ValuationSnapshot,
    ValuationVerdict,
    valuation_snapshot,
)
from moot.modules.research.domain.evidence import measured
from moot.modules.research.domain.rubric import Rubric, narrative, summary
from moot.modules.research.domain.scorecard import Scorecard, load_rules, mark
from moot.modules.research.domain.voice import Voice
from moot.shared.domain.experts import ExpertType
from moot.shared.domain.messages import Locale

logger = structlog.get_logger(__name__)

HISTORY_DAYS = 3 * 365
FINANCE_PERIODS = 8
GLOSSED = {
    f"{verdict}{gloss}": verdict
    for verdict, chinese in (("Undervalued", "低估"), ("Fair", "合理"), ("Overvalued", "高估"))
    for gloss in (f" ({chinese})", f"({chinese})", f"（{chinese}）", f" （{chinese}）")
}

PRICE, QUALITY = "price", "quality"
CHEAP_AT = 0.25
POOR_AT = -0.3
MOST_EVIDENCE = 6

Case = Literal["opportunity", "trap", "fair", "overvalued"]
VERDICTS: dict[Case, ValuationVerdict] = {
    "opportunity": "Undervalued",
    "trap": "Fair",
    "fair": "Fair",
    "overvalued": "Overvalued",
}


def case_for(price: float, quality: float) -> Case:
    """A low price with poor quality is a trap, and a trap is not cheap."""
    if price >= CHEAP_AT:
        return "trap" if quality <= POOR_AT else "opportunity"
    return "overvalued" if price <= -CHEAP_AT else "fair"


def value_range(s: ValuationSnapshot, say: Voice) -> IntrinsicValueRange:
    """From the lowest to the highest of the models that apply."""
    models = (s.graham_intrinsic_val, s.pe_implied_value, s.pb_implied_value)
    values = [value for value in models if value is not None]
    if not values:
        unknown = say("not_available")
        return IntrinsicValueRange(lower_bound=unknown, upper_bound=unknown)
    return IntrinsicValueRange(lower_bound=f"{min(values):.2f}", upper_bound=f"{max(values):.2f}")


def _risks(s: ValuationSnapshot, case: Case, has_range: bool, say: Voice) -> list[str]:
    """The price that would prove the view wrong, and what weakens the figures themselves."""
    caveats = {"rebased": s.rebased, "implausible": bool(s.implausible)}
    return [
        say(f"risk.{case if has_range else 'no_range'}"),
        *(say(key) for key, holds in caveats.items() if holds),
    ]


def _marks(s: ValuationSnapshot, say: Voice) -> Scorecard:
    return mark(load_rules(FOLDER), s, say)


def _concludes(s: ValuationSnapshot, card: Scorecard, say: Voice) -> ValuationResult:
    case = case_for(card.of(PRICE).score or 0.0, card.of(QUALITY).score or 0.0)
    worth = value_range(s, say)
    say = say.also(lower=worth.lower_bound, upper=worth.upper_bound)
    conclusion = say(f"conclusion.{case}")
    risks = _risks(s, case, worth.lower_bound != say("not_available"), say)
    basis = card.of(PRICE) if case in ("fair", "overvalued") else card
    return ValuationResult(
        valuation_verdict=VERDICTS[case],
        confidence_score=basis.confidence,
        estimated_intrinsic_value_range=worth,
        key_evidence=[finding.text for _, finding in card.marked][:MOST_EVIDENCE],
        risk_factors=[*risks, *card.cons],
        reasoning_summary=summary(card, say, conclusion, basis=basis),
        narrative_report=narrative(card, say, conclusion=conclusion, risk=say.prose(risks), basis=basis),
    )


def without_gloss(snapshot: ValuationSnapshot, answer: Answer) -> Answer:
    """`Undervalued (低估)` is how some models write `Undervalued`."""
    plain = GLOSSED.get(str(answer.get("valuation_verdict")))
    return answer | {"valuation_verdict": plain} if plain else answer


class ValuationModelerService(ExpertService[ValuationSnapshot, ValuationResult]):
    expert = ExpertType.VALUATION_MODELER
    rubric = Rubric(SAY, _marks, _concludes)
    remit = Remit(
        FOLDER,
        ValuationResult,
        shows=(
            *("stock_name", "stock_code", "industry", "current_date", "report_period"),
            *("gross_margin_trend", "rebased", "implausible"),
        ),
        checks=without_gloss,
    )

    async def run(self, symbol: str, *, as_of: datetime, locale: Locale) -> dict[str, Any]:
        case = await self._open(symbol, as_of, locale)
        start = case.today - timedelta(days=HISTORY_DAYS)
        history = await self._facts.valuations(case.symbol, start, case.today, as_of=as_of)
        if not history:
            raise self._refusal(case, "no_valuations")
        reports = await self._facts.reports(case.symbol, FINANCE_PERIODS, as_of=as_of)
        if not reports:
            raise self._refusal(case, "no_reports")
        snapshot = valuation_snapshot(case, history, reports)
        if snapshot.implausible:
            logger.warning("implausible figures left out", symbol=symbol, fields=snapshot.implausible)
        origins = dict.fromkeys(FROM_REPORTS, reports[0])
        evidence = measured(self.expert.prefix, snapshot, history[-1], origins=origins)
        return await self._report(case, snapshot, evidence)


SERVICE = ValuationModelerService
