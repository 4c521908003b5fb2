"""Names in a question that mean no company here: what stands beside a known one, or would be one but for a slip."""

import re
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import islice

from moot.modules.intake.application.language import words
from moot.modules.intake.domain.question import Mention

KNOWN = "\x00"
"""Stands in the place of a name that is dealt with."""
HAN = "[㐀-鿿]"
LATIN = r"[A-Z][A-Za-z&.'’-]*(?: [A-Z][A-Za-z&.'’-]*)*"
CODE = r"(?<!\d)\d{6}(?:\.[A-Za-z]{2,4})?(?!\d)"
LINK = r"(?:[,、/&]|(?<![a-z])(?:and|or)(?![a-z])|[和与跟或])"
MOST_NAMED, MOST_GUESSED = 5, 8
LONGEST_WINDOW = {True: 4, False: 3}
"""Characters of a Chinese name, and words of any other."""


def find_strangers(text: str, known: Sequence[Mention]) -> list[str]:
    """Names that a question sets beside a company that is known, or compares it with."""
    for mention in known:
        text = text.replace(mention.text, KNOWN)
    found: list[str] = []
    while len(found) < MOST_NAMED and (beside := _beside().search(text)):
        name = next(filter(None, beside.groups()))
        text = text.replace(name, KNOWN)
        if name.lower() not in _listed("terms") and not re.fullmatch(_asked(), name):
            found.append(name.strip())
    return found


def guess_names(text: str) -> list[str]:
    """What in a question that names no company could be the name of one, misspelt."""
    return list(dict.fromkeys(islice(_windows(text), MOST_GUESSED)))


def _windows(text: str) -> Iterator[str]:
    yield from re.findall(r"(?<!\d)\d{5,7}(?!\d)", text)
    for run in re.split(_small(), text):
        parts, between = (list(run), "") if re.match(HAN, run) else (run.split(), " ")
        size = min(LONGEST_WINDOW[not between], len(parts))
        yield from (
            between.join(parts[at : at + size]) for at in range(len(parts) - size + 1) if len(run) > 2
        )


@cache
def _beside() -> re.Pattern[str]:
    """A name ends where the sentence goes on with a small word, a mark, or what an expert is asked for."""
    small = "|".join(_listed("english"))
    ends = rf"(?=\s*(?:$|[^\w\s]|{KNOWN}|{HAN}|(?:{small})(?![a-z])))"
    han_ends = rf"(?=$|[^㐀-鿿]|{words()['language']['chinese']}|{_asked()})"
    name = rf"({LATIN}{ends}|{CODE}|{HAN}{{2,8}}?{han_ends})"
    compared = "|".join(words()["experts"]["en"]["comparison"].split())
    return re.compile(
        rf"{KNOWN}\s*{LINK}\s*{name}"
        rf"|(?<![a-z])(?i:{compared})\.?(?: with| to)? ({LATIN}{ends})"
        rf"|(?<!{HAN})(?:对?比较?)?({LATIN}|{CODE}|{HAN}{{2,8}})\s*{LINK}\s*{KNOWN}"
    )


@cache
def _asked() -> str:
    return "|".join(" ".join(words()["experts"]["zh"].values()).split())


@cache
def _small() -> str:
    """What parts a question: marks, small words, and the words that ask for experts."""
    latin = "|".join([*_listed("english"), *words()["experts"]["en"]["comparison"].split()])
    edge_of_script = rf"(?<={HAN})(?!{HAN})|(?<!{HAN})(?={HAN})"
    return rf"[^\w\s]+|(?i:(?<![a-z])(?:{latin})(?![a-z]))|{words()['language']['chinese']}|{edge_of_script}"


@cache
def _listed(name: str) -> tuple[str, ...]:
    return tuple(words()["language"][name].split())
