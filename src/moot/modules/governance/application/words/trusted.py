"""A text that is trusted, and which values it vouches for: names, addresses, accounts, numbers, dates."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from moot.modules.governance.application.words.lexicon import WORD, plain, spaced, words
from moot.modules.governance.application.words.numbers import Day, days_in, numbers_in, times_in

EMAIL = re.compile(r"(?<![\w.+-])[\w+][\w.+'-]{0,63}@[\w-]{1,63}(?:\.[\w-]{1,63})+", re.ASCII)
URL = re.compile(r"(?:https?://|ftp://|www\.)[^\s'\"<>\u4e00-\u9fff\uff0c\u3002]+", re.ASCII)
BARE_HOST = re.compile(r"(?<![\w@.-])[a-z0-9-]+(?:\.[a-z0-9-]+)*\.[a-z]{2,}(?:/[^\s'\"<>]*)?", re.ASCII)
IBAN = re.compile(
    r"(?<![a-z0-9])[a-z]{2}\d{2}(?:[a-z0-9]{10,30}| [a-z0-9]{4}(?: \d{4}){1,6}(?: \d{1,3})?)(?![a-z0-9])",
    re.ASCII,
)
EXACT_DIGITS = 15
"""Longer numbers are compared as text: two accounts may be the same floating-point number."""
NUMBER = re.compile(r"[+-]?\d[\d,]*(?:\.\d+)?")


@dataclass(frozen=True, slots=True)
class Trusted:
    tokens: str
    emails: frozenset[str]
    urls: frozenset[str]
    ibans: frozenset[str]
    numbers: frozenset[float]
    days: frozenset[Day]
    times: frozenset[str]

    def vouches_for(self, value: Any) -> bool:
        """Nothing is no value to vouch for, and a switch is none either."""
        if value is None or isinstance(value, bool) or value == "":
            return True
        if isinstance(value, int | float) and abs(value) < 10**EXACT_DIGITS:
            return value in self.numbers
        return self._text(plain(str(value)))

    def knows_site(self, url: str) -> bool:
        """A page of a site that is named. With a query it could carry something away, so that is another thing."""
        place = address(plain(url))
        return "?" not in place and place.partition("/")[0] in self.urls

    def _text(self, text: str) -> bool:
        if "@" in text and (emails := EMAIL.findall(text)):
            return self.emails.issuperset(emails)
        if URL.match(text):
            return address(text) in self.urls
        if IBAN.fullmatch(text):
            return text.replace(" ", "") in self.ibans
        if NUMBER.fullmatch(text) and len(text) <= EXACT_DIGITS:
            return float(text.replace(",", "")) in self.numbers
        return self._moment(text) or self._said(text) or address(text) in self.urls

    def _moment(self, text: str) -> bool:
        days, times = days_in(text), times_in(text)
        if not days and not times:
            return False
        return all(any(day.may_be(known) for known in self.days) for day in days) and self.times.issuperset(
            times
        )

    def _said(self, text: str) -> bool:
        if any(self._said(word) for word in words("goals")["spelled"].get(text, ())):
            return True
        meant = WORD.findall(text)
        stop = words("goals")["stop"]
        return any(word not in stop for word in meant) and f" {' '.join(meant)} " in self.tokens


@lru_cache(maxsize=256)
def trusted_text(text: str) -> Trusted:
    known = plain(text)
    accounts = {match.group().replace(" ", "") for match in IBAN.finditer(known)}
    return Trusted(
        spaced(known),
        frozenset(EMAIL.findall(known)),
        frozenset(_addresses(known)),
        frozenset(accounts),
        frozenset(numbers_in(known)),
        frozenset(days_in(known)),
        frozenset(times_in(known)),
    )


def address(url: str) -> str:
    """A URL without what makes no difference to where it leads."""
    return re.sub(r"^(?:https?://|ftp://)?(?:www\.)?", "", url).rstrip("/.,;:!?)'\"")


def links_in(text: str) -> list[str]:
    """What a reader could follow: web addresses, and accounts money could be sent to."""
    known = plain(text)
    pages = URL.findall(known) if "://" in known or "www." in known else []
    return [*pages, *(match.group() for match in IBAN.finditer(known))]


def _addresses(text: str) -> Iterator[str]:
    yield from map(address, URL.findall(text))
    yield from (address(match.group()) for match in BARE_HOST.finditer(text))
