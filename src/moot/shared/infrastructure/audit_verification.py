"""Examines a session's record link by link and names the first that does not hold."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar
from uuid import UUID

from sqlalchemy import RowMapping, Select, Table, func, select
from sqlalchemy.ext.asyncio import AsyncSession

from moot.shared.domain.audit import Break, Chain, Link, Problem, Seal, Verification
from moot.shared.domain.errors import NotFound
from moot.shared.domain.messages import DEFAULT_LOCALE, Locale
from moot.shared.domain.texts import SAY
from moot.shared.infrastructure.audit_trail import (
    CHAIN,
    ENDED,
    GENESIS,
    LEDGER_KINDS,
    AuditTrail,
    Kind,
    ledger_of,
    link_hash,
    plain,
)
from moot.shared.infrastructure.tables import AuditHeadRow
from moot.shared.infrastructure.transactions import transaction

T = TypeVar("T")
HEADS = AuditHeadRow.__table__.c
Kinds = Mapping[str, Kind]
"""Every kind of link there can be, by name."""


async def verify(
    trail: AuditTrail, session_id: UUID, locale: Locale = DEFAULT_LOCALE, *, workspace: str | None = None
) -> Verification:
    """With a `workspace`, in its ledger too. Raises `NotFound` when there is no record of the session at all."""
    async with transaction(trail.database.session) as db:
        record = await _read_chain(db, session_id, trail.kinds)
        ledger = await _read_ledger(db, workspace, session_id) if workspace is not None else None
    if not (record.length or record.links or any(record.rows.values()) or (ledger and ledger.links)):
        raise NotFound(SAY("audit.no_record", session_id=session_id), code="RECORD_NOT_FOUND")
    listed = ledger.links[0] if ledger and ledger.links else None
    broken = next(_session_breaks(record, trail, ledger, listed), None)
    if broken is None and ledger and listed and (later := next(_breaks(ledger, {}, since=listed.seq), None)):
        broken = Break(seq=later.seq, problem="ledger")
    return _tell(record, trail.kinds, broken, locale)


async def is_listed(trail: AuditTrail, workspace: str, session_id: UUID) -> bool:
    async with transaction(trail.database.session) as db:
        return bool((await _read_ledger(db, workspace, session_id)).links)


async def verify_workspace(
    trail: AuditTrail, workspace: str, sessions: Iterable[UUID], locale: Locale
) -> tuple[Verification, list[Verification]]:
    """The ledger of a workspace; and the sessions that it lists, with others that are to be there."""
    async with transaction(trail.database.session) as db:
        ledger = await _read_ledger(db, workspace)
        heads = select(HEADS.session_id, HEADS.length, HEADS.hash).where(HEADS.ledger == ledger.session_id)
        rows = {row.session_id: dict(row._mapping) for row in await db.execute(heads)}
    ledger = ledger.model_copy(update={"rows": {AuditHeadRow.__tablename__: rows}})
    listed = {link.row_id: link for link in ledger.links}
    found = []
    for session_id in dict.fromkeys([*listed, *sessions]):
        async with transaction(trail.database.session) as db:
            record = await _read_chain(db, session_id, trail.kinds)
        broken = next(_session_breaks(record, trail, ledger, listed.get(session_id)), None)
        found.append(_tell(record, trail.kinds, broken, locale))
    return examine(ledger, LEDGER_KINDS, locale, trail.seal), found


async def read_chain(trail: AuditTrail, session_id: UUID) -> Chain:
    """The record as the database holds it in this moment; raises `NotFound` when there is none."""
    async with transaction(trail.database.session) as db:
        record = await _read_chain(db, session_id, trail.kinds)
    if not record.length and not record.links:
        raise NotFound(SAY("audit.no_record", session_id=session_id), code="RECORD_NOT_FOUND")
    return record


async def _read_chain(db: AsyncSession, session_id: UUID, kinds: Kinds) -> Chain:
    tables = {kind.rows.name: kind.rows for kind in kinds.values()}
    rows = {
        name: await _rows(db, table, columns_of(name, kinds), session_id) for name, table in tables.items()
    }
    return await _read_links(db, session_id, rows=rows)


async def _read_ledger(db: AsyncSession, workspace: str, session_id: UUID | None = None) -> Chain:
    """From the last that it says of a session on, or all of it; without the heads it is over."""
    ledger = ledger_of(workspace)
    said = select(func.max(CHAIN.c.seq)).where(CHAIN.c.session_id == ledger, CHAIN.c.row_id == session_id)
    since = 1 if session_id is None else await db.scalar(said)
    if since is None:
        return Chain(session_id=ledger, length=0, head=GENESIS, links=[], rows={})
    return await _read_links(db, ledger, since=since)


async def _read_links(db: AsyncSession, chain_id: UUID, *, since: int = 1, **known: Any) -> Chain:
    """A link that cannot be read is missing: the next one says so."""
    wanted = select(CHAIN).where(CHAIN.c.session_id == chain_id, CHAIN.c.seq >= since).order_by(CHAIN.c.seq)
    links = [link for link in await _fetch(db, wanted, Link.model_validate) if link is not None]
    kept = select(HEADS.length, HEADS.hash.label("head"), HEADS.signature).where(HEADS.session_id == chain_id)
    ends = await _fetch(db, kept, lambda row: {**row, "length": int(row["length"])})
    end = (ends and ends[0]) or {"length": 0, "head": GENESIS}
    return Chain.model_validate({"session_id": chain_id, "links": links, "rows": {}, **end, **known})


def _session_breaks(
    record: Chain, trail: AuditTrail, ledger: Chain | None, listed: Link | None
) -> Iterator[Break]:
    """Of the record by itself; then of how it stands in the ledger: `listed` is the last that this says of it."""
    end = {"session_id": record.session_id, "length": record.length, "hash": record.head}
    opened = any(link.kind in trail.kinds and trail.kinds[link.kind].opens for link in record.links)
    if listed and not record.length and not record.links:
        yield Break(seq=0, problem="gone", kind="session", row_id=record.session_id)
    yield from _breaks(record, trail.kinds)
    if listed and listed.kind == ENDED.name and listed.digest != ENDED.digest(end):
        yield Break(seq=record.length, problem="other_end")
    if opened and ledger is not None and listed is None:
        yield Break(seq=record.length, problem="unlisted")
    yield from _signature_breaks(trail.seal, record, *([ledger] if ledger and listed else []))


def _signature_breaks(seal: Seal | None, *chains: Chain) -> Iterator[Break]:
    """One of them signed is enough, as each vouches for those before it; a signature that is wrong is too many."""
    if seal is None:
        return
    signed = [seal.holds(c.session_id, c.length, c.head, c.signature) for c in chains if c.signature]
    if not all(signed):
        yield Break(seq=chains[0].length, problem="forged")
    if not signed and chains[0].length:
        yield Break(seq=chains[0].length, problem="unsigned")


def examine(chain: Chain, kinds: Kinds, locale: Locale, seal: Seal | None = None) -> Verification:
    """Needs no database: whoever has the chain and its rows can do it."""
    broken = next(_breaks(chain, kinds), None) or next(_signature_breaks(seal, chain), None)
    return _tell(chain, kinds, broken, locale)


def _tell(chain: Chain, kinds: Kinds, broken: Break | None, locale: Locale) -> Verification:
    pruned = {link.row_id for link in chain.links if link.kind in kinds and kinds[link.kind].replaces}
    if broken is None:
        said = SAY("pruning.intact" if pruned else "audit.intact", links=len(chain.links), pruned=len(pruned))
    else:
        named = {"kind": broken.kind or "?", "row_id": broken.row_id or "?"}
        said = SAY(f"audit.{broken.problem}", seq=broken.seq, **named)
    return Verification(
        session_id=chain.session_id,
        intact=broken is None,
        links=len(chain.links),
        head=chain.head,
        pruned=len(pruned),
        first_break=broken,
        explanation=said.in_locale(locale),
    )


def columns_of(table: str, kinds: Kinds) -> list[str]:
    """The columns of a table that links can vouch for, its key among them."""
    vouched = (name for kind in kinds.values() if kind.rows.name == table for name in kind.columns)
    return list(dict.fromkeys(["id", *vouched]))


async def _rows(
    db: AsyncSession, table: Table, columns: Sequence[str], session_id: UUID
) -> dict[UUID, dict[str, Any]]:
    owner = table.c.session_id if "session_id" in table.c else table.c.id
    mine = select(*(table.c[name] for name in columns)).where(owner == session_id).order_by(table.c.id)
    rows = await _fetch(db, mine, lambda row: {name: plain(row[name]) for name in columns})
    if all(rows):
        return {UUID(row["id"]): row for row in rows if row}
    ids = await _fetch(db, mine.with_only_columns(table.c.id), lambda row: UUID(str(row["id"])))
    return {row_id or UUID(int=n): row or {} for n, (row_id, row) in enumerate(zip(ids, rows, strict=True))}


async def _fetch(db: AsyncSession, wanted: Select[Any], read: Callable[[RowMapping], T]) -> list[T | None]:
    """What `read` makes of each row, in order; None of one that cannot be read."""
    try:
        return [read(row) for row in (await db.execute(wanted)).mappings()]
    except Exception:  # noqa: BLE001  # bulkhead: what somebody wrote into a row may break any reader of it
        count = await db.scalar(select(func.count()).select_from(wanted.subquery())) or 0
    if count == 1:
        return [None]
    return [row for n in range(count) for row in await _fetch(db, wanted.limit(1).offset(n), read)]


def _breaks(chain: Chain, kinds: Kinds, *, since: int = 1) -> Iterator[Break]:
    links, standing = chain.links, _find_standing(chain.links, kinds)
    last = since - 1 + len(links)
    previous = GENESIS if since == 1 else links[0].previous_hash
    for place, link in enumerate(links, since):
        if link.seq > place:
            yield Break(seq=place, problem="removed")
        if link.previous_hash != previous or _hash_at(chain, link, link.seq) != link.hash:
            moved = any(_hash_at(chain, other, place, previous) == other.hash for other in links)
            yield _of(link, "reordered" if moved else "changed")
        if link.seq in standing:
            yield from _row_breaks(link, kinds[link.kind], chain)
        previous = link.hash
    if chain.length > last:
        yield Break(seq=last + 1, problem="cut_off")
    if chain.length < last:
        yield _of(links[max(chain.length - since + 1, 0)], "added")
    if previous != chain.head:
        yield Break(seq=last, problem="changed")
    yield from _find_unvouched(chain, kinds)


def _find_standing(links: Sequence[Link], kinds: Kinds) -> set[int]:
    """Links whose rows must be as they say: the newest of each kind, unless a later one took its place."""
    newest: dict[tuple[str, UUID], int] = {}
    for link in links:
        if link.kind in kinds:
            for earlier in kinds[link.kind].replaces:
                newest.pop((earlier, link.row_id), None)
            newest[link.kind, link.row_id] = link.seq
    return set(newest.values())


def _row_breaks(link: Link, kind: Kind, chain: Chain) -> Iterator[Break]:
    row = chain.rows.get(kind.rows.name, {}).get(link.row_id)
    if row is None:
        yield _of(link, "removed")
    elif not row:
        yield _of(link, "unreadable")
    elif not row.keys() >= set(kind.columns) or kind.digest(row) != link.digest:
        yield _of(link, "changed")


def _find_unvouched(chain: Chain, kinds: Kinds) -> Iterator[Break]:
    """A row of the session, or a column, that no link vouches for was put there by somebody else."""
    vouched = {link.row_id for link in chain.links}
    for table, rows in chain.rows.items():
        name = next((kind.name for kind in kinds.values() if kind.rows.name == table), table)
        columns = set(columns_of(table, kinds))
        for row_id, row in rows.items():
            if row_id not in vouched or row.keys() - columns:
                yield Break(seq=len(chain.links) + 1, problem="added", kind=name, row_id=row_id)


def _hash_at(chain: Chain, link: Link, seq: int, previous: str | None = None) -> str:
    before = link.previous_hash if previous is None else previous
    return link_hash(before, chain.session_id, seq, link.kind, link.row_id, link.digest)


def _of(link: Link, problem: Problem) -> Break:
    return Break(seq=link.seq, problem=problem, kind=link.kind, row_id=link.row_id)
