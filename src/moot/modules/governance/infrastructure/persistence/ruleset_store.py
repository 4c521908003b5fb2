"""Rulesets and activations in SQL. Numbers and sequences are the next free ones; who comes second counts again."""

from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime
from typing import TypeVar
from uuid import uuid4

from sqlalchemy import ColumnElement, Select, func, insert, select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.asyncio import AsyncSession

from moot.modules.governance.domain.rulesets import SHIPPED, Activation, Ruleset, RulesetStore
from moot.modules.governance.domain.texts import SAY
from moot.modules.governance.infrastructure.persistence.tables import RulesetActivationRow, RulesetRow
from moot.shared.domain.errors import Conflict
from moot.shared.infrastructure.database import Database
from moot.shared.infrastructure.transactions import transaction

T = TypeVar("T")
MOST_TRIES = 100


class TakenMeanwhile(Conflict):
    """Another process took the number between the look and the insert."""

    def __init__(self) -> None:
        super().__init__(SAY("rules.taken_meanwhile"))


class SqlRulesetStore(RulesetStore):
    def __init__(self, database: Database) -> None:
        self._database = database

    async def save(self, ruleset: Ruleset, *, shipped: bool = False) -> Ruleset:
        async def work(db: AsyncSession) -> Ruleset:
            here = RulesetRow.workspace_id == ruleset.workspace
            there = await db.scalar(
                select(RulesetRow).where(here, RulesetRow.digest == ruleset.digest).limit(1)
            )
            if there:
                return _ruleset(there)
            numbers = await db.execute(
                select(func.min(RulesetRow.number), func.max(RulesetRow.number)).where(here)
            )
            saved = ruleset._replace(number=_next(*numbers.one(), shipped))
            values = saved._asdict() | {"id": uuid4(), "rules": list(saved.rules)}
            values["workspace_id"] = values.pop("workspace")
            await db.execute(insert(RulesetRow).values(values))
            return saved

        return await self._done(work)

    async def get(self, workspace: str, number: int) -> Ruleset | None:
        return await self._found(workspace, RulesetRow.number == number)

    async def get_by_digest(self, workspace: str, digest: str) -> Ruleset | None:
        return await self._found(workspace, RulesetRow.digest == digest)

    async def list(self, workspace: str) -> Sequence[Ruleset]:
        wanted = select(RulesetRow).where(RulesetRow.workspace_id == workspace)
        async with transaction(self._database.session) as db:
            return [_ruleset(row) for row in await db.scalars(wanted.order_by(RulesetRow.number.desc()))]

    async def activate(self, workspace: str, number: int, by: str, at: datetime) -> Activation | None:
        async def work(db: AsyncSession) -> Activation | None:
            wanted = select(RulesetRow).where(
                RulesetRow.workspace_id == workspace, RulesetRow.number == number
            )
            row = await db.scalar(wanted)
            return await _put_in_force(db, row, by, at) if row else None

        return await self._done(work)

    async def roll_back(self, workspace: str, by: str, at: datetime) -> Activation | None:
        async def work(db: AsyncSession) -> Activation | None:
            now = (await db.execute(_newest(workspace))).first()
            if now is None:
                return None
            others = _newest(workspace).where(RulesetRow.id != now[1].id)
            before = (await db.execute(others)).first()
            return await _put_in_force(db, before[1], by, at) if before else None

        return await self._done(work)

    async def active(self, workspace: str) -> Activation | None:
        async with transaction(self._database.session) as db:
            return await _active(db, workspace)

    async def _found(self, workspace: str, condition: ColumnElement[bool]) -> Ruleset | None:
        wanted = select(RulesetRow).where(RulesetRow.workspace_id == workspace, condition)
        async with transaction(self._database.session) as db:
            row = await db.scalar(wanted.limit(1))
        return _ruleset(row) if row else None

    async def _done(self, work: Callable[[AsyncSession], Awaitable[T]]) -> T:
        """The outcome of `work`, committed."""
        outcome: list[T] = []

        async def once(db: AsyncSession) -> None:
            try:
                outcome[:] = [await work(db)]
            except IntegrityError as e:
                raise TakenMeanwhile() from e

        for left in reversed(range(MOST_TRIES)):
            try:
                await self._database.write(once)
                break
            except TakenMeanwhile:
                if not left:
                    raise
        return outcome[0]


def _next(lowest: int | None, highest: int | None, shipped: bool) -> int:
    if shipped:
        return SHIPPED if lowest is None or lowest > SHIPPED else lowest - 1
    return max(highest or SHIPPED, SHIPPED) + 1


def _newest(workspace: str) -> Select[RulesetActivationRow, RulesetRow]:
    joined = select(RulesetActivationRow, RulesetRow).join(
        RulesetRow, RulesetRow.id == RulesetActivationRow.ruleset_id
    )
    of_it = joined.where(RulesetActivationRow.workspace_id == workspace)
    return of_it.order_by(RulesetActivationRow.sequence.desc()).limit(1)


async def _active(db: AsyncSession, workspace: str) -> Activation | None:
    newest = (await db.execute(_newest(workspace))).first()
    return newest and _activation(*newest)


async def _put_in_force(db: AsyncSession, row: RulesetRow, by: str, at: datetime) -> Activation:
    now = await _active(db, row.workspace_id)
    if now is not None and now.number == row.number:
        return now
    new = RulesetActivationRow(
        id=uuid4(),
        workspace_id=row.workspace_id,
        sequence=now.sequence + 1 if now else 1,
        ruleset_id=row.id,
        activated_by=by,
        activated_at=at,
    )
    db.add(new)
    await db.flush()
    return _activation(new, row)


def _activation(row: RulesetActivationRow, ruleset: RulesetRow) -> Activation:
    return Activation(row.sequence, ruleset.number, row.activated_by, row.activated_at)


def _ruleset(row: RulesetRow) -> Ruleset:
    return Ruleset(
        row.workspace_id,
        row.number,
        row.digest,
        tuple(row.rules),
        row.note,
        row.created_by,
        row.created_at,
    )
