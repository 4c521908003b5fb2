"""The calls on record: those of a session; what all of them used, and from that what the next ones are likely to."""

from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Sequence
from datetime import date, datetime, timedelta
from typing import Annotated, Literal, NamedTuple, Protocol, TypeVar
from uuid import UUID

from pydantic import AfterValidator, BaseModel

from moot.modules.llm_platform.domain.call_record import CallLogItem, ExternalCallItem
from moot.modules.llm_platform.domain.model_config import LLMConfig
from moot.modules.llm_platform.domain.texts import SAY
from moot.shared.domain.brief import Usage
from moot.shared.domain.clock import Clock, in_utc
from moot.shared.domain.errors import Unavailable

BATCH_BUDGET_EXCEEDED = "BATCH_BUDGET_EXCEEDED"
"""The code of what a call ends with that the sessions of a batch have no money left for."""

Item_co = TypeVar("Item_co", covariant=True)
By = Literal["model", "agent", "day"]
Money = Annotated[float, AfterValidator(lambda cost: round(cost, 9))]


class Used(BaseModel, frozen=True):
    """Live calls added up. `cost` is what is known of it.

    `cost_unknown` counts the calls whose cost nobody knows: the model had no price, the vendor did not say what it
    counted, or the outcome was never heard. A call that failed is not among them.
    """

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


class UsageReport(BaseModel, frozen=True):
    """Days newest first; models and agents by their tokens, most first."""

    by: By
    workspace: str
    since: date | None
    currency: str
    lines: list[UsageLine]
    total: Used


class Typical(NamedTuple):
    """The mean of some calls that succeeded."""

    prompt_tokens: float
    completion_tokens: float
    latency_ms: float

    @classmethod
    def of(cls, lines: Iterable[UsageLine]) -> "Typical":
        """An expert's usual call, for a model that has not been asked yet."""
        counted = [(line, line.calls - line.failed) for line in lines]
        calls = sum(count for _, count in counted)
        if calls == 0:
            return cls(3_500, 1_200, 20_000)
        prompt = sum(line.prompt_tokens for line, _ in counted)
        completion = sum(line.completion_tokens for line, _ in counted)
        took = sum((line.mean_latency_ms or 0.0) * count for line, count in counted)
        return cls(prompt / calls, completion / calls, took / calls)


class Estimate(BaseModel, frozen=True):
    """What a run is likely to take. Not `measured`: no call to this model is on record to go by."""

    calls: int
    tokens: int
    cost: Money | None
    currency: str
    seconds: float
    measured: bool


class CallLogQueryService(Protocol[Item_co]):
    async def get_by_session_id(self, session_id: UUID, *, include_text: bool = True) -> Sequence[Item_co]:
        """In the order in which they were made. Nothing for a session nobody knows."""


class LLMCallLogQueryService(CallLogQueryService[CallLogItem], Protocol):
    async def add_up(self, session_ids: Sequence[UUID]) -> dict[UUID, Usage]:
        """What live calls have taken so far, by session, of those that asked a model."""


ExternalAPICallLogQueryService = CallLogQueryService[ExternalCallItem]

ReadUsage = Callable[[By, str, datetime | None, str | None], Awaitable[list[UsageLine]]]
"""One line for each model, agent or day of a workspace, in any order; of one model alone where it is named."""

RECENT = timedelta(days=30)


class UsageService:
    """`read` None: nothing is stored, so there is no usage to report and an estimate is not measured."""

    def __init__(self, read: ReadUsage | None, clock: Clock, currency: str) -> None:
        self._read, self._clock, self._currency = read, clock, currency

    async def usage(self, by: By, workspace: str, since: date | None = None) -> UsageReport:
        """`since` is the first UTC day that counts."""
        if self._read is None:
            raise Unavailable(SAY("usage.not_stored"), code="PERSISTENCE_OFF")
        start = in_utc(since) if since else None
        lines = await self._read(by, workspace, start, None)
        if by == "day":
            lines.sort(key=lambda line: line.name, reverse=True)
        else:
            lines.sort(key=lambda line: (-line.total_tokens, line.name))
        return UsageReport(
            by=by,
            workspace=workspace,
            since=since,
            currency=self._currency,
            lines=lines,
            total=Used(**{name: sum(getattr(line, name) for line in lines) for name in Used.model_fields}),
        )

    async def estimate(
        self, agents: Sequence[str], config: LLMConfig, critical_path: Sequence[Sequence[str]]
    ) -> Estimate:
        """One call for each agent; an agent without calls of its own is taken to be like the others of the run.

        `critical_path` are stages one after another, each of agents that run side by side.
        """
        recent = (config.workspace_id, self._clock.now() - RECENT, config.model_name)
        lines = await self._read("agent", *recent) if self._read else []
        known = [
            line for line in lines if line.name in agents and line.prompt_tokens and line.mean_latency_ms
        ]
        measured = {line.name: Typical.of([line]) for line in known}
        each = defaultdict(lambda: Typical.of(known), measured)
        prompt = round(sum(each[agent].prompt_tokens for agent in agents))
        completion = round(sum(each[agent].completion_tokens for agent in agents))
        slowest = [max((each[agent].latency_ms for agent in stage), default=0.0) for stage in critical_path]
        return Estimate(
            calls=len(agents),
            tokens=prompt + completion,
            cost=config.cost(prompt, completion),
            currency=self._currency,
            seconds=round(sum(slowest) / 1000, 3),
            measured=bool(measured),
        )
