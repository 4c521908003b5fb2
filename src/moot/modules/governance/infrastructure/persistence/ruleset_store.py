"""Rulesets and activations in SQL. Numbers and sequences are the next free ones; who comes second counts again."""

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any, TypeVar
from uuid import uuid4

from sqlalchemy import ColumnElement, Connection, Row, func, insert, select
from sqlalchemy.exc import IntegrityError

from moot.modules.governance.domain.rulesets import (
    SHIPPED,
    Activation,
    Ruleset,
    RulesetStore,
    RulesMovedOn,
)
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
        def work(db: Connection) -> Ruleset:
            here = RulesetRow.workspace_id == ruleset.workspace_id
            same = select(RulesetRow.__table__).where(here, RulesetRow.digest == ruleset.digest)
            if there := next((found for found in map(_ruleset, db.execute(same)) if found.intact), None):
                return there
            numbers = db.execute(select(func.min(RulesetRow.number), func.max(RulesetRow.number)).where(here))
            saved = ruleset._replace(number=_next(*numbers.one(), shipped))
            db.execute(insert(RulesetRow).values(id=uuid4(), **saved._asdict()))
            return saved

        return await self._done(work)

    async def get(self, workspace: str, number: int) -> Ruleset | None:
        wanted = select(RulesetRow).where(RulesetRow.workspace_id == workspace, RulesetRow.number == number)
        async with transaction(self._database.session) as db:
            row = await db.scalar(wanted)
        return _ruleset(row) if row else None

    async def list(self, workspace: str) -> Sequence[Ruleset]:
        wanted = select(RulesetRow).where(RulesetRow.workspace_id == workspace)
        async with transaction(self._database.session) as db:
            return [_ruleset(row) for row in await db.scalars(wanted.order_by(RulesetRow.number.desc()))]

    async def activate(
        self, workspace: str, number: int, by: str, at: datetime, instead_of: int | None = None
    ) -> Activation | None:
        def work(db: Connection) -> Activation | None:
            now = _active(db, workspace)
            if instead_of is not None:
                _refuse_another(now, instead_of)
            return _put_in_force(db, workspace, number, now, by, at)

        return await self._done(work)

    async def roll_back(self, workspace: str, by: str, at: datetime) -> Activation | None:
        def work(db: Connection) -> Activation | None:
            now, before = _active(db, workspace), _before(db, workspace)
            return _put_in_force(db, workspace, before.number, now, by, at) if before else None

        return await self._done(work)

    async def before(self, workspace: str) -> Activation | None:
        async with transaction(self._database.session) as db:
            return await (await db.connection()).run_sync(_before, workspace)

    async def active(self, workspace: str) -> Activation | None:
        async with transaction(self._database.session) as db:
            return await (await db.connection()).run_sync(_active, workspace)

    async def _done(self, work: Callable[[Connection], T]) -> T:
        """The outcome of `work`, committed."""
        outcome: list[T] = []

        def once(db: Connection) -> None:
            try:
                outcome[:] = [work(db)]
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


def _active(db: Connection, workspace: str, *conditions: ColumnElement[bool]) -> Activation | None:
    """The newest, without the rules: this is asked once a second for as long as anything is decided."""
    row = RulesetActivationRow
    told = select(row.sequence, RulesetRow.number, row.activated_by, row.activated_at)
    of_it = told.join(RulesetRow, RulesetRow.id == row.ruleset_id).where(row.workspace_id == workspace)
    newest = db.execute(of_it.where(*conditions).order_by(row.sequence.desc()).limit(1))
    found = newest.first()
    return found and Activation(*found)


def _before(db: Connection, workspace: str) -> Activation | None:
    now = _active(db, workspace)
    return now and _active(db, workspace, RulesetRow.number != now.number)


def _refuse_another(now: Activation | None, expected: int) -> None:
    """The shipped rules are in force by themselves, under the number this version of the package has for them."""
    as_expected = now.number == expected if now else expected <= SHIPPED
    if not as_expected:
        raise RulesMovedOn(expected, now.number if now else SHIPPED)


def _put_in_force(
    db: Connection, workspace: str, number: int, now: Activation | None, by: str, at: datetime
) -> Activation | None:
    if now is not None and now.number == number:
        return now
    wanted = select(RulesetRow.id).where(RulesetRow.workspace_id == workspace, RulesetRow.number == number)
    ruleset_id = db.scalar(wanted)
    if ruleset_id is None:
        return None
    new = Activation(now.sequence + 1 if now else 1, number, by, at)
    row = {"id": uuid4(), "workspace_id": workspace, "sequence": new.sequence, "ruleset_id": ruleset_id}
    db.execute(insert(RulesetActivationRow).values(row | {"activated_by": by, "activated_at": at}))
    return new


def _ruleset(row: RulesetRow | Row[Any]) -> Ruleset:
    return Ruleset(*(getattr(row, name) for name in Ruleset._fields))
