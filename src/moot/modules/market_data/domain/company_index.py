"""A list of companies, made searchable: by code, name, former name, English name and pinyin.

In a sentence they are known by the part of a name that only one of them has and by nickname as well.
"""

import difflib
import re
import tomllib
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum, StrEnum
from functools import cache, cached_property
from operator import eq
from pathlib import Path
from typing import Any

from moot.modules.market_data.domain.spelling import (
    bare_name,
    fold,
    half_width,
    initials,
    read_aloud,
    read_code,
    simplify,
)
from moot.shared.domain.facts import Company


class How(StrEnum):
    """What of the company matched, the most telling first."""

    CODE = "code"
    NAME = "name"
    ENGLISH_NAME = "english_name"
    PINYIN = "pinyin"
    PINYIN_IN_FULL = "pinyin_in_full"
    FORMER_NAME = "former_name"


_ORDER = {how: place for place, how in enumerate(How)}
_FROM_THE_START = {How.CODE, How.PINYIN}  # a part from the middle of these says nothing
_SHORTEST_SOUND = 4
_SHORTEST_PART = dict.fromkeys(How, 2) | {How.PINYIN_IN_FULL: _SHORTEST_SOUND}


@dataclass(frozen=True)
class Match:
    """`whole`: all of the code or name, not a part of it."""

    company: Company
    how: How
    whole: bool

    @property
    def listed(self) -> bool:
        """Once a delisting is known, `company.delist_date` has its day."""
        return self.company.delist_date is None

    @property
    def rank(self) -> tuple[bool, int, bool, str]:
        """Smaller is better: whole before part, listed before delisted."""
        return not self.whole, _ORDER[self.how], not self.listed, self.company.symbol


class CompanyIndex:
    def __init__(self, companies: Sequence[Company]) -> None:
        self.companies = companies[:]
        self.by_symbol = {company.symbol: company for company in companies}

    @cached_property
    def _keys(self) -> list[tuple[str, How, Company]]:
        """Made when somebody first searches: whoever has a whole symbol needs none of them."""
        return [(key, how, company) for company in self.companies for how, key in _keys(company)]

    @cached_property
    def by_industry(self) -> Mapping[str, Sequence[Company]]:
        industries: dict[str, list[Company]] = defaultdict(list)
        for company in self.companies:
            industries[company.industry].append(company)
        return industries

    @cached_property
    def mentions(self) -> "MentionIndex":
        """Made when somebody first asks for sentences."""
        return MentionIndex(self.companies)

    def search(self, text: str) -> list[Match]:
        """One match per company, its best; the best company first."""
        part = bare_name(text)
        wholes = {part, fold(text), read_code(text)}
        best: dict[str, Match] = {}
        for key, how, company in self._keys:
            if key in wholes or (part in key and _tells(part, how, key)):
                match = Match(company, how, whole=key in wholes)
                if company.symbol not in best or match.rank < best[company.symbol].rank:
                    best[company.symbol] = match
        return sorted(best.values(), key=lambda match: match.rank)

    def nearest(self, text: str, count: int = 3) -> list[Company]:
        """Companies whose code or name is nearly the text, or sounds like it, for a question back."""
        wanted = _stem(read_code(text) or bare_name(text))
        stems = {_stem(key): company for key, _, company in self._keys}
        likely = [stem for stem in stems if sum(map(eq, stem, wanted)) >= 0.4 * len(wanted)]
        close = [stems[stem] for stem in difflib.get_close_matches(wanted, likely, n=count)]
        sound = "" if text.isascii() else _spell(bare_name(text))
        alike = [match.company for match in self.search(sound)] if len(sound) >= _SHORTEST_SOUND else []
        return list({company.symbol: company for company in (*alike, *close)}.values())[:count]


def _tells(part: str, how: How, key: str) -> bool:
    return len(part) >= _SHORTEST_PART[how] and (how not in _FROM_THE_START or key.startswith(part))


def _keys(company: Company) -> Iterator[tuple[How, str]]:
    """Everything a company may be looked up by, each once."""
    code = read_code(company.symbol) or fold(company.symbol)
    former = {
        key for alias in company.aliases for key in (read_code(alias), fold(alias), bare_name(alias)) if key
    }
    pinyin = company.pinyin or initials(bare_name(company.name))
    keys = {
        How.CODE: {code, _digits(code)},
        How.NAME: {fold(company.name), bare_name(company.name), *map(fold, nicknames().get(code, ()))},
        How.ENGLISH_NAME: {fold(company.name_en)},
        How.PINYIN: {fold(pinyin)},
        How.PINYIN_IN_FULL: {_spell(_CLASS.sub("", bare_name(company.name)))},
        How.FORMER_NAME: former,
    }
    return ((how, key) for how, texts in keys.items() for key in sorted(texts) if key)


def _spell(name: str) -> str:
    return fold("".join(read_aloud(name)))


def _digits(code: str) -> str:
    """Six digits are known by themselves; a ticker such as `BRK.B` is not its first half."""
    stem = _stem(code)
    return stem if stem.isdigit() else code


def _stem(code: str) -> str:
    return code.partition(".")[0]


_CODE = re.compile(
    r"(?<![A-Z0-9])([A-Z]{2,5}[.:_-]?)?\d{6}([.:_-]?[A-Z]{2,5})?(?![A-Z0-9]|\s*[元块万亿股手%])"
)
_WORD = re.compile(r"[A-Z0-9&]+(?:[.\-][A-Z0-9]+)*")
_WORD_BEFORE = re.compile(r"[A-Z0-9][.&-]?$")
_WORD_AFTER = re.compile(r"(?!\.US\b)[.&-]?[A-Z0-9]")
_CLASS = re.compile(r"(?<=[^\x00-\x7f])([AB]|-[A-Z]{1,3})$")  # 万科A, 九号公司-WD
_IN_LAW = {"CO", "LTD", "INC", "CORP", "CORPORATION", "COMPANY", "LIMITED", "PLC", "LLC"}
_SHARE = re.compile(r"\s*(的|这只)?(股票|股价|股份|证券)")
_NO_NAME = " ?？!！。.,，"


class Grade(IntEnum):
    """What was found, the most telling first."""

    NICKNAME = 0
    CODE = 1
    WHOLE = 2
    PART = 3


@dataclass(frozen=True)
class Named:
    """Where a sentence names companies. `text` is what stands there; several matches are asked back."""

    start: int
    end: int
    text: str
    matches: tuple[Match, ...]

    @property
    def symbols(self) -> set[str]:
        return {match.company.symbol for match in self.matches}


class MentionIndex:
    """Everything a list of companies may be called in a sentence; `full_names` tell who shares a part of a name."""

    def __init__(self, companies: Sequence[Company]) -> None:
        self.names: dict[str, list[tuple[Grade, Match]]] = defaultdict(list)
        self.full_names = [simplify(f"{bare_name(c.name)} {_english(c.name_en)}") for c in companies]
        self.lengths: dict[str, set[int]] = defaultdict(set)
        for company in companies:
            for key, (grade, how) in _list_spoken(company).items():
                self.names[key].append((grade, Match(company, how, whole=grade is not Grade.PART)))
                if not key.isdigit():  # six digits are read as codes only
                    self.lengths[key[0]].add(len(key))


def names_in(text: str, indexes: Sequence[MentionIndex]) -> list[Named]:
    """In the order of the sentence: the longest names, none inside another, each company once."""
    written = half_width(text)
    capitals = "".join(c.upper() if len(c.upper()) == 1 else c for c in simplify(written))
    codes = [(code.start(), code.end(), read_code(code[0]) or code[0]) for code in _CODE.finditer(capitals)]
    found: dict[tuple[int, int], list[tuple[Grade, Match]]] = defaultdict(list)
    for index in indexes:
        for start, end, key in {*codes, *_spans(capitals, index.lengths)}:
            called = index.names.get(key, ())
            shared = any(grade is Grade.PART for grade, _ in called) and not _is_own(key, indexes)
            found[start, end] += [one for one in called if one[0] is not Grade.PART or not shared]
    kept: list[Named] = []
    for (start, end), all_called in sorted(
        found.items(), key=lambda item: (item[0][0] - item[0][1], item[0])
    ):
        called = [one for one in all_called if _plausible(one[0], written, capitals, start, end)]
        if called and all(end <= other.start or other.end <= start for other in kept):
            kept.append(Named(start, end, written[start:end], _meant(called)))
    return _once(sorted(kept, key=lambda named: named.start))


def _is_own(part: str, indexes: Sequence[MentionIndex]) -> bool:
    """Whether a single company has it in its name."""
    return sum(part in name for index in indexes for name in index.full_names) < 2


def _meant(called: Sequence[tuple[Grade, Match]]) -> tuple[Match, ...]:
    """The most telling matches; listed companies before those that are gone, names in use before former ones."""
    best = min(grade for grade, _ in called)
    matches = [match for grade, match in called if grade is best]
    listed = [match for match in matches if match.listed] or matches
    current = [match for match in listed if match.how is not How.FORMER_NAME] or listed
    return tuple(sorted(current, key=lambda match: match.rank))


def _plausible(grade: Grade, written: str, capitals: str, start: int, end: int) -> bool:
    """Whether a name means a company where it stands."""
    name, before, after = capitals[start:end], capitals[:start], capitals[end:]
    if name.isascii():
        return _plausible_latin(grade, written[start:end], before, after)
    table = _table()["everyday"]
    at_edges = _edge(before[-1:], table["before"]) and _edge(after[:1], table["after"])
    if name in _everyday():
        alone = not (before + after).strip(_NO_NAME) or _SHARE.match(after) is not None
        return alone or (grade is Grade.NICKNAME and at_edges)
    if name.startswith("国") and before[-1:] in tuple("中全各外美英法德俄泰韩"):
        return False  # 中国新能源车 does not name 国新能源
    return len(name) > 2 or grade is Grade.NICKNAME or at_edges


def _plausible_latin(grade: Grade, text: str, before: str, after: str) -> bool:
    """A word that stands alone: a code in capitals, a name of one word with one at least."""
    if _WORD_BEFORE.search(before) or _WORD_AFTER.match(after):
        return False
    if grade is Grade.CODE:
        return text.isupper() or any(map(str.isdigit, text))
    return " " in text or text[0].isupper() or (grade is Grade.NICKNAME and text.upper() not in _everyday())


def _edge(character: str, allowed: str) -> bool:
    return not re.match(r"[㐀-鿿]", character) or character in allowed


def _spans(capitals: str, lengths: dict[str, set[int]]) -> Iterator[tuple[int, int, str]]:
    for start, character in enumerate(capitals):
        for end in (start + length for length in lengths.get(character, ())):
            if end <= len(capitals):
                yield start, end, capitals[start:end]


def _once(names: Sequence[Named]) -> list[Named]:
    """Without those that another one has said already, or said more exactly."""
    certain = {symbol for named in names if len(named.matches) == 1 for symbol in named.symbols}
    told: set[str] = set()
    result: list[Named] = []
    for named in names:
        if not named.symbols & (told if len(named.matches) == 1 else told | certain):
            told |= named.symbols
            result.append(named)
    return result


def _list_spoken(company: Company) -> dict[str, tuple[Grade, How]]:
    """What a sentence may call a company, each at its most telling: what comes later outdoes what came before."""
    code = read_code(company.symbol) or fold(company.symbol)
    found = (
        (set(_parts(company)) - _everyday(), Grade.PART, How.NAME),
        ({key for alias in company.aliases for key in _list_written(alias)}, Grade.WHOLE, How.FORMER_NAME),
        ({fold(company.name), *_list_written(company.name)}, Grade.WHOLE, How.NAME),
        ({_english(company.name_en)}, Grade.WHOLE, How.ENGLISH_NAME),
        (map(_space, nicknames().get(company.symbol, ())), Grade.NICKNAME, How.NAME),
        ({code, _digits(code)}, Grade.CODE, How.CODE),
    )
    return {simplify(key): (grade, how) for keys, grade, how in found for key in keys if len(key) > 1}


def _parts(company: Company) -> Iterator[str]:
    """How a name is shortened: 贵州茅台 to either half, an English name to all but its last word."""
    name = _CLASS.sub("", bare_name(company.name))
    if re.fullmatch(r"[^\x00-\x7f]{4,}", name):
        yield from (name[:-2], name[2:])
    beginning = " ".join(_english(company.name_en).split()[:-1])
    if len(beginning) > 4:
        yield beginning


def _list_written(name: str) -> set[str]:
    """A name with and without the class of its shares."""
    return {bare_name(name), _CLASS.sub("", bare_name(name)), read_code(name) or ""}


def _english(name: str) -> str:
    """An English name without what companies are in law."""
    spoken = _space(name).split()
    while spoken and spoken[-1] in _IN_LAW:
        spoken.pop()
    return " ".join(spoken)


def _space(text: str) -> str:
    capitals = half_width(text).upper()
    return " ".join(_WORD.findall(capitals)) if capitals.isascii() else fold(capitals)


def nicknames() -> dict[str, list[str]]:
    names: dict[str, list[str]] = _table()["names"]
    return names


@cache
def _everyday() -> frozenset[str]:
    return frozenset(_table()["everyday"]["words"].split())


@cache
def _table() -> dict[str, Any]:
    return tomllib.loads(Path(__file__).with_name("nicknames.toml").read_text(encoding="utf-8"))
