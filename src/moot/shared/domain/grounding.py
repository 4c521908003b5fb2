"""Whether what a text states can be found in the evidence it was given."""

import re
from bisect import bisect_left, insort
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Literal

from pydantic import BaseModel

from moot.shared.domain.claims import Claim
from moot.shared.domain.evidence import Evidence
from moot.shared.domain.messages import Locale
from moot.shared.domain.stated_numbers import (
    ANY_NUMBER,
    KINDS,
    SCALES,
    Kind,
    Number,
    Words,
    bare_address,
    find_urls,
    read_in_context,
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
FEWEST_WORDS, NEAR = 2, 3
"""Of fewer words anything might be meant; and a name must be as near to its number."""


def ground(
    texts: Iterable[str],
    evidence: Sequence[Evidence],
    *,
    given: str = "",
    own: Iterable[float] = (),
    figures: Iterable[str] = (),
    claims: Iterable[Claim] = (),
) -> Grounding:
    """Check every number and URL that `texts` state.

    A number holds if it is one of the evidence: rounded to the decimals stated or cut, its sign dropped, in another
    unit of the same kind, a fraction as a percentage. `given` is what else the writer was shown, `own` its own
    judgement in numbers. Not checked are dates, customary windows of time, small counts, and numbers in a name, such
    as MA20 or 600519.SH.

    Evidence that is text, and lines of `given` that are quoted (`> `), come from outside: what stands only there is
    reported. `figures` are numbers in fields of their own, where no reader could be told so: reported is not enough.
    A number that is plainly stated for a measure, by a name in capitals or in the words of one of `claims`, must be
    that measure's.
    """
    known = _Known(evidence, given, own, claims)
    found: dict[str, Judgement] = {}
    for text in texts:
        found |= {url: known.judge_address(url) for url in find_urls(text)}
        for number, words in read_in_context(text):
            if number.is_claim and found.get(number.stated) != "offends":
                found[number.stated] = known.judge(number, words)
    for number in (number for figure in figures for number in read_numbers(figure) if number.is_claim):
        found[number.stated] = "holds" if known.judge(number) == "holds" else "offends"
    offenders = [stated for stated, judged in found.items() if judged == "offends"]
    reported = [stated for stated, judged in found.items() if judged == "reported"]
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

    def __init__(
        self, evidence: Sequence[Evidence], given: str, own: Iterable[float], claims: Iterable[Claim]
    ) -> None:
        quoted, shown = (
            [line for line in given.splitlines() if line.startswith(QUOTED) is outside]
            for outside in (True, False)
        )
        told = [*quoted, *(item.value for item in evidence if isinstance(item.value, str))]
        self._by_id = _SizesById(evidence)
        self._names = _Names(claims, self._by_id)
        self._windows = {float(digits) for item in evidence for digits in re.findall(r"[0-9]+", item.id)}
        self._measured = _Sizes(size for item in evidence for size in _measure(item))
        self._own = _Sizes(size for number in own for size in _write("plain", number))
        self._told, self._shown = (
            _Sizes(
                size
                for text in texts
                for n in read_numbers(text)
                for size in _write(n.kind, n.value, n.scale)
            )
            for texts in (told, shown)
        )
        self._addresses = [
            {bare_address(url) for text in texts for url in find_urls(text)}
            for texts in ([item.source for item in evidence], told, shown)
        ]

    def judge(self, number: Number, words: Words = ()) -> Judgement:
        """A window or a period that evidence is named for, as in `high_20d`, is a bare number or none."""
        if number in self._own or (number.value in self._windows and not number.decimals and not number.unit):
            return "holds"
        measured = number in self._measured
        right = measured and not self._is_misnamed(number, words)
        return _settle(right, number in self._told, number in self._shown and not measured)

    def _is_misnamed(self, number: Number, words: Words) -> bool:
        """It is stated for a measure of its kind, and is another's."""
        meant = [self._by_id[id_] for id_ in self._names.find(words)]
        return any(number.kind in sizes.kinds for sizes in meant) and not any(
            number in sizes for sizes in meant
        )

    def judge_address(self, url: str) -> Judgement:
        return _settle(*(bare_address(url) in addresses for addresses in self._addresses))


class _Names:
    """A claim names a measure by all its words up to the number; so does whoever uses the same words. A name in
    capitals right before a number, such as RSI or MA20, is that of the evidence that has it in its id.
    """

    def __init__(self, claims: Iterable[Claim], values: "_SizesById") -> None:
        self._capitals, self._phrases = defaultdict[str, set[str]](set), defaultdict[Words, set[str]](set)
        for id_ in values.known:
            for part in re.split(r"[._]", id_.upper()):
                self._capitals[part].add(id_)
        for claim in claims:
            for number, words in (found for text in claim.says.values() for found in read_in_context(text)):
                meant = [id_ for id_ in claim.evidence if id_ in values.known and number in values[id_]]
                if meant and len(words) >= FEWEST_WORDS:
                    self._phrases[_fold(words)].update(*map(values.find_below, meant))

    def find(self, words: Words) -> Collection[str]:
        """The ids of what is named; none if nobody can tell."""
        folded = _fold(words)
        for start in range(len(folded)):
            if folded[start:] in self._phrases:
                return self._phrases[folded[start:]]
        near = " ".join(words).rpartition(ANY_NUMBER)[2].split()[-NEAR:]
        return {id_ for word in near if word.isupper() for id_ in self._capitals.get(word, ())}


def _fold(words: Words) -> Words:
    return tuple(map(str.lower, words))


def _settle(known: bool, told: bool, shown: bool) -> Judgement:
    """What the writer was shown may repeat what others told."""
    return "holds" if known else "reported" if told else "holds" if shown else "offends"


Size = tuple[Kind, float, bool]
"""A size that may be stated as a number of that kind; True where a sign must be its own."""


class _Sizes:
    def __init__(self, sizes: Iterable[Size]) -> None:
        self._sizes: dict[tuple[Kind, int], list[float]] = defaultdict(list)
        for kind, size, signed in sizes:
            for sign in (0, 1, -1):
                if not signed or size * sign >= 0:
                    insort(self._sizes[kind, sign], abs(size))
        self.kinds = {kind for kind, _ in self._sizes}

    def __contains__(self, number: Number) -> bool:
        """Rounding moves a number by half a step of its last digit at most; cutting it off, by less than a step.

        A number of one or two digits is rounded: cut, it would stand for too many.
        """
        step, slack = 10.0**-number.decimals * number.scale, number.size * 1e-9
        sizes = self._sizes.get((number.kind, number.sign), [])
        nearest = bisect_left(sizes, number.size - step / 2 - slack)
        is_long = number.size >= 99.5 * step
        most = max(slack, step - slack) if is_long else step / 2 + slack
        return nearest < len(sizes) and sizes[nearest] <= number.size + most


class _SizesById(dict[str, _Sizes]):
    """Of each piece of evidence, once somebody asks: of most nobody does."""

    def __init__(self, evidence: Iterable[Evidence]) -> None:
        self.known = {item.id: item for item in evidence}
        self._below: dict[str, list[str]] = {}

    def __missing__(self, id_: str) -> _Sizes:
        self[id_] = _Sizes(_measure(self.known[id_]))
        return self[id_]

    def find_below(self, name: str) -> list[str]:
        """The ids that begin with it."""
        if name not in self._below:
            self._below[name] = [id_ for id_ in self.known if id_.startswith(name)]
        return self._below[name]


def _measure(item: Evidence) -> Iterator[Size]:
    """The value as it stands and, if its unit is a multiple such as `100m CNY`, in full."""
    if isinstance(item.value, str):
        return iter(())
    multiple = re.match(r"([0-9]*)([A-Za-z]+|[十百千万亿]+)", item.unit)
    scale = SCALES.get(multiple[2].lower(), 1.0) * float(multiple[1] or 1) if multiple else 1.0
    kind = EVIDENCE_KINDS.get(item.unit.lower(), "money") if item.unit else "plain"
    return _write(kind, float(item.value), scale, signed=True)


def _write(kind: Kind, value: float, scale: float = 1.0, *, signed: bool = False) -> Iterator[Size]:
    """How else a number of that kind may be written. What has no unit may get any; of a fraction, hundredths."""
    any_kind: tuple[Kind, ...] = ("plain", "money", "times", "hundredths")
    yield from ((written, value, signed) for written in (any_kind if kind == "plain" else any_kind[:1]))
    yield from (("plain", value * scale, signed), (kind, value * scale, signed))
    if kind == "plain":
        yield "hundredths", 100 * value, signed


EVIDENCE_KINDS: Mapping[str, Kind] = KINDS | {"index": "hundredths"}
"""Some write an index as a percentage. Whatever else has a unit is counted like money."""
