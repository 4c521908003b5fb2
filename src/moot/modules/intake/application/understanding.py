"""What a question is after, told without a model: the companies that it names, and the experts it asks for."""

import re
import unicodedata
from collections.abc import Awaitable, Callable, Iterable, Sequence
from functools import cache
from typing import NamedTuple

from moot.modules.intake.application.language import detect, words
from moot.modules.intake.domain.question import Mention, Understanding, reading_language
from moot.modules.intake.domain.texts import SAY
from moot.shared.domain.messages import LIST_SEPARATOR, Locale

LONGEST = 4000
LONGEST_TITLE = 60
CHOICES_TOLD = 5
COMPARISON = "comparison"
EXAMPLES = (1, 2, 1, 1, 2, 1)
"""How many companies each question of the catalogue names: well-known ones, then those that every desk has."""
EXAMPLES_TOLD = 3


class Subject(NamedTuple):
    """Whom a question is about, once the question before it has been heard. `follows`: those are of that one.

    `settles`: it says which of several companies was meant there.
    """

    mentions: tuple[Mention, ...]
    experts: tuple[str, ...]
    follows: bool = False
    settles: bool = False


class Understander:
    def __init__(self, find_mentions: Callable[[str], Awaitable[Sequence[Mention]]]) -> None:
        self._find_mentions = find_mentions

    async def understand(
        self, text: str, *, previous: Understanding | None = None, default_locale: str
    ) -> Understanding:
        """`previous` is the question before in the same conversation: what this one leaves out is taken from it."""
        asked = _plain(text)
        named = tuple(await self._find_mentions(asked))
        beside = _without(asked, named)
        locale = detect(beside if previous else asked) or (previous.locale if previous else default_locale)
        subject = _subject(beside, named, previous)
        unsure = next((mention for mention in subject.mentions if not mention.certain), None)
        return Understanding(
            intent="equity" if subject.mentions and not unsure else "unclear",
            locale=locale,
            title=_title(asked, subject, previous, reading_language(locale)),
            mentions=subject.mentions,
            aspects=subject.experts,
            follows=subject.follows,
            reply=_ask_which(unsure, locale) if unsure else None,
        )

    async def say_what_works(self, locale: str) -> str:
        """What can be asked without a model, with questions about companies that are known here."""
        reader, questions = reading_language(locale), list[str]()
        for number, companies in enumerate(EXAMPLES, 1):
            question = SAY(f"understanding.example.{number}").in_locale(reader)
            named = await self._find_mentions(question)
            if len({mention.symbols for mention in named if mention.certain}) == companies:
                questions.append(f"- {question}")
        told = "\n".join(questions[:EXAMPLES_TOLD])
        return SAY("understanding.without_model", questions=told).in_locale(reader)


def experts_asked_for(text: str) -> tuple[str, ...]:
    """Those whose words stand in the text; none of them: the question is for all."""
    return tuple(name for name, pattern in _patterns().items() if name != COMPARISON and pattern.search(text))


def _plain(text: str) -> str:
    """Half-width, in one line, and no longer than a question is."""
    return " ".join(unicodedata.normalize("NFKC", text[:LONGEST]).split())


def _without(text: str, named: Iterable[Mention]) -> str:
    for mention in named:
        text = text.replace(mention.text, " ")
    return text


def _subject(beside: str, named: tuple[Mention, ...], previous: Understanding | None) -> Subject:
    experts = experts_asked_for(beside)
    if previous is None or not previous.mentions:
        return Subject(named, experts)
    if settled := _settle(named, previous):
        return Subject(settled, experts or previous.aspects, settles=True)
    if not named:
        return Subject(previous.mentions, experts, follows=True)
    if len(named) == 1 and _patterns()[COMPARISON].search(beside):
        others = [mention for mention in previous.mentions if mention.symbols != named[0].symbols]
        return Subject((*others, *named), experts or previous.aspects)
    return Subject(named, experts)


def _settle(named: Sequence[Mention], previous: Understanding) -> tuple[Mention, ...]:
    """The companies of before, where this says which of several was meant; nothing where it does not."""
    said = {mention.symbols[0] for mention in named if mention.certain}
    mentions = tuple(mention.narrowed(said) for mention in previous.mentions)
    return mentions if mentions != previous.mentions else ()


def _ask_which(mention: Mention, locale: str) -> str:
    names = mention.names or ("",) * len(mention.symbols)
    choices = [f"{symbol} {name}".strip() for symbol, name in zip(mention.symbols, names, strict=True)]
    reader = reading_language(locale)
    told = LIST_SEPARATOR[reader].join(choices[:CHOICES_TOLD])
    return SAY("understanding.which_of", text=mention.text, choices=told).in_locale(reader)


def _title(text: str, subject: Subject, previous: Understanding | None, reader: Locale) -> str:
    """Companies that a question leaves out stand before it; who answers a question back asks what was asked."""
    if previous and subject.settles:
        return previous.title
    left_out = [mention for mention in subject.mentions if mention.text not in text]
    names = " / ".join(mention.named_for(reader) or mention.text for mention in left_out)
    told = SAY("headings.about", subject=names, text=text).in_locale(reader) if names else text
    title = told.rstrip(" ?？。.!！") or text
    return title if len(title) <= LONGEST_TITLE else f"{title[: LONGEST_TITLE - 1]}…"


@cache
def _patterns() -> dict[str, re.Pattern[str]]:
    """By expert; a word in Latin letters stands alone."""
    tables = words()["experts"].values()
    told = {name: " ".join(table[name] for table in tables).split() for name in words()["experts"]["en"]}
    return {
        name: re.compile("|".join(_pattern(word) for word in found), re.IGNORECASE)
        for name, found in told.items()
    }


def _pattern(word: str) -> str:
    return rf"(?<![a-z]){word}(?![a-z])" if word.isascii() else word
