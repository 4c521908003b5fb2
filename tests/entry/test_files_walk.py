"""The walk of `docs/files.md`, taken with small files as people export them: from an empty home to a verdict."""

import json
import re
import shlex
from collections.abc import Iterable
from datetime import date
from math import sin
from pathlib import Path
from typing import Any

import pytest

from moot.modules.market_data.domain.facts import BARS, INDEX_BARS, REPORTS, STATEMENTS, VALUATIONS, Dataset
from moot.modules.market_data.domain.trading_rules import trading_calendar
from moot.modules.market_data.infrastructure.lake import Lake
from moot.shared.domain.symbol import Market
from tests.entry.inside import Run, inside

PAGE = Path(__file__).parents[2] / "docs" / "files.md"
CODE, SHARES = "600519.SH", 1_256_197_800
SESSIONS = trading_calendar(Market.CN).sessions(date(2023, 3, 1), date(2024, 6, 28))
PERIODS = [date(y, m, d) for y in (2021, 2022, 2023) for m, d in ((3, 31), (6, 30), (9, 30), (12, 31))]


def commands() -> list[list[str]]:
    """What the page has a reader type, in order."""
    blocks = re.findall(r"^```sh\n(.*?)^```$", PAGE.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    return [shlex.split(line)[1:] for block in blocks for line in block.splitlines()]


def write(path: Path, header: str, rows: Iterable[Iterable[object]], encoding: str = "utf-8") -> None:
    lines = [header, *(",".join(map(str, row)) for row in rows)]
    path.write_bytes(("\n".join(lines) + "\n").encode(encoding))


def close(number: int) -> float:
    return round(1700 + 80 * sin(number / 17) + 0.1 * number, 2)


def announced(period: date) -> str:
    months = {3: (0, 4, 27), 6: (0, 8, 3), 9: (0, 10, 21), 12: (1, 4, 3)}
    years, month, day = months[period.month]
    return f"{period.year + years}{month:02}{day:02}"


def write_files(folder: Path) -> None:
    """Chinese headers in GBK from a terminal, Tushare's and AKShare's own in UTF-8; one odd row here and there."""
    write(
        folder / "companies.csv",
        "证券代码,证券简称,所属行业,上市日期,退市日期",
        [
            ("600519", "贵州茅台", "白酒", "2001-08-27", ""),
            ("TS0018", "上港集箱", "港口", "2000-07-19", "2006-10-20"),
        ],
        "gbk",
    )
    write(
        folder / "bars.csv",
        "代码,交易日期,开盘价(元),最高价(元),最低价(元),收盘价(元),前收盘价(元),成交量(手),成交额(元)",
        [
            (
                "600519",
                day,
                p := close(n),
                round(p * 1.01, 2),
                round(p * 0.99, 2),
                p,
                close(n - 1),
                30000,
                p * 3e6,
            )
            for n, day in enumerate(SESSIONS)
        ],
        "gbk",
    )
    write(
        folder / "daily_basic.csv",
        "ts_code,trade_date,close,turnover_rate,pe,pe_ttm,pb,ps_ttm,dv_ratio,total_share,total_mv,circ_mv",
        [
            (
                CODE,
                f"{day:%Y%m%d}",
                p := close(n),
                0.2,
                30,
                28 + sin(n / 40),
                9,
                14,
                1.5,
                SHARES / 1e4,
                mv := p * SHARES / 1e4,
                mv,
            )
            for n, day in enumerate(SESSIONS)
        ],
    )
    quarter = {period: (n % 4 + 1) * (1 + 0.15 * (n // 4)) for n, period in enumerate(PERIODS)}
    keys = {period: (CODE, announced(period), f"{period:%Y%m%d}") for period in PERIODS}
    write(
        folder / "fina_indicator.csv",
        "ts_code,ann_date,end_date,eps,bps,roe_waa,grossprofit_margin,netprofit_margin,debt_to_assets,current_ratio,"
        "quick_ratio,ocfps,roic,profit_dedt,invturn_days,arturn_days,assets_turn,fcff,total_revenue_ps",
        [
            (
                *keys[p],
                12 * q,
                170,
                8 * q,
                91.5,
                52,
                19,
                4.6,
                3.7,
                11 * q,
                7 * q,
                1.5e10 * q,
                1400,
                0.1,
                0.15 * q,
                1.4e10 * q,
                24 * q,
            )
            for p, q in quarter.items()
        ],
    )
    head = "ts_code,ann_date,f_ann_date,end_date,report_type,"
    filed = {p: (*keys[p][:2], keys[p][1], keys[p][2], 1) for p in PERIODS}
    write(
        folder / "income.csv",
        head + "total_revenue,revenue,oper_cost,sell_exp,admin_exp,operate_profit,total_profit,income_tax,"
        "n_income,n_income_attr_p",
        [
            (
                *filed[p],
                3e10 * q,
                3e10 * q,
                2.5e9 * q,
                1e9 * q,
                2e9 * q,
                2.1e10 * q,
                2.1e10 * q,
                5e9 * q,
                1.6e10 * q,
                1.5e10 * q,
            )
            for p, q in quarter.items()
        ],
    )
    write(
        folder / "balancesheet.csv",
        head + "money_cap,inventories,fix_assets,total_cur_assets,total_assets,total_cur_liab,total_liab,"
        "undistr_porfit,total_hldr_eqy_exc_min_int,total_share",
        [
            (*filed[p], 6e10, 4e10, 2e10, 2.2e11, 2.7e11, 4.8e10, 4.9e10, 1.8e11, 2.1e11, SHARES)
            for p in PERIODS
        ],
    )
    write(
        folder / "cashflow.csv",
        head + "n_cashflow_act,n_cashflow_inv_act,n_cash_flows_fnc_act,c_pay_acq_const_fiolta",
        [(*filed[p], 1.4e10 * q, -1e9, -2e10, 6e8 * q) for p, q in quarter.items()],
    )
    write(
        folder / "announcements.csv",
        "代码,名称,公告标题,公告类型,公告日期,网址",
        [
            (
                "600519",
                "贵州茅台",
                "关于回购公司股份方案的公告",
                "回购",
                "2024-06-20",
                "https://notices.example/1",
            ),
            (
                "600519",
                "贵州茅台",
                "2023年年度权益分派实施公告",
                "分红",
                "2024-06-13",
                "https://notices.example/2",
            ),
        ],
    )
    write(
        folder / "dividend.csv",
        "ts_code,end_date,ann_date,div_proc,stk_div,cash_div_tax,record_date,ex_date,imp_ann_date",
        [(CODE, 20231231, 20240403, "实施", 0, 30.876, 20240618, 20240619, 20240613)],
    )
    months = [f"2023年{m:02}月份" for m in range(7, 13)] + [f"2024年{m:02}月份" for m in range(1, 6)]
    write(
        folder / "pmi.csv",
        "月份,制造业-指数,制造业-同比增长",
        [(month, 49.5 + n / 10, 1) for n, month in enumerate(months)],
    )
    write(folder / "lpr.csv", "date,1y,5y", [(f"2024{m:02}20", 3.45, 3.95) for m in range(1, 7)])
    write(
        folder / "index_daily.csv",
        "ts_code,trade_date,close,open,high,low,pre_close,change,pct_chg,vol,amount",
        [
            ("000300.SH", f"{day:%Y%m%d}", 3500, 3490, 3510, 3480, 3495, 5, 0.1, 1e8, 2e8)
            for day in SESSIONS[-60:]
        ],
    )


@pytest.fixture
def moot(home: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Run:
    (tmp_path / "mine").mkdir()
    monkeypatch.chdir(tmp_path / "mine")
    write_files(tmp_path / "mine")
    return inside(home, monkeypatch)


async def test_files_alone_lead_to_a_verdict(moot):
    *imports, status, check, research = commands()
    assert {line[2] for line in imports} == {file.name for file in Path().iterdir()}
    told = ""
    for line in imports:
        seen = await moot(*line)
        assert seen.returncode == 0, seen.stdout + seen.stderr
        told += seen.stdout
    assert "companies.csv, line 3: the code 'TS0018' is not one of a listed share" in told
    assert told.count("Refused") == 1
    assert f"daily bars: {len(SESSIONS)} rows imported, for 1 symbol ({CODE})." in told
    assert f"Next: {CODE} still has no financial reports." in told
    assert f"Next: moot research {CODE} --as-of 2024-06-28" in told
    assert "index bars" in (await moot(*status)).stdout
    assert f"{CODE}: " in (await moot(*check)).stdout
    seen = await moot(*research, "--json")
    assert seen.returncode == 0, seen.stderr
    session = json.loads(seen.stdout)
    assert (session["overall_status"], len(session["expert_results"])) == ("completed", 5)
    assert session["verdict"]["action"] in ("BUY", "HOLD", "REDUCE"), session


async def kept(home: Path, dataset: Dataset[Any]) -> list[Any]:
    return list(await Lake(home / "lake").read(dataset, CODE))


@pytest.mark.parametrize("order", [1, -1])
async def test_files_that_tell_parts_of_a_period_add_up_in_any_order(moot, home, order):
    for name in ("fina_indicator", "income", "balancesheet", "cashflow")[::order]:
        assert (await moot("data", "import", f"{name}.csv")).returncode == 0
    reports, statements = await kept(home, REPORTS), await kept(home, STATEMENTS)
    assert (len(reports), len(statements)) == (12, 12)
    for report in reports:
        assert None not in (report.eps, report.total_revenue, report.equity, report.n_cashflow_act)
    for statement in statements:
        assert None not in (statement.revenue, statement.total_assets, statement.operating_cash)


async def test_a_later_version_keeps_what_only_the_first_one_told(moot, home):
    header = "ts_code,ann_date,end_date"
    write(Path("later.csv"), f"{header},roe_waa", [(CODE, 20240601, 20231231, 34)])
    write(Path("first.csv"), f"{header},roe_waa,eps", [(CODE, 20240403, 20231231, 33, 59.5)])
    for name in ("later", "first"):
        assert (await moot("data", "import", f"{name}.csv")).returncode == 0
    assert [(r.roe_waa, r.eps) for r in await kept(home, REPORTS)] == [(33, 59.5), (34, 59.5)]


async def test_market_values_are_held_against_the_shares_of_kept_statements(moot, home):
    await moot("data", "import", "balancesheet.csv")
    rows = [(CODE, 20240102, 1685, 1685 * SHARES), (CODE, 20240103, 1694, 1694 * SHARES / 1e4)]
    write(Path("values.csv"), "代码,日期,收盘价,总市值", rows)
    seen = await moot("data", "import", "values.csv")
    assert "Refused 1 of 2 rows" in seen.stdout
    assert (
        "2024-01-03: total_mv 2.128e+08 is 0.0001 times price × shares: it looks like ten_thousand"
        in seen.stdout
    )
    assert [(day.trade_date.day, day.shares) for day in await kept(home, VALUATIONS)] == [(2, None)]


async def test_an_imported_index_does_not_stand_for_all_of_them(moot, home):
    await moot("data", "import", "index_daily.csv")
    await moot("data", "import", "bars.csv")
    indexes, bars = (Lake(home / "lake").coverage(*each) for each in ((INDEX_BARS, "CN"), (BARS, CODE)))
    assert (indexes.rows, indexes.ranges) == (60, ())
    assert bars.span == (SESSIONS[0], SESSIONS[-1])
