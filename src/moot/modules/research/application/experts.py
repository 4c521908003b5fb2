"""The five experts. Each gathers its facts as of a moment, has code compute from them, and asks its analyst."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Any, TypeVar

import structlog

from moot.modules.research.domain.analyst import Analyst, ExpertResult, Opinion
from moot.modules.research.domain.catalyst import (
    CatalystContext,
    CatalystDetectiveAgentResult,
    CatalystResult,
    catalyst_context,
)
from moot.modules.research.domain.events import WINDOW_DAYS, event_evidence, read_events
from moot.modules.research.domain.evidence import Snapshot, measured
from moot.modules.research.domain.facts import Company, MarketFacts
from moot.modules.research.domain.financial import (
    EARLIER_PERIODS,
    LIMITS,
    FinancialResult,
    FinancialSnapshot,
    financial_snapshot,
)
from moot.modules.research.domain.macro import (
    FIGURE_DAYS,
    MacroResult,
    MacroSnapshot,
    macro_evidence,
    macro_snapshot,
    trends,
)
from moot.modules.research.domain.technical import (
    LOOKBACK_DAYS,
    MIN_BARS_REQUIRED,
    IndicatorCalculator,
    TechnicalResult,
    TechnicalSnapshot,
)
from moot.modules.research.domain.texts import SAY
from moot.modules.research.domain.valuation import (
    FINANCE_PERIODS,
    FROM_REPORTS,
    HISTORY_DAYS,
    ValuationResult,
    ValuationSnapshot,
    valuation_snapshot,
)
from moot.modules.research.domain.web_context import (
    CATALYST_SEARCHES,
    MACRO_SEARCHES,
    Web,
    WebSearch,
    beyond,
    told_with,
    web_evidence,
)
from moot.shared.domain.errors import InvalidInput
from moot.shared.domain.evidence import Evidence
from moot.shared.domain.messages import Locale
from moot.shared.domain.symbol import Symbol

logger = structlog.get_logger(__name__)

S = TypeVar("S", MacroSnapshot, CatalystContext)


class TechnicalAnalystService:
    def __init__(
        self,
        facts: MarketFacts,
        calculator: IndicatorCalculator,
        analyst: Analyst[TechnicalSnapshot, TechnicalResult],
    ) -> None:
        self._facts = facts
        self._calculator = calculator
        self._analyst = analyst

    async def run(
        self, ticker: str, analysis_date: date, *, as_of: datetime, locale: Locale
    ) -> dict[str, Any]:
        case = await _open(self._facts, ticker, as_of, field="ticker")
        if analysis_date > case.today:
            raise InvalidInput(
                SAY("date_in_future", date=analysis_date, today=case.today), field="analysis_date"
            )
        start = analysis_date - timedelta(days=LOOKBACK_DAYS)
        bars = await self._facts.bars(case.symbol, start, analysis_date, as_of=as_of)
        if not bars:
            raise case.refused("no_bars", start=start, end=analysis_date)
        if len(bars) < MIN_BARS_REQUIRED:
            raise case.refused("too_few_bars", actual=len(bars), required=MIN_BARS_REQUIRED)
        snapshot = TechnicalSnapshot(
            ticker=case.symbol.text,
            stock_name=case.company.names[locale],
            analysis_date=analysis_date,
            days_since_last_trade=(analysis_date - bars[-1].trade_date).days,
            **self._calculator.compute(bars).model_dump(),
        )
        evidence = measured("technical", snapshot, bars[-1])
        opinion = await self._analyst.analyse(snapshot, evidence, locale)
        return _report(opinion, evidence, technical_indicators=snapshot)


class FinancialAuditorService:
    def __init__(self, facts: MarketFacts, analyst: Analyst[FinancialSnapshot, FinancialResult]) -> None:
        self._facts = facts
        self._analyst = analyst

    async def run(self, symbol: str, limit: int = 5, *, as_of: datetime, locale: Locale) -> dict[str, Any]:
        if limit not in LIMITS:
            raise InvalidInput(
                SAY("limit_out_of_range", limit=limit, least=LIMITS[0], most=LIMITS[-1]), field="limit"
            )
        case = await _open(self._facts, symbol, as_of)
        reports = await self._facts.reports(case.symbol, limit + EARLIER_PERIODS, as_of=as_of)
        if not reports:
            raise case.refused("no_reports")
        snapshot = financial_snapshot(case.company, reports, limit, locale)
        evidence = measured("financial", snapshot, reports[0], labels=snapshot.quarter_list)
        opinion = await self._analyst.analyse(snapshot, evidence, locale)
        return _report(opinion, evidence, financial_indicators=snapshot)


class ValuationModelerService:
    def __init__(self, facts: MarketFacts, analyst: Analyst[ValuationSnapshot, ValuationResult]) -> None:
        self._facts = facts
        self._analyst = analyst

    async def run(self, symbol: str, *, as_of: datetime, locale: Locale) -> dict[str, Any]:
        case = await _open(self._facts, symbol, as_of)
        start = case.today - timedelta(days=HISTORY_DAYS)
        history = await self._facts.valuations(case.symbol, start, case.today, as_of=as_of)
        if not history:
            raise case.refused("no_valuations")
        reports = await self._facts.reports(case.symbol, FINANCE_PERIODS, as_of=as_of)
        if not reports:
            raise case.refused("no_reports")
        snapshot = valuation_snapshot(case.company, history, reports, case.today, locale)
        if snapshot.implausible:
            logger.warning("implausible figures left out", symbol=symbol, fields=snapshot.implausible)
        evidence = measured(
            "valuation", snapshot, history[-1], origins=dict.fromkeys(FROM_REPORTS, reports[0])
        )
        opinion = await self._analyst.analyse(snapshot, evidence, locale)
        return _report(opinion, evidence, valuation_indicators=snapshot)


class MacroIntelligenceService:
    def __init__(
        self, facts: MarketFacts, analyst: Analyst[MacroSnapshot, MacroResult], web: Web | None = None
    ) -> None:
        self._facts = facts
        self._analyst = analyst
        self._web = web

    async def run(self, symbol: str, *, as_of: datetime, locale: Locale) -> dict[str, Any]:
        case = await _open(self._facts, symbol, as_of)
        by_series = trends(await self._facts.macro(case.symbol, FIGURE_DAYS, as_of=as_of))
        news = await self._facts.news(case.symbol, WINDOW_DAYS, as_of=as_of)
        policies = read_events([item for item in news if item.kind == "policy"], case.today, locale)
        known = macro_snapshot(case.company, by_series, policies, case.today, locale)
        snapshot, read = await _searched(self._web, MACRO_SEARCHES, case, known, locale)
        if not snapshot.all_source_urls:
            raise case.refused("no_macro", days=FIGURE_DAYS)
        evidence = [*macro_evidence(snapshot, by_series), *read]
        opinion = await self._analyst.analyse(snapshot, evidence, locale)
        return _report(opinion, evidence, macro_indicators=snapshot)


class CatalystDetectiveService:
    def __init__(
        self, facts: MarketFacts, analyst: Analyst[CatalystContext, CatalystResult], web: Web | None = None
    ) -> None:
        self._facts = facts
        self._analyst = analyst
        self._web = web

    async def run(self, symbol: str, *, as_of: datetime, locale: Locale) -> CatalystDetectiveAgentResult:
        case = await _open(self._facts, symbol, as_of)
        news = await self._facts.news(case.symbol, WINDOW_DAYS, as_of=as_of)
        of_interest = [item for item in news if item.kind != "policy" or item.industry]
        events = read_events(of_interest, case.today, locale)
        known = catalyst_context(case.company, events, WINDOW_DAYS, case.today, locale)
        context, read = await _searched(self._web, CATALYST_SEARCHES, case, known, locale)
        if not context.all_source_urls:
            raise case.refused("no_news", days=WINDOW_DAYS)
        evidence = [
            *(measured("catalyst", context, events[0]) if events else []),
            *event_evidence("catalyst", context.events),
            *read,
        ]
        opinion = await self._analyst.analyse(context, evidence, locale)
        return CatalystDetectiveAgentResult(
            result=opinion.result,
            raw_llm_output=opinion.output,
            user_prompt=opinion.input,
            catalyst_context=context,
            narrative_report=opinion.result.narrative_report,
            evidence=evidence,
            engine=opinion.engine,
            grounding=opinion.grounding,
            warnings=list(opinion.warnings),
        )


@dataclass(frozen=True)
class _Case:
    """Whom the expert was asked about, the moment asked for, and the exchange's date then."""

    symbol: Symbol
    company: Company
    as_of: datetime
    today: date

    def refused(self, why: str, **values: Any) -> InvalidInput:
        return InvalidInput(SAY(why, symbol=self.symbol.text, today=self.today, **values), field="symbol")


async def _open(facts: MarketFacts, text: str, as_of: datetime, *, field: str = "symbol") -> _Case:
    if not text.strip():
        raise InvalidInput(SAY("symbol_blank", field=field), field=field)
    symbol = Symbol.parse(text)
    return _Case(symbol, await facts.company(symbol, as_of=as_of), as_of, symbol.local_date(as_of))


async def _searched(
    web: Web | None, searches: Sequence[WebSearch], case: _Case, known: S, locale: Locale
) -> tuple[S, list[Evidence]]:
    """What is known, with what the web adds to it."""
    if web is None:
        return known, []
    queries = {search: search.query(case.symbol, case.company, case.today, locale) for search in searches}
    found = beyond(known, await web.find(queries, case.symbol, as_of=case.as_of))
    return told_with(known, found, locale), web_evidence(found)


def _report(
    opinion: Opinion[ExpertResult], evidence: Sequence[Evidence], **indicators: Snapshot
) -> dict[str, Any]:
    """The documented fields of the result, and beside them what it rests on."""
    return {
        **opinion.result.model_dump(mode="json"),
        "input": opinion.input,
        "output": opinion.output,
        **{name: snapshot.model_dump(mode="json") for name, snapshot in indicators.items()},
        "evidence": [item.model_dump(mode="json") for item in evidence],
        "engine": opinion.engine,
        "grounding": opinion.grounding and opinion.grounding.model_dump(mode="json"),
        "warnings": list(opinion.warnings),
    }
