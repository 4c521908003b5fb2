"""What the words of a question say by themselves, in four languages."""

import re
import tomllib
import unicodedata
from functools import cache
from pathlib import Path
from typing import Literal

from moot.modules.intake.domain.question import reading_language
from moot.modules.intake.domain.texts import SAY

WORDS = Path(__file__).parent / "words"
_LONGEST = 4000
_SHORT = 80
_POINTING = 24
_SIGNS = re.compile(r"[^\w']+")

Tone = Literal["small_talk", "weather"]
Refusal = Literal["instructions", "care", "refused"]


def plain(text: str) -> str:
    """Half-width, in one line, and no longer than a question is."""
    return " ".join(unicodedata.normalize("NFKC", text[:_LONGEST]).split())


def says(text: str, *name: str) -> bool:
    """Whether such words are anywhere in the text."""
    return _pattern(*name).search(text) is not None


def refusal(text: str) -> Refusal | None:
    """Why it is not done: it is after the desk's instructions, or harm, or somebody needs a person."""
    if says(text, "refused", "extraction"):
        return "instructions"
    if says(text, "refused", "despair"):
        return "care"
    if not says(text, "refused", "harm"):
        return None
    if says(text, "refused", "guilty"):
        return "refused"
    around = _pattern("refused", "harm").sub(" ", text)
    wanted = says(text, "refused", "wanted") and not says(around, "refused", "innocent")
    return "refused" if wanted else None


def small_talk(text: str) -> Tone | None:
    """Whether there is nothing to find out: courtesies, chatter, signs without words, the weather."""
    said = without_courtesy(text)
    if not said:
        return "small_talk" if _courteous(text) else None
    if says(said, "small_talk", "weather") and not says(said, "small_talk", "matter"):
        return "weather"
    return "small_talk" if _all(said, "small_talk", "chatter") else None


def without_courtesy(text: str) -> str:
    """What is left of a text when greetings and thanks at its ends are gone."""
    parts = [part for part in re.split(_SIGNS_BETWEEN, text) if _SIGNS.sub("", part)]
    while parts and _all(parts[0], "small_talk", "courtesy"):
        parts.pop(0)
    while parts and _all(parts[-1], "small_talk", "courtesy"):
        parts.pop()
    return " ".join(parts) if any(any(map(str.isalnum, part)) for part in parts) else ""


def says_nothing(text: str) -> bool:
    return not any(map(str.isalpha, text)) or vague(text)


def vague(text: str) -> bool:
    """Whether it could be about anything."""
    return _all(text, "unclear", "whole")


def points_nowhere(text: str) -> bool:
    """Whether all it says is that something, mentioned before if anywhere, is somehow."""
    return len(text) <= _POINTING and says(text, "follow_up", "pointing")


def about_some_share(text: str) -> bool:
    """Whether it asks about a share, and not about a market, a trade or what a word means."""
    return says(text, "equity", "wording") and not says(text, "equity", "subject")


def aspects(text: str) -> tuple[str, ...]:
    return tuple(expert for expert in _table()["aspects"] if says(text, "aspects", expert))


def reply(key: str, locale: str, **values: str) -> str:
    """In the reader's language where there is such a text, else in one of the desk's own."""
    foreign = _replies().get(locale, {}).get(key)
    if foreign is not None:
        return foreign.format(**values)
    return SAY(f"understanding.{key}", **values).in_locale(reading_language(locale))


_SIGNS_BETWEEN = re.compile(r"[,.!?;:~，。！？；：、…～]+\s*|\n")


def _courteous(text: str) -> bool:
    """A courtesy, or a face."""
    return any(map(str.isalpha, text)) or any(unicodedata.category(c) == "So" for c in text)


def _all(text: str, *name: str) -> bool:
    """Whether such words, once or again and again, are all that the text says."""
    rest = _SIGNS.sub(" ", text.replace("’", "'")).strip()
    if len(rest) > _SHORT or _pattern(*name).fullmatch(rest):
        return len(rest) <= _SHORT
    while rest and (found := _pattern(*name).match(rest)) and found.end():
        rest = rest[found.end() :].lstrip()
    return not rest


@cache
def _pattern(table: str, key: str) -> re.Pattern[str]:
    found = _table()[table][key]
    parts = [found] if isinstance(found, str) else found
    return re.compile("|".join(f"(?:{part})" for part in parts), re.IGNORECASE)


@cache
def _table() -> dict[str, dict[str, str | list[str]]]:
    return tomllib.loads((WORDS / "intent.toml").read_text(encoding="utf-8"))


@cache
def _replies() -> dict[str, dict[str, str]]:
    return tomllib.loads((WORDS / "replies.toml").read_text(encoding="utf-8"))
