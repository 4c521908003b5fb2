"""Evidence as a model reads it: what many rows have in common is told once, as a small model has room for little."""

import json
from collections.abc import Iterator, Sequence
from itertools import groupby

from moot.modules.llm_platform.domain.texts import SAY
from moot.shared.domain.evidence import Evidence
from moot.shared.domain.messages import Locale

DIGITS = 4
"""Decimal places; evidence is not told more exactly."""


def list_evidence(evidence: Sequence[Evidence], locale: Locale) -> str:
    """Source and day stand above the rows they are of, and the members of a series in one row."""
    return "\n".join(_list_lines(evidence, locale)) or SAY("answer.no_evidence").in_locale(locale)


def _list_lines(evidence: Sequence[Evidence], locale: Locale) -> Iterator[str]:
    for origin, items in groupby(evidence, key=_name_origin):
        yield f"@ {origin}"
        yield from (_write_row(list(row), locale) for _, row in groupby(items, key=_name_row))


def _name_origin(item: Evidence) -> str:
    return f"{_quote(item.source)} | {item.as_of:%Y-%m-%d}"


def _name_row(item: Evidence) -> tuple[str, str]:
    """Numbers with a name in common are a series: `financial.roe_by_quarter.2026Q1`, not `technical.ma20`."""
    series = item.id.rpartition(".")[0]
    alone = isinstance(item.value, str) or "." not in series
    return (item.id if alone else series), item.unit


def _write_row(items: Sequence[Evidence], locale: Locale) -> str:
    name, unit = _name_row(items[0])
    if len(items) == 1:
        name, values = items[0].id, _write_value(items[0], locale)
    else:
        values = ", ".join(f"{item.id.rpartition('.')[2]}={_write_value(item, locale)}" for item in items)
    return " | ".join(filter(None, (name, values, unit)))


def _write_value(item: Evidence, locale: Locale) -> str:
    """A text comes from outside: it is labelled, and quoted so that it cannot end its line or the list."""
    if isinstance(item.value, str):
        return SAY("answer.outside_text", text=_quote(item.value)).in_locale(locale)
    return str(round(item.value, DIGITS))


def _quote(text: str) -> str:
    return json.dumps(text, ensure_ascii=False).replace("<", "\\u003c")
