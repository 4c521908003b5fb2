"""The financial auditor of many shares: its own snapshot of each, taken from what was read of all at once."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from moot.modules.research.application.financial_auditor import (
    PERIODS_SHOWN,
    PRICED_WITHIN,
    FinancialAuditorService,
    count_periods,
)
from moot.modules.research.application.financial_auditor.snapshot import FinancialSnapshot, financial_snapshot
from moot.modules.research.application.marking import Service
from moot.modules.research.application.scope import Scope, Table
from moot.modules.research.domain.facts import Case
from moot.shared.domain.facts import EarningsNotice, FinancialReport, Statement


class FinancialScreener:
    service: Service = FinancialAuditorService

    async def measure(self, scope: Scope) -> dict[str, FinancialSnapshot]:
        filed = Filed(
            await scope.read_filed(FinancialReport),
            await scope.read_filed(Statement),
            await scope.read_filed(EarningsNotice),
            await scope.read_valuations(PRICED_WITHIN.days),
        )
        return await asyncio.to_thread(_take_snapshots, scope, filed)


class Filed(NamedTuple):
    """By symbol, what was filed, newest first, and what was paid."""

    reports: Mapping[str, Sequence[FinancialReport]]
    statements: Mapping[str, Sequence[Statement]]
    notices: Mapping[str, Sequence[EarningsNotice]]
    valuations: Mapping[str, Table]


def _take_snapshots(scope: Scope, filed: Filed) -> dict[str, FinancialSnapshot]:
    return {s.text: _take(scope.open_case(s), filed) for s in scope.shares if s.text in filed.reports}


def _take(case: Case, filed: Filed) -> FinancialSnapshot:
    symbol = case.symbol.text
    statements, notices = filed.statements.get(symbol, ())[::-1], filed.notices.get(symbol, ())[::-1]
    valued = filed.valuations.get(symbol) if statements and case.sector.manufacturer else None
    value = valued["total_mv"][-1] if valued else None
    reports = filed.reports[symbol][: count_periods(PERIODS_SHOWN)]
    return financial_snapshot(case, reports, PERIODS_SHOWN, statements, notices, market_value=value)
