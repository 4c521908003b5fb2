"""Examines a session's record link by link and names the first that does not hold."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from uuid import UUID

from sqlalchemy import RowMapping, select
from sqlalchemy.ext.asyncio import AsyncSession

from moot.shared.domain.audit import Break, Verification
from moot.shared.domain.errors import NotFound
from moot.shared.domain.messages import DEFAULT_LOCALE, Locale
from moot.shared.domain.texts import SAY
from moot.shared.infrastructure.audit_trail import GENESIS, AuditTrail, Kind, link_hash
from moot.shared.infrastructure.tables import AuditEntryRow, AuditHeadRow
from moot.shared.infrastructure.transactions import transaction

Rows = Mapping[str, Mapping[UUID, RowMapping]]
"""What the tables hold of a session, by kind and id."""


async def verify(trail: AuditTrail, session_id: UUID, locale: Locale = DEFAULT_LOCALE) -> Verification:
    """Raises `NotFound` when there is no record of the session at all."""
    async with transaction(trail.database.session) as db:
        found = await db.scalars(
            select(AuditEntryRow).where(AuditEntryRow.session_id == session_id).order_by(AuditEntryRow.seq)
        )
        links = list(found)
        head = await db.get(AuditHeadRow, session_id)
        rows = {kind.name: await _rows(db, kind, session_id) for kind in trail.kinds.values()}
    if head is None and not links:
        raise NotFound(SAY("audit.no_record", session_id=session_id), code="RECORD_NOT_FOUND")
    length, end = (head.length, head.hash) if head else (0, GENESIS)
    broken = next(_breaks(links, length, end, rows, trail.kinds), None)
    return Verification(
        session_id=session_id,
        intact=broken is None,
        links=len(links),
        head=end,
        first_break=broken,
        explanation=_explained(broken, len(links)).in_locale(locale),
    )


def _explained(broken: Break | None, links: int) -> Any:
    if broken is None:
        return SAY("audit.intact", links=links)
    return SAY(
        f"audit.{broken.problem}", seq=broken.seq, kind=broken.kind or "?", row_id=broken.row_id or "?"
    )


async def _rows(db: AsyncSession, kind: Kind, session_id: UUID) -> dict[UUID, RowMapping]:
    table = kind.rows
    owner = table.c.session_id if "session_id" in table.c else table.c.id
    found = await db.execute(select(table).where(owner == session_id))
    return {row["id"]: row for row in found.mappings()}


def _breaks(
    links: Sequence[AuditEntryRow], length: int, end: str, rows: Rows, kinds: Mapping[str, Kind]
) -> Iterator[Break]:
    newest = {(link.kind, link.row_id): link.seq for link in links}
    previous = GENESIS
    for place, link in enumerate(links, 1):
        if link.seq > place:
            yield Break(seq=place, problem="removed")
        if link.previous_hash != previous or _hash_at(link, link.seq) != link.hash:
            moved = any(_hash_at(other, place, previous) == other.hash for other in links)
            yield _of(link, "reordered" if moved else "changed")
        kind = kinds.get(link.kind)
        if kind is not None and newest[link.kind, link.row_id] == link.seq:
            yield from _row_breaks(link, kind, rows)
        previous = link.hash
    if length > len(links):
        yield Break(seq=len(links) + 1, problem="cut_off")
    if length < len(links):
        yield _of(links[length], "added")
    if previous != end:
        yield Break(seq=len(links), problem="changed")
    yield from _unvouched(newest, rows, len(links))


def _row_breaks(link: AuditEntryRow, kind: Kind, rows: Rows) -> Iterator[Break]:
    row = rows[link.kind].get(link.row_id)
    if row is None:
        yield _of(link, "removed")
    elif kind.digest(row) != link.digest:
        yield _of(link, "changed")


def _unvouched(newest: Mapping[tuple[str, UUID], int], rows: Rows, links: int) -> Iterator[Break]:
    """A row of the session that no link vouches for was put there by somebody else."""
    vouched = {row_id for _, row_id in newest}
    for kind, of_kind in rows.items():
        for row_id in of_kind.keys() - vouched:
            yield Break(seq=links + 1, problem="added", kind=kind, row_id=row_id)


def _hash_at(link: AuditEntryRow, seq: int, previous: str | None = None) -> str:
    before = link.previous_hash if previous is None else previous
    return link_hash(before, link.session_id, seq, link.kind, link.row_id, link.digest)


def _of(link: AuditEntryRow, problem: Any) -> Break:
    return Break(seq=link.seq, problem=problem, kind=link.kind, row_id=link.row_id)
