"""Money and tokens: what may be spent, reserved before a call and settled after it."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Annotated, Any, Literal, Protocol

from pydantic import BaseModel, Field

from moot.modules.llm_platform.domain.chat import ChatMessage, ChatRequest
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

MESSAGE_TOKENS = 16
"""What a vendor's template wraps around one message, with room to spare."""
TOOLS_TOKENS = 512
"""What a vendor tells the model about tools and schemas, beside their text."""


class Limits(BaseModel, frozen=True, allow_inf_nan=False):
    """None: no limit. A day is a UTC day of one workspace. Costs are in the desk's currency."""

    session_tokens: int | None = Field(default=None, gt=0, le=MAX_TOKENS)
    session_cost: float | None = Field(default=None, gt=0, le=MAX_COST)
    day_tokens: int | None = Field(default=None, gt=0, le=MAX_TOKENS)
    day_cost: float | None = Field(default=None, gt=0, le=MAX_COST)


class Amount(BaseModel, frozen=True, allow_inf_nan=False):
    """`cost` None: the model has no price. Such a call cannot be made under a limit on cost."""

    tokens: int = Field(default=0, ge=0)
    cost: Annotated[float, Field(ge=0)] | None = 0.0

    def counts(self) -> Counts:
        """An unknown cost counts as none; absurd amounts are cut to what a column can hold."""
        return {"tokens": min(self.tokens, MAX_TOKENS), "cost": _billionths(self.cost or 0.0)}


class Reservation(BaseModel, frozen=True):
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
        self._limited = limits != Limits()

    async def reserve(self, amount: Amount) -> Reservation:
        context = current_execution_ctx.get()
        if self._limited or (context and context.max_cost is not None):
            raise BudgetExceeded(SAY("budget.unkept"))
        return Reservation()

    async def settle(self, reservation: Reservation, used: Amount) -> None:
        return None


def most(request: ChatRequest, config: LLMConfig) -> Amount:
    """The most a call can use: a token is never shorter than one byte of the text."""
    prompt = sum(map(_message_size, request.messages)) + _tools_size(request)
    return Amount(tokens=prompt + request.max_tokens, cost=config.cost(prompt, request.max_tokens))


def _message_size(message: ChatMessage) -> int:
    calls = (part for call in message.tool_calls for part in (call.id, call.name, call.arguments))
    texts = (message.content, message.tool_call_id or "", *calls)
    return MESSAGE_TOKENS + sum(len(text.encode(errors="surrogatepass")) for text in texts)


def _tools_size(request: ChatRequest) -> int:
    shapes = [tool.model_dump() for tool in request.tools]
    if request.response_schema is not None:
        shapes.append(request.response_schema.model_dump())
    return TOOLS_TOKENS + len(json.dumps(shapes)) if shapes else 0


@dataclass(frozen=True)
class Account:
    """Where spending under a limit is counted: of one session, or of one workspace on one day."""

    scope: Scope
    key: str
    limits: Counts


def accounts_of(limits: Limits, context: ExecutionContext | None, now: datetime) -> list[Account]:
    """Those that a call made now is counted in, always in the same order; the ones without a limit are left out."""
    accounts = [Account("day", _day_key(context, now), _limited(limits.day_tokens, limits.day_cost))]
    if context is not None and context.session_id:
        cost = limits.session_cost if context.max_cost is None else context.max_cost
        session = Account("session", f"session:{context.session_id}", _limited(limits.session_tokens, cost))
        accounts.insert(0, session)
    return [account for account in accounts if account.limits]


def _day_key(context: ExecutionContext | None, now: datetime) -> str:
    workspace = context.workspace if context else DEFAULT_WORKSPACE
    return f"day:{workspace}:{now:%Y-%m-%d}"


def _limited(tokens: int | None, cost: float | None) -> Counts:
    limits: dict[Unit, int] = {}
    if tokens is not None:
        limits["tokens"] = tokens
    if cost is not None:
        limits["cost"] = _billionths(cost)
    return limits


def _billionths(cost: float) -> int:
    return round(min(cost, MAX_COST) * BILLIONTHS)


def exceeded(
    account: Account, *, spent: Counts, reserved: Counts, needed: Counts, currency: str
) -> BudgetExceeded:
    """How an account stood when a call did not fit into it. When all fits by now, another call has ended since."""
    short = [
        unit for unit, limit in account.limits.items() if spent[unit] + reserved[unit] + needed[unit] > limit
    ]
    unit = (short or list(account.limits))[0]
    limit = account.limits[unit]
    counted = {"limit": limit, "spent": spent[unit], "reserved": reserved[unit], "needed": needed[unit]}
    left = max(0, limit - spent[unit] - reserved[unit])
    said = {name: _said(unit, count, currency) for name, count in (counted | {"left": left}).items()}
    details: dict[str, Any] = {name: _number(unit, count) for name, count in counted.items()}
    message = SAY("budget.exceeded", budget=_name(account, unit), how=_how(account, unit), **said)
    return BudgetExceeded(message, scope=account.scope, unit=unit, **details)


def unpriced(account: Account, currency: str) -> BudgetExceeded:
    """A limit on cost means nothing to a model without a price."""
    limit = account.limits["cost"]
    said = {"budget": _name(account, "cost"), "limit": _said("cost", limit, currency)}
    return BudgetExceeded(
        SAY("budget.unpriced", **said), scope=account.scope, unit="cost", limit=_number("cost", limit)
    )


def _name(account: Account, unit: Unit) -> Message:
    return SAY(f"budget.{account.scope}_{unit}")


def _how(account: Account, unit: Unit) -> str | Message:
    setting = f"MOOT_BUDGET_{account.scope}_{unit}".upper()
    by_flag = (account.scope, unit) == ("session", "cost")
    return SAY("budget.by_flag", setting=setting) if by_flag else setting


def _said(unit: Unit, count: int, currency: str) -> Message:
    if unit == "tokens":
        return SAY("budget.tokens", count=count)
    return SAY("budget.cost", amount=f"{Decimal(count).scaleb(-9).normalize():,f}", currency=currency)


def _number(unit: Unit, count: int) -> float:
    return count if unit == "tokens" else count / BILLIONTHS
