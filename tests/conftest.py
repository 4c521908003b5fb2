"""Fixtures every test may use. What is slow to make starts with the first test that asks for it."""

import asyncio
import gc
import os
import re
import signal
import sys
from collections.abc import AsyncIterator, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from shutil import copyfile
from typing import TYPE_CHECKING
from zlib import crc32

import hypothesis
import pytest
import structlog

from moot.shared.infrastructure.database import Database
from moot.shared.infrastructure.redaction import REDACT
from tests.fakes import clock as clocks  # noqa: F401 - before whoever keeps hold of `time.monotonic` is imported
from tests.fakes.clock import FixedClock
from tests.fakes.llm_server import LLMServer, running_llm_server
from tests.postgres import Postgres, running_postgres

if TYPE_CHECKING:
    from tests.entry.forked import Forge

BACKENDS = ["sqlite", "postgres"]
WHOLE_DESK = (
    *("tests/entry/", "tests/intake/"),
    *(
        f"tests/jobs/test_{name}.py"
        for name in ("batches", "delivery", "engine", "schedules_at_work", "watch")
    ),
    *(f"tests/coordinator/test_{name}.py" for name in ("replay", "resume", "retry", "previous", "waiting")),
    *(
        f"tests/governance/test_{name}.py"
        for name in ("coordinator_integration", "alignment_opinion", "waking")
    ),
    *(f"tests/llm_platform/test_{name}.py" for name in ("llm_service", "model_turns", "search_from_record")),
)
"""Where tests say nothing about one database; those of the code that speaks to it run on both."""
BY_TURNS = ((BACKENDS, WHOLE_DESK), (["en-US", "zh-CN"], ("tests/web/test_walks.py",)))
"""What a test could see both of and sees one of, and where: a walk takes seconds, and leads the same way in both."""

# What was compiled is kept, whatever the machine is set to: each worker and each `moot` would compile it all anew.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# A desk of a test takes nothing from the queue unless the test is about that: an engine takes a while to start.
os.environ["MOOT_WORKER"] = "off"

# Whatever is imported and collected is needed: to look again and again for what is not takes seconds.
gc.disable()

# Each loop asks who handles Ctrl+C. To see that a handler is no number, Python 3.11 puts it into words, with all that
# the test has made; later ones do as here.
_numbered = signal._int_to_enum  # type: ignore[attr-defined]
signal._int_to_enum = lambda value, kind: _numbered(value, kind) if isinstance(value, int) else value  # type: ignore[attr-defined]

# How long an example takes says how busy the machine is, and nothing about the code.
hypothesis.settings.register_profile(
    "moot",
    max_examples=int(os.environ.get("MOOT_TEST_EXAMPLES", "50")),
    deadline=None,
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
)
hypothesis.settings.load_profile("moot")


def plain_logs() -> None:
    """Structlog as it comes, but for tracebacks that show every local variable: those take seconds."""
    structlog.reset_defaults()
    renderer = structlog.dev.ConsoleRenderer(exception_formatter=structlog.dev.plain_traceback)
    structlog.configure(processors=[*structlog.get_config()["processors"][:-1], renderer])


plain_logs()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A test of the whole desk that could see both databases, or languages, sees one; `MOOT_TEST_FULL`: both."""
    ids = {item.nodeid for item in items}
    if not os.environ.get("MOOT_TEST_FULL"):
        items[:] = [
            item
            for item in items
            if not any(item.nodeid.startswith(where) and _waits(item, ids, both) for both, where in BY_TURNS)
        ]


def _waits(item: pytest.Item, ids: set[str], both: Sequence[str]) -> bool:
    """It is there for both, and it is the turn of the other one."""
    on = {one: re.sub("|".join(both), one, item.nodeid) for one in both}
    turn = both[crc32(item.nodeid.partition("[")[0].encode()) % len(both)]
    return ids.issuperset(on.values()) and item.nodeid != on[turn]


def pytest_collection_finish() -> None:
    """What was imported and collected stays to the end, and what a test leaves behind is looked for now and then."""
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)
    gc.enable()


def pytest_sessionfinish() -> None:
    """Look once for what nobody is to find: pytest would look twice."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def logging_as_it_was() -> Iterator[None]:
    """Whoever sets up logging sets it up for its own test."""
    yield
    plain_logs()


@pytest.fixture(autouse=True)
def secrets_as_they_were() -> Iterator[None]:
    """Keys of other tests need not be looked for in all that is written down."""
    known = set(REDACT._secrets), REDACT._secrets_in_json
    yield
    REDACT._secrets, REDACT._secrets_in_json = known


@pytest.fixture(scope="session", autouse=True)
def once_for_all_desks() -> None:
    from tests.fakes.rules import share_shipped_rules
    from tests.fakes.statements import share_statements

    share_shipped_rules()
    share_statements()


@pytest.fixture
def clock() -> FixedClock:
    return FixedClock(datetime(2026, 6, 30, 10, 0, tzinfo=UTC))


@pytest.fixture
def home(tmp_path: Path, sqlite_template: Path) -> Path:
    """Where Moot keeps its files in this test: nothing yet but an empty database, as migrating takes a while."""
    copyfile(sqlite_template, tmp_path / "moot.db")
    return tmp_path


@pytest.fixture
def bare_home(home: Path) -> Path:
    """`home` before anything is in it."""
    (home / "moot.db").unlink()
    return home


@pytest.fixture
async def llm_server() -> AsyncIterator[LLMServer]:
    """A model to talk to over HTTP."""
    async with running_llm_server() as server:
        yield server


@pytest.fixture(params=BACKENDS)
def database(request: pytest.FixtureRequest) -> Database:
    """A migrated, empty database: the test runs once on SQLite and once on PostgreSQL."""
    chosen: Database = request.getfixturevalue(f"{request.param}_database")
    return chosen


@pytest.fixture(params=BACKENDS)
def empty_url(request: pytest.FixtureRequest) -> str:
    """The URL of a database without any table, once of SQLite and once of PostgreSQL."""
    chosen: str = request.getfixturevalue(f"empty_{request.param}_url")
    return chosen


@pytest.fixture
async def sqlite_database(home: Path) -> AsyncIterator[Database]:
    database = Database(f"sqlite:///{home / 'moot.db'}")
    yield database
    await database.close()


@pytest.fixture
async def postgres_database(postgres: Postgres) -> AsyncIterator[Database]:
    url = await postgres.lend()
    database = Database(url)
    yield database
    await database.close()
    await postgres.take_back(url)


@pytest.fixture
def empty_sqlite_url(home: Path) -> str:
    return f"sqlite:///{home / 'empty.db'}"


@pytest.fixture
async def empty_postgres_url(postgres: Postgres) -> AsyncIterator[str]:
    url = await postgres.create(migrated=False)
    yield url
    await postgres.drop(url)


@pytest.fixture(scope="session")
def sqlite_template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """With the tables of the engine, which takes a while to make them in a new database."""
    from dbos import DBOS

    file = tmp_path_factory.mktemp("sqlite") / "template.db"
    asyncio.run(_upgrade(f"sqlite:///{file}"))
    DBOS.migrate(f"sqlite:///{file}")
    return file


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    with running_postgres() as server:
        yield server


@pytest.fixture(scope="session")
def forge() -> Iterator["Forge"]:
    """Starts with the first test that needs it: to import everything takes as long as a dozen commands."""
    from tests.entry.forked import Forge

    forge = Forge()
    yield forge
    forge.close()


async def _upgrade(url: str) -> None:
    database = Database(url)
    await database.upgrade()
    await database.close()
