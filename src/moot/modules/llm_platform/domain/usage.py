"""What calls have used, and from that what the next ones are likely to."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import date, datetime
from typing import Annotated, Literal, Protocol

from pydantic import AfterValidator, BaseModel, ConfigDict

from moot.modules.llm_platform.domain.model_config import LLMConfig

By = Literal["model", "agent", "day"]
Money = Annotated[float, AfterValidator(lambda cost: round(cost, 9))]


class Used(BaseModel):
    """Live calls added up. `cost` is what is known of it.

    `cost_unknown` counts the calls whose cost nobody knows: the model had no price, the vendor did not say what it
    counted, or the outcome was never heard. A call that failed is not among them.
    """

    model_config = ConfigDict(frozen=True)

    calls: int
    failed: int
    prompt_tokens: int
    completion_tokens: int
    total_tokens: int
    cost: Money
    cost_unknown: int


class UsageLine(Used):
    """`name` is a model, an agent or a UTC day. The mean latency is that of calls that succeeded."""

    name: str
    mean_latency_ms: float | None


class UsageReport(BaseModel):
    """Days newest first; models and agents by their tokens, most first."""

    model_config = ConfigDict(frozen=True)

    by: By
    workspace: str
    since: date | None
    currency: str
    lines: list[UsageLine]
    total: Used


def total_of(lines: Sequence[UsageLine]) -> Used:
    return Used(**{name: sum(getattr(line, name) for line in lines) for name in Used.model_fields})


class Typical(BaseModel):
    """The mean of `calls` calls."""

    model_config = ConfigDict(frozen=True)

    calls: int
    prompt_tokens: float
    completion_tokens: float
    latency_ms: float


UNMEASURED = Typical(calls=0, prompt_tokens=3_500, completion_tokens=1_200, latency_ms=20_000)
"""An expert's usual call, for a model that has not been asked yet."""


class Estimate(BaseModel):
    """What a run is likely to take. Not `measured`: no call to this model is on record to go by."""

    model_config = ConfigDict(frozen=True)

    calls: int
    tokens: int
    cost: Money | None
    currency: str
    seconds: float
    measured: bool


class UsageReader(Protocol):
    """Adds up the live calls on record."""

    async def usage(self, by: By, workspace: str, since: datetime | None) -> list[UsageLine]:
        """One line for each model, agent or day, in any order."""

    async def typical(self, model_name: str, workspace: str, since: datetime) -> dict[str, Typical]:
        """The mean successful call to a model, by agent."""


def estimate(
    agents: Sequence[str],
    config: LLMConfig,
    critical_path: Sequence[Sequence[str]],
    measured: Mapping[str, Typical],
    currency: str,
) -> Estimate:
    """One call for each agent; an agent without calls of its own is taken to be like the others of the run."""
    measured = {agent: typical for agent, typical in measured.items() if agent in agents}
    others = _mean(measured.values())
    calls = [measured.get(agent, others) for agent in agents]
    prompt = round(sum(call.prompt_tokens for call in calls))
    completion = round(sum(call.completion_tokens for call in calls))
    slowest = [
        max((measured.get(agent, others).latency_ms for agent in stage), default=0.0)
        for stage in critical_path
    ]
    return Estimate(
        calls=len(calls),
        tokens=prompt + completion,
        cost=config.cost(prompt, completion),
        currency=currency,
        seconds=round(sum(slowest) / 1000, 3),
        measured=bool(measured),
    )


def _mean(measured: Iterable[Typical]) -> Typical:
    known = list(measured)
    calls = sum(typical.calls for typical in known)
    if calls == 0:
        return UNMEASURED
    means = {
        name: sum(getattr(typical, name) * typical.calls for typical in known) / calls
        for name in ("prompt_tokens", "completion_tokens", "latency_ms")
    }
    return Typical(calls=calls, **means)
