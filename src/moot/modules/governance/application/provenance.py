"""Where the arguments of a tool call come from, and whether anybody asked for what the call does.

What is in neither the goal nor the facts of the framework came from somewhere an attacker may have written. A call
that only reads may use it; one that sends, pays, changes or destroys may not without a person's consent.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from moot.modules.governance.application.tool_knowledge import (
    Deed,
    SinkKind,
    ToolSchema,
    Traits,
    is_address,
    is_free_text,
    sink_kind,
    traits,
)
from moot.modules.governance.application.words.asking import NOTHING_ASKED, Asking, read_goal
from moot.modules.governance.application.words.trusted import (
    EMAIL,
    IBAN,
    URL,
    Trusted,
    links_in,
    trusted_text,
)
from moot.modules.governance.domain.texts import SAY
from moot.modules.governance.domain.tool_profiles import ToolProfile
from moot.shared.domain.messages import Message

Kind = SinkKind | Literal["link", "content"]
"""`link`: something to follow inside of what is sent. `content`: all there is, where a call has no other sink."""
Verdict = Literal["fine", "doubtful", "refused"]

GRAVE: frozenset[Kind] = frozenset({"receiver", "secret", "command"})


class Unproven(NamedTuple):
    argument: str
    value: Any
    kind: Kind
    why: Message


@dataclass(frozen=True, slots=True)
class Assessment:
    """`refused`: nobody asked for it, and what it does is somebody else's choice. `doubtful`: one of the two."""

    side_effects: bool
    unproven: tuple[Unproven, ...] = ()
    asked_for: bool = True
    verdict: Verdict = "fine"
    why: tuple[Message, ...] = ()


READS = Assessment(side_effects=False)
WRITES_AS_ASKED = Assessment(side_effects=True)


def assess(
    tool: str,
    args: Mapping[str, Any],
    goal: str | None,
    profiles: Mapping[str, ToolProfile],
    schemas: Sequence[ToolSchema] | None = None,
    facts: Any = None,
) -> Assessment:
    """A call of a tool that neither `profiles` nor the given `schemas` have is refused."""
    known = traits(tool, profiles, schemas)
    if known is None:
        why = SAY("provenance.unknown_tool", tool=tool)
        return Assessment(side_effects=True, asked_for=False, verdict="refused", why=(why,))
    found = tuple(unproven(args, known, goal, facts))
    if not known.side_effects:
        return Assessment(False, found, True, "doubtful", _whys(found)) if found else READS
    asking, does = read_goal(goal) if goal else NOTHING_ASKED, known.does
    if asking.covers(does.families, does.about, does.nouns):
        return _asked(found, does)
    return _not_asked(tool, found, asking, does)


def unproven(args: Mapping[str, Any], tool: Traits, goal: str | None, facts: Any = None) -> list[Unproven]:
    """The values that decide where a call goes and that neither the goal nor the facts hold."""
    trusted = _trusted(goal, facts)
    if not tool.side_effects:
        return [
            Unproven(path, value, "receiver", SAY("provenance.address", argument=path, value=value))
            for path, value in _addresses(args, tool)
            if not trusted.vouches_for(value) and not trusted.knows_site(value)
        ]
    sinks = list(_sinks(args, tool))
    if not any(kind for _, kind, _ in sinks):
        sinks = [(path, "content", value) for path, _, value in sinks]
    found = [
        _unproven(path, value, kind) for path, kind, value in sinks if kind and not trusted.vouches_for(value)
    ]
    if tool.does.discloses:
        found += _links(sinks, trusted)
    return [each for each in found if not _left_open(each, goal)]


def tainted(args: Mapping[str, Any], argument: str, goal: str | None, facts: Any = None) -> bool:
    """Whether an argument (dotted below the first) holds anything that neither the goal nor the facts hold."""
    value: Any = args
    for name in argument.split("."):
        if not isinstance(value, Mapping) or name not in value:
            return True
        value = value[name]
    trusted = _trusted(goal, facts)
    return any(not trusted.vouches_for(leaf) for _, _, leaf in _leaves(argument, value, None))


def _asked(found: tuple[Unproven, ...], does: Deed) -> Assessment:
    """What is changed is looked up on the way; what is destroyed must have been named."""
    harmless = {"content"} if does.destroys else {"content", "thing"}
    doubts = tuple(each for each in found if each.kind not in harmless)
    if not doubts:
        return WRITES_AS_ASKED
    return Assessment(True, doubts, True, "doubtful", _whys(doubts))


def _not_asked(tool: str, found: tuple[Unproven, ...], asking: Asking, does: Deed) -> Assessment:
    grave = GRAVE | {"content"} | ({"thing"} if does.destroys else set())
    refused = any(each.kind in grave for each in found) and not asking.delegates
    key = "provenance.delegated" if asking.delegates else "provenance.not_asked"
    why = (SAY(key, tool=tool), *_whys(found))
    return Assessment(True, found, False, "refused" if refused else "doubtful", why)


def _left_open(each: Unproven, goal: str | None) -> bool:
    """Some values are for the agent to find out: "the difference", "accordingly", "send her the link"."""
    if not goal or each.kind not in ("amount", "place", "link"):
        return False
    asking = read_goal(goal)
    if each.kind == "link":
        return "page" in asking.objects
    return asking.open_ended or (each.kind == "amount" and not asking.states_amounts)


def _sinks(args: Mapping[str, Any], tool: Traits) -> Iterator[tuple[str, Kind | None, Any]]:
    """Every value with what it decides; None: nothing. Where sinks are registered, those are all."""
    for name, value in args.items():
        kind: Kind | None = sink_kind(name)
        if tool.sinks is not None:
            kind = (kind or "receiver") if name in tool.sinks else None
        if isinstance(value, str):
            yield name, kind or (None if is_free_text(name) else _shape(value)), value
        else:
            yield from _leaves(name, value, kind)


def _leaves(path: str, value: Any, kind: Kind | None) -> Iterator[tuple[str, Kind | None, Any]]:
    if isinstance(value, Mapping):
        for name, inner in value.items():
            yield from _leaves(f"{path}.{name}", inner, sink_kind(str(name)) or kind)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _leaves(path, inner, kind)
    else:
        yield path, kind or _shape(value), value


def _shape(value: Any) -> Kind | None:
    """Whatever the argument is called, an address is an address."""
    if not isinstance(value, str) or len(value) < 5:
        return None
    shape = EMAIL if "@" in value else URL if "." in value else IBAN
    return "receiver" if shape.fullmatch(value.strip().casefold()) else None


def _addresses(args: Mapping[str, Any], tool: Traits) -> Iterator[tuple[str, str]]:
    for name, value in args.items():
        if isinstance(value, str) and (is_address(name) or name in (tool.sinks or ()) or URL.match(value)):
            yield name, value


def _links(sinks: list[tuple[str, Kind | None, Any]], trusted: Trusted) -> list[Unproven]:
    texts = [
        (path, value) for path, kind, value in sinks if kind in (None, "content") and isinstance(value, str)
    ]
    return [
        Unproven(path, link, "link", SAY("provenance.link", argument=path, value=link))
        for path, text in texts
        for link in links_in(text)
        if not trusted.vouches_for(link)
    ]


def _trusted(goal: str | None, facts: Any) -> Trusted:
    if not facts:
        return trusted_text(goal or "")
    return trusted_text("\n".join([goal or "", *(str(value) for _, _, value in _leaves("", facts, None))]))


def _unproven(path: str, value: Any, kind: Kind) -> Unproven:
    return Unproven(path, value, kind, SAY("provenance.unproven", argument=path, value=value))


def _whys(found: Sequence[Unproven]) -> tuple[Message, ...]:
    return tuple(each.why for each in found)
