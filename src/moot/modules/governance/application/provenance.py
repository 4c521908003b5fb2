"""Where the arguments of a tool call come from, and whether anybody asked for what the call does.

What is in neither the goal nor the facts of the framework came from somewhere an attacker may have written. A call
that only reads may use it; one that sends, pays, changes or destroys may not without a person's consent.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal, NamedTuple

from moot.modules.governance.application.lexicon import WORD, base_forms, lexicon, plain, space_out
from moot.modules.governance.application.tool_knowledge import (
    Deed,
    Leaf,
    SinkKind,
    ToolSchema,
    Traits,
    is_address,
    is_free_text,
    is_one_line,
    leaves,
    sink_kind,
    traits,
)
from moot.modules.governance.domain.conditions import ToolProfile
from moot.modules.governance.domain.texts import SAY
from moot.shared.domain.messages import Message

Kind = SinkKind | Literal["link", "content"]
"""`link`: something to follow inside of what is sent. `content`: all there is, where a call has no other sink."""
Verdict = Literal["fine", "doubtful", "refused"]

GRAVE: frozenset[Kind] = frozenset({"receiver", "secret", "command", "content"})
BY_GRAVITY: tuple[Kind, ...] = ("receiver", "secret", "command", "amount", "place", "thing")
"""The gravest first: what a value decides is the gravest that a name on the way to it says."""
TO_THE_ASKER = re.compile(r"\b(?:tell|give|show|send|inform|let|ask) (?:me|us)\b|给我|告诉我|通知我")
"""What the answer itself does is no act."""
NOT_WANTED = re.compile(
    r"(?:\bnot\b|n't\b|\bnever\b|\bwithout\b|不要|别|勿|禁止)(?! forget)[^.,;:!?，。；！？\n]*"
)
EMAIL = re.compile(r"(?<![\w.+-])[\w+][\w.+'-]{0,63}@[\w-]{1,63}(?:\.[\w-]{1,63})+", re.ASCII)
URL = re.compile(r"(?:\b[a-z][a-z0-9+.-]{0,20}://|www\.)[^\s'\"<>\u4e00-\u9fff\uff0c\u3002]+", re.ASCII)
URL_BEGINS = re.compile(
    r"(?:[a-z][a-z0-9+.-]{0,20}:)?[/\\]{2}[\w\[-]+[.:@/\\\]]|[a-z][a-z0-9+.-]{0,20}://|www\."
)
"""Also as only programs read it: without a scheme, with backslashes."""
BARE_HOST = re.compile(
    r"(?<![\w@.-])(?:[a-z0-9-]+(?:\.[a-z0-9-]+)*\.[a-z]{2,}|\d{1,3}(?:\.\d{1,3}){3})(?::\d+)?(?:/[^\s'\"<>]*)?",
    re.ASCII,
)
PAGE = re.compile(r"(?:[^\s?\\\x00-\x20\x7f%]|%(?![01][0-9a-f]|7f))*")
"""Of a site, with nothing in its address that could be read as more than a page."""
APART = re.compile(r"[\s,;<>()\"]+|mailto:")
CONTROL = re.compile(r"[\x00-\x08\x0a-\x1f\x7f\x85\u2028\u2029]|%0[0dD]")
QUERY = re.compile(r"[\s(]*(?:select|with)\b", re.IGNORECASE)
IBAN = re.compile(
    r"(?<![a-z0-9])[a-z]{2}\d{2}(?:[a-z0-9]{10,30}| [a-z0-9]{4}(?: \d{4}){1,6}(?: \d{1,3})?)(?![a-z0-9])",
    re.ASCII,
)
MOMENT = re.compile(
    r"\d{4}[-/.年]\d{1,2}[-/.月]\d{1,2}|\d{1,2}:\d{2}|\d{1,2}月\d{1,2}|\b\d{4}\b|\b\d{1,2}(?:st|nd|rd|th)\b"
)
"""Digits that are a date or a time."""
NUMBER = re.compile(r"(?<![a-z\d.])\d[\d,]*(?:\.\d+)?(?![\d.,]*\s?%)(?:\s?([千万亿]))?")
UNITS = {"千": 1_000, "万": 10_000, "亿": 100_000_000}
WORDS = re.compile(r"[a-z]+(?:'[a-z]+)?")
OPEN = re.compile(r"\bdifference\b|\baccordingly\b|\busual|\bremaining\b|差额|相应|剩余")
"""Says how to find an amount instead of the amount."""
EXACT_DIGITS = 15
"""Longer numbers are compared as text: two accounts may be the same floating-point number."""


class Unproven(NamedTuple):
    argument: str
    value: Any
    kind: Kind
    why: Message


@dataclass(frozen=True, slots=True)
class Assessment:
    """`refused`: nobody asked for it, and what it does is somebody else's choice. `doubtful`: one of the two."""

    unproven: tuple[Unproven, ...] = ()
    verdict: Verdict = "fine"
    why: tuple[Message, ...] = ()


FINE = Assessment()


def assess(
    tool: str,
    args: Mapping[str, Any],
    goal: str | None,
    profile: ToolProfile | None,
    schemas: Sequence[ToolSchema] | None = None,
    facts: Any = None,
) -> Assessment:
    """A call of a tool that has no `profile` and is not among the given `schemas` is refused."""
    taken_apart = list(leaves(args))
    if (form := check_form(taken_apart)).verdict == "refused":
        return form
    known = traits(tool, profile, schemas)
    if known is None:
        return _find("refused", (), SAY("provenance.unknown_tool", tool=tool))
    if known.is_guess and _only_queries(taken_apart):
        known = known._replace(side_effects=False)
    found, destroys = [*find_unproven(taken_apart, known, goal, facts)], "destroy" in known.does.changes
    if known.side_effects and not is_asked_for(known.does, goal or ""):
        grave = GRAVE | ({"thing"} if destroys else set())
        verdict: Verdict = "refused" if any(each.kind in grave for each in found) else "doubtful"
        return _find(verdict, found, SAY("provenance.not_asked", tool=tool))
    if known.side_effects:  # what is changed is looked up on the way; what is destroyed must have been named
        harmless = {"content"} if destroys else {"content", "thing"}
        found = [each for each in found if each.kind not in harmless]
    return _find("doubtful", found)


def _find(verdict: Verdict, found: Sequence[Unproven], *why: Message) -> Assessment:
    return Assessment(tuple(found), verdict, (*why, *(each.why for each in found))) if why or found else FINE


def check_form(args: Iterable[Leaf]) -> Assessment:
    """Refuses an address or a header with characters that end a line: what follows would be a line of its own."""
    broken = [
        _unproven(leaf, "receiver", "control")
        for leaf in args
        if isinstance(leaf.value, str)
        and CONTROL.search(leaf.value)
        and (
            any(map(is_one_line, leaf.names)) or _named_kind(leaf.names) == "receiver" or _is_url(leaf.value)
        )
    ]
    return _find("refused", broken)


def find_unproven(
    args: Sequence[Leaf], tool: Traits, goal: str | None, facts: Any = None
) -> Iterator[Unproven]:
    """The values that decide where a call goes and that neither the goal nor the facts hold.

    An amount is for the agent to find out where the goal names none, or where it goes to nobody.
    """
    trusted = _collect_trusted(goal, facts)
    if not tool.side_effects:
        for leaf in args:
            if _leads_outside(leaf, tool) and not trusted.vouches_for_page(leaf.value):
                yield _unproven(leaf, "receiver", "address")
        return
    kinds = [_kind(leaf, tool) for leaf in args]
    free = {"amount"} if "receiver" not in kinds or not trusted.states_amounts else set[Kind]()
    for leaf, kind in zip(args, kinds, strict=True):
        decides = kind or (None if any(kinds) else "content")
        if decides and decides not in free and not trusted.vouches_for(leaf.value):
            yield _unproven(leaf, decides, "unproven")
        if kind is None and isinstance(leaf.value, str):
            strange = (link for link in _links_in(leaf.value) if not trusted.vouches_for(link))
            yield from (_unproven(leaf._replace(value=link), "link", "link") for link in strange)


def _unproven(leaf: Leaf, kind: Kind, why: str) -> Unproven:
    said = SAY(f"provenance.{why}", argument=leaf.path, value=leaf.value)
    return Unproven(leaf.path, leaf.value, kind, said)


def tainted(args: Any, argument: str, goal: str | None, facts: Any = None) -> bool:
    """Whether an argument (dotted below the first) holds anything that neither the goal nor the facts hold."""
    for name in argument.split("."):
        if not isinstance(args, Mapping) or name not in args:
            return True
        args = args[name]
    trusted = _collect_trusted(goal, facts)
    return any(not trusted.vouches_for(leaf.value) for leaf in leaves(args))


def is_asked_for(does: Deed, goal: str) -> bool:
    """Whether the goal has a word for all the call does, outside of what it forbids and of what the answer does."""
    text = NOT_WANTED.sub(" ", TO_THE_ASKER.sub(" ", plain(goal)))
    asked = {form for word in WORDS.findall(text) for form in base_forms(word)}

    def has_word_for(changes: frozenset[str]) -> bool:
        words = (word for change in changes for word in lexicon()["changes"][change])
        return any(word in asked or (not word.isascii() and word in text) for word in words)

    first = does.verb in asked or has_word_for(does.changes)
    return first and all(map(has_word_for, does.also))


@dataclass(frozen=True, slots=True)
class Trusted:
    """A text that is trusted, and which values it vouches for."""

    tokens: str
    emails: frozenset[str]
    urls: frozenset[str]
    ibans: frozenset[str]
    numbers: frozenset[float]
    states_amounts: bool

    def vouches_for(self, value: Any) -> bool:
        """Nothing is no value to vouch for, and a switch is none either."""
        if value is None or isinstance(value, bool) or value == "":
            return True
        if isinstance(value, int | float) and abs(value) < 10**EXACT_DIGITS:
            return value in self.numbers
        return self._vouches_for_text(plain(str(value)))

    def vouches_for_page(self, url: str) -> bool:
        """Also where its site is named. With a query it could carry something away, so that is another thing."""
        place = _address(url.strip().casefold())
        known = bool(PAGE.fullmatch(place)) and place.partition("/")[0] in self.urls
        return known or self.vouches_for(url)

    def _vouches_for_text(self, text: str) -> bool:
        """An address is that very address; words like it are none."""
        if _address(text) in self.urls:
            return True
        if URL_BEGINS.match(text) or BARE_HOST.fullmatch(text):
            return False
        if "@" in text and EMAIL.search(text):
            named = [piece.strip("'.:") for piece in APART.split(text) if "@" in piece]
            return self.emails.issuperset(named)
        if IBAN.fullmatch(text):
            return text.replace(" ", "") in self.ibans
        if len(text) <= EXACT_DIGITS and NUMBER.fullmatch(text):
            return float(text.replace(",", "")) in self.numbers
        return any(map(self._says, [text, *lexicon()["spelled"].get(text, ())]))

    def _says(self, text: str) -> bool:
        said = WORD.findall(text)
        return any(word not in lexicon()["stop"] for word in said) and f" {' '.join(said)} " in self.tokens


@lru_cache(maxsize=256)
def read_trusted(text: str) -> Trusted:
    known = plain(text)
    sites = [*URL.findall(known), *(match.group() for match in BARE_HOST.finditer(known))]
    return Trusted(
        space_out(known),
        frozenset(EMAIL.findall(known)),
        frozenset(map(_address, sites)),
        frozenset(match.group().replace(" ", "") for match in IBAN.finditer(known)),
        frozenset(_numbers_in(known)),
        bool(NUMBER.search(MOMENT.sub(" ", known))) and not OPEN.search(known),
    )


def _numbers_in(text: str) -> Iterator[float]:
    """Each as it is written and, with a unit behind it, as it is meant: `1.2万` is 1.2 and 12,000."""
    for match in NUMBER.finditer(text.replace("%", " ")):
        number = float(match.group().rstrip(" 千万亿").replace(",", ""))
        yield from (number, round(number * UNITS.get(match[1] or "", 1), 6))


def _address(url: str) -> str:
    """A URL without what makes no difference to where it leads."""
    return re.sub(r"^(?:(?:https?|ftp):)?(?://)?(?:www\.)?", "", url).rstrip("/.,;:!?)'\"")


def _links_in(text: str) -> list[str]:
    """What a reader could follow: web addresses, and accounts money could be sent to."""
    known = plain(text)
    pages = URL.findall(known) if "://" in known or "www." in known else []
    return [*pages, *(match.group() for match in IBAN.finditer(known))]


def _kind(leaf: Leaf, tool: Traits) -> Kind | None:
    """What a value decides; None: nothing. Where sinks are registered, those are all."""
    kind = _named_kind(leaf.names)
    if tool.sinks is not None:
        kind = (kind or "receiver") if leaf.belongs_to(tool.sinks) else None
    if kind not in GRAVE and not is_free_text(leaf.name) and _is_address(leaf.value):
        return "receiver"
    return kind


@lru_cache(maxsize=4096)
def _named_kind(names: tuple[str, ...]) -> Kind | None:
    said = {sink_kind(name) for name in names}
    return next((kind for kind in BY_GRAVITY if kind in said), None)


def _is_address(value: Any) -> bool:
    """Whatever the argument is called, an address is an address."""
    if not isinstance(value, str) or len(value) < 5:
        return False
    text = value.strip().casefold()
    shape = EMAIL if "@" in text and "://" not in text else URL if "." in text else IBAN
    return bool(shape.fullmatch(text))


def _is_url(value: str) -> bool:
    return bool(URL_BEGINS.match(plain(value[:100])))


def _leads_outside(leaf: Leaf, tool: Traits) -> bool:
    """Below a name for an address only what looks like one does: a link has its text, too."""
    if not isinstance(leaf.value, str):
        return False
    if is_address(leaf.name) or (tool.sinks and leaf.belongs_to(tool.sinks)) or _is_url(leaf.value):
        return True
    return any(map(is_address, leaf.names)) and bool(BARE_HOST.fullmatch(plain(leaf.value[:300])))


def _only_queries(args: Sequence[Leaf]) -> bool:
    """Whether all that a call is told is SQL that reads. What hides behind that is for the SQL guard."""
    told = [leaf.value for leaf in args if isinstance(leaf.value, str)]
    return bool(told) and all(map(QUERY.match, told))


def _collect_trusted(goal: str | None, facts: Any) -> Trusted:
    return read_trusted("\n".join([goal or "", *(str(leaf.value) for leaf in leaves(facts or ()))]))
