"""Money, tokens and turns: what may be used, reserved before a call and settled after it."""

import json
from functools import cached_property
from typing import NamedTuple

from moot.modules.llm_platform.domain.chat import ChatRequest
from moot.modules.llm_platform.domain.exceptions import BudgetExceeded
from moot.modules.llm_platform.domain.model_config import LLMConfig
from moot.modules.llm_platform.domain.texts import SAY
from moot.shared.domain.rate_limits import Rate, Turn, Turns
from moot.shared.infrastructure.execution_context import current_context

TOOLS_TOKENS = 512
"""What a vendor tells the model about tools and schemas, beside their text."""


class Limits(NamedTuple):
    """None: no limit. A day is a UTC day of one workspace. Costs are in the desk's currency."""

    session_tokens: int | None = None
    session_cost: float | None = None
    day_tokens: int | None = None
    day_cost: float | None = None


class Amount(NamedTuple):
    """`cost` None: the model has no price. Such a call cannot be made under a limit on cost."""

    tokens: int = 0
    cost: float | None = 0.0


class Reservation(NamedTuple):
    """Where an amount was set aside; nowhere, when no limit applies."""

    accounts: tuple[str, ...] = ()
    turn: Turn | None = None


class Budget:
    """Reserving is atomic: however many ask at once, what is spent and reserved never exceeds a limit.

    Whoever dies between the two leaves the reservation standing: the vendor may charge for that call. This one is of
    a desk that stores nothing: without limits everything goes, and a budget nobody can keep refuses all. What may be
    asked a minute is kept in this process.
    """

    def __init__(self, limits: Limits) -> None:
        self._limits = limits

    @cached_property
    def _turns(self) -> Turns:
        return Turns()

    async def reserve(self, amount: Amount, rate: Rate | None = None) -> Reservation:
        """Set aside the most a call can use, for the session and workspace under way, and of the model's `rate`.

        Raises `BudgetExceeded`, or `NotYet` while the model may not be asked, or others of the same batch may yet use
        less than they set aside; then nothing is set aside.
        """
        context = current_context()
        if self._limits != Limits() or (context.max_cost, context.batch_max_cost) != (None, None):
            raise BudgetExceeded(SAY("budget.unkept"))
        return Reservation(turn=rate and await self._turns.take(rate, amount.tokens, context.priority))

    async def settle(
        self, reservation: Reservation, reserved: Amount, used: Amount, *, made: bool = True
    ) -> None:
        """Replace what was reserved by what was really used. A `cost` of None is taken to be all of it."""
        if reservation.turn:
            await self._turns.settle(reservation.turn, made=made, tokens=used.tokens)


def most(request: ChatRequest, config: LLMConfig) -> Amount:
    """The most a call can use. A token is never shorter than one byte of the text, and JSON wraps more around a
    message than a vendor's template does.
    """
    said = json.dumps(request.model_dump(), ensure_ascii=False).encode(errors="surrogatepass")
    shaped = request.tools or request.response_schema
    prompt = len(said) + (TOOLS_TOKENS if shaped else 0)
    return Amount(prompt + request.max_tokens, config.cost(prompt, request.max_tokens))
