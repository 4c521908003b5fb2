"""What verbs and nouns mean, loaded from the files beside this one; and texts in one spelling."""

import re
import tomllib
import unicodedata
from collections.abc import Iterator, Mapping
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, NamedTuple

HAN = re.compile(r"[\u4e00-\u9fff]")
WORD = re.compile(r"[a-z0-9]+|[\u4e00-\u9fff]")
"""Chinese is taken character by character, so that a phrase is found wherever it stands."""
HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
PIECE = re.compile(r"[a-z0-9]+|[\u4e00-\u9fff]+")


class Act(NamedTuple):
    """A family of verbs that ask for the same kind of change."""

    verbs: frozenset[str]
    nouns_too: frozenset[str]
    zh: re.Pattern[str]
    implies: frozenset[str]
    also: frozenset[str]
    destroys: bool


@cache
def words(name: str) -> Mapping[str, Any]:
    return tomllib.loads((Path(__file__).parent / f"{name}.toml").read_text(encoding="utf-8"))


@cache
def acts() -> Mapping[str, Act]:
    return {name: _act(entry) for name, entry in words("acts")["acts"].items()}


@cache
def objects() -> Mapping[str, str]:
    """A noun to what it is about; the same noun may be about several things, joined by a space."""
    meanings: dict[str, str] = {}
    for meaning, nouns in words("acts")["objects"].items():
        for noun in nouns:
            meanings[noun] = f"{meanings.get(noun, '')} {meaning}".strip()
    return meanings


def plain(text: str) -> str:
    """One spelling: full-width, case and runs of white space make no difference."""
    if not text.isascii():
        text = unicodedata.normalize("NFKC", text).replace("\u2019", "'")
    return " ".join(text.casefold().split())


def spaced(text: str) -> str:
    """The words of a text with a space around each, to look for other words in."""
    return f" {' '.join(WORD.findall(plain(text)))} "


@lru_cache(maxsize=4096)
def name_words(name: str) -> tuple[str, ...]:
    """The words of an identifier: `sendEmail`, `send_email`, `mail.send-email`."""
    return tuple(PIECE.findall(HUMP.sub(" ", name).casefold()))


@lru_cache(maxsize=8192)
def singular(noun: str) -> str:
    for ending, instead in (("ies", "y"), ("sses", "ss"), ("xes", "x"), ("ches", "ch"), ("shes", "sh")):
        if noun.endswith(ending) and len(noun) > len(ending) + 1:
            return noun.removesuffix(ending) + instead
    return (
        noun[:-1] if len(noun) > 3 and noun.endswith("s") and not noun.endswith(("ss", "us", "is")) else noun
    )


def base_forms(word: str, *, past: bool = False) -> Iterator[str]:
    """The verbs a form may be of: `cancelling` of `cancel`; only with `past` also `cancelled`."""
    yield word
    for ending in ("ing", "ed") if past else ("ing",):
        if word.endswith(ending) and len(word) > len(ending) + 2:
            stem = word.removesuffix(ending)
            yield from (stem, f"{stem}e")
            if stem[-1] == stem[-2]:
                yield stem[:-1]


def meanings_of(noun: str) -> frozenset[str]:
    """What a noun is about, as far as the lexicon knows it."""
    known = objects().get(noun) or objects().get(singular(noun))
    return frozenset(known.split()) if known else frozenset()


@lru_cache(maxsize=4096)
def families_of(verb: str) -> frozenset[str]:
    return frozenset(
        name
        for name, act in acts().items()
        if verb in act.verbs or verb in act.nouns_too or act.zh.fullmatch(verb)
    )


def with_object(families: frozenset[str], about: frozenset[str]) -> frozenset[str]:
    """Some verbs become another act by what they are done to: to send money is to pay."""
    return families | {name for name, act in acts().items() if act.also & families and act.implies & about}


def _act(entry: Mapping[str, Any]) -> Act:
    zh = "|".join(sorted(map(re.escape, entry["zh"]), key=len, reverse=True))
    return Act(
        frozenset(entry["verbs"]),
        frozenset(entry.get("nouns_too", ())),
        re.compile(rf"(?<![被已曾未])(?:{zh})(?![过的了])"),
        frozenset(entry.get("implies", ())),
        frozenset(entry.get("also", ())),
        entry.get("destroys", False),
    )
