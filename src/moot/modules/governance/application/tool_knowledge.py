"""What a tool does: as its profile says; where nobody has registered one, from its schema and its name.

And the arguments of a call to it, taken apart: every value at any depth, with the names that lead to it.
"""

import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import lru_cache, partial
from itertools import pairwise
from typing import Any, Literal, NamedTuple, cast

from moot.modules.governance.application.lexicon import HAN, base_forms, lexicon, name_words, plain, singular
from moot.modules.governance.domain.conditions import ToolProfile

SinkKind = Literal["receiver", "secret", "command", "amount", "place", "thing"]
"""`thing` is what is changed: its key is often found out on the way. Nobody but the user may choose a `receiver`."""
ToolSchema = Mapping[str, Any]
"""As frameworks hand it to a model: `{name, description, parameters}`, also wrapped as OpenAI's `function`."""

NOT_BY_ID = frozenset({"address", "secret"})
"""`email_id` is a mail, not an address."""


class Deed(NamedTuple):
    """What a call does: the kinds of change, as rows of the lexicon. None and `side_effects`: nobody can tell.

    `also` are those of further verbs, each of which is a deed of its own.
    """

    changes: frozenset[str]
    verb: str
    side_effects: bool
    also: tuple[frozenset[str], ...] = ()


class Traits(NamedTuple):
    """What governance needs to know about a tool, with nothing left open. `sinks`: those somebody registered.

    `is_guess`: nothing tells what it does, so that it is taken to change something.
    """

    does: Deed
    side_effects: bool
    sinks: tuple[str, ...] | None = None
    is_guess: bool = False


def traits(
    name: str, profile: ToolProfile | None, schemas: Sequence[ToolSchema] | None = None
) -> Traits | None:
    """None: schemas are given that do not have the tool, nor is it registered. Without any its name has to do."""
    schema = find_schema(name, schemas or ())
    if profile is None and schemas and schema is None:
        return None
    described = profile.description if profile else str((schema or {}).get("description") or "")
    does = deed(name, described)
    said = profile.side_effects if profile else None
    side_effects = does.side_effects if said is None else said
    is_guess = said is None and side_effects and not does.changes
    return Traits(does, side_effects, profile.sinks if profile else None, is_guess)


@lru_cache(maxsize=4096)
def deed(name: str, description: str = "") -> Deed:
    """Every verb of its name; a name that only reads hides no description that begins otherwise."""
    words = name_words(name)
    verb = next((word for word in words if _reads(word) or changes_of(word)), "")
    more = [after for before, after in pairwise(words) if _ends_a_phrase(before)]
    more += [inner for word in words if word != verb or HAN.match(word) for inner in _find_verbs(word)]
    first = next(iter(plain(description).split()), "").strip(".,:;")
    answers = "return" in base_forms(first)  # `Returns …` tells of the answer, so it is no giving back
    own = changes_of(verb)
    more += [] if own or answers else [first]
    also = tuple(dict.fromkeys(changes for word in more if (changes := changes_of(word)) and changes != own))
    looks = _reads(verb) or (not verb and (answers or _reads(first)))
    changes = own.union(*also)
    hands_over = any(word in lexicon()["people"] for word in words) and "destroy" not in changes
    return Deed(changes, verb or name, (bool(changes) or not looks) and not hands_over, also)


def _ends_a_phrase(word: str) -> bool:
    """`list_hotels_book` books; in `get_book_price` it is a book's price: what qualifies a noun is no plural."""
    return word in ("and", "or", "then") or singular(word) != word


def _find_verbs(word: str) -> Iterator[str]:
    """What can only be a verb, wherever in a name it stands: `delete`, but neither `email` nor `deleted`."""
    for listed in lexicon()["changes"].values():
        for known in listed:
            said = known in word and f"已{known}" not in word if HAN.match(known) else known == word
            if said and known not in lexicon()["nouns"]:
                yield known


@lru_cache(maxsize=4096)
def changes_of(word: str) -> frozenset[str]:
    """The kinds of change a word asks for. Chinese names have no spaces: `发送邮件` begins with its verb."""
    return frozenset(
        change
        for change, listed in lexicon()["changes"].items()
        if any(_is_one(word, known) for known in listed)
    )


def _reads(word: str) -> bool:
    return any(_is_one(word, known) for known in lexicon()["reads"])


def _is_one(word: str, known: str) -> bool:
    return word.startswith(known) if HAN.match(known) else known in base_forms(word)


@lru_cache(maxsize=4096)
def sink_kind(argument: str) -> SinkKind | None:
    """None: content."""
    tokens = {singular(word) for word in name_words(argument)} | set(name_words(argument))
    for row, words in lexicon()["sinks"].items():
        if not tokens.isdisjoint(words) and not ("id" in tokens and row in NOT_BY_ID):
            return cast(SinkKind, "receiver" if row == "address" else row)
    return None


@lru_cache(maxsize=4096)
def is_free_text(argument: str) -> bool:
    return not set(name_words(argument)).isdisjoint(lexicon()["contents"])


@lru_cache(maxsize=8192)
def is_called(row: str, argument: str) -> bool:
    """Whether a word of its name is in that row of the lexicon."""
    return any(singular(word) in lexicon()[row] for word in name_words(argument))


is_one_line = partial(is_called, "lines")
"""An argument that becomes lines of a protocol, such as headers."""
is_address = partial(is_called, "net")
"""An argument that is a place on the net: what is fetched from there is told to it."""


def find_schema(name: str, schemas: Sequence[ToolSchema]) -> ToolSchema | None:
    for schema in schemas:
        inner = schema.get("function") if isinstance(schema.get("function"), Mapping) else schema
        if isinstance(inner, Mapping) and inner.get("name") == name:
            return inner
    return None


PLAIN = frozenset({str, int, float, bool, type(None)})
OPENS = re.compile(r"\s*[{\[]")


class Leaf(NamedTuple):
    """`names` are those of the maps on the way, `steps` also the places in lists.

    `in_text`: it stands in a text that is JSON, so that nothing can be put in its place.
    """

    names: tuple[str, ...]
    steps: tuple[str | int, ...]
    value: Any
    in_text: bool = False

    @property
    def name(self) -> str:
        return self.names[-1] if self.names else ""

    @property
    def path(self) -> str:
        """Where it is, for a reader: `request.urls[0]`."""
        said = (f"[{step}]" if isinstance(step, int) else f".{step}" for step in self.steps)
        return "".join(said).removeprefix(".")

    def belongs_to(self, arguments: Collection[str]) -> bool:
        """Whether it is, or is part of, one of these."""
        return not set(self.names).isdisjoint(arguments) or ".".join(self.names) in arguments


def leaves(tree: Any) -> Iterator[Leaf]:
    """In their order. A text that is JSON is what it holds; a name of a map that no program would give is a value."""
    ahead: list[tuple[tuple[str, ...], tuple[str | int, ...], Any, bool]] = [((), (), tree, False)]
    while ahead:
        names, steps, value, in_text = ahead.pop()
        if type(value) is str and OPENS.match(value):
            held = _unpack(value)
            value, in_text = held, in_text or held is not value
        if type(value) in PLAIN:
            yield Leaf(names, steps, value, in_text)
        elif isinstance(value, Mapping):
            yield from (Leaf(names, steps, name, in_text) for name in value if _is_odd(name))
            inner = [((*names, str(n)), (*steps, str(n)), part, in_text) for n, part in value.items()]
            ahead += reversed(inner)
        elif isinstance(value, list | tuple):
            ahead += [(names, (*steps, n), value[n], in_text) for n in reversed(range(len(value)))]
        else:
            yield Leaf(names, steps, value, in_text)


def _unpack(text: str) -> Any:
    try:
        held = json.loads(text)
    except (ValueError, RecursionError):
        return text
    return held if isinstance(held, dict | list) else text


@lru_cache(maxsize=4096)
def _is_odd(name: Any) -> bool:
    return isinstance(name, str) and not name.replace("-", "_").isidentifier()
