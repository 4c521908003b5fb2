"""What a tool does: from its registered profile, else from what its schema, its name and its description say."""

from collections.abc import Mapping, Sequence
from functools import cache, lru_cache
from itertools import pairwise
from typing import Any, Literal, NamedTuple

from moot.modules.governance.application.words.lexicon import (
    HAN,
    acts,
    families_of,
    meanings_of,
    name_words,
    plain,
    singular,
    with_object,
    words,
)
from moot.modules.governance.domain.tool_profiles import ToolProfile

SinkKind = Literal["receiver", "secret", "command", "amount", "place", "thing"]
"""`thing` is what is changed: its key is often found out on the way. Nobody but the user may choose a `receiver`."""

ToolSchema = Mapping[str, Any]
"""As frameworks hand it to a model: `{name, description, parameters}`, also wrapped as OpenAI's `function`."""


SINKS: tuple[tuple[SinkKind, str], ...] = (
    ("receiver", "receivers"),
    ("receiver", "addresses"),
    ("secret", "secrets"),
    ("command", "commands"),
    ("amount", "amounts"),
    ("place", "places"),
    ("thing", "things"),
)
"""In the order in which the lists of `sinks.toml` are asked."""
NOT_BY_ID = frozenset({"addresses", "secrets"})
"""`email_id` is a mail, not an address."""


class Deed(NamedTuple):
    """What a call does: families of verbs, known objects, and nouns of the name that no list holds."""

    families: frozenset[str]
    about: frozenset[str]
    nouns: frozenset[str]
    side_effects: bool

    @property
    def destroys(self) -> bool:
        return any(acts()[name].destroys for name in self.families)

    @property
    def discloses(self) -> bool:
        return not self.families.isdisjoint(("send", "post", "share"))


class Traits(NamedTuple):
    """What governance needs to know about a tool, with nothing left open. `sinks`: those somebody registered."""

    does: Deed
    side_effects: bool
    sinks: tuple[str, ...] | None = None


def traits(
    name: str, profiles: Mapping[str, ToolProfile], schemas: Sequence[ToolSchema] | None = None
) -> Traits | None:
    """None: schemas are given, and neither they nor `profiles` have the tool. Without schemas its name has to do."""
    profile = profiles.get(name)
    if profile is not None:
        return _traits(name, profile.description, profile.side_effects, profile.sinks)
    if not schemas:
        return _traits(name, "", None, None)
    schema = _schema_of(name, schemas)
    return None if schema is None else _traits(name, str(schema.get("description") or ""), None, None)


def known_tool(
    name: str, profiles: Mapping[str, ToolProfile], schemas: Sequence[ToolSchema] | None = None
) -> ToolProfile | None:
    """The tool's profile, complete; None where there are no `traits`."""
    known = traits(name, profiles, schemas)
    if known is None:
        return None
    profile = profiles.get(name) or _described_by(name, _schema_of(name, schemas or ()) or {})
    if profile.side_effects is not None and profile.sinks is not None:
        return profile
    sinks = known.sinks
    if sinks is None:
        sinks = _sinks(tuple(profile.parameters.get("properties") or ()), known.side_effects)
    return profile.model_copy(update={"side_effects": known.side_effects, "sinks": sinks})


@lru_cache(maxsize=4096)
def deed(name: str, description: str = "") -> Deed:
    tokens = [piece for word in name_words(name) for piece in _pieces(word)]
    verb = _verb(tokens)
    families = families_of(verb) if verb else _described(description)
    nouns = [word for word in tokens if word != verb and singular(word) not in _generic()]
    about = frozenset(meaning for noun in nouns for meaning in meanings_of(noun))
    unlisted = frozenset(singular(noun) for noun in nouns if not meanings_of(noun))
    families = with_object(families, about)
    return Deed(
        families, about, unlisted - _helpers(), _changes(tokens, verb, families, about, unlisted, description)
    )


@lru_cache(maxsize=4096)
def sink_kind(argument: str) -> SinkKind | None:
    """None: content."""
    tokens = {word for token in name_words(argument) for word in (token, singular(token))}
    named = words("sinks")
    of_a_thing = not tokens.isdisjoint(("id", "ids"))
    for kind, listed in SINKS:
        if not tokens.isdisjoint(named[listed]) and not (of_a_thing and listed in NOT_BY_ID):
            return kind
    return "command" if argument.casefold() == "code" else None


@lru_cache(maxsize=4096)
def is_free_text(argument: str) -> bool:
    return any(word in words("sinks")["content"] for word in name_words(argument))


@lru_cache(maxsize=4096)
def is_address(argument: str) -> bool:
    """An argument that is a place on the net: what is fetched from there is told to it."""
    return any(singular(word) in words("sinks")["net"] for word in name_words(argument))


@lru_cache(maxsize=4096)
def _traits(name: str, description: str, side_effects: bool | None, sinks: tuple[str, ...] | None) -> Traits:
    does = deed(name, description)
    return Traits(does, does.side_effects if side_effects is None else side_effects, sinks)


@lru_cache(maxsize=4096)
def _sinks(arguments: tuple[str, ...], side_effects: bool) -> tuple[str, ...]:
    return tuple(name for name in arguments if (sink_kind(name) if side_effects else is_address(name)))


def _schema_of(name: str, schemas: Sequence[ToolSchema]) -> ToolSchema | None:
    for schema in schemas:
        if schema.get("name") == name:
            return schema
    wrapped = (schema.get("function") for schema in schemas)
    return next(
        (inner for inner in wrapped if isinstance(inner, Mapping) and inner.get("name") == name), None
    )


def _described_by(name: str, schema: ToolSchema) -> ToolProfile:
    parameters = schema.get("parameters") or schema.get("input_schema") or schema.get("inputSchema") or {}
    return ToolProfile(
        name=name, description=str(schema.get("description") or ""), parameters=dict(parameters)
    )


def _pieces(word: str) -> tuple[str, ...]:
    """Chinese names have no spaces: `发送邮件` begins with its verb."""
    if not HAN.match(word):
        return (word,)
    verbs = [verb for verb in (*_plain_verbs(), *words("acts")["reads"]) if word.startswith(verb)]
    verb = max(verbs, key=len, default="")
    return tuple(piece for piece in (verb, word.removeprefix(verb)) if piece)


def _verb(tokens: Sequence[str]) -> str | None:
    """The first word that can only be a verb, else a first word that is one in this place."""
    reads = words("acts")["reads"]
    for token in tokens:
        if token in reads or token in _plain_verbs():
            return token
    return tokens[0] if tokens and families_of(tokens[0]) else None


def _changes(
    tokens: Sequence[str],
    verb: str | None,
    families: frozenset[str],
    about: frozenset[str],
    nouns: frozenset[str],
    description: str,
) -> bool:
    """What cannot be told counts as a change; handing over to a person is none."""
    if families and nouns and not about and nouns <= _helpers():
        return False
    if families:
        return True
    if verb is None:
        return not _only_reads(description)
    joined = [after for before, after in pairwise(tokens) if before in ("and", "or")]
    return any(families_of(word) for word in joined) or bool(_described(description))


def _described(description: str) -> frozenset[str]:
    """What the first word of a description says: `Deletes the file.`"""
    return families_of(_leading(description))


def _only_reads(description: str) -> bool:
    return _leading(description) in words("acts")["reads"]


def _leading(description: str) -> str:
    """`Returns …` tells of the answer, so it is no giving back."""
    first = next(iter(plain(description).split()), "").strip(".,:;")
    forms = [first, singular(first), first.removesuffix("es"), first.removesuffix("s")]
    if "return" in forms:
        return "get"
    known = words("acts")["reads"]
    return next((form for form in forms if form in known or families_of(form)), "")


@cache
def _plain_verbs() -> frozenset[str]:
    listed = words("acts")["acts"].values()
    return frozenset(verb for entry in listed for verb in (*entry["verbs"], *entry["zh"]))


@cache
def _generic() -> frozenset[str]:
    return frozenset(words("acts")["generic"]["nouns"])


@cache
def _helpers() -> frozenset[str]:
    return frozenset(words("acts")["generic"]["people_who_help"])
