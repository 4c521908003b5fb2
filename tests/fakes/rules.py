"""The shipped rules, read and compiled once for all desks of a process: each would take a tenth of a second."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from moot.modules.governance.container import RuleBook
from moot.modules.governance.domain.rules import EnhancedRule
from moot.modules.governance.infrastructure.cel.index import CelConditions, CelIndex

_read: dict[str, dict[str, list[EnhancedRule]]] = defaultdict(dict)
_indexes: dict[tuple[str, ...], CelIndex] = {}
_read_alone, _index_alone = RuleBook.__init__, CelConditions.index


def share_shipped_rules() -> None:
    """Among books that know the same tools and tables. What refuses to be read is read again by the next one."""
    RuleBook.__init__ = _read_once  # type: ignore[method-assign]
    CelConditions.index = _index_once  # type: ignore[method-assign]


def _read_once(
    book: RuleBook, tools: Mapping[str, Any] | None = None, *, tables: Mapping[str, Any] | None = None
) -> None:
    _read_alone(book, tools, tables=tables)
    book._files = _read[repr((book.tools, tables))]


def _index_once(engine: CelConditions, rules: Sequence[EnhancedRule], tools: Mapping[str, Any]) -> CelIndex:
    shared = {id(rule) for books in _read.values() for profile in books.values() for rule in profile}
    if not rules or not {id(rule) for rule in rules} <= shared:
        return _index_alone(engine, rules, tools)
    key = (repr(tools), *(str(id(rule)) for rule in rules))
    if key not in _indexes:
        _indexes[key] = _index_alone(engine, rules, tools)
    return _indexes[key]
