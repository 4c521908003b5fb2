"""A batch for its readers: in words, as a page, and as files for a spreadsheet or a program."""

import csv
import io
from collections.abc import Callable, Iterator, Mapping, Sequence
from html import escape
from typing import Any

from moot.modules.jobs.domain.batches import Batch, BatchResults, Format, Ranked
from moot.modules.jobs.domain.texts import JOB_TEXTS, SAY
from moot.shared.domain.markdown import drop_unseen
from moot.shared.domain.messages import Locale, Message, in_words
from moot.shared.domain.symbol import Symbol
from moot.shared.domain.texts import SAY as COMMON

__all__ = ["JOB_TEXTS"]

NONE = "—"
FORMULAS = ("=", "+", "-", "@", "＝", "＋", "－", "＠")
"""What a spreadsheet takes for the beginning of one."""


def _signed(lean: float | None) -> str | None:
    return None if lean is None else f"{lean:+.2f}"


def _tell_before(results: BatchResults, row: Ranked) -> Message | str | None:
    if results.previous is None:
        return None
    if row.before is None:
        return SAY("batch.new")
    told = [f"#{row.before.rank}" if row.before.rank else "", row.before.action or ""]
    return " ".join(filter(None, told))


COLUMNS: Mapping[str, Callable[[BatchResults, Ranked], object]] = {
    "rank": lambda _, row: row.rank,
    "symbol": lambda _, row: row.symbol,
    "name": lambda _, row: row.name,
    "action": lambda _, row: SAY(f"action.{row.action}") if row.action else None,
    "lean": lambda _, row: _signed(row.lean),
    "position_percent": lambda _, row: f"{row.position_percent:.0%}" if row.position_percent else None,
    "screen_rank": lambda _, row: row.screen_rank,
    "screen_lean": lambda _, row: _signed(row.screen_lean),
    "before": _tell_before,
    "state": lambda _, row: SAY(f"batch.state.{row.state}"),
}
"""What a reader is shown of a share."""
FIGURES = frozenset({"rank", "lean", "position_percent", "screen_rank", "screen_lean"})
"""Of these, what is set as numbers are."""
MEDIA: Mapping[Format, str] = {
    "json": "application/json",
    "csv": "text/csv; charset=utf-8",
    "parquet": "application/vnd.apache.parquet",
    "html": "text/html; charset=utf-8",
}


def name_column(name: str, locale: Locale) -> str:
    return SAY(f"batch.column.{name}").in_locale(locale)


def name_status(batch: Batch, locale: Locale) -> str:
    return SAY(f"batch.status.{batch.status}").in_locale(locale)


def tell_how(locale: Locale) -> str:
    """What the ranks go by."""
    return SAY("batch.page.how").in_locale(locale)


def tell_cells(results: BatchResults, row: Ranked, locale: Locale) -> dict[str, str]:
    """By column; only what a reader sees of what others wrote."""
    cells = {name: cell(results, row) for name, cell in COLUMNS.items()}
    return {
        name: NONE if cell is None else drop_unseen(str(in_words(cell, locale)))
        for name, cell in cells.items()
    }


def tell_facts(results: BatchResults, locale: Locale) -> list[str]:
    """What stands above the table."""
    return [drop_unseen(in_words(fact, locale)) for fact in _facts(results)]


def _facts(results: BatchResults) -> Iterator[Message | str]:
    batch, progress = results.batch, results.batch.progress
    cost = SAY("batch.cost_unknown") if progress.cost is None else f"{progress.cost:,.4f} {progress.currency}"
    yield SAY(
        "batch.page.facts",
        as_of=f"{batch.as_of:%Y-%m-%d %H:%M} UTC",
        shares=batch.shares,
        screened=NONE if batch.screened is None else batch.screened,
        chosen=progress.chosen,
        ended=progress.ended,
        cost=cost,
    )
    if batch.reason:
        yield batch.reason
    if batch.left_out:
        yield SAY("batch.page.left_out", shares=[one.given for one in batch.left_out])
    if results.left_out:
        yield SAY("batch.page.not_screened", experts=[SAY(f"node.{name}") for name in results.left_out])
    yield from results.notes
    if any(Symbol.parse(row.symbol).synthetic for row in results.rows[:1]):
        yield COMMON("synthetic")
    yield from _changes(results)


def _changes(results: BatchResults) -> Iterator[Message]:
    last = results.previous
    if last is None:
        return
    yield SAY(
        "batch.page.previous", created=f"{last.created_at:%Y-%m-%d %H:%M} UTC", as_of=f"{last.as_of:%Y-%m-%d}"
    )
    changes = [
        SAY(
            "batch.page.change",
            symbol=row.symbol,
            before=SAY(f"action.{row.before.action}"),
            action=SAY(f"action.{row.action}"),
        )
        for row in results.changed
        if row.before
    ]
    yield SAY("batch.page.changed", changes=changes) if changes else SAY("batch.page.unchanged")
    entered = [row.symbol for row in results.rows if row.action and not (row.before and row.before.action)]
    left = [row.symbol for row in results.rows if row.before and row.before.action and not row.action]
    if entered or left:
        yield SAY("batch.page.moved", entered=entered or NONE, left=left or NONE)
    if results.gone:
        yield SAY("batch.page.gone", symbols=results.gone)


def to_json(results: BatchResults, _: Locale) -> bytes:
    return results.model_dump_json().encode()


def to_csv(results: BatchResults, _: Locale) -> bytes:
    """With a mark at its beginning by which spreadsheets know the encoding; no cell of it is a formula."""
    columns, rows = results.table()
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(columns)
    writer.writerows([_defuse(cell) for cell in row] for row in rows)
    return text.getvalue().encode("utf-8-sig")


def _defuse(cell: Any) -> Any:
    """A text that a spreadsheet would run reads as itself; numbers are what they are."""
    if not isinstance(cell, str):
        return cell
    seen = drop_unseen(cell)
    return f"'{seen}" if seen.lstrip().startswith(FORMULAS) else seen


def to_parquet(results: BatchResults, _: Locale) -> bytes:
    file = io.BytesIO()
    results.to_polars().write_parquet(file)
    return file.getvalue()


def to_html(results: BatchResults, locale: Locale) -> bytes:
    """A page by itself: no script, and nothing is loaded."""
    batch = results.batch
    said = SAY("batch.page.title", name=batch.name, status=SAY(f"batch.status.{batch.status}"))
    title = escape(drop_unseen(said.in_locale(locale)))
    facts = "".join(f"<p>{escape(line)}</p>" for line in tell_facts(results, locale))
    names = [*COLUMNS, "note"]
    head = "".join(f'<th class="{_style(name)}">{escape(name_column(name, locale))}</th>' for name in names)
    body = "".join(_tell_row(results, row, names, locale) for row in results.rows)
    how = escape(tell_how(locale))
    return (
        f'<!doctype html><html lang="{locale}"><head><meta charset="utf-8"><title>{title}</title>'
        f'<meta name="viewport" content="width=device-width"><style>{STYLE}</style></head><body><h1>{title}</h1>'
        f"{facts}<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table><p>{how}</p></body></html>"
    ).encode()


def _tell_row(results: BatchResults, row: Ranked, names: Sequence[str], locale: Locale) -> str:
    cells = tell_cells(results, row, locale) | {"note": drop_unseen(row.note)}
    told = "".join(f'<td class="{_style(name)}">{escape(cells[name])}</td>' for name in names)
    return f'<tr class="{row.basis or "aside"} {row.action or ""}">{told}</tr>'


def _style(name: str) -> str:
    return f"{name} figure" if name in FIGURES else name


STYLE = """
body{font:15px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:75rem;padding:0 1rem;color:#222;background:#fff}
h1{font-size:1.4rem}p{margin:.3rem 0}table{border-collapse:collapse;width:100%;margin:1rem 0}
th,td{padding:.3rem .5rem;border-bottom:1px solid #ddd;text-align:left;vertical-align:top}
th{border-bottom:2px solid #888;white-space:nowrap}
td{white-space:nowrap}td.note,td.name,td.state{white-space:normal}
.figure{text-align:right;font-variant-numeric:tabular-nums}
tr.verdict{background:#f6f8fa}tr.BUY .action{color:#137333}tr.SELL .action{color:#b3261e}tr.aside{color:#767676}
td.note{color:#555;font-size:.9em}
"""

RENDERERS: Mapping[Format, Callable[[BatchResults, Locale], bytes]] = {
    "json": to_json,
    "csv": to_csv,
    "parquet": to_parquet,
    "html": to_html,
}


def render(results: BatchResults, to: Format, locale: Locale) -> bytes:
    return RENDERERS[to](results, locale)
