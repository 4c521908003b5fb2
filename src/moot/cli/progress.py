"""What the desk is doing right now: a live table in a terminal, plain lines when piped, nothing for JSON."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

from rich.console import Console, RenderableType
from rich.live import Live
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

from moot.cli.texts import SAY
from moot.modules.coordinator.application.dtos.research_dtos import EXPERTS
from moot.modules.coordinator.application.report import Wording
from moot.modules.coordinator.application.run import Watch
from moot.modules.coordinator.application.session_history import SessionEvent
from moot.shared.domain.messages import DEFAULT_LOCALE, LOCALES, Locale

COLOURS = {
    "started": "yellow",
    "retrying": "dark_orange",
    "finished": "green",
    "failed": "red",
    "skipped": "dim",
}


def progress_for(
    console: Console, asked: dict[str, Any], *, quiet: bool
) -> AbstractContextManager[Watch | None]:
    """A `with` block around the run that gives the one who watches it."""
    if quiet:
        return nullcontext()
    rows = _Rows(Wording(known_locale(asked["locale"])))
    nodes = [name for name in asked["experts"] if name in EXPERTS]
    if console.is_terminal:
        return _live(console, rows, nodes + ([] if asked["skip_debate"] else ["debate", "judge"]))
    return nullcontext(_plain(console, rows))


def known_locale(asked: str) -> Locale:
    """What was asked for; one that does not exist is the desk's to refuse."""
    return next((known for known in LOCALES if known == asked), DEFAULT_LOCALE)


class _Rows:
    """How an event reads."""

    def __init__(self, say: Wording) -> None:
        self._say = say

    def name(self, node_type: str) -> str:
        return self._say(f"node.{node_type}")

    def head(self) -> list[str]:
        return [self.label(column) for column in ("node", "state", "view", "time")]

    def label(self, key: str, **values: Any) -> str:
        return SAY(f"research.{key}", **values).in_locale(self._say.locale)

    def view(self, event: SessionEvent) -> str:
        """The expert's signal, the debate's direction, the judge's action, or what went wrong."""
        told = event.data
        if told.get("signal") is None:
            return str(told.get("error") or told.get("reason") or "")
        return self._opinion(told["signal"], told["confidence"])

    def time(self, event: SessionEvent) -> str:
        ms = event.data.get("duration_ms")
        return "" if ms is None else self.label("ms", ms=ms)

    def _opinion(self, literal: str, confidence: float) -> str:
        return f"{self._say.literal(literal)} {confidence:.0%}"


def _phase(event: SessionEvent) -> str | None:
    """What state of a node the event tells of, if any. What was reused has not run."""
    if not event.type.startswith("node_") or event.data.get("reused"):
        return None
    return "skipped" if event.data.get("status") == "skipped" else event.type.removeprefix("node_")


@contextmanager
def _live(console: Console, rows: _Rows, nodes: list[str]) -> Iterator[Watch]:
    events: dict[str, SessionEvent | None] = dict.fromkeys(nodes)

    def table() -> Table:
        table = Table(*rows.head(), box=None, pad_edge=False, header_style="bold")
        for node, event in events.items():
            if event is None:
                table.add_row(rows.name(node), Text(rows.label("waiting"), style="dim"))
            else:
                table.add_row(rows.name(node), _state(rows, event), rows.view(event), rows.time(event))
        return table

    live = Live(table(), console=console, refresh_per_second=10)

    def watch(event: SessionEvent) -> None:
        if _phase(event) is None:
            return
        events[event.data["node"]] = event
        live.start()  # with the first event: a question that is refused has nothing to show
        live.update(table())

    try:
        yield watch
    finally:
        live.stop()


def _state(rows: _Rows, event: SessionEvent) -> RenderableType:
    phase = _phase(event) or ""
    text = Text(rows.label(phase), style=COLOURS[phase])
    return Spinner("dots", text) if phase in ("started", "retrying") else text


def _plain(console: Console, rows: _Rows) -> Watch:
    def watch(event: SessionEvent) -> None:
        phase = _phase(event)
        if phase is not None:
            cells = [rows.name(event.data["node"]), rows.label(phase), rows.view(event), rows.time(event)]
            line = " · ".join(cell for cell in cells if cell)
            console.print(line, soft_wrap=True, markup=False, highlight=False)

    return watch
