"""What a question is after, told without a model: the companies that it names, and the experts it asks for."""

import re
import unicodedata
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from functools import cache, reduce
from itertools import islice

from moot.modules.intake.application.language import detect, list_words, words
from moot.modules.intake.application.report_text import headings_for
from moot.modules.intake.domain.question import Mention, Understanding
from moot.modules.intake.domain.texts import SAY
from moot.shared.domain.messages import LIST_SEPARATOR, Locale, reading_language

LONGEST = 4000
LONGEST_TITLE = 60
CHOICES_TOLD = 5
COMPARISON = "comparison"
EXAMPLES = (1, 2, 1, 1, 2, 1)
"""How many companies each question of the catalogue names: well-known ones, then those that every desk has."""
EXAMPLES_TOLD = 3
KNOWN = "\x00"
"""Stands in the place of a name that is dealt with."""
HAN = "[㐀-鿿]"
LATIN = r"[A-Z][A-Za-z&.'’-]*(?: [A-Z][A-Za-z&.'’-]*)*"
CODE = r"(?<!\d)\d{6}(?:\.[A-Za-z]{2,4})?(?!\d)"
LINK = r"(?:[,、/&]|(?<![a-z])(?:and|or)(?![a-z])|[和与跟或])"
MOST_NAMED, MOST_GUESSED = 5, 8
LONGEST_WINDOW = {True: 4, False: 3}
"""Characters of a Chinese name, and words of any other."""


class Understander:
    """`find_near`: companies that a text nearly names, each as it is told."""

    def __init__(
        self,
        find_mentions: Callable[[str], Awaitable[Sequence[Mention]]],
        find_near: Callable[[str], Awaitable[Sequence[str]]],
    ) -> None:
        self._find_mentions, self._find_near = find_mentions, find_near

    async def understand(
        self, text: str, *, previous: Understanding | None = None, default_locale: str
    ) -> Understanding:
        """`previous` is the question before in the same conversation: what this one leaves out is taken from it.

        It may also settle which of several companies was meant there, or set one beside those of before.
        """
        asked = _normalise(text)
        named = tuple(await self._find_mentions(asked))
        beside, before = _cut_out(named, asked), previous.mentions if previous else ()
        locale = detect(beside if previous else asked) or (previous.locale if previous else default_locale)
        settled = _settle(named, before)
        joins = len(named) == 1 and bool(before and _patterns()[COMPARISON].search(beside))
        others = [mention for mention in before if joins and mention.symbols != named[0].symbols]
        mentions = settled or (*others, *named) or before
        experts = experts_asked_for(beside)
        if previous and (settled or joins):
            experts = experts or previous.aspects
        unsure = next((mention for mention in mentions if not mention.certain), None)
        reader = reading_language(locale)
        title = _title(asked, mentions, reader)
        strangers = [await self._tell_stranger(name, reader) for name in find_strangers(asked, named)]
        notes = (*_tell_gone(mentions, reader), *strangers)
        left = any(mention.researchable for mention in mentions)
        gone = "\n\n".join(notes) if mentions and not left else None
        return Understanding(
            intent="equity" if left and not unsure else "unclear",
            locale=locale,
            title=previous.title if previous and settled else title,
            mentions=mentions,
            aspects=experts,
            follows=bool(before) and not named,
            reply=_ask_which(unsure, locale) if unsure else gone,
            notes=notes,
        )

    async def _tell_stranger(self, name: str, reader: Locale) -> str:
        near = await self._find_near(name)
        hint = SAY("understanding.nearest", matches=list(near)) if near else ""
        return SAY("understanding.not_covered", text=name, hint=hint).in_locale(reader).strip()

    async def _guess(self, text: str, reader: Locale) -> str:
        """The first name that is nearly a company's."""
        for name in guess_names(_normalise(text)):
            if await self._find_near(name):
                return await self._tell_stranger(name, reader)
        return ""

    async def say_what_works(self, locale: str, asked: str = "") -> str:
        """What can be asked without a model, with questions about companies that are known here.

        What was asked comes first, where it nearly names one of them.
        """
        reader, questions = reading_language(locale), list[str]()
        for number, companies in enumerate(EXAMPLES, 1):
            question = SAY(f"understanding.example.{number}").in_locale(reader)
            named = await self._find_mentions(question)
            if len({mention.symbols for mention in named if mention.certain}) == companies:
                questions.append(f"- {question}")
        told = "\n".join(questions[:EXAMPLES_TOLD])
        said = SAY("understanding.without_model", questions=told).in_locale(reader)
        first = [headings_for(locale)["speaks_english"], await self._guess(asked, reader)]
        return "\n\n".join(filter(None, [*first, said]))


def experts_asked_for(text: str) -> tuple[str, ...]:
    """Those whose words stand in the text; none of them: the question is for all."""
    return tuple(name for name, pattern in _patterns().items() if name != COMPARISON and pattern.search(text))


def _normalise(text: str) -> str:
    """Half-width, in one line, and no longer than a question is."""
    return " ".join(unicodedata.normalize("NFKC", text[:LONGEST]).split())


def _cut_out(named: Iterable[Mention], text: str, put: str = " ") -> str:
    return reduce(lambda rest, mention: rest.replace(mention.text, put), named, text)


def _settle(named: Sequence[Mention], before: tuple[Mention, ...]) -> tuple[Mention, ...]:
    """The companies of before, where this says which of several was meant; nothing where it does not."""
    said = {mention.symbols[0]: mention for mention in named if mention.certain}
    narrow = [mention.narrow(said) for mention in before]
    mentions = tuple(
        said.get(mention.symbols[0], mention) if mention.certain else mention for mention in narrow
    )
    return mentions if narrow != list(before) else ()


def _tell_gone(mentions: Sequence[Mention], reader: Locale) -> Iterator[str]:
    for mention in mentions:
        if mention.delisted_on:
            company = f"{mention.symbols[0]} {mention.name_for(reader)}".strip()
            yield SAY("understanding.delisted", company=company, on=mention.delisted_on).in_locale(reader)


def _ask_which(mention: Mention, locale: str) -> str:
    names = mention.names or ("",) * len(mention.symbols)
    choices = [f"{symbol} {name}".strip() for symbol, name in zip(mention.symbols, names, strict=True)]
    reader = reading_language(locale)
    told = LIST_SEPARATOR[reader].join(choices[:CHOICES_TOLD])
    return SAY("understanding.which_of", text=mention.text, choices=told).in_locale(reader)


def _title(text: str, mentions: Sequence[Mention], reader: Locale) -> str:
    """Companies that a question leaves out stand before it."""
    left_out = [mention for mention in mentions if mention.text not in text]
    names = " / ".join(mention.name_for(reader) or mention.text for mention in left_out)
    told = SAY("headings.about", subject=names, text=text).in_locale(reader) if names else text
    title = told.rstrip(" ?？。.!！") or text
    return title if len(title) <= LONGEST_TITLE else f"{title[: LONGEST_TITLE - 1]}…"


@cache
def _patterns() -> dict[str, re.Pattern[str]]:
    """By expert; a word in Latin letters stands alone."""
    tables = words()["experts"].values()
    told = {name: " ".join(table[name] for table in tables).split() for name in words()["experts"]["en"]}
    return {
        name: re.compile(
            "|".join(rf"(?<![a-z]){word}(?![a-z])" if word.isascii() else word for word in found),
            re.IGNORECASE,
        )
        for name, found in told.items()
    }


def find_strangers(text: str, known: Sequence[Mention]) -> list[str]:
    """Names that a question sets beside a company that is known, or compares it with."""
    text = _cut_out(known, text, KNOWN)
    found: list[str] = []
    while len(found) < MOST_NAMED and (beside := _beside().search(text)):
        name = next(filter(None, beside.groups()))
        text = text.replace(name, KNOWN)
        if name.lower() not in list_words("terms") and not re.fullmatch(_asked(), name):
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
    small = "|".join(list_words("english"))
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
    latin = "|".join([*list_words("english"), *words()["experts"]["en"]["comparison"].split()])
    edge_of_script = rf"(?<={HAN})(?!{HAN})|(?<!{HAN})(?={HAN})"
    return rf"[^\w\s]+|(?i:(?<![a-z])(?:{latin})(?![a-z]))|{words()['language']['chinese']}|{edge_of_script}"
