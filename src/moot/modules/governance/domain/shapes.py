"""Of which kind the fields of a rule's decisions are: what its condition may name and its corrector change."""

from collections.abc import Mapping
from typing import Any, Final

from moot.modules.governance.domain.conditions import CONTEXT, DECISION_TYPES, Fields, Kind, ToolProfile
from moot.modules.governance.domain.rules import EnhancedRule

Declared = dict[str, Kind]

JSON_KINDS: Final[dict[str, Kind]] = {
    "string": "string",
    "number": "number",
    "integer": "integer",
    "boolean": "boolean",
    "array": "list",
    "object": "map",
}


def fields_for(rule: EnhancedRule, tools: Mapping[str, ToolProfile]) -> Declared:
    """The fields that mean the same in every decision the rule is for."""
    if not rule.for_types:
        return {"payload": "map", **_prefix("context", CONTEXT)}
    kinds = [DECISION_TYPES[name] for name in rule.for_types]
    fields = _intersect(
        [_prefix("payload", kind.payload) | _prefix("context", kind.context) for kind in kinds]
    )
    arguments = arguments_of(rule, tools)
    if arguments is not None:
        del fields["payload.args"]
        fields |= _prefix("payload.args", arguments)
    return fields


def _prefix(prefix: str, fields: Fields) -> Declared:
    return {f"{prefix}.{name}": kind for name, kind in fields.items()}


def _intersect(several: list[Declared]) -> Declared:
    first, *others = several
    return {name: kind for name, kind in first.items() if all(other.get(name) == kind for other in others)}


def arguments_of(rule: EnhancedRule, tools: Mapping[str, ToolProfile]) -> Declared | None:
    """None: some tool of the rule does not say what its arguments are, or calls one what no condition can."""
    schemas = [tools[name].parameters if name in tools else {} for name in rule.tools]
    properties = [schema.get("properties") for schema in schemas]
    if not schemas or not all(isinstance(each, Mapping) and each for each in properties):
        return None
    if not all(name.isidentifier() and name.isascii() for each in properties for name in each or ()):
        return None
    return _intersect([{name: _kind_of(said) for name, said in each.items()} for each in properties if each])


def _kind_of(schema: Any) -> Kind:
    """Null beside a type says only that the argument may be missing."""
    match schema:
        case {"anyOf": [choice, {"type": "null"}] | [{"type": "null"}, choice]}:
            return _kind_of(choice)
        case {"type": [kind, "null"] | ["null", kind]}:
            return _kind_of({**schema, "type": kind})
        case {"type": "array", "items": {"type": "string"}}:
            return "strings"
        case {"type": str() as kind}:
            return JSON_KINDS.get(kind, "any")
    return "any"
