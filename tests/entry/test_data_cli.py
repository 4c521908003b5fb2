"""`moot data` as a user runs it, against a Tushare on this machine."""

import asyncio
import json
import os
import random
import re
import sqlite3
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, date, datetime
from pathlib import Path
from signal import SIGKILL
from subprocess import CompletedProcess

import polars as pl
import pytest

from moot.modules.market_data.infrastructure.lake import Lake
from tests.entry.forked import A_COMMAND, Forge
from tests.entry.serving import until
from tests.fakes.clock import FixedClock
from tests.fakes.tushare_server import NO_PERMISSION, OLD_NO_PERMISSION, TOKEN, TushareServer
from tests.fakes.tushare_tables import tushare_tables

NOW = FixedClock(datetime(2026, 11, 10, tzinfo=UTC))
RANGE = ("--from", "2025-09-01", "--to", "2026-10-30")
CODES = ("600001.SH", "600002.SH", "600003.SH", "600004.SH")
KILLS = int(os.environ.get("MOOT_TEST_KILLS", "4"))
SYMBOLS = ("600001.SH", "600002.SH", "600004.SH")


@pytest.fixture(scope="module")
def tables():
    return asyncio.run(tushare_tables(NOW, CODES, date(2025, 1, 1)))


@pytest.fixture
def tushare(tables):
    with TushareServer(tables) as server:
        yield server


def source(url: str) -> dict[str, str]:
    return {"MOOT_TUSHARE_TOKEN": TOKEN, "MOOT_TUSHARE_URL": url} if url else {}


@pytest.fixture
def moot(forge: Forge) -> Callable[..., CompletedProcess[str]]:
    def moot(*arguments: str, home: Path, url: str = "", **more: str) -> CompletedProcess[str]:
        return forge.run(*arguments, home=home, COLUMNS="120", **source(url), **more)

    return moot


def test_a_synced_share_can_be_researched_and_every_call_is_on_the_record(moot, home, tushare):
    synced = moot("data", "sync", "600001.SH", "sh600002", *RANGE, home=home, url=tushare.url)
    assert "0 refused" in synced.stdout, synced.stdout + synced.stderr
    first = len(tushare.requests)
    again = moot("data", "sync", "600001.SH", "600002", *RANGE, home=home, url=tushare.url)
    assert "0 rows added" in again.stdout
    assert tushare.calls()["daily"] == tushare.calls()["daily_basic"] == 2, "one call a symbol, never again"
    assert len(tushare.requests) - first <= tushare.calls()["cn_pmi"] * 8, "only what failed is tried again"

    status = moot("data", "status", home=home, url=tushare.url).stdout
    assert re.search(r"daily bars +600001\.SH +\d+ +2025-09-01 +2026-10-30 +0 .*tushare", status)

    seen = moot("research", "600001.SH", "--as-of", "2026-10-30", "--json", home=home, url=tushare.url)
    body = json.loads(seen.stdout)
    assert (seen.returncode, body["symbol"]) == (0, "600001.SH")
    succeeded = {name for name, item in body["expert_results"].items() if item["status"] == "success"}
    assert succeeded >= {"technical_analyst", "financial_auditor", "valuation_modeler", "catalyst_detective"}
    assert "Synthetic" not in str(body["notices"])

    with sqlite3.connect(home / "moot.db") as db:
        logged = db.execute("SELECT count(*) FROM external_api_call_logs").fetchone()[0]
    assert logged == len(tushare.requests)
    for file in home.rglob("*"):
        assert not file.is_file() or TOKEN.encode() not in file.read_bytes(), f"the token is in {file}"


def test_a_share_nobody_synced_is_fetched_when_it_is_asked_for(moot, home, tushare):
    seen = moot(
        "research", "600004.SH", "--experts", "technical_analyst", "--json", home=home, url=tushare.url
    )
    assert seen.returncode == 0, seen.stdout
    assert tushare.calls()["daily"] == 1


def test_a_company_is_found_by_code_name_and_initials(moot, home, tushare):
    for text in ("SHSE.600001", "幻山", "Mirage Hill"):
        assert "600001.SH" in moot("data", "find", text, home=home, url=tushare.url).stdout, text
    nothing = moot("data", "find", "000300.SH", home=home, url=tushare.url)
    assert (nothing.returncode, "index" in nothing.stderr) == (2, True)


def test_the_members_of_an_index_are_a_universe(moot, home, tables):
    members = [
        {"index_code": "399300.SZ", "con_code": code, "trade_date": day}
        for code, day in (("600001.SH", "20261030"), ("600002.SH", "20261030"), ("600003.SH", "20260930"))
    ]
    with TushareServer({**tables, "index_weight": members}) as server:
        seen = moot("data", "sync", "--universe", "csi300", *RANGE, home=home, url=server.url)
        asked = {
            request["params"].get("ts_code") for request in server.requests if request["api_name"] == "daily"
        }
    assert asked == {"600001.SH", "600002.SH"}, seen.stderr


def test_without_a_source_the_demo_market_is_found_and_the_lake_is_empty(moot, home):
    assert "900001.DEMO" in moot("data", "find", "幻山", home=home).stdout
    assert "The lake is empty" in moot("data", "status", home=home).stdout


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("sync",), "Name at least one symbol"),
        (("sync", "600001.SH", "--from", "soon"), "--from: soon is not a date"),
        (("sync", "600001.SH", "--from", "2026-02-01", "--to", "2026-01-01"), "later than the end"),
        (("sync", "--universe", "moon"), "universe: moon is neither"),
        (("import", "nowhere.csv"), "There is no file nowhere.csv."),
    ],
)
def test_bad_usage_is_a_sentence(moot, home, tushare, arguments, sentence):
    seen = moot("data", *arguments, home=home, url=tushare.url)
    assert (seen.returncode, sentence in seen.stderr) == (2, True), seen.stderr


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("MOOT_DATA_SOURCES", "bloomberg"),
        ("MOOT_DATA_ORDER", '{"prices": ["tushare"]}'),
        ("MOOT_DATA_REQUESTS_PER_MINUTE", '{"bloomberg": 60}'),
    ],
)
def test_a_source_or_dataset_that_does_not_exist_is_named(moot, home, setting, value):
    seen = moot("data", "status", home=home, **{setting: value})
    assert (seen.returncode, setting in seen.stderr) == (2, True)


def test_a_wrong_token_says_what_to_set(moot, home, tables):
    from tests.fakes.tushare_server import BAD_TOKEN

    with TushareServer(tables) as server:
        server.always = dict.fromkeys(["stock_basic", "namechange"], BAD_TOKEN)
        seen = moot("data", "sync", "600001.SH", *RANGE, home=home, url=server.url)
    assert seen.returncode != 0
    assert "MOOT_TUSHARE_TOKEN" in seen.stderr + seen.stdout


def test_data_can_be_examined(moot, home, tushare):
    moot("data", "sync", "600001.SH", *RANGE, home=home, url=tushare.url)
    seen = moot("data", "check", "600001.SH", home=home, url=tushare.url)
    assert seen.returncode == 0, seen.stderr
    assert "things worth a look" in seen.stdout


def test_a_file_can_be_imported(moot, home):
    rows = [f"600009.SH,2026-06-{day:02},10,10.5,9.5,10,10,1000,10000,1.0" for day in (1, 2, 3)]
    file = home / "bars.csv"
    file.write_text(
        "ts_code,trade_date,open,high,low,close,pre_close,volume,amount,adj_factor\n" + "\n".join(rows)
    )
    seen = moot("data", "import", str(file), home=home)
    assert "daily bars: 3 rows imported, for 1 symbol (600009.SH)." in seen.stdout, seen.stdout + seen.stderr


def facts(home: Path) -> dict[str, object]:
    """Everything the lake holds, by file: its rows, and what it claims to cover; not when it was stored."""
    kept = {f"{c.dataset}/{c.subject}": (c.ranges, c.sources) for c in Lake(home / "lake").inventory()}
    rows = {
        str(p.relative_to(home)): pl.read_parquet(p).to_dicts() for p in (home / "lake").rglob("*.parquet")
    }
    return {**kept, **rows}


async def test_a_sync_killed_again_and_again_ends_with_the_same_lake(moot, forge, home, tables):
    chance = random.Random(7)
    sync = ("data", "sync", *SYMBOLS, *RANGE)
    undisturbed, killed = home / "undisturbed", home / "killed"
    undisturbed.mkdir()
    killed.mkdir()
    with TushareServer(tables, latency=0.02) as server:
        moot(*sync, home=undisturbed, url=server.url)
        needed, calls = server.calls()["daily"], len(server.requests)
        for _ in range(KILLS):
            enough = len(server.requests) + chance.randint(1, calls // 4)
            here = {"MOOT_HOME": str(killed), **source(server.url)}
            pid = await forge.start(*sync, log=home / "killed.txt", **here)
            ending = asyncio.create_task(forge.ended(pid, within=A_COMMAND))
            await until(lambda: len(server.requests) >= enough or ending.done(), A_COMMAND)  # noqa: B023
            await asyncio.sleep(chance.uniform(0, 0.2))
            with suppress(ProcessLookupError):
                os.kill(pid, SIGKILL)
            await ending
        moot(*sync, home=killed, url=server.url)
        assert server.calls()["daily"] - needed <= needed + KILLS * len(SYMBOLS), (
            "what was kept is not fetched again"
        )
    assert facts(killed) == facts(undisturbed)


def test_what_the_token_may_not_read_is_told_once_and_takes_nothing_down(moot, home, tables):
    with TushareServer(tables) as server:
        server.always = {"pledge_stat": NO_PERMISSION, "fina_indicator": OLD_NO_PERMISSION}
        seen = moot("data", "sync", *SYMBOLS, *RANGE, home=home, url=server.url)
    assert (seen.returncode, "0 failed" in seen.stdout) == (0, True), seen.stdout + seen.stderr
    told = sorted(line for line in seen.stderr.splitlines() if "no permission" in line)
    assert [line.split(":")[0] for line in told] == ["financial reports", "share pledges"]
    assert all(api in line for api, line in zip(("fina_indicator", "pledge_stat"), told, strict=True)), told
    assert "More points on tushare.pro open it" in seen.stderr
