"""Budgets in SQL: one row for each session and day, and one statement that both checks and takes."""

from typing import Any

from sqlalchemy import Connection, case, select, update
from sqlalchemy.orm import InstrumentedAttribute
from sqlalchemy.sql.dml import ReturningUpdate

from moot.modules.llm_platform.domain.budget import (
    Account,
    Amount,
    Counts,
    Limits,
    Reservation,
    Unit,
    accounts_of,
)
from moot.modules.llm_platform.domain.exceptions import BudgetExceeded
from moot.modules.llm_platform.infrastructure.tables import SpendingRow
from moot.shared.domain.clock import Clock
from moot.shared.infrastructure.database import Database
from moot.shared.infrastructure.execution_context import current_execution_ctx
from moot.shared.infrastructure.transactions import upsert

Column = InstrumentedAttribute[int]
SPENT: dict[Unit, Column] = {"tokens": SpendingRow.tokens_spent, "cost": SpendingRow.cost_spent}
RESERVED: dict[Unit, Column] = {"tokens": SpendingRow.tokens_reserved, "cost": SpendingRow.cost_reserved}


class SqlBudget:
    """Session and day are taken from in one transaction, in that order: all of it, or nothing."""

    def __init__(self, database: Database, clock: Clock, limits: Limits, currency: str) -> None:
        self._database, self._clock = database, clock
        self._limits, self._currency = limits, currency

    async def reserve(self, amount: Amount) -> Reservation:
        accounts = accounts_of(self._limits, current_execution_ctx.get(), self._clock.now())
        if not accounts:
            return Reservation()
        for account in accounts:  # a limit on cost means nothing to a model without a price
            if amount.cost is None and "cost" in account.limits:
                raise account.refuse("unpriced", "cost", self._currency, limit=account.limits["cost"])

        def take(db: Connection) -> None:
            upsert(db, SpendingRow, [{"key": account.key} for account in accounts])
            for account in accounts:
                if db.scalar(_take(account, amount.counts())) is None:
                    raise _refusal(db, account, amount.counts(), self._currency)

        await self._database.write(take)
        return Reservation(tuple(account.key for account in accounts), amount)

    async def settle(self, reservation: Reservation, used: Amount) -> None:
        if not reservation.keys:
            return
        reserved = reservation.amount
        spent = used if used.cost is not None else used._replace(cost=reserved.cost)
        changes: dict[Column, Any] = {}
        for unit, freed in reserved.counts().items():
            changes[SPENT[unit]] = SPENT[unit] + spent.counts()[unit]
            changes[RESERVED[unit]] = case((RESERVED[unit] > freed, RESERVED[unit] - freed), else_=0)

        def pay(db: Connection) -> None:
            for key in reservation.keys:
                db.execute(update(SpendingRow).where(SpendingRow.key == key).values(changes))

        await self._database.write(pay)


def _take(account: Account, needed: Counts) -> ReturningUpdate[str]:
    """Returns the key when there was enough left, and nothing when there was not."""
    fits = [SPENT[unit] + RESERVED[unit] + needed[unit] <= limit for unit, limit in account.limits.items()]
    more = {RESERVED[unit]: RESERVED[unit] + count for unit, count in needed.items()}
    mine = update(SpendingRow).where(SpendingRow.key == account.key, *fits)
    return mine.values(more).returning(SpendingRow.key)


def _refusal(db: Connection, account: Account, needed: Counts, currency: str) -> BudgetExceeded:
    """By the unit that is short. When all fits by now, another call has ended since."""
    row = db.execute(select(SpendingRow.__table__).where(SpendingRow.key == account.key)).mappings().one()
    left = {unit: n - row[f"{unit}_spent"] - row[f"{unit}_reserved"] for unit, n in account.limits.items()}
    short = [unit for unit in left if needed[unit] > left[unit]]
    unit = (short or list(left))[0]
    return account.refuse(
        "exceeded",
        unit,
        currency,
        limit=account.limits[unit],
        spent=row[f"{unit}_spent"],
        reserved=row[f"{unit}_reserved"],
        needed=needed[unit],
        left=max(0, left[unit]),
    )
