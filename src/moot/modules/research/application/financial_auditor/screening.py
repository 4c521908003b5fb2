"""The financial auditor of many shares: its own snapshot of each, taken from what was read of all at once."""

from moot.modules.research.application.financial_auditor import (
    PERIODS_SHOWN,
    PRICED_WITHIN,
    FinancialAuditorService,
    count_periods,
)
from moot.modules.research.application.financial_auditor.snapshot import FinancialSnapshot, financial_snapshot
from moot.modules.research.application.marking import Service
from moot.modules.research.application.scope import Scope
from moot.shared.domain.facts import EarningsNotice, FinancialReport, Statement
from moot.shared.domain.symbol import Symbol


class FinancialScreener:
    service: Service = FinancialAuditorService

    async def measure(self, scope: Scope) -> dict[str, FinancialSnapshot]:
        reports = await scope.read_filed(FinancialReport)
        return {share.text: await self._take(share, scope) for share in scope.shares if share.text in reports}

    async def _take(self, share: Symbol, scope: Scope) -> FinancialSnapshot:
        case, symbol = scope.open_case(share), share.text
        reports = (await scope.read_filed(FinancialReport))[symbol][: count_periods(PERIODS_SHOWN)]
        statements = (await scope.read_filed(Statement)).get(symbol, ())[::-1]
        notices = (await scope.read_filed(EarningsNotice)).get(symbol, ())[::-1]
        valued = (await scope.read_valuations(PRICED_WITHIN.days)).get(symbol)
        asked = valued if statements and case.sector.manufacturer else None
        value = asked["total_mv"][-1] if asked else None
        return financial_snapshot(case, reports, PERIODS_SHOWN, statements, notices, market_value=value)
