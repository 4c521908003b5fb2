"""Work on somebody's behalf, and what intake needs for it from the rest of the desk."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, Protocol

from pydantic import BaseModel

from moot.modules.intake.domain.findings import Citation, Finding, Spent
from moot.modules.intake.domain.plan import Plan, Step
from moot.modules.intake.domain.question import Limits, Mention, reading_language
from moot.modules.intake.domain.texts import SAY
from moot.shared.domain.messages import Locale
from moot.shared.infrastructure.execution_context import DEFAULT_WORKSPACE, Tally

Happening = Literal[
    "message_chunk",
    "tool_call",
    "tool_result",
    "plan",
    "interrupt",
    "step",
    "citation",
    "report",
    "error",
    "done",
]
Tell = Callable[[Happening, dict[str, Any]], None]


@dataclass(frozen=True)
class Errand:
    """`record` is the id under which things are put on the record; empty: nothing is kept."""

    workspace: str = DEFAULT_WORKSPACE
    caller: str = ""
    record: str = ""
    tally: Tally = field(default_factory=Tally)
    listener: Tell | None = None
    _cited: set[tuple[str | None, ...]] = field(default_factory=set)

    def tell(self, what: Happening, **about: Any) -> None:
        """Nobody has to listen. A source that a step cites was told already when a tool found it."""
        if what == "citation":
            place = tuple(about.get(name) for name in ("step", "url", "title", "source"))
            if place in self._cited:
                return
            self._cited.add(place)
        if self.listener is not None:
            self.listener(what, about)

    @property
    def spent(self) -> Spent:
        """What models took so far, outside of the experts' sessions."""
        cost = None if self.tally.unpriced else self.tally.cost
        return Spent(requests=self.tally.requests, tokens=self.tally.tokens, cost=cost)


@dataclass(frozen=True)
class Task:
    """What all steps of a plan share: the question as `goal`, and what is known of it already as `background`."""

    goal: str
    locale: str
    errand: Errand
    limits: Limits = field(default_factory=Limits)
    background: str = ""

    @property
    def reader(self) -> Locale:
        return reading_language(self.locale)

    def say(self, key: str, **values: Any) -> str:
        return SAY(key, **values).in_locale(self.reader)


class Companies(Protocol):
    async def mentioned(self, text: str) -> Sequence[Mention]:
        """Companies that a sentence names, in its order; codes, names, former and English names, parts of them."""

    async def find(self, text: str) -> Sequence[Mention]:
        """Companies that the whole text may mean, best first."""


class EquityDesk(Protocol):
    async def research(self, step: Step, task: Task) -> Finding:
        """A session of the research graph on the step's symbol; what keeps it from an answer is a failed finding."""


class ToolSpec(BaseModel, frozen=True):
    """A tool as models are told about it. `parameters` is a JSON schema."""

    name: str
    description: str
    parameters: dict[str, Any]


class ToolOutcome(NamedTuple):
    """`tainted`: written by strangers. What only such text says is quoted, and never an order.

    `ends`: a rule was broken after which no further call is of any use.
    """

    text: str
    citations: tuple[Citation, ...] = ()
    tainted: bool = False
    failed: bool = False
    ends: bool = False


class Toolbox(Protocol):
    """The tools of a research step. Each call is a decision, on the record before anything runs."""

    @property
    def tools(self) -> Sequence[ToolSpec]: ...

    async def call(
        self,
        name: str,
        arguments: Mapping[str, Any],
        task: Task,
        *,
        read: Sequence[str] = (),
        iteration: int,
        tokens: int = 0,
        seconds: float = 0.0,
    ) -> ToolOutcome:
        """`read` are the tainted texts seen so far, `tokens` and `seconds` what the step has taken.

        A refusal, a failure or an unknown tool is an outcome too.
        """


class PlanRuling(NamedTuple):
    """`plan` as the rules allow it; None where they do not, and then `why` and `advice` are for the planner."""

    plan: Plan | None
    why: tuple[str, ...] = ()
    advice: tuple[str, ...] = ()
    escalation_id: str | None = None
    """A person has been asked."""


class PlanReview(Protocol):
    async def review(self, plan: Plan, *, goal: str, iteration: int, errand: Errand) -> PlanRuling: ...
