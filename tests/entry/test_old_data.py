"""Data that end long before the question, by program and by command line: no verdict, and their day is told."""

import json
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import httpx
import pytest

import moot
from moot import MootSync
from moot.desk import Moot
from moot.main import create_app
from moot.modules.market_data.domain.facts import BARS, COMPANIES, REPORTS, VALUATIONS
from moot.modules.market_data.infrastructure.lake import Lake
from moot.remote.desk import BlockingDesk
from moot.shared.infrastructure.settings import Settings
from tests.entry.inside import inside
from tests.fakes.market_data import a_bar, a_company, a_report, a_valuation

SHARE = "600519.SH"
LAST = date(2024, 3, 15)
ASKED = "2025-10-16"
QUARTERS = [date(2023, 3, 31), date(2023, 6, 30), date(2023, 9, 30), date(2023, 12, 31)]


def keep_old_data(home: Path) -> None:
    """A year of prices up to `LAST`, and the reports of 2023; no source has more."""
    days = [LAST - timedelta(days=n) for n in reversed(range(365))]
    ids = {"symbol": SHARE}
    kept = {
        COMPANIES: [a_company(SHARE, name="贵州茅台", name_en="Kweichow Moutai", synthetic=False)],
        BARS: [a_bar(day, price=100 + n / 10, **ids) for n, day in enumerate(days)],
        VALUATIONS: [a_valuation(day, pe_ttm=20 + n % 30, pb=3.0, **ids) for n, day in enumerate(days)],
        REPORTS: [
            a_report(day, datetime(day.year, day.month, day.day, tzinfo=UTC) + timedelta(days=30), eps=1.0)
            for day in QUARTERS
        ],
    }
    lake, now = Lake(home / "lake"), datetime(2024, 3, 16, tzinfo=UTC)
    for dataset, facts in kept.items():
        mine = [fact.model_copy(update=ids) for fact in facts]
        lake.store(dataset, SHARE if dataset.by_symbol else "CN", mine, covered=None, at=now)


@pytest.fixture
def desk(home, clock) -> Iterator[BlockingDesk[Moot]]:
    keep_old_data(home)
    with MootSync(Settings(home=home), clock=clock) as desk:
        yield desk


def test_old_prices_give_no_verdict_but_one_sentence_with_their_day(desk) -> None:
    with pytest.raises(moot.AppError) as refused:
        desk.research(SHARE, as_of=ASKED, locale="en-US", experts=["technical_analyst", "financial_auditor"])
    said = str(refused.value)
    assert refused.value.code == "ALL_EXPERTS_FAILED"
    assert "daily bars of 600519.SH are of 2024-03-15, 383 sessions before the question" in said
    assert "financial reports of 600519.SH are of 2023-12-31, 655 days before the question" in said
    assert "\n" not in said
    assert (refused.value.__cause__, refused.value.__context__) == (None, None)


@pytest.mark.parametrize(
    ("locale", "told"),
    {
        "zh-CN": (
            "没有专家能就 600519.SH 给出结论。技术分析师：600519.SH 最新的日线行情是 2024-03-15 的",
            "催化剂侦探：公告与新闻（600519.SH）无法获取：没有可用的数据源。请设置 MOOT_TUSHARE_TOKEN",
        ),
        "en-US": (
            "No expert could say anything about 600519.SH. Technical analyst: The newest daily bars of 600519.SH",
            "Catalyst detective: The announcements and news of 600519.SH could not be fetched: No data source",
        ),
    }.items(),
)
async def test_over_rest_it_is_told_what_is_missing_and_what_to_do_in_the_readers_words(
    home, clock, locale, told
) -> None:
    keep_old_data(home)
    app = create_app(Moot(Settings(home=home, log_level="error"), clock=clock))
    served = httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://localhost")
    async with app.router.lifespan_context(app), served as client:
        asked = {"symbol": SHARE, "as_of": ASKED, "experts": ["technical_analyst", "catalyst_detective"]}
        answer = await client.post(
            "/api/v1/coordinator/research", json=asked, headers={"Accept-Language": locale}
        )
    body = answer.json()
    assert (answer.status_code, body["code"]) == (500, "ALL_EXPERTS_FAILED")
    for words in (*told, "moot data sync 600519.SH", f"moot sessions retry {body['details']['session_id']}"):
        assert words in body["message"]


def test_what_no_source_has_is_told_at_once_and_not_tried_again(desk) -> None:
    with pytest.raises(moot.AppError) as refused:
        desk.research(SHARE, as_of=ASKED, locale="en-US")
    nodes = desk.session(refused.value.details["session_id"]).nodes
    assert {
        node.node_type: (node.attempts, node.error_type) for node in nodes if node.status == "failed"
    } == {
        "technical_analyst": (1, "DATA_STALE"),
        "financial_auditor": (1, "DATA_STALE"),
        "valuation_modeler": (1, "DATA_STALE"),
        "macro_intelligence": (1, "NOT_OFFERED"),
        "catalyst_detective": (1, "NOT_OFFERED"),
    }


async def test_the_command_exits_1_and_tells_the_day(home, monkeypatch) -> None:
    keep_old_data(home)
    run = inside(home, monkeypatch)
    seen = await run(
        "research", SHARE, "--as-of", ASKED, "--experts", "technical_analyst", "--locale", "zh-CN"
    )
    assert seen.returncode == 1, seen.stdout + seen.stderr
    assert "600519.SH 最新的日线行情是 2024-03-15 的，距所问时点已有 383 个交易日" in " ".join(
        seen.stderr.split()
    )


async def test_how_old_the_data_were_is_shown_wherever_a_session_is(home, monkeypatch) -> None:
    keep_old_data(home)
    run = inside(home, monkeypatch)
    asked = ("--as-of", "2024-03-18", "--experts", "technical_analyst")
    seen = await run("research", SHARE, *asked, "--locale", "en-US", COLUMNS="200")
    assert "Data used: daily bars up to 2024-03-15 (3 days old)." in seen.stdout, seen.stdout + seen.stderr
    [report] = (home / "reports").glob("**/*.md")
    assert "Data used: daily bars up to 2024-03-15 (3 days old)." in report.read_text("utf-8")
    listed = await run("sessions", "list", "--json")
    session = json.loads(listed.stdout)["items"][0]["id"]
    shown = await run("sessions", "show", session, MOOT_LOCALE="zh-CN", COLUMNS="200")
    assert "所用数据：日线行情截至 2024-03-15（3 天前）。" in shown.stdout, shown.stdout + shown.stderr
    answer = json.loads((await run("research", SHARE, *asked, "--json")).stdout)
    assert answer["data_until"] == {"bars": "2024-03-15"}
    assert answer["expert_results"]["technical_analyst"]["data"]["data_until"] == {"bars": "2024-03-15"}
