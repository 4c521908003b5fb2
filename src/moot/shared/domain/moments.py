"""Days and moments as people write them; what cannot be meant is refused in words."""

from collections.abc import Callable
from datetime import date, datetime
from typing import Any

from moot.shared.domain.validation import refuse

EARLIEST = date(1990, 1, 1)
"""Before the oldest exchange Moot knows; keeps arithmetic with dates within what a calendar can hold."""


def parse_day(value: Any) -> date:
    """Days are written one way only: no numbers, no times."""
    day = _read(date.fromisoformat, value) if isinstance(value, str) else value
    if type(day) is not date:
        raise refuse("date_malformed", got=repr(value))
    return _not_too_early(day, value)


def parse_day_or_moment(value: Any) -> date | datetime:
    """A day, or a moment with its zone: without one it could be any of 24."""
    is_text = isinstance(value, str)
    found = _read(date.fromisoformat, value) or _read(datetime.fromisoformat, value) if is_text else value
    if isinstance(found, datetime) and found.tzinfo is not None:
        _not_too_early(found.date(), value)
        return found
    if type(found) is date:
        return _not_too_early(found, value)
    raise refuse("moment_malformed", got=repr(value))


def _read(parse: Callable[[str], date], text: str) -> date | None:
    try:
        return parse(text)
    except ValueError:
        return None


def _not_too_early(day: date, value: Any) -> date:
    if day < EARLIEST:
        raise refuse("too_early", got=repr(value), allowed=[f">= {EARLIEST}"])
    return day
