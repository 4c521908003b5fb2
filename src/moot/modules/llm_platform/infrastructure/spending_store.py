"""Budgets in SQL: one row for each session, batch and day, and one statement that both checks and takes."""

from collections.abc import Mapping
from decimal import Decimal
from time import monotonic
from typing import Any, NamedTuple

from sqlalchemy import Connection, case, select, update
from sqlalchemy.orm import InstrumentedAttribute

from moot.modules.llm_platform.application.call_logs import BATCH_BUDGET_EXCEEDED
from moot.modules.llm_platform.domain.budget import (
    Amount,
    Budget,
    Limits,
    Reservation,
)
from moot.modules.llm_platform.domain.exceptions import BudgetExceeded
from moot.modules.llm_platform.domain.texts import SAY
from moot.modules.llm_platform.infrastructure.tables import SpendingRow
from moot.shared.domain.clock import Clock
from moot.shared.domain.messages import Message
from moot.shared.domain.rate_limits import LOOK_AGAIN, NotYet, Rate, Turn
from moot.shared.infrastructure.database import Database
from moot.shared.infrastructure.execution_context import current_context
from moot.shared.infrastructure.rate_limit_store import settle_turn, take_turn
from moot.shared.infrastructure.transactions import upsert

Column = InstrumentedAttribute[int]
SPENT: Mapping[str, Column] = {"tokens": SpendingRow.tokens_spent, "cost": SpendingRow.cost_spent}
RESERVED: Mapping[str, Column] = {"tokens": SpendingRow.tokens_reserved, "cost": SpendingRow.cost_reserved}
MAX_TOKENS = 10**15
MAX_COST = 10**9
BILLIONTHS = 10**9
BATCH = "batch"
LONGEST_CALL = 900.0
"""Seconds after which money that was set aside, and that nobody has used or given back, is taken to be gone."""

Stand = tuple[int, int]
"""What is spent, and what is set aside."""
Counts = Mapping[str, int]
"""By unit, in whole numbers, which add up exactly: tokens, and billionths of the currency."""


class Account(NamedTuple):
    """Where spending under a limit is counted: of one session, one batch, or one workspace on one day (`scope`)."""

    scope: str
    key: str
    limits: Counts


class SqlBudget(Budget):
    """Session, batch, day and the model's minute are taken from in one transaction, in that order: all of it, or
    nothing."""

    def __init__(self, database: Database, clock: Clock, limits: Limits, currency: str) -> None:
        super().__init__(limits)
        self._database, self._clock, self._currency = database, clock, currency
        self._stood: dict[str, tuple[Stand, float]] = {}

    async def reserve(self, amount: Amount, rate: Rate | None = None) -> Reservation:
        accounts, needed = self._accounts(), _count(amount.tokens, amount.cost or 0.0)
        if not accounts and rate is None:
            return Reservation()
        for account in accounts:  # a limit on cost means nothing to a model without a price
            if amount.cost is None and "cost" in account.limits:
                raise self._refuse(account, "cost", "unpriced", limit=account.limits["cost"])

        priority = current_context().priority  # the database may be written to in another thread

        def take(db: Connection) -> Turn | None:
            if accounts:
                upsert(db, SpendingRow, [{"key": account.key} for account in accounts])
            for account in accounts:
                self._take(db, account, needed)
            return rate and take_turn(db, rate, needed["tokens"], priority)

        turn = await self._database.patience.outlast(lambda: self._database.write(take))
        return Reservation(tuple(account.key for account in accounts), turn)

    async def settle(
        self, reservation: Reservation, reserved: Amount, used: Amount, *, made: bool = True
    ) -> None:
        if reservation == Reservation():
            return
        cost = reserved.cost if used.cost is None else used.cost
        spent = _count(used.tokens, cost or 0.0)
        changes: dict[Column, Any] = {}
        for unit, freed in _count(reserved.tokens, reserved.cost or 0.0).items():
            changes[SPENT[unit]] = SPENT[unit] + spent[unit]
            changes[RESERVED[unit]] = case((RESERVED[unit] > freed, RESERVED[unit] - freed), else_=0)

        def pay(db: Connection) -> None:
            for key in reservation.accounts:
                db.execute(update(SpendingRow).where(SpendingRow.key == key).values(changes))
            if reservation.turn:
                settle_turn(db, reservation.turn, made=made, tokens=spent["tokens"])

        await self._database.write_at_most_once(pay)  # at worst what was set aside stands

    def _accounts(self) -> list[Account]:
        """Those that a call made now is counted in, always in the same order; those without a limit are left out."""
        context, limits = current_context(), self._limits
        cost = limits.session_cost if context.max_cost is None else context.max_cost
        day = f"day:{context.workspace}:{self._clock.now():%Y-%m-%d}"
        accounts = [
            Account("session", f"session:{context.session_id}", _count(limits.session_tokens, cost)),
            Account(BATCH, f"batch:{context.batch_id}", _count(None, context.batch_max_cost)),
            Account("day", day, _count(limits.day_tokens, limits.day_cost)),
        ]
        here = accounts if context.session_id else accounts[1:]
        return [account for account in here if account.limits]

    def _take(self, db: Connection, account: Account, needed: Counts) -> None:
        fits = [SPENT[unit] + RESERVED[unit] + needed[unit] <= n for unit, n in account.limits.items()]
        mine = update(SpendingRow).where(SpendingRow.key == account.key, *fits)
        more = {RESERVED[unit]: RESERVED[unit] + count for unit, count in needed.items()}
        if db.scalar(mine.values(more).returning(SpendingRow.key)) is None:
            raise self._refuse_short(db, account, needed)

    def _refuse_short(self, db: Connection, account: Account, needed: Counts) -> BudgetExceeded:
        """By the unit that is short. When all fits by now, another call has ended since."""
        row = db.execute(select(SpendingRow.__table__).where(SpendingRow.key == account.key)).mappings().one()
        taken = {unit: (row[f"{unit}_spent"], row[f"{unit}_reserved"]) for unit in account.limits}
        left = {unit: limit - sum(taken[unit]) for unit, limit in account.limits.items()}
        unit = next((unit for unit in left if needed[unit] > left[unit]), next(iter(left)))
        spent, reserved = taken[unit]
        if (
            account.scope == BATCH
            and spent + needed[unit] <= account.limits[unit]
            and self._may_move(account, row)
        ):
            raise NotYet(LOOK_AGAIN)
        stands = {"limit": account.limits[unit], "spent": spent, "reserved": reserved}
        return self._refuse(account, unit, "exceeded", **stands, needed=needed[unit], left=max(0, left[unit]))

    def _may_move(self, account: Account, row: Mapping[Any, Any]) -> bool:
        """Whether those who have set money aside may yet give some back; who died with it never does."""
        stand = row["cost_spent"], row["cost_reserved"]
        before, since = self._stood.get(account.key, (None, 0.0))
        if before != stand:
            since = monotonic()
            self._stood[account.key] = stand, since
        return monotonic() - since < LONGEST_CALL

    def _refuse(self, account: Account, unit: str, problem: str, **counts: int) -> BudgetExceeded:
        """`counts` are how the account stood when a call did not fit into it."""
        setting = f"MOOT_BUDGET_{account.scope}_{unit}".upper()
        by_flag = (account.scope, unit) == ("session", "cost")
        how: Message | str = SAY("budget.by_flag", setting=setting) if by_flag else setting
        message = SAY(
            f"budget.{problem}",
            budget=SAY(f"budget.{account.scope}_{unit}"),
            how="--max-cost" if account.scope == BATCH else how,
            **{name: self._tell(unit, count) for name, count in counts.items()},
        )
        plain: dict[str, Any] = {
            name: n if unit == "tokens" else n / BILLIONTHS for name, n in counts.items()
        }
        code = BATCH_BUDGET_EXCEEDED if account.scope == BATCH else None
        return BudgetExceeded(message, code=code, scope=account.scope, unit=unit, **plain)

    def _tell(self, unit: str, count: int) -> Message:
        if unit == "tokens":
            return SAY("budget.tokens", count=count)
        amount = f"{Decimal(count).scaleb(-9).normalize():,f}"
        return SAY("budget.cost", amount=amount, currency=self._currency)


def _count(tokens: int | None, cost: float | None) -> Counts:
    """What is None is left out; absurd amounts are cut to what a column can hold."""
    counts = {} if tokens is None else {"tokens": min(tokens, MAX_TOKENS)}
    return counts if cost is None else counts | {"cost": round(min(cost, MAX_COST) * BILLIONTHS)}
