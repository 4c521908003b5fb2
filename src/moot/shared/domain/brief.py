"""What a desk is to do with a share, whichever it is: who is asked, as of when, and how it is told. And what that
took.
"""

from collections.abc import Iterable
from typing import Any

from pydantic import BaseModel, Field, StrictBool

from moot.shared.domain.claims import Holder, Horizon
from moot.shared.domain.clock import Moment
from moot.shared.domain.experts import ExpertType
from moot.shared.domain.messages import DEFAULT_LOCALE, Locale

MOST_ROUNDS = 3


class Usage(BaseModel, frozen=True):
    """What model calls took; `cost` None: not every model has a price."""

    requests: int = 0
    tokens: int = 0
    cost: float | None = 0.0


def add_costs(costs: Iterable[float | None]) -> float | None:
    """None: one of them is not known."""
    known = list(costs)
    return None if None in known else sum(filter(None, known))


class Brief(BaseModel, frozen=True):
    """`options` holds, per expert, only what that expert understands."""

    experts: list[ExpertType] = Field(max_length=100, examples=[["technical_analyst", "valuation_modeler"]])
    options: dict[str, dict[str, Any]] = Field(default_factory=dict)
    skip_debate: StrictBool = False
    as_of: Moment | None = Field(
        default=None,
        description="what was known then: a day (its end, on the exchange) or a moment with zone",
    )
    locale: Locale = DEFAULT_LOCALE
    rounds: int = Field(
        default=1,
        ge=1,
        le=MOST_ROUNDS,
        description="how often bull and bear speak, where a model argues; 1 to 3",
    )
    horizon: Horizon = Field(
        default=20, description="the sessions over which it should be worth buying: 5, 20 or 60"
    )
    holder: Holder | None = Field(
        default=None,
        description="who asks: what they hold, for how long, at what risk; changes the advice only",
    )
    max_cost: float | None = Field(
        default=None,
        gt=0,
        allow_inf_nan=False,
        description="the most the model calls may cost, in the desk's currency; null: the desk's budgets alone",
    )
