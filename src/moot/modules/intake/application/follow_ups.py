"""What a question leaves to the one before it: its companies, its field, and which of several was meant."""

from collections.abc import Sequence
from typing import NamedTuple

from moot.modules.intake.application.wording import about_some_share, aspects, says, vague
from moot.modules.intake.domain.question import Mention, Understanding

_CHOICES = ("first", "second", "third")
_SHORT = 24


class Spoken(NamedTuple):
    """Whom a question is about, and in which respect, once the question before has been heard."""

    mentions: tuple[Mention, ...]
    aspects: tuple[str, ...]
    comparing: bool
    continued: bool


def spoken_of(text: str, named: Sequence[Mention], before: Understanding | None) -> Spoken:
    comparing = says(text, "comparing", "wording")
    alone = Spoken(tuple(named), aspects(text), comparing and len(named) > 1, continued=False)
    if before is None:
        return alone
    if settled := _settled(text, named, before):
        return Spoken(settled, alone.aspects or before.aspects, before.comparing, continued=True)
    if not named:
        return _still(text, alone, before)
    others = _without(before.mentions, named)
    if others and (says(text, "follow_up", "back") or (comparing and len(named) == 1)):
        return Spoken((*others, *named), alone.aspects or before.aspects, True, continued=True)
    if continues(text) or before.intent == "unclear":
        return alone._replace(aspects=alone.aspects or before.aspects, continued=True)
    return alone


def continues(text: str) -> bool:
    """Whether it goes on with something: it says so, or it points back."""
    return any(says(text, "follow_up", kind) for kind in ("lead", "back", "mentioned"))


def _still(text: str, alone: Spoken, before: Understanding) -> Spoken:
    """No company is named: the ones before are meant, unless the question has a subject of its own."""
    own = says(text, "equity", "subject") and not says(text, "follow_up", "back")
    comparing = says(text, "comparing", "wording") and len(before.mentions) > 1
    brief = len(text) < _SHORT and bool(alone.aspects or comparing or vague(text))
    if before.mentions and not own and (brief or continues(text) or about_some_share(text)):
        return Spoken(before.mentions, alone.aspects, comparing, continued=True)
    return alone._replace(continued=continues(text))


def _settled(text: str, named: Sequence[Mention], before: Understanding) -> tuple[Mention, ...]:
    """The mentions of before, where this answers the question back; nothing where it does not."""
    if not before.ambiguous:
        return ()
    mentions = list(before.mentions)
    for place, mention in enumerate(mentions):
        if not mention.certain and (meant := _meant(text, named, mention)):
            mentions[place] = meant
    return tuple(mentions) if mentions != list(before.mentions) else ()


def _meant(text: str, named: Sequence[Mention], asked: Mention) -> Mention | None:
    """Which of several companies was meant: by its name or code, or by its place in the question back."""
    symbols = [symbol for mention in named if mention.certain for symbol in mention.symbols]
    places = [place for place, which in enumerate(_CHOICES) if not named and says(text, "follow_up", which)]
    symbols += [asked.symbols[place] for place in places if place < len(asked.symbols)]
    wanted = next((symbol for symbol in symbols if symbol in asked.symbols), None)
    if wanted is None:
        return None
    names = dict(zip(asked.symbols, asked.names, strict=False))
    return Mention(text=asked.text, symbols=(wanted,), names=(names[wanted],) if wanted in names else ())


def _without(mentions: Sequence[Mention], named: Sequence[Mention]) -> tuple[Mention, ...]:
    taken = {symbol for mention in named for symbol in mention.symbols}
    return tuple(mention for mention in mentions if not taken & set(mention.symbols))
