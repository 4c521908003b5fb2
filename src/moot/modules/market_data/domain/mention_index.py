"""Whatever a list of companies may be called in a sentence, found in one pass over the sentence."""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import IntEnum

from moot.modules.market_data.domain.company_index import How, Match
from moot.modules.market_data.domain.facts import Company
from moot.modules.market_data.domain.mention_words import (
    after_place,
    half_width,
    known_names,
    pattern,
    simplified,
    words,
)
from moot.modules.market_data.domain.pinyin import initials
from moot.modules.market_data.domain.spelling import bare_name, canonical, typed

_CODE = re.compile(r"(?<![A-Z0-9])([A-Z]{2,5}[.:_-]?)?\d{6}([.:_-]?[A-Z]{2,5})?(?![A-Z0-9])")
_WORD = re.compile(r"(?:\$|(?:NASDAQ|NYSE|US)[.:])?(?P<word>[A-Z0-9&]+(?:[.\-][A-Z0-9]+)*)")
_CLASS = re.compile(r"(?<=[^\x00-\x7f])([AB]|-[A-Z]{1,3})$")  # 万科A, 九号公司-WD
_IN_LAW = {"CO", "LTD", "INC", "CORP", "CORPORATION", "COMPANY", "LIMITED", "PLC", "LLC"}
_MOST_WORDS = 6

Span = tuple[int, int, str]


class Grade(IntEnum):
    """What was found, the most telling first."""

    KNOWN = 0
    CODE = 1
    WHOLE = 2
    PART = 3
    PINYIN = 4


@dataclass(frozen=True)
class Named:
    """Where a sentence names companies. `text` is what stands there; several matches are asked back."""

    start: int
    end: int
    text: str
    grade: Grade
    matches: tuple[Match, ...]


class MentionIndex:
    """Names by their characters; those in Latin letters by their words."""

    def __init__(self, companies: Iterable[Company]) -> None:
        self._names: dict[str, dict[Grade, list[Match]]] = defaultdict(lambda: defaultdict(list))
        for company in companies:
            for key, (grade, how) in _keys(company).items():
                match = Match(company, how, whole=grade is not Grade.PART)
                self._names[simplified(key)][grade].append(match)
        self._lengths = _lengths(self._names)

    def named(self, sentence: str) -> Iterator[Named]:
        """All that could be a name, overlapping as it may. Takes half-width letters and simplified characters."""
        capitals = "".join(c.upper() if len(c.upper()) == 1 else c for c in sentence)
        for start, end, key in (*_codes(capitals), *self._spans(capitals), *_phrases(capitals)):
            for grade, matches in self._names.get(key, {}).items():
                yield Named(start, end, sentence[start:end], grade, tuple(matches))

    def _spans(self, capitals: str) -> Iterator[Span]:
        for start, character in enumerate(capitals):
            for length in self._lengths.get(character, ()):
                if start + length <= len(capitals):
                    yield start, start + length, capitals[start : start + length]


def _keys(company: Company) -> dict[str, tuple[Grade, How]]:
    """What a sentence may call a company, each at its most telling: what comes later outdoes what came before."""
    code = canonical(company.symbol) or typed(company.symbol)
    letters = typed(company.pinyin or initials(bare_name(company.name)))
    names = {typed(company.name), *_written(company.name)}
    found = (
        ({letters} if len(letters) > 3 else (), Grade.PINYIN, How.PINYIN),
        (_parts(_CLASS.sub("", bare_name(company.name))), Grade.PART, How.NAME),
        (_english_parts(company.name_en), Grade.PART, How.ENGLISH_NAME),
        ((key for alias in company.aliases for key in _written(alias)), Grade.WHOLE, How.FORMER_NAME),
        (names, Grade.WHOLE, How.NAME),
        ({_english(company.name_en)}, Grade.WHOLE, How.ENGLISH_NAME),
        (map(_spaced, known_names().get(company.symbol, ())), Grade.KNOWN, How.NAME),
        ({code, code.partition(".")[0] if code[0].isdigit() else code}, Grade.CODE, How.CODE),
    )
    return {key: (grade, how) for keys, grade, how in found for key in keys if len(key) > 1}


def _written(name: str) -> set[str]:
    """A name with and without the class of its shares."""
    return {bare_name(name), _CLASS.sub("", bare_name(name)), canonical(name) or ""}


def _parts(name: str) -> Iterator[str]:
    """How a four-character name is shortened: its beginning, or what follows a place. 贵州茅台 is 茅台."""
    if latin := re.match(r"[A-Z]{3,}(?=[^\x00-\x7f])", name):
        yield latin[0]
    if not re.fullmatch(r"[^\x00-\x7f]{4,}", name):
        return
    rest = after_place(name)
    if rest is None:
        yield name[:-3] if len(name) > 4 and name[-3:] in words("kinds") else name[:-2]
    elif rest not in words("kinds"):
        yield rest


def _english_parts(name: str) -> Iterator[str]:
    telling = [word for word in _english(name).split() if word not in words("generic", "english")]
    if len(telling) > 1:
        yield " ".join(telling)
    yield from (word for word in telling if len(word) > 4)


def _english(name: str) -> str:
    """An English name without what companies are in law."""
    spoken = _spaced(name).split()
    while spoken and spoken[-1] in _IN_LAW:
        spoken.pop()
    return " ".join(spoken)


def _spaced(text: str) -> str:
    capitals = half_width(text).upper()
    return " ".join(m["word"] for m in _WORD.finditer(capitals)) if capitals.isascii() else typed(capitals)


def _lengths(names: Iterable[str]) -> dict[str, list[int]]:
    """How long the names are that begin with a character."""
    lengths: dict[str, set[int]] = defaultdict(set)
    for name in names:
        if not name.isascii():
            lengths[name[0]].add(len(name))
    return {character: sorted(found, reverse=True) for character, found in lengths.items()}


def _codes(capitals: str) -> Iterator[Span]:
    for m in _CODE.finditer(capitals):
        if not pattern("amount").match(capitals, m.end()):
            yield m.start(), m.end(), canonical(m[0]) or m[0]


def _phrases(capitals: str) -> Iterator[Span]:
    found = list(_WORD.finditer(capitals))
    for first in range(len(found)):
        for last in range(first, min(first + _MOST_WORDS, len(found))):
            phrase = found[first : last + 1]
            key = " ".join(word["word"] for word in phrase)
            if not key.isdigit() or len(key) == 3:
                yield phrase[0].start(), phrase[-1].end(), key.removesuffix(".US")
