"""What intake needs from the rest of the desk."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from pydantic import BaseModel, ConfigDict

from moot.modules.intake.application.errand import Errand, Task
from moot.modules.intake.domain.findings import Citation, Finding
from moot.modules.intake.domain.plan import Plan, Step
from moot.modules.intake.domain.question import Mention


class Companies(Protocol):
    async def mentioned(self, text: str) -> Sequence[Mention]:
        """Companies that a sentence names, in its order; codes, names, former and English names, parts of them."""

    async def find(self, text: str) -> Sequence[Mention]:
        """Companies that the whole text may mean, best first."""


class EquityDesk(Protocol):
    async def research(self, step: Step, task: Task) -> Finding:
        """A session of the research graph on the step's symbol; what keeps it from an answer is a failed finding."""


class ToolSpec(BaseModel):
    """A tool as models are told about it. `parameters` is a JSON schema."""

    model_config = ConfigDict(frozen=True)

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
