"""One writer for many: what waits is committed together, and a bad row costs nobody but its owner."""

import asyncio
import sqlite3
from contextlib import closing

import pytest
from sqlalchemy import text

from moot.shared.domain.errors import Unavailable
from moot.shared.infrastructure.database import Database
from moot.shared.infrastructure.transactions import GroupCommit


@pytest.fixture
async def ledger(database: Database):
    """A table that refuses the number 13."""

    def create(db):
        db.execute(text("CREATE TABLE ledger (n INTEGER PRIMARY KEY, CHECK (n <> 13))"))

    await database.write(create)
    return database


def entry(number: int):
    def insert(db):
        db.execute(text("INSERT INTO ledger VALUES (:n)"), {"n": number})

    return insert


async def entries(database: Database) -> list[int]:
    async with database.session() as db:
        return list(await db.scalars(text("SELECT n FROM ledger ORDER BY n")))


async def test_what_was_written_is_committed_when_the_call_returns(ledger):
    await ledger.write(entry(1))
    assert await entries(ledger) == [1]


async def test_many_at_once_all_arrive(ledger):
    await asyncio.gather(*(ledger.write(entry(n)) for n in range(100, 200)))
    assert await entries(ledger) == list(range(100, 200))


async def test_one_bad_row_is_refused_alone(ledger):
    outcomes = await asyncio.gather(*(ledger.write(entry(n)) for n in range(10, 17)), return_exceptions=True)
    assert [type(o) for o in outcomes] == [type(None)] * 3 + [Unavailable] + [type(None)] * 3
    assert await entries(ledger) == [10, 11, 12, 14, 15, 16]


async def test_a_writer_that_failed_works_again(ledger):
    with pytest.raises(Unavailable):
        await ledger.write(entry(13))
    await ledger.write(entry(14))
    assert await entries(ledger) == [14]


async def test_a_cancelled_caller_does_not_take_the_others_down(ledger):
    impatient = asyncio.create_task(ledger.write(entry(1)))
    patient = asyncio.create_task(ledger.write(entry(2)))
    await asyncio.sleep(0)
    impatient.cancel()
    await patient
    assert 2 in await entries(ledger)


async def test_closing_waits_for_what_is_still_to_be_written(sqlite_database, home):
    def create(db):
        db.execute(text("CREATE TABLE ledger (n INTEGER)"))

    await sqlite_database.write(create)
    order = asyncio.create_task(sqlite_database.write(entry(1)))
    await asyncio.sleep(0)
    await sqlite_database.close()
    await order
    with closing(sqlite3.connect(home / "moot.db")) as later:
        assert later.execute("SELECT n FROM ledger").fetchall() == [(1,)]


async def test_callers_that_wait_together_share_a_commit():
    commits: list[list[int]] = []

    async def commit(numbers: list[int]):
        await asyncio.sleep(0)
        commits.append(numbers)

    write = GroupCommit(commit)
    await asyncio.gather(*(write(n) for n in range(50)))
    assert len(commits) <= 2, "the first may go alone, the rest go together"
    assert [n for group in commits for n in group] == list(range(50))
