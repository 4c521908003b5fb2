"""The financial auditor: how a company's books are graded by rule."""

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from statistics import fmean
from typing import Any

from moot.modules.research.application.expert_service import ExpertService
from moot.modules.research.application.financial_auditor.snapshot import (
    FinancialDimension,
    FinancialResult,
    FinancialSnapshot,
    financial_snapshot,
    signal_for,
)
from moot.modules.research.application.remit import Remit, judging_each
from moot.modules.research.domain.evidence import measured
from moot.modules.research.domain.rubric import Rubric, analyses, narrative, summary, with_extremes
from moot.modules.research.domain.scorecard import Scorecard, load_rules, mark
from moot.modules.research.domain.texts import COMMON
from moot.modules.research.domain.voice import Voice
from moot.shared.domain.errors import InvalidInput
from moot.shared.domain.experts import ExpertType
from moot.shared.domain.messages import Catalogue, Locale, Message

FOLDER = Path(__file__).parent
SAY = Catalogue(COMMON, FOLDER)
LIMITS = range(1, 21)
EARLIER_PERIODS = 4
"""Loaded beyond the asked ones, so that the oldest of them has its year-on-year."""


def overall_score(card: Scorecard) -> int:
    """The mean of the dimensions that have data."""
    return round(fmean(score for d in FinancialDimension if (score := card.of(d).score_100) is not None))


def _marks(s: FinancialSnapshot, say: Voice) -> Scorecard:
    return mark(load_rules(FOLDER, FinancialDimension), s, say)


def _concludes(s: FinancialSnapshot, card: Scorecard, say: Voice) -> FinancialResult:
    score = overall_score(card)
    signal = signal_for(score)
    say = with_extremes(FinancialDimension, card, say).also(score=score)
    conclusion, risk = say(f"conclusion.{signal}"), say(f"risk.{signal}")
    return FinancialResult(
        financial_score=score,
        signal=signal,
        confidence=card.confidence,
        summary_reasoning=summary(card, say, conclusion),
        dimension_analyses=analyses(FinancialDimension, card, say),
        key_risks=card.cons or [say("no_cons")],
        risk_warning=risk,
        narrative_report=narrative(card, say, conclusion=conclusion, risk=risk),
    )


def named_by_score(result: FinancialResult) -> tuple[FinancialResult, Sequence[Message]]:
    """The score decides; a model that named it otherwise is corrected, and the reader told."""
    score, signal = result.financial_score, signal_for(result.financial_score)
    if signal == result.signal:
        return result, ()
    remark = SAY("signal_from_score", score=score, said=result.signal, signal=signal)
    return result.model_copy(update={"signal": signal}), [remark]


class FinancialAuditorService(ExpertService[FinancialSnapshot, FinancialResult]):
    expert = ExpertType.FINANCIAL_AUDITOR
    rubric = Rubric(SAY, _marks, _concludes)
    remit = Remit(
        FOLDER,
        judging_each(FinancialDimension, FinancialResult),
        shows=("stock_name", "symbol", "industry", "report_period", "announced_on", "quarter_list"),
        settles=named_by_score,
    )

    async def run(self, symbol: str, limit: int = 5, *, as_of: datetime, locale: Locale) -> dict[str, Any]:
        if limit not in LIMITS:
            said = SAY("limit_out_of_range", limit=limit, least=LIMITS[0], most=LIMITS[-1])
            raise InvalidInput(said, field="limit")
        case = await self._open(symbol, as_of, locale)
        reports = await self._facts.reports(case.symbol, limit + EARLIER_PERIODS, as_of=as_of)
        if not reports:
            raise self._refusal(case, "no_reports")
        snapshot = financial_snapshot(case, reports, limit)
        evidence = measured(self.expert.prefix, snapshot, reports[0], labels=snapshot.quarter_list)
        return await self._report(case, snapshot, evidence)


SERVICE = FinancialAuditorService
