"""The chain: one append-only list per session that vouches for every row of its record.

A link holds the digest of the row it was written with, in the same transaction, and a hash over itself and all links
before it. Where the chain ends is kept apart. So whoever changes, removes, reorders or cuts off afterwards is found
by `verify`; whoever can rewrite the chain *and* its head is not: the chain proves integrity against that head.
"""

import asyncio
import hashlib
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime
from functools import cache
from itertools import groupby
from operator import itemgetter
from typing import Any, Literal, NamedTuple, cast
from uuid import UUID

from pydantic_core import to_json
from sqlalchemy import Connection, Table, bindparam, insert, select, update

from moot.shared.infrastructure.database import Database
from moot.shared.infrastructure.execution_context import LeaseLost, current_execution_ctx
from moot.shared.infrastructure.redaction import REDACT
from moot.shared.infrastructure.tables import AuditEntryRow, AuditHeadRow, Base
from moot.shared.infrastructure.transactions import GroupCommit, upsert

GENESIS = "0" * 64
CHAIN = cast(Table, AuditEntryRow.__table__)
STORED_HEADS = select(AuditHeadRow.__table__).where(
    AuditHeadRow.session_id.in_(bindparam("of", expanding=True))
)

Head = tuple[int, str]
"""The length of a chain and the hash of its last link."""


@dataclass(frozen=True)
class Kind:
    """What a link can vouch for: these columns of a row of this table. An upsert leaves `fixed` ones as they are.

    From then on it stands for the row in place of the links of the kinds that it `replaces`. One that `opens` a
    chain is always its first.
    """

    name: str
    table: type[Base]
    columns: tuple[str, ...]
    fixed: frozenset[str] = frozenset()
    replaces: frozenset[str] = frozenset()
    opens: bool = False

    @property
    def rows(self) -> Table:
        return cast(Table, self.table.__table__)

    def digest(self, row: Mapping[Any, Any]) -> str:
        content = [[name, _canonicalise(row[name])] for name in self.columns]
        return hashlib.sha256(to_json(content)).hexdigest()


class Record(NamedTuple):
    """A row to be written and vouched for. Without a session there is no chain, only the row.

    `token` is that of the lease under which it is written; None when no lease is needed.
    """

    kind: Kind
    write: Literal["insert", "update", "upsert"]
    session_id: UUID | None
    values: dict[str, Any]
    token: int | None = None


class Fenced(Exception):
    """Why a commit was refused: `sessions` have another owner by now."""

    def __init__(self, sessions: Iterable[UUID]) -> None:
        super().__init__(f"another process carries on with {', '.join(map(str, sessions))}")


Fence = Callable[[Connection, Mapping[UUID, int]], None]
"""Called within the transaction, after its first write: raises `Fenced` unless the tokens are still the sessions'."""


class AuditTrail:
    """Writes rows together with their links. Those that wait together are committed together."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.kinds: dict[str, Kind] = {}
        self._fence: Fence | None = None
        self._append = GroupCommit(self._commit)

    def vouches_for(self, *kinds: Kind) -> None:
        """Whoever writes rows says which, so that they can be verified."""
        self.kinds |= {kind.name: kind for kind in kinds}

    def set_fence(self, fence: Fence) -> None:
        """Whoever gives out leases says how to tell that one was lost."""
        self._fence = fence

    async def append(
        self,
        kind: Kind,
        values: Mapping[str, Any],
        *,
        session_id: UUID | None,
        write: Literal["insert", "update", "upsert"] = "insert",
        beside: Iterable["Record"] = (),
        at_leisure: bool = False,
        redacted: bool = False,
    ) -> None:
        """Commit the row (`values` hold its `id`), its link, and the rows `beside` it; secrets are taken out first,
        unless the row is `redacted` already.

        `at_leisure`: along with whatever is committed next, or a moment later.
        Raises `LeaseLost` when the session under way has another owner by now.
        """
        record = Record(kind, write, session_id, dict(values), _token(session_id))
        rows = (record if redacted else _clean(record), *map(_clean, beside))
        try:
            await (self._append.later(rows) if at_leisure else self._append(rows))
        except Fenced as e:
            raise LeaseLost(*e.args) from e

    def append_soon(self, kind: Kind, values: Mapping[str, Any], *, session_id: UUID) -> asyncio.Future[None]:
        """As `append`, without waiting: what is appended after it is not committed before it.

        Secrets have been taken out of `values` already.
        """
        return self._append.later((Record(kind, "insert", session_id, dict(values), _token(session_id)),))

    def note(self, record: Record) -> asyncio.Future[None]:
        """Commit a row nobody waits for, along with whatever is committed next."""
        return self._append.later((_clean(record),))

    async def finish(self) -> None:
        await self._append.finish()

    async def _commit(self, orders: list[tuple[Record, ...]]) -> None:
        records = [record for order in orders for record in order]

        def work(db: Connection) -> None:
            heads = _heads(db, records)
            links = [_link(record, heads) for record in records if record.session_id]
            if heads:
                ends = [{"session_id": s, "length": length, "hash": h} for s, (length, h) in heads.items()]
                upsert(db, AuditHeadRow, ends)
            self._check_leases(db, records)
            _write_rows(db, records)
            if links:
                db.execute(insert(CHAIN), links)

        await self.database.write(work)

    def _check_leases(self, db: Connection, records: Iterable[Record]) -> None:
        """After the first write, when the database holds its locks: until the commit nobody can take a lease."""
        held = [(r.session_id, r.token) for r in records if r.session_id and r.token is not None]
        tokens = dict(sorted(held, key=itemgetter(1), reverse=True))  # the oldest of a session
        if self._fence is not None and tokens:
            self._fence(db, tokens)


def _token(session_id: UUID | None) -> int | None:
    context = current_execution_ctx.get()
    mine = context is not None and session_id is not None and context.session_id == str(session_id)
    return context.lease_token if context and mine else None


def _clean(record: Record) -> Record:
    return record._replace(values=REDACT(record.values))


def link_hash(previous: str, session_id: UUID, seq: int, kind: str, row_id: UUID, digest: str) -> str:
    return hashlib.sha256(f"{previous}|{session_id}|{seq}|{kind}|{row_id}|{digest}".encode()).hexdigest()


def _link(record: Record, heads: dict[UUID, Head]) -> dict[str, Any]:
    session_id, kind, row_id = record.session_id, record.kind, record.values["id"]
    assert session_id is not None
    length, previous = heads[session_id]
    digest = kind.digest(record.values)
    link = link_hash(previous, session_id, length + 1, kind.name, row_id, digest)
    heads[session_id] = (length + 1, link)
    return {
        "session_id": session_id,
        "seq": length + 1,
        "kind": kind.name,
        "row_id": row_id,
        "digest": digest,
        "previous_hash": previous,
        "hash": link,
    }


def _heads(db: Connection, records: Iterable[Record]) -> dict[UUID, Head]:
    """Where the chains end that these records are added to."""
    opened = {record.session_id for record in records if record.kind.opens}
    heads = {record.session_id: (0, GENESIS) for record in records if record.session_id}
    if asked := heads.keys() - opened:
        heads |= {
            row.session_id: (row.length, row.hash) for row in db.execute(STORED_HEADS, {"of": list(asked)})
        }
    return heads


def _write_rows(db: Connection, records: Iterable[Record]) -> None:
    """One statement for all rows that are written the same way; what others refer to comes first."""
    order = _order()

    def shape(record: Record) -> tuple[str, int, tuple[str, ...]]:
        return record.write, order[record.kind.table.__tablename__], tuple(record.values)

    for _, alike in groupby(sorted(records, key=shape), key=shape):
        rows = list(alike)
        _write_alike(db, rows[0], [row.values for row in rows])


@cache
def _order() -> dict[str, int]:
    return {table.name: place for place, table in enumerate(Base.metadata.sorted_tables)}


def _write_alike(db: Connection, example: Record, rows: list[dict[str, Any]]) -> None:
    table = example.kind.rows
    match example.write:
        case "insert":
            db.execute(insert(table), rows)
        case "upsert":
            upsert(db, example.kind.table, rows, fixed=example.kind.fixed)
        case "update":
            names = [name for name in example.values if name != "id"]
            found = update(table).where(table.c.id == bindparam("row_id"))
            given = [{"row_id": row["id"], **{f"new_{name}": row[name] for name in names}} for row in rows]
            db.execute(found.values({name: bindparam(f"new_{name}") for name in names}), given)


def _canonicalise(value: Any) -> Any:
    """The same for a value before it was stored and after it was read, whichever database kept it."""
    if value is None or isinstance(value, str | bool):
        return value
    if isinstance(value, dict):
        return [[str(name), _canonicalise(value[name])] for name in sorted(value)]
    if isinstance(value, list | tuple):
        return [_canonicalise(member) for member in value]
    if isinstance(value, int | float):
        return _number(value)
    return plain(value)


def plain(value: Any) -> Any:
    """Ids and moments as JSON can say them, with the same digest."""
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat()
    return str(value) if isinstance(value, UUID | date) else value


def _number(value: float) -> Any:
    """JSON knows no difference between 1 and 1.0, and no NaN."""
    if not math.isfinite(value):
        return None
    return int(value) if abs(value) < 2**53 and value == int(value) else repr(float(value))
