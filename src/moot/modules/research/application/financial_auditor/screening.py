"""The financial auditor of many shares: its own snapshot of each, taken from what was read of all at once."""

import asyncio

from moot.modules.research.application.financial_auditor import PERIODS_SHOWN, PRICED_WITHIN, count_periods
from moot.modules.research.application.financial_auditor.snapshot import FinancialSnapshot, financial_snapshot
from moot.modules.research.application.scope import Scope
from moot.shared.domain.facts import EarningsNotice, FinancialReport, Statement
from moot.shared.domain.symbol import Symbol


async def audit_many(scope: Scope) -> dict[str, FinancialSnapshot]:
    reports = await scope.read_filed(FinancialReport)
    statements = await scope.read_filed(Statement)
    notices = await scope.read_filed(EarningsNotice)
    valuations = await scope.read_valuations(PRICED_WITHIN.days)

    def take(share: Symbol) -> FinancialSnapshot:
        """What was filed is read newest first, and told oldest first but for reports."""
        case, symbol = scope.open_case(share), share.text
        stated, told = statements.get(symbol, ())[::-1], notices.get(symbol, ())[::-1]
        valued = valuations.get(symbol) if stated and case.sector.manufacturer else None
        value = valued["total_mv"][-1] if valued else None
        read = reports[symbol][: count_periods(PERIODS_SHOWN)]
        return financial_snapshot(case, read, PERIODS_SHOWN, stated, told, market_value=value)

    filed = [share for share in scope.shares if share.text in reports]
    return await asyncio.to_thread(lambda: {share.text: take(share) for share in filed})
