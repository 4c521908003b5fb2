"""Whether what a text states can be found in the evidence it was given."""

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from string import ascii_lowercase

from pydantic import BaseModel

from moot.shared.domain.evidence import Evidence


class Grounding(BaseModel, frozen=True, extra="forbid"):
    """`score` is the share of checked numbers and URLs that stand in the evidence; 1 when there was none to check.

    What is stated twice counts once. `offenders` are those that do not stand there, as they were stated.
    """

    score: float
    checked: int
    offenders: list[str]


def ground(
    texts: Iterable[str], evidence: Sequence[Evidence], *, given: str = "", own: Iterable[float] = ()
) -> Grounding:
    """Check every number and URL that `texts` state.

    A number holds if it is one of the evidence: rounded or cut to the decimals stated, its sign dropped, as a
    percentage or in another unit. `given` is what else the writer was shown, `own` its own judgement in numbers. Not
    checked are dates, customary windows of time, small counts, and numbers in a name, such as MA20 or 600519.SH.
    """
    known = _Known(evidence, given, own)
    holds: dict[str, bool] = {}
    for text in texts:
        holds |= {url: _address(url) in known.addresses for url in _urls(text)}
        holds |= {number.stated: known.has(number) for number in _numbers(text) if number.is_claim}
    offenders = [stated for stated, held in holds.items() if not held]
    score = (len(holds) - len(offenders)) / len(holds) if holds else 1.0
    return Grounding(score=score, checked=len(holds), offenders=offenders)


@dataclass(frozen=True)
class _Number:
    """A number as written: `sign` is 0 without one, `unit` empty without one; `glued` is part of a word."""

    stated: str
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
    def scale(self) -> float:
        return SCALES.get(self.unit, 1.0)


class _Known:
    """All numbers and URLs of the evidence, each number in the sizes it may be written in."""

    def __init__(self, evidence: Sequence[Evidence], given: str, own: Iterable[float]) -> None:
        texts = [given, *(item.value for item in evidence if isinstance(item.value, str))]
        sources = [item.source for item in evidence]
        self.addresses = {_address(url) for text in [*texts, *sources] for url in _urls(text)}
        read = [number for text in texts for number in _numbers(text)]
        unsigned = [*map(abs, own), *(n.value for n in read), *(n.value * n.scale for n in read)]
        signed = [size for item in evidence for size in _sizes(item)]
        self._named = {float(digits) for item in evidence for digits in re.findall(r"[0-9]+", item.id)}
        self._sizes = {
            0: sorted([*unsigned, *map(abs, signed)]),
            1: sorted([*unsigned, *(size for size in signed if size >= 0)]),
            -1: sorted([*unsigned, *(-size for size in signed if size <= 0)]),
        }

    def has(self, number: _Number) -> bool:
        """A window or a period that evidence is named for, as in `high_20d`, is a bare number or none."""
        if number.value in self._named and not number.decimals and not number.unit:
            return True
        scales = (number.scale, number.scale / 100) if number.unit in HUNDREDTHS else (number.scale,)
        return any(self._has(number, scale) for scale in scales)

    def _has(self, number: _Number, scale: float) -> bool:
        """Rounding moves a number by half a step of its last digit at most; cutting it off, by less than a step."""
        step, stated = 10.0**-number.decimals * scale, number.value * scale
        slack = stated * 1e-9
        sizes = self._sizes[number.sign]
        nearest = bisect_left(sizes, stated - step / 2 - slack)
        return nearest < len(sizes) and sizes[nearest] < stated + max(slack, step - slack)


def _sizes(item: Evidence) -> tuple[float, ...]:
    """The value as it stands and, if its unit is a multiple such as `100m CNY`, in full."""
    if isinstance(item.value, str):
        return ()
    multiple = re.match(r"([0-9]*)([A-Za-z]+|[十百千万亿]+)", item.unit)
    scale = SCALES.get(multiple[2].lower(), 1.0) * float(multiple[1] or 1) if multiple else 1.0
    return float(item.value), item.value * scale


def _numbers(text: str) -> Iterator[_Number]:
    plain = text.translate(HALF_WIDTH)
    for not_a_claim in (URL, *NAMES_AND_DATES):
        plain = not_a_claim.sub(lambda found: " " * len(found.group()), plain)
    place = 0
    while found := NUMBER.search(plain, place):
        digits = found["digits"].replace(",", "")
        unit = _unit_at(plain, found.end())
        place = found.end() + len(unit)
        yield _Number(
            stated=text[found.start() : place].strip(),
            value=float(digits),
            decimals=len(digits.partition(".")[2]),
            sign={None: 0, "+": 1, "-": -1}[found["sign"]],
            unit=(unit or found["currency"] or "").strip().lower(),
            glued=found["before"] is not None or (not unit and bool(WORD.match(plain, found.end()))),
        )


def _unit_at(text: str, place: int) -> str:
    """The longest unit that stands there, after a space or none; a Latin word must end where it ends."""
    rest = text[place : place + LONGEST_UNIT].lower()
    gap = rest[:1].isspace()
    for unit in UNITS:
        end = gap + len(unit)
        if rest.startswith(unit, gap) and not (unit[-1] in ascii_lowercase and rest[end:][:1] in LETTERS):
            return text[place : place + end]
    return ""


def _urls(text: str) -> list[str]:
    return [found.group().rstrip(PUNCTUATION) for found in URL.finditer(text)]


def _address(url: str) -> str:
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
    *("bp", "bps", "basis point", "basis points", "基点", "个基点"),
}
OTHER_UNITS = {"‰", "倍", "x", "元", "美元", "港元", "yuan", "cny", "rmb", "usd", "hkd"}


UNITS = sorted([*SCALES, *HUNDREDTHS, *OTHER_UNITS], key=len, reverse=True)
LONGEST_UNIT = len(UNITS[0]) + 2
LETTERS = frozenset(ascii_lowercase)
WORD = re.compile(r"\.?[A-Za-z]|_")

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
