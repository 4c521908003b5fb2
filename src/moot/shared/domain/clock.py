"""Where times come from, always UTC and aware, a local date being a question to ask of an exchange; and days and
moments as people write them: one way only, with a zone where there is a time.
"""

from collections.abc import Callable
from datetime import UTC, date, datetime, time
from typing import Annotated, Any, Protocol

from pydantic import BeforeValidator

from moot.shared.domain.validation import quote, refuse, refuse_field

FIRST_DAY, LAST_DAY = date(1990, 1, 1), date(9998, 12, 31)
"""From before the oldest exchange Moot knows; keeps arithmetic with dates within what a calendar can hold."""


class Clock(Protocol):
    def now(self) -> datetime:
        """The present moment, in UTC."""


class SystemClock:
    def now(self) -> datetime:
        return datetime.now(UTC)


def read_day(value: Any) -> date:
    """No numbers, no times."""
    day = _read(date.fromisoformat, value) if isinstance(value, str) else value
    if type(day) is not date:
        raise refuse("date_malformed", got=quote(value))
    return _within_calendar(day, value)


def read_moment(value: Any) -> date | datetime:
    """A day, or a moment with its zone: without one it could be any of 24."""
    is_text = isinstance(value, str)
    moment = _read(date.fromisoformat, value) or _read(datetime.fromisoformat, value) if is_text else value
    if isinstance(moment, datetime) and moment.tzinfo is not None:
        _within_calendar(moment.date(), value)
        return moment
    if type(moment) is date:
        return _within_calendar(moment, value)
    raise refuse("moment_malformed", got=quote(value))


def in_utc(when: date | datetime, at: time = time.min) -> datetime:
    """A moment; of a day its first, unless told otherwise."""
    return when.astimezone(UTC) if isinstance(when, datetime) else datetime.combine(when, at, UTC)


Day = Annotated[date, BeforeValidator(read_day)]
Moment = Annotated[date | datetime, BeforeValidator(read_moment)]
Instant = Annotated[datetime, BeforeValidator(lambda value: in_utc(read_moment(value)))]


def freeze(
    as_of: date | datetime | None, now: datetime, today: date, end_of: Callable[[date], datetime]
) -> datetime:
    """The moment to look from, in UTC. A day means all that was known when it ended, today all there is."""
    if as_of is None or as_of == today:
        return now.astimezone(UTC)
    if as_of > now if isinstance(as_of, datetime) else as_of > today:
        raise refuse_field("in_future", "as_of", as_of.isoformat())
    return (as_of if isinstance(as_of, datetime) else end_of(as_of)).astimezone(UTC)


def _read(parse: Callable[[str], date], text: str) -> date | None:
    try:
        return parse(text)
    except ValueError:
        return None


def _within_calendar(day: date, value: Any) -> date:
    if day < FIRST_DAY:
        raise refuse("too_early", got=quote(value), allowed=[f">= {FIRST_DAY}"])
    if day > LAST_DAY:
        raise refuse("out_of_range", got=quote(value), allowed=[f"{FIRST_DAY} - {LAST_DAY}"])
    return day
