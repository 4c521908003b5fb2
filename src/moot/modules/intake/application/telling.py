"""What whoever waits for an answer is told on the way. Nobody has to listen."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Literal

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

_listener: ContextVar[Tell | None] = ContextVar("intake_listener", default=None)


@contextmanager
def listening(tell: Tell | None) -> Iterator[None]:
    token = _listener.set(_each_source_once(tell) if tell else None)
    try:
        yield
    finally:
        _listener.reset(token)


def _each_source_once(tell: Tell) -> Tell:
    """A step cites what a tool has found already: that is told when it is found."""
    cited = set()

    def told(what: Happening, about: dict[str, Any]) -> None:
        if what == "citation":
            place = tuple(about.get(name) for name in ("step", "url", "title", "source"))
            if place in cited:
                return
            cited.add(place)
        tell(what, about)

    return told


def tell(what: Happening, **about: Any) -> None:
    listener = _listener.get()
    if listener is not None:
        listener(what, about)
