"""Which period a text speaks of: 本月, 最近30天, 2024年Q1, last month, 2024-01-01 to 2024-03-31."""

import re
from calendar import monthrange
from collections.abc import Callable
from datetime import date, timedelta
from typing import NamedTuple


class Period(NamedTuple):
    """Days from `since` on, up to and without `until`."""

    since: date
    until: date

    @property
    def last_day(self) -> date:
        return self.until - timedelta(days=1)

    def narrowed_to(self, other: "Period") -> "Period":
        """What both have in common; where that is nothing, this one stands."""
        since, until = max(self.since, other.since), min(self.until, other.until)
        return Period(since, until) if since < until else self

    def __str__(self) -> str:
        return f"{self.since} – {self.last_day}"


def period_in(clause: str, today: date) -> Period | None:
    """The period of one clause; from the first day to the last of all it names (`对比本月和上月`)."""
    found, left = [], clause.lower()
    for pattern, resolve in PATTERNS:
        for match in pattern.finditer(left):
            try:
                found.append(resolve(match, today))
            except (ValueError, OverflowError):
                continue  # no such day: 2024-02-31
        left = pattern.sub(lambda match: " " * len(match[0]), left)
    periods = [period for period in found if period.since < period.until]
    if not periods:
        return None
    return Period(min(p.since for p in periods), max(p.until for p in periods))


def months_after(day: date, months: int) -> date:
    """The same day of another month, or its last."""
    year, month = divmod(day.year * 12 + day.month - 1 + months, 12)
    return date(year, month + 1, min(day.day, monthrange(year, month + 1)[1]))


def calendar_period(unit: str, today: date, offset: int = 0) -> Period:
    """This week, month, quarter… or the one `offset` further."""
    if unit in DAYS:
        first = today - timedelta(days=today.weekday() if unit == "week" else 0)
        since = first + timedelta(days=DAYS[unit] * offset)
        return Period(since, since + timedelta(days=DAYS[unit]))
    length = MONTHS[unit]
    first = date(today.year, (today.month - 1) // length * length + 1, 1)
    since = months_after(first, length * offset)
    return Period(since, months_after(since, length))


def part_of_year(year: int, part: int, months: int) -> Period:
    """The `part`-th stretch of so many months, counted from 1: quarter 2, half 1, month 12."""
    if not 1 <= part <= 12 // months:
        raise ValueError(f"a year has no part {part}")
    since = date(year, (part - 1) * months + 1, 1)
    return Period(since, months_after(since, months))


def rolling(count: str, unit: str, today: date) -> Period:
    until, unit = today + timedelta(days=1), UNITS[unit]
    if count == "半":
        return Period(months_after(today, -MONTHS[unit] // 2), until)
    if unit in DAYS:
        return Period(today - timedelta(days=DAYS[unit] * number(count)), until)
    return Period(months_after(today, -MONTHS[unit] * number(count)), until)


def number(text: str) -> int:
    """`30`, `三十`, `thirty`."""
    if text.isdigit():
        return int(text)
    if text in NUMBERS:
        return NUMBERS[text]
    tens, _, ones = text.partition("十")
    return 10 * NUMBERS.get(tens, 1) + NUMBERS.get(ones, 0)


DAYS = {"day": 1, "week": 7}
MONTHS = {"month": 1, "quarter": 3, "half": 6, "year": 12}
UNITS = {
    "天": "day",
    "日": "day",
    "周": "week",
    "星期": "week",
    "月": "month",
    "季度": "quarter",
    "年": "year",
} | {unit: unit for unit in ("day", "week", "month", "quarter", "year")}


def _counted(words: str) -> dict[str, int]:
    return {word: place for place, word in enumerate(words.split(), 1)}


NUMBERS = (
    _counted("一 二 三 四 五 六 七 八 九 十")
    | _counted("one two three four five six seven eight nine ten eleven twelve")
    | _counted("first second third fourth")
    | {"两": 2, "thirty": 30, "sixty": 60, "ninety": 90}
)
MONTH_NAMES = _counted(
    "january february march april may june july august september october november december"
)

DAY = r"(\d{4})\s*[-/.年]\s*(\d{1,2})\s*[-/.月]\s*(\d{1,2})(?!\d)\s*日?"
YEAR = r"(今年|本年|去年|上年|this year|last year|(?<!\d)\d{4}(?!\d))"
COUNT = r"(\d+|[一二两三四五六七八九十]+|半|" + "|".join(word for word in NUMBERS if word.isascii()) + ")"
UNIT = r"(天|日|周|星期|月|季度|年|day|week|month|quarter|year)"
MONTH = "(" + "|".join(MONTH_NAMES) + ")"
TO = r"\s*(?:至|到|~|～|—|–|-|to|until|through|and)\s*"

Resolver = Callable[[re.Match[str], date], Period]


def _year(text: str, today: date) -> int:
    return int(text) if text.isdigit() else today.year - (text in ("去年", "上年", "last year"))


def _day(parts: tuple[str, ...]) -> date:
    year, month, day = map(int, parts)
    return date(year, month, day)


def _days(match: re.Match[str], _today: date) -> Period:
    return Period(_day(match.groups()[:3]), _day(match.groups()[3:]) + timedelta(days=1))


def _latest_month(match: re.Match[str], today: date) -> Period:
    """A month without a year is the last that has begun."""
    month = MONTH_NAMES.get(match[1]) or number(match[1])
    return part_of_year(today.year - (month > today.month), month, 1)


def _calendar(unit: str, offset: int) -> Resolver:
    return lambda _match, today: calendar_period(unit, today, offset)


PATTERNS: list[tuple[re.Pattern[str], Resolver]] = [
    (re.compile(pattern), resolve)
    for pattern, resolve in (
        (DAY + TO + DAY, _days),
        (
            r"(?:since|from|after|自从|自|从)\s*" + DAY + r"|" + DAY + r"\s*(?:以来|之后|以后|起|onwards?)",
            lambda m, today: Period(
                _day(m.groups()[:3] if m[1] else m.groups()[3:]), today + timedelta(days=1)
            ),
        ),
        (
            r"(?:until|before|up to|截至|截止到?)\s*" + DAY,
            lambda m, _: Period(date.min, _day(m.groups()) + timedelta(days=1)),
        ),
        (DAY, lambda m, _: Period(_day(m.groups()), _day(m.groups()) + timedelta(days=1))),
        (
            YEAR + r"\s*年?\s*(?:q\s*([1-4])(?!\d)|第?([一二三四1-4])季度?)",
            lambda m, today: part_of_year(_year(m[1], today), number(m[2] or m[3]), 3),
        ),
        (
            r"(?:q([1-4])|(first|second|third|fourth) quarter)\s*(?:of|,)?\s*" + YEAR,
            lambda m, today: part_of_year(_year(m[3], today), number(m[1] or m[2]), 3),
        ),
        (
            YEAR + r"\s*年?\s*(上|下)半年",
            lambda m, today: part_of_year(_year(m[1], today), 1 if m[2] == "上" else 2, 6),
        ),
        (
            YEAR + r"\s*年?\s*(\d{1,2}|[一二三四五六七八九十]+)月份?",
            lambda m, today: part_of_year(_year(m[1], today), number(m[2]), 1),
        ),
        (
            r"(?<![\d-])(\d{4})[-/](\d{2})(?![\d/-])",
            lambda m, _: part_of_year(int(m[1]), int(m[2]), 1),
        ),
        (
            MONTH + r",?\s+(\d{4})",
            lambda m, _: part_of_year(int(m[2]), MONTH_NAMES[m[1]], 1),
        ),
        (
            r"(?<!\d)(\d{4})年?" + TO + r"(\d{4})(?:年|(?!\d))",
            lambda m, _: Period(date(int(m[1]), 1, 1), date(int(m[2]) + 1, 1, 1)),
        ),
        (
            r"(?:最近|近|过去|(?:last|past|previous|recent)(?=\s))\s*" + COUNT + r"\s*个?" + UNIT,
            lambda m, today: rolling(m[1], m[2], today),
        ),
        (r"(?:past|recent) (day|week|month|quarter|year)", lambda m, today: rolling("1", m[1], today)),
        (r"今天|今日|当日|\btoday\b", _calendar("day", 0)),
        (r"昨天|昨日|\byesterday\b", _calendar("day", -1)),
        (r"(?:本|这|当)个?(?:周|星期)|(?:this|current) week", _calendar("week", 0)),
        (r"上一?个?(?:周|星期)|(?:last|previous) week", _calendar("week", -1)),
        (r"(?:本|当|这个?)月|(?:this|current) month|month to date", _calendar("month", 0)),
        (r"上一?个?月|(?:last|previous) month", _calendar("month", -1)),
        (r"(?:本|当|这个?)季度?|(?:this|current) quarter|quarter to date", _calendar("quarter", 0)),
        (r"上一?个?季度|(?:last|previous) quarter", _calendar("quarter", -1)),
        (r"今年|本年|年初至今|(?:this|current) year|year to date|\bytd\b", _calendar("year", 0)),
        (r"去年|上一?年|(?:last|previous) year", _calendar("year", -1)),
        (
            r"(?<!\d)(\d{4})年|(?:in|for|of|during|year)\s+((?:19|20)\d{2})(?!\d)",
            lambda m, _: Period(date(int(m[1] or m[2]), 1, 1), date(int(m[1] or m[2]) + 1, 1, 1)),
        ),
        (r"(?<!\d)(\d{1,2}|十[一二]?|[一二三四五六七八九])月份?(?!\d)", _latest_month),
        (r"(?:in|for|of|during)\s+" + MONTH + r"\b", _latest_month),
    )
]
"""The more exact first: what one of them has read, the next no longer sees."""
