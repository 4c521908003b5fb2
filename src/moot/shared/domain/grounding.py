"""Whether what a text states can be found in the evidence it was given."""

import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Literal

from pydantic import BaseModel

from moot.shared.domain.evidence import Evidence
from moot.shared.domain.messages import Locale
from moot.shared.domain.stated_numbers import (
    KINDS,
    SCALES,
    Kind,
    Number,
    bare_address,
    find_urls,
    read_numbers,
)
from moot.shared.domain.texts import SAY


class Grounding(BaseModel, frozen=True, extra="forbid"):
    """`score` is the share of checked numbers and URLs that stand in the evidence; 1 when there was none to check.

    What is stated twice counts once. `offenders` are those that do not stand there, as they were stated; `reported`
    stand in nothing but what others wrote, which nobody checked: they count neither way.
    """

    score: float
    checked: int
    offenders: list[str]
    reported: list[str] = []


Judgement = Literal["holds", "reported", "offends"]
QUOTED = "> "


def ground(
    texts: Iterable[str],
    evidence: Sequence[Evidence],
    *,
    given: str = "",
    own: Iterable[float] = (),
    figures: Iterable[str] = (),
) -> Grounding:
    """Check every number and URL that `texts` state.

    A number holds if it is one of the evidence: rounded or cut to the decimals stated, its sign dropped, in another
    unit of the same kind, a fraction as a percentage. `given` is what else the writer was shown, `own` its own
    judgement in numbers. Not checked are dates, customary windows of time, small counts, and numbers in a name, such
    as MA20 or 600519.SH.

    Evidence that is text, and lines of `given` that are quoted (`> `), come from outside: what stands only there is
    reported. `figures` are numbers in fields of their own, where no reader could be told so: reported is not enough.
    """
    known = _Known(evidence, given, own)
    found: dict[str, Judgement] = {}
    for text in texts:
        found |= {url: known.judge_address(url) for url in find_urls(text)}
        found |= {number.stated: known.judge(number) for number in read_numbers(text) if number.is_claim}
    for number in (number for figure in figures for number in read_numbers(figure) if number.is_claim):
        found[number.stated] = "holds" if known.judge(number) == "holds" else "offends"
    reported, offenders = (
        [stated for stated, judged in found.items() if judged == wanted] for wanted in ("reported", "offends")
    )
    checked = len(found) - len(reported)
    score = (checked - len(offenders)) / checked if checked else 1.0
    return Grounding(score=score, checked=checked, offenders=offenders, reported=reported)


def mark_reported(text: str, reported: Collection[str], locale: Locale) -> str:
    """The text with a mark behind each of its numbers and addresses that are merely reported."""
    ends = {number.end for number in read_numbers(text) if number.is_claim and number.stated in reported}
    links = [url for url in find_urls(text) if url in reported]
    ends |= {found.end() for url in links for found in re.finditer(re.escape(url), text)}
    places = [0, *sorted(ends), len(text)]
    mark = SAY("reported_mark").in_locale(locale)
    return mark.join(text[start:end] for start, end in pairwise(places))


class _Known:
    """What may be stated: measurements and the writer's own judgement; and what it was merely told."""

    def __init__(self, evidence: Sequence[Evidence], given: str, own: Iterable[float]) -> None:
        quoted = [line for line in given.splitlines() if line.startswith(QUOTED)]
        outside = [*quoted, *(item.value for item in evidence if isinstance(item.value, str))]
        shown = [line for line in given.splitlines() if not line.startswith(QUOTED)]
        measured = [size for item in evidence for size in _measure(item)]
        judged = [(kind, size, False) for number in own for kind, size in _write("plain", abs(number))]
        self._named = {float(digits) for item in evidence for digits in re.findall(r"[0-9]+", item.id)}
        self._facts, self._outside, self._shown = map(
            _Sizes, ([*measured, *judged], _read(outside), _read(shown))
        )
        self._addresses = [
            {bare_address(url) for text in texts for url in find_urls(text)}
            for texts in ([item.source for item in evidence], outside, shown)
        ]

    def judge(self, number: Number) -> Judgement:
        """A window or a period that evidence is named for, as in `high_20d`, is a bare number or none."""
        named = number.value in self._named and not number.decimals and not number.unit
        return _settle(named or number in self._facts, number in self._outside, number in self._shown)

    def judge_address(self, url: str) -> Judgement:
        return _settle(*(bare_address(url) in addresses for addresses in self._addresses))


def _settle(known: bool, told: bool, shown: bool) -> Judgement:
    """What the writer was shown may repeat what others told."""
    return "holds" if known else "reported" if told else "holds" if shown else "offends"


Size = tuple[Kind, float, bool]
"""A size that may be stated as a number of that kind; True where a sign must be its own."""


class _Sizes:
    def __init__(self, sizes: Iterable[Size]) -> None:
        self._sizes: dict[tuple[Kind, int], list[float]] = defaultdict(list)
        for kind, size, signed in sizes:
            self._sizes[kind, 0].append(abs(size))
            for sign in (1, -1):
                if not signed or size * sign >= 0:
                    self._sizes[kind, sign].append(abs(size))
        for known in self._sizes.values():
            known.sort()

    def __contains__(self, number: Number) -> bool:
        """Rounding moves a number by half a step of its last digit at most; cutting it off, by less than a step."""
        step, slack = 10.0**-number.decimals * number.scale, number.size * 1e-9
        sizes = self._sizes[number.kind, number.sign]
        nearest = bisect_left(sizes, number.size - step / 2 - slack)
        return nearest < len(sizes) and sizes[nearest] < number.size + max(slack, step - slack)


def _measure(item: Evidence) -> Iterator[Size]:
    """The value as it stands and, if its unit is a multiple such as `100m CNY`, in full."""
    if isinstance(item.value, str):
        return
    multiple = re.match(r"([0-9]*)([A-Za-z]+|[十百千万亿]+)", item.unit)
    scale = SCALES.get(multiple[2].lower(), 1.0) * float(multiple[1] or 1) if multiple else 1.0
    kind = EVIDENCE_KINDS.get(item.unit.lower(), "money") if item.unit else "plain"
    yield from ((written, size, True) for written, size in _write(kind, float(item.value), scale))


def _read(texts: Iterable[str]) -> Iterator[Size]:
    for number in (number for text in texts for number in read_numbers(text)):
        yield from ((kind, size, False) for kind, size in _write(number.kind, number.value, number.scale))


def _write(kind: Kind, value: float, scale: float = 1.0) -> Iterator[tuple[Kind, float]]:
    """How else a number of that kind may be written. What has no unit may get any; of a fraction, hundredths."""
    yield "plain", value
    if scale != 1:
        yield "plain", value * scale
    if kind == "plain":
        yield from (("money", value), ("times", value), ("hundredths", value), ("hundredths", 100 * value))
    else:
        yield kind, value * scale


EVIDENCE_KINDS: Mapping[str, Kind] = KINDS | {"index": "hundredths"}
"""Some write an index as a percentage. Whatever else has a unit is counted like money."""
