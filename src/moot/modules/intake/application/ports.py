"""Work on somebody's behalf, and what intake needs for it from the rest of the desk."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

from moot.modules.intake.domain.plan import Spent
from moot.modules.intake.domain.question import Limits, reading_language
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

    def tell(self, what: Happening, **about: Any) -> None:
        """Nobody has to listen."""
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
