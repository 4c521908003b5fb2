"""The chain: one append-only list per session that vouches for every row of its record.

A link holds the digest of the row it was written with, in the same transaction, and a hash over itself and all links
before it. Where the chain ends is kept apart. So whoever changes, removes, reorders or cuts off afterwards is found
by `verify`. The ledger of a workspace is such a chain over the heads of its sessions: a session that was removed, or
given another end, is missed there. Whoever can rewrite all of it is found only where heads are signed with a key.
"""

import asyncio
import hashlib
import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from functools import cache
from itertools import groupby
from operator import itemgetter
from typing import Any, Literal, NamedTuple, cast
from uuid import NAMESPACE_OID, UUID, uuid5

from pydantic_core import to_json
from sqlalchemy import Connection, Table, bindparam, insert, select, update

from moot.shared.domain.audit import Seal
from moot.shared.infrastructure.database import Database
from moot.shared.infrastructure.execution_context import LeaseLost, current_execution_ctx
from moot.shared.infrastructure.redaction import REDACT
from moot.shared.infrastructure.tables import AuditEntryRow, AuditHeadRow, Base
from moot.shared.infrastructure.transactions import GroupCommit, upsert

GENESIS = "0" * 64
CHAIN = cast(Table, AuditEntryRow.__table__)
STORED_HEADS = (
    select(AuditHeadRow.__table__)
    .where(AuditHeadRow.session_id.in_(bindparam("of", expanding=True)))
    .order_by(AuditHeadRow.session_id)
    .with_for_update()
)


class Head(NamedTuple):
    """Where a chain ends; see `AuditHeadRow`. `sound`: it may be signed, as what was there before it was."""

    length: int = 0
    hash: str = GENESIS
    ledger: UUID | None = None
    closed: bool = False
    sound: bool = True


@dataclass(frozen=True)
class Kind:
    """What a link can vouch for: these columns of a row of this table. An upsert leaves `fixed` ones as they are.

    From then on it stands for the row in place of the links of the kinds that it `replaces`. One that `opens` a
    chain is always its first, one that `closes` it has its end listed in the ledger, and whatever comes later too.
    """

    name: str
    table: type[Base]
    columns: tuple[str, ...]
    fixed: frozenset[str] = frozenset()
    replaces: frozenset[str] = frozenset()
    opens: bool = False
    closes: bool = False

    @property
    def rows(self) -> Table:
        return cast(Table, self.table.__table__)

    def digest(self, row: Mapping[Any, Any]) -> str:
        content = [[name, _canonicalise(row[name])] for name in self.columns]
        return hashlib.sha256(to_json(content)).hexdigest()


LISTED = Kind("session_listed", AuditHeadRow, ("session_id",))
ENDED = Kind(
    "session_head", AuditHeadRow, ("session_id", "length", "hash"), replaces=frozenset({LISTED.name})
)
LEDGER_KINDS = {kind.name: kind for kind in (LISTED, ENDED)}
"""What a ledger can say of a session: that there is one, and where its record ends."""


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

    def __init__(self, database: Database, seal: Seal | None = None) -> None:
        self.database, self.seal = database, seal
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
        return self._append.later((_clean(record._replace(token=_token(record.session_id))),))

    async def vouch(self, work: Callable[[Connection], Iterable[Record]]) -> None:
        """Commit the rows that `work` writes itself, with a link for each that it says it has written."""
        await self.database.write(lambda db: self._add_links(db, list(work(db))))

    async def sign_ledger(self, workspace: str) -> None:
        """Sign what is there, as somebody who has verified it: from then on it must stay signed."""
        ledger = ledger_of(workspace)

        def work(db: Connection) -> None:
            heads = self._read_heads(db, [ledger])
            self._store_heads(db, {chain: head._replace(sound=True) for chain, head in heads.items()})

        await self.database.write(work)

    async def finish(self) -> None:
        await self._append.finish()

    async def _commit(self, orders: list[tuple[Record, ...]]) -> None:
        records = [record for order in orders for record in order]

        def write_rows(db: Connection) -> None:
            self._check_leases(db, records)
            _write_rows(db, records)

        await self.database.write(lambda db: self._add_links(db, records, write_rows))

    def _add_links(
        self,
        db: Connection,
        records: Sequence[Record],
        write_rows: Callable[[Connection], None] | None = None,
    ) -> None:
        """The ledger comes last: everybody in the workspace waits for it, so it is held for a moment only."""
        heads = self._heads(db, records)
        links = [_link(record, heads) for record in records if record.session_id]
        self._store_heads(db, heads)
        if write_rows is not None:
            write_rows(db)
        opened = {record.session_id for record in records if record.kind.opens}
        listed = {session: head for session, head in heads.items() if head.closed or session in opened}
        links += self._list_in_ledgers(db, listed)
        if links:
            db.execute(insert(CHAIN), links)

    def _heads(self, db: Connection, records: Iterable[Record]) -> dict[UUID, Head]:
        """Where the chains end that these records are added to; nobody else adds to them until the commit."""
        opened = {record.session_id for record in records if record.kind.opens}
        heads = {record.session_id: Head() for record in records if record.session_id}
        return heads | self._read_heads(db, heads.keys() - opened)

    def _read_heads(self, db: Connection, chains: Collection[UUID]) -> dict[UUID, Head]:
        rows = db.execute(STORED_HEADS, {"of": list(chains)}) if chains else ()
        return {
            row.session_id: Head(row.length, row.hash, row.ledger, row.closed, self._is_sound(row))
            for row in rows
        }

    def _is_sound(self, row: Any) -> bool:
        end = (row.session_id, row.length, row.hash, row.signature)
        return row.length == 0 or (self.seal is not None and self.seal.holds(*end))

    def _store_heads(self, db: Connection, heads: Mapping[UUID, Head]) -> None:
        """What was not signed before is not signed now: a signature must not cover what somebody slipped in."""
        if heads:
            rows = [{"session_id": chain, **self._sign(chain, head)} for chain, head in heads.items()]
            upsert(db, AuditHeadRow, rows)

    def _sign(self, chain: UUID, head: Head) -> dict[str, Any]:
        signature = self.seal.sign(chain, head.length, head.hash) if self.seal and head.sound else None
        known = {"length": head.length, "hash": head.hash, "ledger": head.ledger, "closed": head.closed}
        return known | {"signature": signature}

    def _list_in_ledgers(self, db: Connection, sessions: Mapping[UUID, Head]) -> list[dict[str, Any]]:
        ledgers = {head.ledger for head in sessions.values() if head.ledger}
        if not ledgers:
            return []
        upsert(db, AuditHeadRow, [{"session_id": ledger, **FIRST} for ledger in sorted(ledgers)], fixed=FIRST)
        ends = self._read_heads(db, ledgers)
        links = [_link(_list(session, head), ends) for session, head in sessions.items()]
        self._store_heads(db, ends)
        return links

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


def ledger_of(workspace: str) -> UUID:
    """The chain over the heads of a workspace."""
    return uuid5(NAMESPACE_OID, f"moot:{workspace}")


FIRST = {"length": 0, "hash": GENESIS, "closed": False}


def _list(session_id: UUID, head: Head) -> Record:
    """What a ledger is to say of a session."""
    row = {"id": session_id, "session_id": session_id, "length": head.length, "hash": head.hash}
    return Record(ENDED if head.closed else LISTED, "insert", head.ledger, row)


def _link(record: Record, heads: dict[UUID, Head]) -> dict[str, Any]:
    session_id, kind, row_id = record.session_id, record.kind, record.values["id"]
    assert session_id is not None
    head = heads[session_id]
    seq, previous = head.length + 1, head.hash
    digest = kind.digest(record.values)
    link = link_hash(previous, session_id, seq, kind.name, row_id, digest)
    ledger = ledger_of(record.values["workspace_id"]) if kind.opens or kind.closes else head.ledger
    heads[session_id] = Head(seq, link, ledger, head.closed or kind.closes, head.sound)
    return {
        "session_id": session_id,
        "seq": seq,
        "kind": kind.name,
        "row_id": row_id,
        "digest": digest,
        "previous_hash": previous,
        "hash": link,
    }


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
