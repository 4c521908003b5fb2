"""Examines a session's record link by link and names the first that does not hold."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from uuid import UUID

from sqlalchemy import Table, select
from sqlalchemy.ext.asyncio import AsyncSession

from moot.shared.domain.audit import Break, Chain, Link, Problem, Verification
from moot.shared.domain.errors import NotFound
from moot.shared.domain.messages import DEFAULT_LOCALE, Locale, Message
from moot.shared.domain.texts import SAY
from moot.shared.infrastructure.audit_trail import GENESIS, AuditTrail, Kind, link_hash, plain
from moot.shared.infrastructure.tables import AuditEntryRow, AuditHeadRow
from moot.shared.infrastructure.transactions import transaction

Kinds = Mapping[str, Kind]
"""Every kind of link there can be, by name."""


async def verify(trail: AuditTrail, session_id: UUID, locale: Locale = DEFAULT_LOCALE) -> Verification:
    """Raises `NotFound` when there is no record of the session at all."""
    return examine(await read_chain(trail, session_id), trail.kinds, locale)


async def read_chain(trail: AuditTrail, session_id: UUID) -> Chain:
    """The record as the database holds it in this moment; raises `NotFound` when there is none."""
    in_order = select(AuditEntryRow).where(AuditEntryRow.session_id == session_id).order_by(AuditEntryRow.seq)
    async with transaction(trail.database.session) as db:
        links = [Link.model_validate(row, from_attributes=True) for row in await db.scalars(in_order)]
        head = await db.get(AuditHeadRow, session_id)
        if head is None and not links:
            raise NotFound(SAY("audit.no_record", session_id=session_id), code="RECORD_NOT_FOUND")
        tables = {kind.rows.name: kind.rows for kind in trail.kinds.values()}
        rows = {
            name: await _rows(db, table, columns_of(name, trail.kinds), session_id)
            for name, table in tables.items()
        }
    length, end = (head.length, head.hash) if head else (0, GENESIS)
    return Chain(session_id=session_id, length=length, head=end, links=links, rows=rows)


def examine(chain: Chain, kinds: Kinds, locale: Locale) -> Verification:
    """Needs no database: whoever has the chain and its rows can do it."""
    broken = next(_breaks(chain, kinds), None)
    pruned = {link.row_id for link in chain.links if link.kind in kinds and kinds[link.kind].replaces}
    return Verification(
        session_id=chain.session_id,
        intact=broken is None,
        links=len(chain.links),
        head=chain.head,
        pruned=len(pruned),
        first_break=broken,
        explanation=_explain(broken, len(chain.links), len(pruned)).in_locale(locale),
    )


def columns_of(table: str, kinds: Kinds) -> list[str]:
    """The columns of a table that links can vouch for, its key among them."""
    vouched = (name for kind in kinds.values() if kind.rows.name == table for name in kind.columns)
    return list(dict.fromkeys(["id", *vouched]))


def _explain(broken: Break | None, links: int, pruned: int) -> Message:
    if broken is None:
        return (
            SAY("pruning.intact", links=links, pruned=pruned) if pruned else SAY("audit.intact", links=links)
        )
    return SAY(
        f"audit.{broken.problem}", seq=broken.seq, kind=broken.kind or "?", row_id=broken.row_id or "?"
    )


async def _rows(
    db: AsyncSession, table: Table, columns: Sequence[str], session_id: UUID
) -> dict[UUID, dict[str, Any]]:
    owner = table.c.session_id if "session_id" in table.c else table.c.id
    found = await db.execute(select(*(table.c[name] for name in columns)).where(owner == session_id))
    return {row["id"]: {name: plain(row[name]) for name in columns} for row in found.mappings()}


def _breaks(chain: Chain, kinds: Kinds) -> Iterator[Break]:
    links, standing = chain.links, _find_standing(chain.links, kinds)
    previous = GENESIS
    for place, link in enumerate(links, 1):
        if link.seq > place:
            yield Break(seq=place, problem="removed")
        if link.previous_hash != previous or _hash_at(chain, link, link.seq) != link.hash:
            moved = any(_hash_at(chain, other, place, previous) == other.hash for other in links)
            yield _of(link, "reordered" if moved else "changed")
        if link.seq in standing:
            yield from _row_breaks(link, kinds[link.kind], chain)
        previous = link.hash
    if chain.length > len(links):
        yield Break(seq=len(links) + 1, problem="cut_off")
    if chain.length < len(links):
        yield _of(links[chain.length], "added")
    if previous != chain.head:
        yield Break(seq=len(links), problem="changed")
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
