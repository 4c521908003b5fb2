"""The walk of `docs/akshare.md`, against pages that answer as the real ones do: from an empty home to a verdict."""

import json
import re
import shlex
from datetime import date
from math import sin
from pathlib import Path
from types import SimpleNamespace

import pytest

from moot.modules.market_data.domain.facts import DATASETS, MARGIN
from moot.modules.market_data.domain.trading_rules import trading_calendar
from moot.modules.market_data.infrastructure.lake import Lake
from moot.modules.market_data.infrastructure.providers import akshare
from moot.modules.market_data.infrastructure.providers.outside import Pace
from moot.shared.domain.symbol import Market
from tests.entry.inside import Run, inside
from tests.fakes import eastmoney_server
from tests.fakes.eastmoney_reports import at
from tests.fakes.eastmoney_server import EastmoneyServer

pytest.importorskip("akshare", reason="the akshare extra is not installed")
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of pandas, in the library

PAGE = Path(__file__).parents[2] / "docs" / "akshare.md"
SESSIONS = trading_calendar(Market.CN).sessions(date(2023, 1, 3), date(2024, 6, 28))
PERIODS = ["2023-03-31", "2023-06-30", "2023-09-30", "2023-12-31", "2024-03-31"]
SHARES = 1.25e9


def commands() -> list[list[str]]:
    """What the page has a reader type, in order."""
    blocks = re.findall(r"^```sh\n(.*?)^```$", PAGE.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    return [shlex.split(line)[1:] for block in blocks for line in block.splitlines()]


def _close(number: int) -> float:
    return round(20 + 2 * sin(number / 17), 2)


def _line(number: int, day: date) -> str:
    price, before = _close(number), _close(number - 1)
    low, high = min(price, before) - 0.1, max(price, before) + 0.1
    figures = f"{before:.2f},{price:.2f},{high:.2f},{low:.2f},10000,{price * 1e6:.2f}"
    return f"{day},{figures},1.50,0.50,{price - before:.2f},0.80"


LIFE = {
    "KLINES": [_line(number, day) for number, day in enumerate(SESSIONS)],
    "VALUATIONS": [
        eastmoney_server.VALUATIONS[0]
        | {
            "TRADE_DATE": at(day.isoformat()),
            "CLOSE_PRICE": _close(n),
            "TOTAL_MARKET_CAP": _close(n) * SHARES,
        }
        for n, day in enumerate(SESSIONS)
    ][::-1],
    "INDICATORS": [
        eastmoney_server.INDICATORS[1] | {"REPORT_DATE": at(period), "NOTICE_DATE": None, "UPDATE_DATE": None}
        for period in PERIODS
    ],
    "MONTHS": [(at(f"2024-0{n}-01"), f"2024年0{n}月份", 0.3 + n / 10) for n in (5, 4, 3, 2, 1)],
    "RATES": [eastmoney_server.RATES[0] | {"TRADE_DATE": at("2024-06-20")}],
}
"""More days, periods and months than other tests need, up to the day that is asked about."""


@pytest.fixture
def pages(monkeypatch: pytest.MonkeyPatch):
    with eastmoney_server.eastmoney_server() as stub:
        for name, rows in LIFE.items():
            monkeypatch.setattr(eastmoney_server, name, rows)
        stub.redirect(monkeypatch)
        monkeypatch.setattr(akshare, "NEWS_URL", f"{stub.url}/search-api-web.eastmoney.com/search/jsonp")
        monkeypatch.setattr(akshare.AkshareProvider, "pace", Pace(calls=100, per_seconds=0.01, concurrency=4))
        monkeypatch.setattr(akshare.AkshareProvider, "hosts", {})
        monkeypatch.setattr("akshare.request.time", SimpleNamespace(sleep=lambda _: None))
        yield stub


@pytest.fixture
def moot(pages: EastmoneyServer, home: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    run = inside(home, monkeypatch)

    async def with_akshare(*arguments: str):
        return await run(*arguments, MOOT_DATA_SOURCES="akshare")

    return with_akshare


async def test_an_empty_home_leads_to_a_verdict_on_a_real_company(moot, home):
    find, sync, status, check, research = commands()
    assert "600519.SH" in (await moot(*find)).stdout
    assert "MOOT_TUSHARE_TOKEN" in (await moot(*sync)).stderr  # for what AKShare lacks
    kept = {of.dataset: of.sources for of in Lake(home / "lake").inventory() if of.rows}
    assert kept == {name: ("akshare",) for name in DATASETS if name != MARGIN.name}
    assert "akshare" in (await moot(*status)).stdout
    assert "600519.SH: " in (await moot(*check)).stdout
    seen = await moot(*research, "--json")
    assert seen.returncode == 0, seen.stderr
    session = json.loads(seen.stdout)
    assert session["verdict"]["action"] in ("BUY", "HOLD", "REDUCE")
    technical = session["expert_results"]["technical_analyst"]["data"]
    assert "[akshare, 2024-06-28]" in technical["input"]
    assert technical["summary_reasoning"].startswith("Guizhou Maotai (600519.SH)")  # as it sounds
    assert {result["status"] for result in session["expert_results"].values()} == {"success"}
