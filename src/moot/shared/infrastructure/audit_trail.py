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
from typing import Any, NamedTuple, cast
from uuid import NAMESPACE_OID, UUID, uuid5

import structlog
from pydantic_core import to_json
from sqlalchemy import Connection, Table, bindparam, select

from moot.shared.domain.audit import Seal
from moot.shared.infrastructure.database import Database
from moot.shared.infrastructure.execution_context import LeaseLost, current_context, current_execution_ctx
from moot.shared.infrastructure.packing import find_heavy, pack
from moot.shared.infrastructure.redaction import REDACT
from moot.shared.infrastructure.tables import AuditEntryRow, AuditHeadRow, Base
from moot.shared.infrastructure.transactions import GroupCommit, InDoubt, Write, upsert, write_rows
from moot.shared.infrastructure.working_time import off_the_clock

logger = structlog.get_logger(__name__)

GENESIS = "0" * 64
CHAIN = cast(Table, AuditEntryRow.__table__)
STORED_HEADS = (
    select(AuditHeadRow.__table__)
    .where(AuditHeadRow.session_id.in_(bindparam("of", expanding=True)))
    .order_by(AuditHeadRow.session_id)
    .with_for_update()
)


SAID_AS_IT_IS = frozenset({str, type(None), bool, UUID})
"""What JSON says in one way only."""


class Head(NamedTuple):
    """Where a chain ends, as `AuditHeadRow` keeps it. `signature` None: what was there before was not signed."""

    session_id: UUID
    length: int = 0
    hash: str = GENESIS
    ledger: UUID | None = None
    closed: bool = False
    signature: str | None = ""


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
    write: Write
    session_id: UUID | None
    values: dict[str, Any]
    token: int | None = None


class Fenced(Exception):
    """Why a commit was refused: the sessions that it names have another owner by now."""


Fence = Callable[[Connection, Mapping[UUID, int]], None]
"""Called within the transaction, after its first write: raises `Fenced` unless the tokens are still the sessions'."""
Follower = Callable[[Connection, Sequence[Mapping[str, Any]]], None]
"""Called within the transaction, with the rows it writes: may write its own, which stand or fall with them."""


class AuditTrail:
    """Writes rows together with their links. Those that wait together are committed together."""

    def __init__(self, database: Database, seal: Seal | None = None) -> None:
        self.database, self.seal = database, seal
        self.kinds: dict[str, Kind] = {}
        self._fence: Fence | None = None
        self._followers: dict[str, Follower] = {}
        self._in_doubt: set[UUID] = set()
        self._append = GroupCommit(self._commit)
        self._packing = GroupCommit(self.pack_heavy)
        database.finish_first(self.finish)

    def vouches_for(self, *kinds: Kind) -> None:
        """Whoever writes rows says which, so that they can be verified."""
        self.kinds |= {kind.name: kind for kind in kinds}

    def set_fence(self, fence: Fence) -> None:
        """Whoever gives out leases says how to tell that one was lost."""
        self._fence = fence

    def follow(self, kind: str, follower: Follower) -> None:
        """Whoever has to act on rows of a kind says how."""
        self._followers[kind] = follower

    async def append(
        self,
        kind: Kind,
        values: Mapping[str, Any],
        *,
        session_id: UUID | None,
        write: Write = "insert",
        beside: Iterable["Record"] = (),
        at_leisure: bool = False,
    ) -> None:
        """Commit the row (`values` hold its `id`), its link, and the rows `beside` it; secrets are taken out first.

        `at_leisure`: along with whatever is committed next, or a moment later. A database that is gone is waited for,
        as long as anybody's patience with it lasts; a node's own time stands still. Only who would open a session is
        told at once, and waits behind nobody: nothing has begun yet.
        Raises `LeaseLost` when the session under way has another owner by now.
        """
        rows = (Record(kind, write, session_id, dict(values), _token(session_id)), *beside)
        try:
            with off_the_clock(current_context().tally.waiting):
                if kind.opens and self.database.patience.tried:
                    await self._write_once(_clean([*rows]))
                else:
                    await (self._append.later(rows) if at_leisure else self._append(rows))
        except Fenced as e:
            raise LeaseLost(*e.args) from e

    def note(self, record: Record) -> asyncio.Future[None]:
        """Commit a row nobody waits for, along with whatever is committed next, and not after it."""
        return self._append.later((record._replace(token=_token(record.session_id)),))

    async def vouch(self, work: Callable[[Connection], Iterable[Record]]) -> None:
        """Commit the rows that `work` writes itself, with a link for each that it says it has written."""
        await self.database.write(lambda db: self._add_links(db, list(work(db)), written=True))

    async def sign_ledger(self, workspace: str) -> None:
        """Sign what is there, as somebody who has verified it: from then on it must stay signed."""

        def work(db: Connection) -> None:
            ledgers = self._read_heads(db, [ledger_of(workspace)]).values()
            self._store_heads(db, [head._replace(signature="") for head in ledgers])

        await self.database.write(work)

    async def pack(self, session_id: UUID, *, anew: bool = False) -> None:
        """Keep the long texts of its rows together, in less room; nothing that they say changes.

        `anew`, for whoever knows all kinds there are: also those that are packed, without what has gone.
        """
        await self.database.write(lambda db: pack(db, self._tables(), session_id, anew=anew))

    async def pack_heavy(self, ended: Sequence[UUID]) -> None:
        """Those of the sessions that are worth it, when nobody waits for them any more: one that is not packed is as
        good, only larger."""
        try:
            for session_id in await self.database.write(lambda db: find_heavy(db, self._tables(), ended)):
                await self.pack(session_id)
        except Exception:  # bulkhead: what was recorded stands as it is
            logger.warning("session not packed", exc_info=True)

    async def finish(self) -> None:
        await self._append.finish()
        await self._packing.finish()

    async def _commit(self, orders: list[tuple[Record, ...]]) -> None:
        records = _clean([record for order in orders for record in order])
        if any(record.kind.opens for record in records):
            await self._write_once(records)
        else:
            await self.database.patience.outlast(lambda: self._write_once(records))
        for ended in {record.session_id for record in records if record.session_id and record.kind.closes}:
            self._packing.later(ended)

    async def _write_once(self, records: Sequence[Record]) -> None:
        """However often it is tried: those of a commit in doubt may be stored already."""
        ids = {record.values["id"] for record in records}
        doubtful = ids & self._in_doubt

        def work(db: Connection) -> None:
            missing = self._find_missing(db, records) if doubtful else records
            self._add_links(db, missing, written=False)

        try:
            await self.database.write(work)
        except InDoubt:
            self._in_doubt |= ids
            raise
        self._in_doubt -= ids

    def _find_missing(self, db: Connection, records: Sequence[Record]) -> list[Record]:
        """Without those that have their link; of those that have no chain, the new ones that have their row."""
        chains = {record.session_id for record in records if record.session_id}
        self._read_heads(db, chains)  # a server that has only lost us may be committing them still
        rows = [record.values["id"] for record in records]
        links = select(CHAIN.c.kind, CHAIN.c.row_id, CHAIN.c.digest)
        links = links.where(CHAIN.c.session_id.in_(chains), CHAIN.c.row_id.in_(rows))
        linked = {tuple(link) for link in db.execute(links)}

        def is_stored(record: Record) -> bool:
            kind, row_id = record.kind, record.values["id"]
            if record.session_id:
                return (kind.name, row_id, kind.digest(record.values)) in linked
            its_row = select(kind.rows.c.id).where(kind.rows.c.id == row_id)
            return record.write == "insert" and db.scalar(its_row) is not None

        return [record for record in records if not is_stored(record)]

    def _tables(self) -> set[type[Base]]:
        return {kind.table for kind in self.kinds.values()}

    def _add_links(self, db: Connection, records: Sequence[Record], *, written: bool) -> None:
        """The ledger comes last: everybody in the workspace waits for it, so it is held for a moment only."""
        opened = {record.session_id for record in records if record.kind.opens}
        heads = {record.session_id: Head(record.session_id) for record in records if record.session_id}
        heads |= self._read_heads(db, heads.keys() - opened)
        links = [_link(record, heads) for record in records if record.session_id]
        self._store_heads(db, heads.values())
        if not written:
            self._check_leases(db, records)
            _write_rows(db, records)
            self._tell_followers(db, records)
        listed = [head for head in heads.values() if head.closed or head.session_id in opened]
        links += self._list_in_ledgers(db, listed)
        if links:
            write_rows(db, "insert", AuditEntryRow, links)

    def _read_heads(self, db: Connection, chains: Collection[UUID]) -> dict[UUID, Head]:
        """Nobody else adds to these chains until the commit."""
        rows = db.execute(STORED_HEADS, {"of": list(chains)}) if chains else ()
        heads = [Head(*row) for row in rows]
        return {head.session_id: head._replace(signature=self._find_signed(head)) for head in heads}

    def _find_signed(self, head: Head) -> str | None:
        """What was not signed before is not signed now: a signature must not cover what somebody slipped in."""
        signed = self.seal is not None and self.seal.holds(*head[:3], head.signature)
        return "" if signed or not head.length else None

    def _store_heads(self, db: Connection, heads: Collection[Head]) -> None:
        if heads:
            upsert(db, AuditHeadRow, [head._replace(signature=self._sign(head))._asdict() for head in heads])

    def _sign(self, head: Head) -> str | None:
        return self.seal.sign(*head[:3]) if self.seal and head.signature is not None else None

    def _list_in_ledgers(self, db: Connection, sessions: Iterable[Head]) -> list[dict[str, Any]]:
        """That there are these sessions; of those that are closed, where they end."""
        ledgers = {head.ledger for head in sessions if head.ledger}
        if not ledgers:
            return []
        unless_there = [Head(ledger, signature=None)._asdict() for ledger in sorted(ledgers)]
        upsert(db, AuditHeadRow, unless_there, fixed=Head._fields)
        ends = self._read_heads(db, ledgers)
        links = []
        for head in sessions:
            listed = {"id": head.session_id, **head._asdict()}
            links.append(_link(Record(ENDED if head.closed else LISTED, "insert", head.ledger, listed), ends))
        self._store_heads(db, ends.values())
        return links

    def _tell_followers(self, db: Connection, records: Iterable[Record]) -> None:
        for kind, follower in self._followers.items():
            if rows := [record.values for record in records if record.kind.name == kind]:
                follower(db, rows)

    def _check_leases(self, db: Connection, records: Iterable[Record]) -> None:
        """After the first write, when the database holds its locks: until the commit nobody can take a lease."""
        held = [(r.session_id, r.token) for r in records if r.session_id and r.token is not None]
        tokens = dict(sorted(held, key=itemgetter(1), reverse=True))  # the oldest of a session
        if self._fence is not None and tokens:
            self._fence(db, tokens)


def _token(session_id: UUID | None) -> int | None:
    context = current_execution_ctx.get()
    return context.lease_token if context and context.session_id == str(session_id) else None


def _clean(records: list[Record]) -> list[Record]:
    """Looked through all at once: most have nothing to hide."""
    if REDACT.finds_nothing_in([record.values for record in records]):
        return records
    return [record._replace(values=REDACT(record.values)) for record in records]


def link_hash(previous: str, session_id: UUID, seq: int, kind: str, row_id: UUID, digest: str) -> str:
    return hashlib.sha256(f"{previous}|{session_id}|{seq}|{kind}|{row_id}|{digest}".encode()).hexdigest()


def ledger_of(workspace: str) -> UUID:
    """The chain over the heads of a workspace."""
    return uuid5(NAMESPACE_OID, f"moot:{workspace}")


def _link(record: Record, heads: dict[UUID, Head]) -> dict[str, Any]:
    session_id, kind, row_id = record.session_id, record.kind, record.values["id"]
    assert session_id is not None
    head = heads[session_id]
    seq, previous = head.length + 1, head.hash
    digest = kind.digest(record.values)
    link = link_hash(previous, session_id, seq, kind.name, row_id, digest)
    ledger = ledger_of(record.values["workspace_id"]) if kind.opens or kind.closes else head.ledger
    heads[session_id] = Head(session_id, seq, link, ledger, head.closed or kind.closes, head.signature)
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
    order = _order(len(Base.metadata.tables))

    def shape(record: Record) -> tuple[Write, int, tuple[str, ...]]:
        return record.write, order[record.kind.table.__tablename__], tuple(record.values)

    for (write, *_), alike in groupby(sorted(records, key=shape), key=shape):
        written = list(alike)
        kind, rows = written[0].kind, [record.values for record in written]
        write_rows(db, write, kind.table, rows, fixed=kind.fixed)


@cache
def _order(_known: int) -> dict[str, int]:
    """Contexts bring their tables when they are loaded: then it is another one."""
    return {table.name: place for place, table in enumerate(Base.metadata.sorted_tables)}


def _canonicalise(value: Any) -> Any:
    """The same for a value before it was stored and after it was read, whichever database kept it."""
    kind = type(value)  # quicker to ask than `isinstance`, and asked of all that is stored
    if kind in SAID_AS_IT_IS:
        return value
    if isinstance(value, dict):
        return [[str(name), _canonicalise(value[name])] for name in sorted(value)]
    if isinstance(value, (list, tuple)):
        return [_canonicalise(member) for member in value]
    if isinstance(value, (int, float)):  # JSON knows no difference between 1 and 1.0, and no NaN
        whole = math.isfinite(value) and abs(value) < 2**53 and value == int(value)
        return int(value) if whole else repr(float(value)) if math.isfinite(value) else None
    return plain(value)


def plain(value: Any) -> Any:
    """Ids and moments as JSON can say them, with the same digest."""
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat()
    return str(value) if isinstance(value, UUID | date) else value
