"""YAML as people write it: plain values, the line of each, and no surprises.

Only what JSON can say. Dates stay text, `yes` and `no` are words, tags, anchors and aliases are refused, and so is a
key that stands there twice.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import yaml

from moot.modules.governance.domain.exceptions import Complaint
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
        _build(yaml.parse(text, Loader=PARSER), document)
    except (yaml.YAMLError, UnicodeEncodeError) as e:
        mark = getattr(e, "problem_mark", None)
        why = SAY("rules.bad_yaml", why=getattr(e, "problem", None) or str(e))
        raise Unreadable(why, mark.line + 1 if mark else None) from e
    return document


def _build(events: Iterator[yaml.Event], document: Document) -> None:
    """Not recursive: how deep a text goes is its author's choice, how high the stack gets is not."""
    stack = [_Level([], None)]
    for event in events:
        if isinstance(event, yaml.DocumentStartEvent) and stack[0].holder:
            raise _refused("rules.several_documents", event)
        if isinstance(event, yaml.CollectionEndEvent):
            stack.pop()
        elif isinstance(event, yaml.NodeEvent):
            _add(event, stack, document)
    document.value = stack[0].holder[0] if stack[0].holder else None


@dataclass
class _Level:
    """A list or map that is being filled; `key`: the value of that name comes next. `path` is None above the top."""

    holder: Any
    path: Path | None
    key: str | None = None

    def put(self, value: Any) -> None:
        if self.key is None:
            self.holder.append(value)
        else:
            self.holder[self.key], self.key = value, None

    @property
    def next_path(self) -> Path:
        if self.path is None:
            return ()
        return (*self.path, len(self.holder) if self.key is None else self.key)

    @property
    def wants_key(self) -> bool:
        return isinstance(self.holder, Mapping) and self.key is None


def _add(event: yaml.NodeEvent, stack: list[_Level], document: Document) -> None:
    level = stack[-1]
    _refuse_magic(event)
    if level.wants_key:
        _set_key(event, level, document)
        return
    path = level.next_path
    document.lines.setdefault(path, _line(event))
    if isinstance(event, yaml.ScalarEvent):
        if event.style == "|":
            document.texts[path] = _line(event) + 1
        level.put(_scalar(event))
        return
    holder: Any = {} if isinstance(event, yaml.MappingStartEvent) else []
    level.put(holder)
    stack.append(_Level(holder, path))
    if len(stack) > DEEPEST:
        raise _refused("rules.too_deep", event, most=DEEPEST)


def _set_key(event: yaml.NodeEvent, level: _Level, document: Document) -> None:
    if not isinstance(event, yaml.ScalarEvent):
        raise _refused("rules.bad_key", event)
    if event.value in level.holder:
        raise _refused("rules.key_twice", event, key=event.value)
    level.key = event.value
    document.lines[level.next_path] = _line(event)


def _refuse_magic(event: yaml.NodeEvent) -> None:
    if event.anchor is not None:  # an alias has the name of its anchor
        raise _refused("rules.anchor", event)
    tag = getattr(event, "tag", None)
    if tag not in (None, "!"):
        raise _refused("rules.tag", event, tag=tag)


def _scalar(event: yaml.ScalarEvent) -> Any:
    unquoted = event.implicit[0]
    meanings = (read for pattern, read in PLAIN if unquoted and pattern.fullmatch(event.value))
    return next(meanings, str)(event.value)


def _line(event: yaml.Event) -> int:
    return event.start_mark.line + 1 if event.start_mark else 1


def _refused(text: str, event: yaml.Event, **values: Any) -> Unreadable:
    return Unreadable(SAY(text, **values), _line(event))
