"""Rulesets and activations in SQL. Numbers and sequences are the next free ones; who comes second counts again."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import datetime
from typing import TypeVar
from uuid import uuid4

from sqlalchemy import ColumnElement, Connection, insert, select
from sqlalchemy.exc import IntegrityError

from moot.modules.governance.domain.rulesets import SHIPPED, Activation, Ruleset, RulesetStore, RulesMovedOn
from moot.modules.governance.domain.texts import SAY
from moot.modules.governance.infrastructure.persistence.tables import RulesetActivationRow, RulesetRow
from moot.shared.domain.errors import Conflict
from moot.shared.infrastructure.database import Database, patient
from moot.shared.infrastructure.transactions import transaction

T = TypeVar("T")
MOST_TRIES = 100


class TakenMeanwhile(Conflict):
    """Another process took the number between the look and the insert."""


class SqlRulesetStore(RulesetStore):
    def __init__(self, database: Database) -> None:
        self._database = database

    async def save(self, ruleset: Ruleset, *, shipped: bool = False) -> Ruleset:
        def work(db: Connection) -> Ruleset:
            workspace = ruleset.workspace_id
            same = _rulesets(db, workspace, RulesetRow.digest == ruleset.digest)
            if there := next((found for found in same if found.intact), None):
                return there
            numbers = list(db.scalars(select(RulesetRow.number).where(RulesetRow.workspace_id == workspace)))
            down, up = min(numbers, default=SHIPPED + 1), max(numbers, default=SHIPPED)
            saved = ruleset._replace(number=min(down, SHIPPED + 1) - 1 if shipped else max(up, SHIPPED) + 1)
            db.execute(insert(RulesetRow).values(id=uuid4(), **saved._asdict()))
            return saved

        return await self._done(work)

    async def get(self, workspace: str, number: int) -> Ruleset | None:
        found = await self._look(lambda db: _rulesets(db, workspace, RulesetRow.number == number))
        return found[0] if found else None

    async def list(self, workspace: str) -> Sequence[Ruleset]:
        return await self._look(lambda db: _rulesets(db, workspace))

    async def activate(
        self, workspace: str, number: int, by: str, at: datetime, instead_of: int | None = None
    ) -> Activation:
        def work(db: Connection) -> Activation:
            now = _active(db, workspace)
            # the shipped rules are in force by themselves, under the number this version of the package has for them
            in_force = now.number if now else min(instead_of or SHIPPED, SHIPPED)
            if instead_of not in (None, in_force):
                raise RulesMovedOn(instead_of, in_force)
            if now is not None and now.number == number:
                return now
            new = Activation(now.sequence + 1 if now else 1, number, by, at)
            mine = RulesetRow.workspace_id == workspace
            row = {"id": uuid4(), "workspace_id": workspace, "sequence": new.sequence}
            row["ruleset_id"] = db.scalar(select(RulesetRow.id).where(mine, RulesetRow.number == number))
            db.execute(insert(RulesetActivationRow).values(row | {"activated_by": by, "activated_at": at}))
            return new

        return await self._done(work)

    async def before(self, workspace: str) -> Activation | None:
        def look(db: Connection) -> Activation | None:
            now = _active(db, workspace)
            return now and _active(db, workspace, RulesetRow.number != now.number)

        return await self._look(look)

    async def active(self, workspace: str) -> Activation | None:
        return await self._look(lambda db: _active(db, workspace))

    @patient
    async def _look(self, look: Callable[[Connection], T]) -> T:
        async with transaction(self._database.session) as db:
            return await (await db.connection()).run_sync(look)

    @patient
    async def _done(self, work: Callable[[Connection], T]) -> T:
        """The outcome of `work`, committed."""

        def once(db: Connection) -> T:
            try:
                return work(db)
            except IntegrityError as e:
                raise TakenMeanwhile(SAY("rules.taken_meanwhile")) from e

        for _ in range(MOST_TRIES - 1):
            with suppress(TakenMeanwhile):
                return await self._database.write(once)
        return await self._database.write(once)


def _rulesets(db: Connection, workspace: str, *conditions: ColumnElement[bool]) -> Sequence[Ruleset]:
    """The newest first."""
    fields = [getattr(RulesetRow, name) for name in Ruleset._fields]
    wanted = select(*fields).where(RulesetRow.workspace_id == workspace, *conditions)
    return [Ruleset(*row) for row in db.execute(wanted.order_by(RulesetRow.number.desc()))]


def _active(db: Connection, workspace: str, *conditions: ColumnElement[bool]) -> Activation | None:
    """The newest, without the rules: this is asked once a second for as long as anything is decided."""
    row = RulesetActivationRow
    told = select(row.sequence, RulesetRow.number, row.activated_by, row.activated_at)
    of_it = told.join(RulesetRow, RulesetRow.id == row.ruleset_id).where(row.workspace_id == workspace)
    newest = db.execute(of_it.where(*conditions).order_by(row.sequence.desc()).limit(1))
    found = newest.first()
    return found and Activation(*found)
