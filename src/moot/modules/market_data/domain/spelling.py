"""How people write a share: codes in every vendor's spelling, names with and without their marks, pinyin initials."""

import re
import tomllib
import unicodedata
from bisect import bisect_right
from functools import cache
from pathlib import Path
from typing import Any

from moot.shared.domain.symbol import SPELLINGS, Market

_US = re.compile(r"((US|NASDAQ|NYSE)[.:])?(?P<code>[A-Z]{1,5}([./-][A-Z])?)(\.US)?")
_LETTERS = "abcdefghjklmnopqrstwxyz"
_FIRSTS = (
    *(0xB0A1, 0xB0C5, 0xB2C1, 0xB4EE, 0xB6EA, 0xB7A2, 0xB8C1, 0xB9FE, 0xBBF7, 0xBFA6, 0xC0AC, 0xC2E8),
    *(0xC4C3, 0xC5B6, 0xC5BE, 0xC6DA, 0xC8BB, 0xC8F6, 0xCBFA, 0xCDDA, 0xCEF4, 0xD1B9, 0xD4D1),
)
_LAST = 0xD7F9


def half_width(text: str) -> str:
    return unicodedata.normalize("NFKC", text)


def simplify(text: str) -> str:
    """Each traditional character in its simplified form, where it stood."""
    return text.translate(_forms())


def fold(text: str) -> str:
    """Half-width capitals without spaces: what two people who typed the same thing have in common."""
    return re.sub(r"\s+", "", half_width(text)).upper()


def bare_name(text: str) -> str:
    """A name without the marks that come and go with a company's fortunes; marks alone stay as they are."""
    name = fold(text)
    before, after = (_pattern(_table()["marks"][where]) for where in ("before", "after"))
    return after.sub("", before.sub("", name)) or name


def strip_marks(name: str) -> str:
    """A name as it is written, unless it carries such marks."""
    bare = bare_name(name)
    return name if bare == fold(name) else bare


def tells_trouble(name: str) -> bool:
    """Whether a name says that its share is under special treatment or about to be delisted."""
    return bool(_pattern(_table()["marks"]["trouble"]).search(fold(name)))


def read_code(text: str) -> str | None:
    """The code as Moot writes it, if the text says which market it means: `sh600519` is `600519.SH`."""
    code = fold(text)
    for suffix, spelling in _exchanges().items():
        if found := spelling.fullmatch(code):
            return f"{found['before'] or found['after']}.{suffix}"
    found = _US.fullmatch(code)
    return re.sub("[/-]", ".", found["code"]) if found else None


def infer(text: str) -> str | None:
    """The A-share that six bare digits would be, by the number ranges of the exchanges."""
    code = fold(text)
    if not re.fullmatch(r"\d{6}", code):
        return None
    ranges = _table()["inferred"].items()
    return next((f"{code}.{suffix}" for suffix, codes in ranges if _pattern(codes).fullmatch(code)), None)


def market_of(code: str) -> Market | None:
    """The market a canonical code belongs to."""
    return next((market for market, spelling in SPELLINGS.items() if spelling.fullmatch(code)), None)


def find_unsupported(text: str) -> str | None:
    """What the text names instead of a share: an index, a fund, a B share; `None` if nothing says so."""
    written, code = fold(text), read_code(text) or ""
    for kind, row in _table()["unsupported"].items():
        is_code = _pattern(row["codes"]).fullmatch(code) or _pattern(row["written"]).fullmatch(written)
        if is_code or _pattern(row["names"]).search(written):
            return str(kind)
    return None


def initials(name: str) -> str:
    """Pinyin initials in small print: 贵州茅台 is gzmt; empty if a character's reading is not known."""
    for word, letters in _table()["pinyin"]["words"].items():
        name = name.replace(word, letters)
    known = [_initial(character) for character in name if character.isalnum()]
    return "".join(letter for letter in known if letter) if all(known) else ""


def _initial(character: str) -> str | None:
    """The common characters of GB 2312 stand in the order of their pinyin: a character's place gives its letter."""
    if character.isascii():
        return character.lower()
    place = int.from_bytes(character.encode("gb2312", "ignore"), "big")
    if _FIRSTS[0] <= place <= _LAST:
        return _LETTERS[bisect_right(_FIRSTS, place) - 1]
    rare = _table()["pinyin"]["characters"]
    return next((letter for letter, row in rare.items() if character in row), None)


@cache
def _exchanges() -> dict[str, re.Pattern[str]]:
    """By suffix: the exchange's names before or after six digits."""
    return {
        suffix: re.compile(
            rf"({'|'.join(names)})[.:_-]?(?P<before>\d{{6}})|(?P<after>\d{{6}})[.:_-]?({'|'.join(names)})"
        )
        for suffix, names in _table()["exchanges"].items()
    }


@cache
def _table() -> dict[str, Any]:
    return tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))


@cache
def _pattern(text: str) -> re.Pattern[str]:
    return re.compile(text, re.IGNORECASE)


@cache
def _forms() -> dict[int, int]:
    table = tomllib.loads(Path(__file__).with_name("script.toml").read_text(encoding="utf-8"))
    pairs = "".join(table["pairs"].split())
    return str.maketrans(pairs[::2], pairs[1::2])
