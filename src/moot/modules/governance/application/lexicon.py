"""Texts in one spelling, and the few words of `lexicon.toml`."""

import re
import tomllib
import unicodedata
from collections.abc import Iterator, Mapping
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

HAN = re.compile(r"[\u4e00-\u9fff]")
WORD = re.compile(r"[a-z0-9]+|[\u4e00-\u9fff]")
"""Chinese is taken character by character, so that a phrase is found wherever it stands."""
HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
PIECE = re.compile(r"[a-z0-9]+|[\u4e00-\u9fff]+")


@cache
def lexicon() -> Mapping[str, Any]:
    return tomllib.loads((Path(__file__).parent / "lexicon.toml").read_text(encoding="utf-8"))


def plain(text: str) -> str:
    """One spelling: full-width, case and runs of white space make no difference."""
    if not text.isascii():
        text = unicodedata.normalize("NFKC", text).replace("\u2019", "'")
    return " ".join(text.casefold().split())


def space_out(text: str) -> str:
    """The words of a text with a space around each, to look for other words in."""
    return f" {' '.join(WORD.findall(plain(text)))} "


def says(text: str, phrase: str) -> bool:
    """Whether a text in one spelling has a phrase, as whole words where words are written apart."""
    return phrase in text if HAN.search(phrase) else space_out(phrase) in space_out(text)


@lru_cache(maxsize=4096)
def name_words(name: str) -> tuple[str, ...]:
    """The words of an identifier: `sendEmail`, `send_email`, `mail.send-email`."""
    return tuple(PIECE.findall(HUMP.sub(" ", name).casefold()))


@lru_cache(maxsize=8192)
def singular(noun: str) -> str:
    if noun.endswith("ies") and len(noun) > 4:
        return noun.removesuffix("ies") + "y"
    is_plural = len(noun) > 3 and noun.endswith("s") and not noun.endswith(("ss", "us", "is"))
    return noun[:-1] if is_plural else noun


def base_forms(word: str) -> Iterator[str]:
    """The words a form may be of: `cancelling` of `cancel`, `sales` of `sale`."""
    yield from dict.fromkeys((word, singular(word)))
    for ending in ("ing", "ed"):
        if word.endswith(ending) and len(word) > len(ending) + 2:
            stem = word.removesuffix(ending)
            yield from (stem, f"{stem}e")
            if stem[-1] == stem[-2]:
                yield stem[:-1]
