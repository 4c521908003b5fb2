"""How people write a share: codes in every vendor's spelling, names with and without their marks, pinyin initials."""

import re
import tomllib
import unicodedata
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from moot.shared.domain.symbol import SPELLINGS, Market

_US = re.compile(r"((US|NASDAQ|NYSE)[.:])?(?P<code>[A-Z]{1,5}([./-][A-Z])?)(\.US)?")


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


@lru_cache(maxsize=8192)
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
    return "".join(sound[0] for sound in read_aloud(name))


def read_aloud(name: str) -> list[str]:
    """The same in full: gui, zhou, mao, tai."""
    words = _table()["pinyin"]["words"]
    sounds: list[str | None] = []
    for part in _pattern(f"({'|'.join(words)})").split(name):
        sounds += words[part].split() if part in words else map(_sound, filter(str.isalnum, part))
    return [sound for sound in sounds if sound] if all(sounds) else []


def transcribe(name: str) -> str:
    """For who reads no Chinese, in words of two syllables: Guizhou Maotai; as it is, if a reading is not known."""
    words: list[str] = []
    for run in re.findall(r"[!-~]+|[^ -~]+", half_width(name)):
        sounds = [run] if run.isascii() else [sound.capitalize() for sound in read_aloud(run)]
        if not sounds:
            return name
        ends = [*range(2, len(sounds) - 1, 2), len(sounds)]
        pairs = zip([0, *ends[:-1]], ends, strict=True)
        words += [sounds[begin] + "".join(sounds[begin + 1 : end]).lower() for begin, end in pairs]
    return " ".join(words)


def _sound(character: str) -> str | None:
    return character.lower() if character.isascii() else _sounds().get(character)


@cache
def _sounds() -> dict[str, str]:
    """Of each character that a name may have: the common ones sound like the one before, until a syllable begins."""
    table, sounds, sound = _table()["pinyin"], dict[str, str](), ""
    begins = {word[-1]: word[:-1] for word in table["first"].split()}
    for place in range(0xB0A1, 0xD7FA):
        character = place.to_bytes(2, "big").decode("gb2312", "ignore")
        sounds[character] = sound = begins.get(character, sound)
    for sound, characters in re.findall(r"([a-z]+)(\S+)", table["rare"]):
        sounds |= dict.fromkeys(characters, sound)
    return sounds


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
