"""Budgets in SQL: one row for each session and day, and one statement that both checks and takes."""

from collections.abc import Sequence

from sqlalchemy import ColumnElement, Connection, Update, case, select, update
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
    exceeded,
    unpriced,
)
from moot.modules.llm_platform.domain.exceptions import BudgetExceeded
from moot.modules.llm_platform.infrastructure.tables import SpendingRow
from moot.shared.domain.clock import Clock
from moot.shared.infrastructure.database import Database
from moot.shared.infrastructure.execution_context import current_execution_ctx
from moot.shared.infrastructure.transactions import Insert, insert_into

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
        self._require_price(accounts, amount)

        def take(db: Connection) -> None:
            db.execute(_open(db, accounts))
            for account in accounts:
                if db.scalar(_take(account, amount.counts())) is None:
                    raise _refusal(db, account, amount.counts(), self._currency)

        await self._database.write(take)
        return Reservation(keys=tuple(account.key for account in accounts), amount=amount)

    async def settle(self, reservation: Reservation, used: Amount) -> None:
        if not reservation.keys:
            return
        reserved = reservation.amount
        spent = used if used.cost is not None else used.model_copy(update={"cost": reserved.cost})

        def pay(db: Connection) -> None:
            for key in reservation.keys:
                db.execute(_pay(key, reserved.counts(), spent.counts()))

        await self._database.write(pay)

    def _require_price(self, accounts: Sequence[Account], amount: Amount) -> None:
        limited = [account for account in accounts if "cost" in account.limits]
        if limited and amount.cost is None:
            raise unpriced(limited[0], self._currency)


def _open(db: Connection, accounts: Sequence[Account]) -> Insert:
    rows = [{"key": account.key} for account in accounts]
    return insert_into(db, SpendingRow).values(rows).on_conflict_do_nothing()


def _take(account: Account, needed: Counts) -> ReturningUpdate[str]:
    """Returns the key when there was enough left, and nothing when there was not."""
    fits = [SPENT[unit] + RESERVED[unit] + needed[unit] <= limit for unit, limit in account.limits.items()]
    more = {RESERVED[unit]: RESERVED[unit] + count for unit, count in needed.items()}
    return _update(account.key, *fits).values(more).returning(SpendingRow.key)


def _pay(key: str, reserved: Counts, spent: Counts) -> Update:
    paid = {SPENT[unit]: SPENT[unit] + count for unit, count in spent.items()}
    freed = {RESERVED[unit]: _less(RESERVED[unit], count) for unit, count in reserved.items()}
    return _update(key).values(paid | freed)


def _less(column: Column, count: int) -> ColumnElement[int]:
    return case((column > count, column - count), else_=0)


def _update(key: str, *conditions: ColumnElement[bool]) -> Update:
    return update(SpendingRow).where(SpendingRow.key == key, *conditions)


def _refusal(db: Connection, account: Account, needed: Counts, currency: str) -> BudgetExceeded:
    row = db.execute(select(SpendingRow.__table__).where(SpendingRow.key == account.key)).one()
    return exceeded(
        account,
        spent={"tokens": row.tokens_spent, "cost": row.cost_spent},
        reserved={"tokens": row.tokens_reserved, "cost": row.cost_reserved},
        needed=needed,
        currency=currency,
    )
