"""The walk of `docs/tushare.md`, taken against a Tushare on this machine: from an empty home to a verdict."""

import asyncio
import json
import re
import shlex
from collections.abc import Iterator
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pytest

from moot.modules.market_data.domain.facts import COMPANIES, DEEP, FLOWS, INDEX_BARS, STATEMENTS, Dataset
from moot.modules.market_data.infrastructure.lake import Lake
from tests.entry.inside import Run, inside
from tests.fakes.clock import FixedClock
from tests.fakes.tushare_server import NO_PERMISSION, TOKEN, TushareServer
from tests.fakes.tushare_tables import tushare_tables

PAGE = Path(__file__).parents[2] / "docs" / "tushare.md"
CODE = "600519.SH"
DAY = {"trade_date": "20261030"}
BAR = {**DAY, "open": 10.0, "high": 11.0, "low": 9.0, "close": 10.5, "pre_close": 10.2, "change": 0.3}
TOLD = {"ann_date": "20261028", "end_date": "20260930"}
LINES = {
    "income": {"revenue": 1.3e11, "n_income": 6.7e10},
    "balancesheet": {"inventories": 5e10, "total_share": 1256197800.0},
    "cashflow": {"depr_fa_coga_dpba": 1.9e9},
}
DEEPER: dict[str, dict[str, Any]] = {
    "namechange": {"name": "旧名酒业", "start_date": "20040618", "end_date": "20200101"},
    "forecast": {**TOLD, "type": "略增", "p_change_min": 5.0, "net_profit_min": 6.6e6},
    "pledge_stat": {"end_date": "20261023", "unrest_pledge": 63.16, "pledge_ratio": 0.3},
    "share_float": {
        "ann_date": "20261020",
        "float_date": "20270104",
        "float_share": 1e6,
        "holder_name": "甲",
    },
    "stk_holdernumber": {**TOLD, "holder_num": 187302},
    "stk_holdertrade": {**TOLD, "holder_name": "甲", "holder_type": "G", "in_de": "IN", "change_vol": 1e4},
    "margin_detail": {**DAY, "rzye": 1.6e10},
    "moneyflow": {**DAY, "buy_lg_amount": 30.0, "sell_lg_amount": 10.0},
    "hk_hold": {**DAY, "vol": 8.6e7, "ratio": 6.84},
}


def commands() -> list[list[str]]:
    """What the page has a reader type, in order."""
    blocks = re.findall(r"^```sh\n(.*?)^```$", PAGE.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    return [shlex.split(line)[1:] for block in blocks for line in block.splitlines()]


@pytest.fixture(scope="module")
def tables() -> dict[str, list[dict[str, Any]]]:
    clock = FixedClock(datetime(2026, 11, 10, tzinfo=UTC))
    found = asyncio.run(tushare_tables(clock, [CODE], date(2025, 1, 1)))
    for api, row in DEEPER.items():
        found[api] = [{"ts_code": CODE, **row}, *found.get(api, [])]
    for api, lines in LINES.items():
        found[api][0] |= lines  # of the newest report
    found["index_daily"] = [{"ts_code": "000300.SH", **BAR}]
    found["index_classify"] = [{"index_code": "801125.SI", "industry_name": "白酒Ⅱ", "level": "L2"}]
    found["sw_daily"] = [{"ts_code": "801125.SI", **BAR}]
    found["cn_pmi"] = [{"month": f"2026{month:02}", "pmi010000": 50.1} for month in range(9, 0, -1)]
    found["shibor_lpr"] = [{"date": f"2026{month:02}20", "1y": 3.0} for month in range(10, 0, -1)]
    return found


@pytest.fixture
def tushare(tables: dict[str, list[dict[str, Any]]]) -> Iterator[TushareServer]:
    with TushareServer(tables) as server:
        yield server


@pytest.fixture
def moot(home: Path, monkeypatch: pytest.MonkeyPatch, tushare: TushareServer) -> Run:
    run = inside(home, monkeypatch)

    async def at_the_stub(*arguments: str, **more: str) -> Any:
        seen = {"TUSHARE_TOKEN": TOKEN, "MOOT_TUSHARE_URL": tushare.url, "COLUMNS": "160", **more}
        return await run(*arguments, **seen)

    return at_the_stub


async def kept(home: Path, dataset: Dataset[Any]) -> list[Any]:
    return list(await Lake(home / "lake").read(dataset, CODE if dataset.by_symbol else "CN"))


async def test_a_token_leads_to_a_verdict(moot: Run, home: Path, tushare: TushareServer) -> None:
    init, find, sync, status, check, research = commands()
    assert (await moot(*init)).returncode == 0
    assert CODE in (await moot(*find)).stdout
    synced = await moot(*sync)
    assert (synced.returncode, synced.stderr) == (0, ""), synced.stdout
    assert {dataset.name for dataset in DEEP if not await kept(home, dataset)} == set()
    shown = (await moot(*status)).stdout
    for label in ("money flows", "share pledges", "financial statements", "index bars", "lock-up expiries"):
        assert label in shown, label
    assert re.search(r"daily bars +600519\.SH .*2026-10-30, \d+ sessions old", shown), shown
    checked = (await moot(*check)).stdout
    assert "2026-10-30: the newest of the index bars; too old to judge by." in checked, checked
    seen = await moot(*research, "--json")
    assert seen.returncode == 0, seen.stderr
    assert json.loads(seen.stdout)["verdict"]["action"] in ("BUY", "HOLD", "REDUCE")
    assert tushare.requests[0]["token"] == TOKEN


async def test_what_came_is_in_our_units_and_as_it_was_known(moot: Run, home: Path) -> None:
    for line in commands()[:3]:
        await moot(*line)
    stated = (await kept(home, STATEMENTS))[-1]
    assert (stated.revenue, stated.inventory, stated.shares) == (1.3e11, 5e10, 1256197800.0)
    assert stated.depreciation == 1.9e9
    assert [flow.net_inflow for flow in await kept(home, FLOWS)] == [200_000.0]
    assert {bar.industry for bar in await kept(home, INDEX_BARS)} == {None, "白酒"}
    assert [known.name for known in (await kept(home, COMPANIES))[0].names] == ["旧名酒业"]
    names = "SELECT count(*) AS n FROM flows"
    asked = await moot("data", "sql", names, "--as-of", "2026-10-30", "--json")
    assert json.loads(asked.stdout)["rows"] == [[0]], "what Hong Kong holds is told the next morning"


async def test_missing_points_are_told_once_and_the_walk_goes_on(
    moot: Run, home: Path, tushare: TushareServer
) -> None:
    tushare.always = dict.fromkeys(
        ("cashflow", "namechange", "suspend_d", "pledge_stat", "sw_daily", "hk_hold"), NO_PERMISSION
    )
    init, _, sync, *_, research = commands()
    await moot(*init)
    synced = await moot(*sync)
    assert (synced.returncode, "0 failed" in synced.stdout) == (0, True), synced.stderr
    assert sorted(line.split(":")[0] for line in synced.stderr.splitlines()) == [
        "financial reports",
        "financial statements",
        "index bars",
        "money flows",
        "share pledges",
    ]
    assert synced.stderr.count("no permission for pledge_stat") == 1
    assert (await moot(*research)).returncode == 0
