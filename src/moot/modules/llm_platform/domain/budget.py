"""Money and tokens: what may be spent, reserved before a call and settled after it."""

import json
from collections.abc import Mapping
from datetime import datetime
from decimal import Decimal
from typing import Any, Literal, NamedTuple, Protocol

from pydantic import BaseModel, Field

from moot.modules.llm_platform.domain.chat import ChatRequest
from moot.modules.llm_platform.domain.exceptions import BudgetExceeded
from moot.modules.llm_platform.domain.model_config import LLMConfig
from moot.modules.llm_platform.domain.texts import SAY
from moot.shared.domain.messages import Message
from moot.shared.infrastructure.execution_context import (
    DEFAULT_WORKSPACE,
    ExecutionContext,
    current_execution_ctx,
)

Scope = Literal["session", "day"]
Unit = Literal["tokens", "cost"]
Counts = Mapping[Unit, int]
"""Whole numbers, which add up exactly: tokens, and billionths of the currency."""

MAX_TOKENS = 10**15
MAX_COST = 10**9
BILLIONTHS = 10**9

TOOLS_TOKENS = 512
"""What a vendor tells the model about tools and schemas, beside their text."""


class Limits(BaseModel, frozen=True, allow_inf_nan=False):
    """None: no limit. A day is a UTC day of one workspace. Costs are in the desk's currency."""

    session_tokens: int | None = Field(default=None, gt=0, le=MAX_TOKENS)
    session_cost: float | None = Field(default=None, gt=0, le=MAX_COST)
    day_tokens: int | None = Field(default=None, gt=0, le=MAX_TOKENS)
    day_cost: float | None = Field(default=None, gt=0, le=MAX_COST)


class Amount(NamedTuple):
    """`cost` None: the model has no price. Such a call cannot be made under a limit on cost."""

    tokens: int = 0
    cost: float | None = 0.0

    def counts(self) -> Counts:
        """An unknown cost counts as none; absurd amounts are cut to what a column can hold."""
        return {"tokens": min(self.tokens, MAX_TOKENS), "cost": _billionths(self.cost or 0.0)}


class Reservation(NamedTuple):
    """What was set aside and where; `keys` is empty when no limit applies."""

    keys: tuple[str, ...] = ()
    amount: Amount = Amount()


class Budget(Protocol):
    """Reserving is atomic: however many ask at once, what is spent and reserved never exceeds a limit.

    Whoever dies between the two leaves the reservation standing: the vendor may charge for that call.
    """

    async def reserve(self, amount: Amount) -> Reservation:
        """Set aside the most a call can use, for the session and workspace under way; raises `BudgetExceeded`."""

    async def settle(self, reservation: Reservation, used: Amount) -> None:
        """Replace a reservation by what was really used. A `cost` of None is taken to be all that was reserved."""


class Unkept:
    """For a desk that stores nothing: without limits everything goes, and a limit nobody can keep refuses all."""

    def __init__(self, limits: Limits) -> None:
        self._make_limits = limits != Limits()

    async def reserve(self, amount: Amount) -> Reservation:
        context = current_execution_ctx.get()
        if self._make_limits or (context and context.max_cost is not None):
            raise BudgetExceeded(SAY("budget.unkept"))
        return Reservation()

    async def settle(self, reservation: Reservation, used: Amount) -> None:
        return None


def most(request: ChatRequest, config: LLMConfig) -> Amount:
    """The most a call can use. A token is never shorter than one byte of the text, and JSON wraps more around a
    message than a vendor's template does.
    """
    said = json.dumps(request.model_dump(), ensure_ascii=False).encode(errors="surrogatepass")
    shaped = request.tools or request.response_schema
    prompt = len(said) + (TOOLS_TOKENS if shaped else 0)
    return Amount(prompt + request.max_tokens, config.cost(prompt, request.max_tokens))


class Account(NamedTuple):
    """Where spending under a limit is counted: of one session, or of one workspace on one day."""

    scope: Scope
    key: str
    limits: Counts

    def refuse(self, problem: str, unit: Unit, currency: str, **counts: int) -> BudgetExceeded:
        """`counts` are how the account stood when a call did not fit into it."""
        setting = f"MOOT_BUDGET_{self.scope}_{unit}".upper()
        by_flag = (self.scope, unit) == ("session", "cost")
        message = SAY(
            f"budget.{problem}",
            budget=SAY(f"budget.{self.scope}_{unit}"),
            how=SAY("budget.by_flag", setting=setting) if by_flag else setting,
            **{name: _said(unit, count, currency) for name, count in counts.items()},
        )
        details: dict[str, Any] = {
            name: n if unit == "tokens" else n / BILLIONTHS for name, n in counts.items()
        }
        return BudgetExceeded(message, scope=self.scope, unit=unit, **details)


def accounts_of(limits: Limits, context: ExecutionContext | None, now: datetime) -> list[Account]:
    """Those that a call made now is counted in, always in the same order; the ones without a limit are left out."""
    workspace = context.workspace if context else DEFAULT_WORKSPACE
    day = f"day:{workspace}:{now:%Y-%m-%d}"
    accounts = [Account("day", day, _make_limits(limits.day_tokens, limits.day_cost))]
    if context is not None and context.session_id:
        cost = limits.session_cost if context.max_cost is None else context.max_cost
        session = Account(
            "session", f"session:{context.session_id}", _make_limits(limits.session_tokens, cost)
        )
        accounts.insert(0, session)
    return [account for account in accounts if account.limits]


def _make_limits(tokens: int | None, cost: float | None) -> Counts:
    limits: dict[Unit, int | None] = {"tokens": tokens, "cost": None if cost is None else _billionths(cost)}
    return {unit: limit for unit, limit in limits.items() if limit is not None}


def _billionths(cost: float) -> int:
    return round(min(cost, MAX_COST) * BILLIONTHS)


def _said(unit: Unit, count: int, currency: str) -> Message:
    if unit == "tokens":
        return SAY("budget.tokens", count=count)
    return SAY("budget.cost", amount=f"{Decimal(count).scaleb(-9).normalize():,f}", currency=currency)
