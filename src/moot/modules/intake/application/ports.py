"""Work on somebody's behalf, and what intake needs for it from the rest of the desk."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from moot.modules.intake.domain.findings import Spent
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
