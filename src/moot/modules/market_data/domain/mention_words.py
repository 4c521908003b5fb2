"""The words that tell a company in a sentence from a word that only looks like one."""

import re
import tomllib
import unicodedata
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any


def half_width(text: str) -> str:
    return unicodedata.normalize("NFKC", text)


def simplified(text: str) -> str:
    """Each character in its simplified form, where it stood."""
    return text.translate(_forms())


@cache
def words(name: str, language: str = "chinese") -> frozenset[str]:
    return frozenset(_table()[language][name].split())


@cache
def pattern(name: str, table: str = "patterns") -> re.Pattern[str]:
    return re.compile(_table()[table][name], re.IGNORECASE)


@cache
def known_names() -> dict[str, list[str]]:
    """By symbol: what people call a company besides its names in the directory."""
    return tomllib.loads(Path(__file__).with_name("known_names.toml").read_text(encoding="utf-8"))


def edge(character: str, side: str) -> bool:
    """Whether a Chinese word may begin or end beside this character; `side` is before or after it."""
    return not re.match(r"[㐀-鿿]", character) or character in _table()["chinese"][side]


def everyday(name: str) -> bool:
    return any(name in words(kind) for kind in ("ordinary", "places", "kinds"))


def after_place(name: str) -> str | None:
    """What follows the place that a name begins with, the longest; None without a place."""
    length = next((length for length in (3, 2) if name[:length] in words("places")), None)
    return name[length:] if length else None


def trade_like(name: str) -> bool:
    """中国软件 is a company, and what all of a country's programmers do."""
    return after_place(name) in words("kinds")


@cache
def _forms() -> Mapping[int, int]:
    spelling = _table()["spelling"]
    return str.maketrans(*("".join(spelling[form].split()) for form in ("traditional", "simplified")))


@cache
def _table() -> dict[str, Any]:
    return tomllib.loads(Path(__file__).with_name("mentions.toml").read_text(encoding="utf-8"))
