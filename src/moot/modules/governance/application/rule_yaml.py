"""YAML as people write it: plain values, the line of each, and no surprises.

Only what JSON can say. Dates stay text, `yes` and `no` are words, tags, anchors and aliases are refused, and so is a
key that stands there twice.
"""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import yaml

from moot.modules.governance.domain.rulesets import Complaint
from moot.modules.governance.domain.texts import SAY
from moot.shared.domain.messages import Message

LARGEST = 1_000_000
DEEPEST = 30

Path = tuple[str | int, ...]

PLAIN: tuple[tuple[re.Pattern[str], Callable[[str], Any]], ...] = (
    (re.compile(r"~|null|Null|NULL|"), lambda _: None),
    (re.compile(r"true|True|TRUE"), lambda _: True),
    (re.compile(r"false|False|FALSE"), lambda _: False),
    (re.compile(r"[-+]?\d{1,18}"), int),
    (re.compile(r"[-+]?(\d+\.\d*|\.\d+|\d+)([eE][-+]?\d{1,2})?"), float),
)
"""What an unquoted word may mean besides itself."""
PARSER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class Unreadable(Exception):
    """The text is not YAML Moot reads; `complaint` says why."""

    def __init__(self, why: str | Message, line: int | None) -> None:
        super().__init__(str(why))
        self.complaint = Complaint(why, line=line)


@dataclass
class Document:
    """`lines` holds the line of everything by its path from the top; `texts`, the first line of a block of text."""

    value: Any = None
    lines: dict[Path, int] = field(default_factory=dict)
    texts: dict[Path, int] = field(default_factory=dict)

    def line(self, *path: str | int) -> int:
        """Where that is; if it is not there, where the nearest thing around it is."""
        while path and path not in self.lines:
            path = path[:-1]
        return self.lines.get(path, 1)


def read_yaml(text: str) -> Document:
    if len(text) > LARGEST:
        raise Unreadable(SAY("rules.too_large", most=LARGEST), None)
    document = Document()
    try:
        _refuse_magic(yaml.parse(text, Loader=PARSER))
        if node := yaml.compose(text, Loader=PARSER):
            document.value = _build(node, (), document)
    except (yaml.YAMLError, UnicodeEncodeError) as e:
        mark = getattr(e, "problem_mark", None)
        why = SAY("rules.bad_yaml", why=getattr(e, "problem", None) or str(e))
        raise Unreadable(why, mark.line + 1 if mark else None) from e
    return document


def _refuse_magic(events: Iterable[yaml.Event]) -> None:
    """How deep a text goes is its author's choice, how high the stack gets is not: so before anything is built."""
    documents = depth = 0
    for event in events:
        documents += isinstance(event, yaml.DocumentStartEvent)
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if documents > 1:
            raise _refuse("rules.several_documents", event)
        if depth > DEEPEST:
            raise _refuse("rules.too_deep", event, most=DEEPEST)
        if getattr(event, "anchor", None) is not None:  # an alias has the name of its anchor
            raise _refuse("rules.anchor", event)
        if (tag := getattr(event, "tag", None)) not in (None, "!"):
            raise _refuse("rules.tag", event, tag=tag)


def _build(node: yaml.Node, path: Path, document: Document) -> Any:
    document.lines.setdefault(path, _line(node))
    if isinstance(node, yaml.SequenceNode):
        return [_build(member, (*path, place), document) for place, member in enumerate(node.value)]
    if isinstance(node, yaml.ScalarNode):
        if node.style == "|":
            document.texts[path] = _line(node) + 1
        meanings = (read for pattern, read in PLAIN if not node.style and pattern.fullmatch(node.value))
        return next(meanings, str)(node.value)
    built: dict[str, Any] = {}
    for key, value in node.value:
        if not isinstance(key, yaml.ScalarNode):
            raise _refuse("rules.bad_key", key)
        if key.value in built:
            raise _refuse("rules.key_twice", key, key=key.value)
        document.lines[(*path, key.value)] = _line(key)
        built[key.value] = _build(value, (*path, key.value), document)
    return built


def _line(part: yaml.Event | yaml.Node) -> int:
    return part.start_mark.line + 1 if part.start_mark else 1


def _refuse(text: str, part: yaml.Event | yaml.Node, **values: Any) -> Unreadable:
    return Unreadable(SAY(text, **values), _line(part))
