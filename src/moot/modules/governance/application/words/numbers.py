"""Numbers, days and times as people write them, in Chinese and English."""

import re
from collections.abc import Iterator
from typing import NamedTuple

UNITS = {"k": 1e3, "m": 1e6, "bn": 1e9, "thousand": 1e3, "million": 1e6, "billion": 1e9, "%": 0.01}
HAN_UNITS = {"十": 10, "百": 100, "千": 1_000, "万": 10_000, "亿": 100_000_000}
HAN_DIGITS = {digit: value for value, digit in enumerate("零一二三四五六七八九")} | {"〇": 0, "两": 2}
SPELLED = {"one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9}
SPELLED |= {"ten": 10, "eleven": 11, "twelve": 12, "dozen": 12, "twenty": 20, "fifty": 50, "hundred": 100}
MONTHS = {"jan": 1, "feb": 2, "mar": 3, "apr": 4, "may": 5, "jun": 6}
MONTHS |= {"jul": 7, "aug": 8, "sep": 9, "oct": 10, "nov": 11, "dec": 12}

DIGITS = re.compile(
    r"(?<![a-z\d.])(\d[\d,]*(?:\.\d+)?)\s*([十百千万亿]+|%|(?:k|m|bn|thousand|million|billion)(?![a-z]))?"
)
HAN_NUMBER = re.compile("[零〇一二两三四五六七八九十百千万亿]+")
WORDS = re.compile(r"[a-z]+")
MONTH = r"(?P<{}>jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\.?"
DAYS = (
    re.compile(r"(?P<y>\d{4})[-/.年]\s?(?P<m>\d{1,2})[-/.月]\s?(?P<d>\d{1,2})"),
    re.compile(r"(?<![\d年])(?P<m>\d{1,2})月(?P<d>\d{1,2})[日号]"),
    re.compile(rf"\b{MONTH.format('name')}\s+(?P<d>\d{{1,2}})(?:st|nd|rd|th)?\b(?:,?\s+(?P<y>\d{{4}}))?"),
    re.compile(
        rf"\b(?P<d>\d{{1,2}})(?:st|nd|rd|th)?\s+(?:of\s+)?{MONTH.format('name')}(?:,?\s+(?P<y>\d{{4}}))?"
    ),
)
CLOCK = re.compile(
    r"(?<!\d)(\d{1,2}):(\d{2})(?::\d{2})?\s*([ap]m)?|(?<!\d)(\d{1,2})\s*([ap]m)\b|(\d{1,2})点(?!\d)"
)


class Day(NamedTuple):
    year: int | None
    month: int
    day: int

    def may_be(self, other: "Day") -> bool:
        """The same day, where a year that is not said may be any."""
        years = {self.year, other.year} - {None}
        return self[1:] == other[1:] and len(years) < 2


def numbers_in(text: str) -> Iterator[float]:
    """Each as it is written and, with a unit behind it, as it is meant: `1.2万` is 1.2 and 12,000."""
    for digits, unit in DIGITS.findall(text):
        number = float(digits.replace(",", ""))
        yield number
        if unit:
            yield round(number * (UNITS.get(unit) or _scale(unit)), 6)
    for word in WORDS.findall(text):
        if word in SPELLED:
            yield float(SPELLED[word])
    for match in HAN_NUMBER.finditer(text):
        yield float(_han(match.group()))


def amounts_in(text: str) -> list[float]:
    """Numbers that are neither dates nor times nor the numbering of a list."""
    rest = text
    for pattern in (*DAYS, CLOCK, re.compile(r"(?:^|\s)\d+[.)]\s|\b\d{4}(?:年|\b)")):
        rest = pattern.sub(" ", rest)
    return [float(digits.replace(",", "")) for digits, _ in DIGITS.findall(rest)]


def days_in(text: str) -> list[Day]:
    return [_day(match.groupdict()) for pattern in DAYS for match in pattern.finditer(text)]


def times_in(text: str) -> list[str]:
    return [_time(*match.groups()) for match in CLOCK.finditer(text)]


def _day(parts: dict[str, str | None]) -> Day:
    year, month = parts.get("y"), parts.get("m")
    return Day(
        int(year) if year else None,
        int(month) if month else MONTHS[parts.get("name") or ""],
        int(parts["d"] or 0),
    )


def _time(*parts: str | None) -> str:
    hour, minute, half, bare, bare_half, chinese = parts
    value = int(hour or bare or chinese or 0)
    if "pm" in (half, bare_half) and value < 12:
        value += 12
    if "am" in (half, bare_half) and value == 12:
        value = 0
    return f"{value:02}:{minute or '00'}"


def _scale(units: str) -> float:
    scale = 1.0
    for unit in units:
        scale *= HAN_UNITS[unit]
    return scale


def _han(text: str) -> int:
    """`三千五百万`, also `二〇二四`, which is read digit by digit."""
    if not any(unit in text for unit in HAN_UNITS):
        return int("".join(str(HAN_DIGITS[digit]) for digit in text))
    total = section = digit = 0
    for char in text:
        if char in HAN_DIGITS:
            digit = HAN_DIGITS[char]
        elif char in "万亿":
            total = (total + section + digit) * HAN_UNITS[char]
            section = digit = 0
        else:
            section += (digit or 1) * HAN_UNITS[char]
            digit = 0
    return total + section + digit
