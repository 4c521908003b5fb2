"""The numbers and addresses that a text states, as it states them."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from string import ascii_lowercase
from typing import Literal

Kind = Literal["plain", "money", "hundredths", "times"]
"""What a number is told to be by its unit: nothing in particular, an amount, a percentage or a multiple."""
Words = tuple[str, ...]


@dataclass(frozen=True)
class Number:
    """A number as written: `sign` is 0 without one, `unit` empty without one; `glued` is part of a word.

    It stands from `start` to `end` in its text, its currency included.
    """

    stated: str
    start: int
    end: int
    value: float
    decimals: int
    sign: int
    unit: str
    glued: bool

    @property
    def is_claim(self) -> bool:
        if self.decimals or self.unit:
            return True
        small_count, year = self.value <= 10, 1980 <= self.value < 2050
        return not (self.glued or small_count or year)

    @property
    def kind(self) -> Kind:
        return KINDS.get(self.unit, "plain")

    @property
    def size(self) -> float:
        """In full; a percentage in hundredths."""
        return self.value * self.scale

    @property
    def scale(self) -> float:
        return SCALES.get(self.unit) or PARTS.get(self.unit, 1.0)


@lru_cache(maxsize=2048)
def read_numbers(text: str) -> tuple[Number, ...]:
    """Kept for a while: one after another, everybody in a session is held to the same evidence."""
    return tuple(_read_numbers(text))


def _read_numbers(text: str) -> Iterator[Number]:
    plain = text.translate(HALF_WIDTH)
    for not_a_claim in (URL, *NAMES_AND_DATES):
        plain = not_a_claim.sub(lambda found: " " * len(found.group()), plain)
    place = 0
    while found := NUMBER.search(plain, place):
        digits = found["digits"].replace(",", "")
        unit = _unit_at(plain, found.end())
        place = found.end() + len(unit)
        yield Number(
            stated=text[found.start() : place].strip(),
            start=found.start(),
            end=place + len(_unit_at(plain, place)) if unit else place,
            value=float(digits),
            decimals=len(digits.partition(".")[2]),
            sign={None: 0, "+": 1, "-": -1}[found["sign"]],
            unit=(unit or found["currency"] or "").strip().lower(),
            glued=found["before"] is not None
            or (not unit and bool(PART_OF_A_WORD.match(plain, found.end()))),
        )


def read_in_context(text: str) -> Iterator[tuple[Number, Words]]:
    """Each number with the words of its sentence that come before it, numbers among them as `#`."""
    said, place = "", 0
    for number in read_numbers(text):
        said = SENTENCE_END.split(said + text[place : number.start])[-1][-LONGEST_SAID:]
        yield number, tuple(WORD.findall(said))
        said += ANY_NUMBER if number.is_claim else text[number.start : number.end]
        place = number.end


def _unit_at(text: str, place: int) -> str:
    """The longest unit that stands there, after a space or none; a Latin word must end where it ends."""
    rest = text[place : place + LONGEST_UNIT].lower()
    gap = rest[:1].isspace()
    for unit in UNITS_BY_INITIAL.get(rest[gap : gap + 1], ()):
        end = gap + len(unit)
        if rest.startswith(unit, gap) and not (unit[-1] in ascii_lowercase and rest[end:][:1] in LETTERS):
            return text[place : place + end]
    return ""


def find_urls(text: str) -> list[str]:
    return [found.group().rstrip(PUNCTUATION) for found in URL.finditer(text)]


def bare_address(url: str) -> str:
    return re.sub(r"^https?://", "", url.rstrip(PUNCTUATION))


HALF_WIDTH = str.maketrans("０１２３４５６７８９．％－−＋￥＄", "0123456789.%--+¥$")
PUNCTUATION = ".,;:!?)]}'*_/"

URL = re.compile(r"(?:[a-z][a-z0-9+-]{1,15}://|www\.)(?:(?!https?://)[!#-;=?-\[\]_a-z~])+")
"""As far as it is ASCII: Chinese may follow without a space."""

SCALES: Mapping[str, float] = {
    **{"千": 1e3, "万": 1e4, "十万": 1e5, "百万": 1e6, "千万": 1e7, "亿": 1e8},
    **{"十亿": 1e9, "百亿": 1e10, "千亿": 1e11, "万亿": 1e12},
    **{"k": 1e3, "m": 1e6, "mn": 1e6, "b": 1e9, "bn": 1e9, "tn": 1e12},
    **{"thousand": 1e3, "million": 1e6, "hundred million": 1e8, "billion": 1e9, "trillion": 1e12},
}
HUNDREDTHS = {
    *("%", "percent", "pct", "pp", "percentage point", "percentage points", "百分点", "个百分点"),
}
PARTS: Mapping[str, float] = {
    "‰": 0.1,
    **dict.fromkeys(("bp", "bps", "basis point", "basis points", "基点", "个基点"), 0.01),
}
"""Of a hundredth."""
CURRENCIES = {*("元", "美元", "港元", "yuan", "cny", "rmb", "usd", "hkd"), *"$¥€£"}
KINDS: dict[str, Kind] = {
    **dict.fromkeys((*SCALES, *CURRENCIES), "money"),
    **dict.fromkeys((*HUNDREDTHS, *PARTS), "hundredths"),
    **dict.fromkeys(("倍", "x"), "times"),
}
UNITS_BY_INITIAL = {
    initial: sorted((u for u in KINDS if u[0] == initial), key=len, reverse=True)
    for initial in {u[0] for u in KINDS}
}
LONGEST_UNIT = max(map(len, KINDS)) + 2
LETTERS = frozenset(ascii_lowercase)
PART_OF_A_WORD = re.compile(r"\.?[A-Za-z]|_")
SENTENCE_END = re.compile(r"[。！？；\n]|[.!?;:：](?=\s)")
WORD = re.compile(r"[A-Za-z][A-Za-z0-9]*|[0-9]+|#|[\u3400-\u4dbf\u4e00-\u9fff]")
ANY_NUMBER, LONGEST_SAID = "#", 200

NUMBER = re.compile(
    r"""
    (?P<before> (?<=[A-Za-z_]) | (?<=[A-Za-z_][.\-]) )?
    (?P<sign> (?<![^\s(（\[:：=,，、为是达约到至]) [+\-] )?
    (?P<currency> [$¥€£] | (?:RMB|CNY|USD|HKD)\s? )?
    (?P<digits> [0-9]{1,3}(?:,[0-9]{3})+(?![0-9])(?:\.[0-9]+)? | [0-9]+(?:\.[0-9]+)? )
    """,
    re.VERBOSE,
)

WINDOW = "(?:[1-9]|1[0-5]|2[0156]|30|5[025]|60|90|100|12[05]|1[58]0|200|24[04]|25[02]|36[05])"
"""Days or weeks that indicators and habits look back."""

MONTH = "(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]*"
YEAR = "(?:19|20)[0-9]{2}"
RANGE = r"[0-9]+(?:\s?(?:[-–—~～至到]|to)\s?[0-9]+)?"

FIRST_DIGIT = r"(?<![0-9.,])(?=[0-9])"
NAMES_AND_DATES = [
    re.compile(pattern, re.MULTILINE)
    for pattern in (
        r"^[ \t]*[(（]?[0-9]{1,2}[.)）、](?![0-9])",
        rf"(?<=[A-Za-z])\s?[(（]{WINDOW}(?:\s?[,，/]\s?{WINDOW})*[)）]",
        rf"{FIRST_DIGIT}{YEAR}[-/.年]\s?[0-9]{{1,2}}[-/.月]\s?[0-9]{{1,2}}(?![0-9])日?",
        rf"{FIRST_DIGIT}{YEAR}[-/][0-9]{{1,2}}(?![0-9])",
        rf"{FIRST_DIGIT}{YEAR}(?:0[1-9]|1[0-2])(?:0[1-9]|[12][0-9]|3[01])(?![0-9.])",
        rf"{FIRST_DIGIT}[0-9]{{1,2}}[:：][0-9]{{2}}(?::[0-9]{{2}})?(?![0-9])",
        rf"{FIRST_DIGIT}[0-9]{{1,2}}月[0-9]{{1,2}}[日号]",
        rf"{FIRST_DIGIT}[0-9]{{1,2}}(?:st|nd|rd|th)?\s{MONTH}",
        rf"{FIRST_DIGIT}{RANGE}\s?个?(?:年|季度?|月|周|星期|小时|分钟)",
        rf"{FIRST_DIGIT}{RANGE}[\s-]?(?:year|quarter|month|week|hour|minute)",
        rf"{FIRST_DIGIT}{WINDOW}(?:\s?(?:日|天|个?交易日)|[\s-]?(?:trading\s)?day)",
        rf"{FIRST_DIGIT}[0-9]+(?:\.[0-9]+){{2,}}",
        rf"{MONTH}\.?\s[0-9]{{1,2}}(?:st|nd|rd|th)?(?!\.?[0-9]|\s?%)",
        r"第\s?[0-9]+",
    )
]
