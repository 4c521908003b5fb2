"""The JSON schema of an answer: as vendors can enforce it, and as a model is told it."""

from collections.abc import Iterator
from typing import Any

from pydantic import BaseModel

ENFORCEABLE = frozenset({"type", "enum", "const", "items", "anyOf", "description"})
BOUNDS = frozenset(
    {
        *("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"),
        *("minItems", "maxItems", "minLength", "maxLength", "pattern", "format"),
    }
)


def strict_schema(answer: type[BaseModel]) -> dict[str, Any]:
    """What structured output accepts: every field required, none added, and no keyword that a vendor may refuse."""
    return _closed(answer.model_json_schema(), ENFORCEABLE)


def told_schema(answer: type[BaseModel]) -> dict[str, Any]:
    """The same with the bounds of numbers, lists and texts, for a prompt."""
    return _closed(answer.model_json_schema(), ENFORCEABLE | BOUNDS)


def literals(answer: type[BaseModel]) -> set[str]:
    """Every value that the schema prescribes word for word."""
    return set(_literals(answer.model_json_schema()))


def _closed(node: dict[str, Any], kept: frozenset[str]) -> dict[str, Any]:
    if "$ref" in node:
        return {"$ref": node["$ref"]}  # vendors refuse a reference with anything beside it
    node = {"anyOf" if name == "oneOf" else name: value for name, value in node.items()}
    closed = {name: value for name, value in node.items() if name in kept}
    if "anyOf" in node:
        closed["anyOf"] = [_closed(choice, kept) for choice in node["anyOf"]]
    if "items" in node:
        closed["items"] = _closed(node["items"], kept)
    if node.get("type") == "object":
        closed |= _closed_object(node, kept)
    if "$defs" in node:
        closed["$defs"] = {name: _closed(part, kept) for name, part in node["$defs"].items()}
    return closed


def _closed_object(node: dict[str, Any], kept: frozenset[str]) -> dict[str, Any]:
    if "properties" not in node and node.get("additionalProperties"):
        raise TypeError("an answer's fields must have names: use a model instead of a dict")
    properties = {name: _closed(part, kept) for name, part in node.get("properties", {}).items()}
    return {"properties": properties, "required": list(properties), "additionalProperties": False}


def _literals(node: Any) -> Iterator[str]:
    if isinstance(node, list):
        for part in node:
            yield from _literals(part)
    elif isinstance(node, dict):
        yield from (value for value in [*node.get("enum", []), node.get("const")] if isinstance(value, str))
        for part in node.values():
            yield from _literals(part)
