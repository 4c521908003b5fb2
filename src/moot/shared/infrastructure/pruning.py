"""Takes the texts out of call logs that have grown old; whoever reads the chain is told, and can still verify it."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Self

from pydantic_core import to_json
from sqlalchemy import ColumnElement, and_, or_

from moot.shared.infrastructure.audit_trail import Kind
from moot.shared.infrastructure.call_audit import EXTERNAL_ANSWER, EXTERNAL_CALL


class Bodies(NamedTuple):
    """The texts of a call log, and what is left in their columns. `kind` vouches for a row that lost them.

    It covers the empty columns too: a text that is put there afterwards is found.
    """

    kind: Kind
    emptied: Mapping[str, Any]

    @classmethod
    def of(cls, name: str, kinds: Sequence[Kind], **emptied: Any) -> Self:
        columns = dict.fromkeys(column for kind in kinds for column in kind.columns)
        replaced = frozenset(kind.name for kind in kinds)
        return cls(Kind(name, kinds[0].table, tuple(columns), replaces=replaced), emptied)

    def remain(self) -> ColumnElement[bool]:
        """Whether a row has texts to lose. A call that is under way, or looks like it, keeps them."""
        columns = self.kind.rows.c
        some = (
            columns[name].is_not(None) if empty is None else columns[name] != empty
            for name, empty in self.emptied.items()
        )
        return and_(columns.status != "started", or_(*some))

    def weigh(self, rows: Iterable[Mapping[Any, Any]]) -> int:
        """How many bytes of text these rows hold."""
        values = (row[name] for row in rows for name in self.emptied)
        return sum(len(to_json(value)) for value in values if value)


EXTERNAL_BODIES = Bodies.of("pruned_external_call", (EXTERNAL_CALL, EXTERNAL_ANSWER), response_data=None)
EXTERNAL_KINDS = (EXTERNAL_CALL, EXTERNAL_ANSWER, EXTERNAL_BODIES.kind)
