"""A result in the terminal: what the judge says, what the two sides said, where the report is.

A screen is no place for everything: each point is cut to a few lines here and stands whole in the report.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, Group, RenderableType
from rich.measure import Measurement
from rich.panel import Panel
from rich.table import Column, Table
from rich.text import Text

from moot.cli.texts import SAY
from moot.modules.coordinator.application.dtos.research_dtos import ResearchResult
from moot.modules.coordinator.application.report import Wording, spending

CELLS_PER_POINT = 200
ACTION_COLOURS = {"BUY": "bold green", "SELL": "bold red", "HOLD": "bold yellow"}

WIDE = "\u2e80-\u9fff\uac00-\ud7af\uff00-\uffef"
OPENING, CLOSING = "（《「『“‘［(", "，。；：、？！）》」』”’］);,"
UNITS = re.compile(rf"[{OPENING}]*(?:[{WIDE}]|[^\s{WIDE}]+)[{CLOSING}]*|\s+")
"""A wide character or a narrow word, with the punctuation that must not stand alone."""


@dataclass(frozen=True)
class Prose:
    """A paragraph that fills the width it is given, cut after `most` cells.

    Chinese has no spaces to break at, so it breaks between characters.
    """

    text: str
    most: int | None = None

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Text]:
        text = Text(" ".join(self.text.split("\n")))
        if self.most is not None:
            text.truncate(self.most, overflow="ellipsis")
        for line in wrap(text.plain, options.max_width):
            yield Text(line)

    def __rich_measure__(self, console: Console, options: ConsoleOptions) -> Measurement:
        return Measurement(min(20, options.max_width), min(cell_len(self.text), options.max_width))


def wrap(text: str, width: int) -> list[str]:
    """Lines of at most `width` cells; only a single unit that is wider than that stands out."""
    lines, line = [], ""
    for unit in UNITS.findall(text):
        if line and cell_len(line) + cell_len(unit.rstrip()) > width:
            lines.append(line.rstrip())
            line = unit.lstrip()
        else:
            line += unit
    return [*lines, line.rstrip()] if line.strip() or not lines else lines


def show_result(console: Console, result: ResearchResult, report: Path | OSError, log: Path) -> None:
    say = Wording(result.locale)

    def label(key: str, **values: Any) -> str:
        return SAY(f"research.{key}", **values).in_locale(result.locale)

    console.print()
    if result.debate_outcome:
        console.print(_debate(result.debate_outcome, say))
    as_of = f"{result.as_of:%Y-%m-%d %H:%M} UTC" if result.as_of else ""
    title = Text(label("title", symbol=result.symbol, as_of=as_of))
    console.print(Panel(_verdict(result, say), title=title, title_align="left"))
    if result.usage.requests:
        console.print(Text(spending(result, say)))
    for notice in result.notices:
        console.print(Text(notice, style="dim"))
    if result.audit_gaps:
        console.print(Text(label("gaps", count=result.audit_gaps, log=log), style="bold red"))
    if result.session_id:
        console.print(Text(label("session", session_id=result.session_id)))
    if isinstance(report, OSError):
        console.print(Text(label("no_report", why=report.strerror or report), style="bold red"))
    else:
        console.print(Text(label("report", path=report)), soft_wrap=True)


def _verdict(result: ResearchResult, say: Wording) -> RenderableType:
    verdict = result.verdict
    if verdict is None:
        status = say.literal(result.verdict_status)
        return Text(say("report.no_verdict", status=status, reason=result.reason or ""))
    ruling = say(
        "report.ruling",
        action=say.literal(verdict["action"]),
        position=verdict["position_percent"],
        confidence=verdict["confidence"],
    )
    facts = Table(box=None, show_header=False, pad_edge=False)
    facts.add_column(style="bold", no_wrap=True)
    facts.add_column()
    for part in ("entry_strategy", "stop_loss", "take_profit", "time_horizon"):
        facts.add_row(say(f"report.{part}"), Prose(verdict[part]))
    facts.add_row(say("report.risk_warnings"), _points(verdict["risk_warnings"]))
    headline = Text(ruling.replace("**", ""), style=ACTION_COLOURS[verdict["action"]])
    why = [_cut(line) for line in verdict["reasoning"].splitlines()]
    return Group(headline, *why, Text(), facts)


def _debate(outcome: dict[str, Any], say: Wording) -> Table:
    bull, bear = outcome["bull_case"], outcome["bear_case"]
    table = Table(
        "",
        Column(say("report.bull"), header_style="bold green", ratio=1),
        Column(say("report.bear"), header_style="bold red", ratio=1),
        title=say("report.debate"),
        title_justify="left",
        show_lines=True,
    )
    rows = {
        "thesis": (_cut(bull["core_thesis"]), _cut(bear["core_thesis"])),
        "arguments": (_points(bull["supporting_arguments"]), _points(bear["supporting_arguments"])),
        "concedes": (_points(bull["acknowledged_risks"]), _points(bear["acknowledged_strengths"])),
    }
    for key, (for_it, against_it) in rows.items():
        table.add_row(say(f"report.{key}"), for_it, against_it)
    return table


def _points(items: Sequence[str]) -> RenderableType:
    return Group(*(_cut(f"• {item}") for item in items)) if items else Text("—")


def _cut(line: str) -> Prose:
    return Prose(line, most=CELLS_PER_POINT)
