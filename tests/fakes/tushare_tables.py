"""The demo market as Tushare would tell it, under codes of the real exchanges: a whole market for tests."""

from collections.abc import Sequence
from datetime import date
from typing import Any

from moot.modules.market_data.domain.facts import BARS, COMPANIES, NEWS, REPORTS, VALUATIONS
from moot.modules.market_data.infrastructure.demo.provider import DemoMarket
from moot.modules.market_data.infrastructure.providers.tushare_rows import FIGURES
from moot.shared.domain.clock import Clock

EVER = (date(2000, 1, 1), date(2100, 1, 1))


async def tushare_tables(clock: Clock, codes: Sequence[str], since: date) -> dict[str, list[dict[str, Any]]]:
    """Rows by interface, newest first as on the wire: the companies of the demo market under `codes`."""
    market = DemoMarket(seed=1, clock=clock)
    tables: dict[str, list[dict[str, Any]]] = {name: [] for name in ("stock_basic", "daily", "adj_factor")}
    tables |= {name: [] for name in ("daily_basic", "anns_d", *FIGURES)}
    for code, company in zip(codes, await market.read(COMPANIES, "DEMO"), strict=False):
        tables["stock_basic"].append(
            {
                "ts_code": code,
                "name": company.name,
                "enname": company.name_en,
                "industry": company.industry,
                "list_date": _day(company.list_date),
                "list_status": "L",
                "market": "主板",
            }
        )
        for bar in reversed(await market.read(BARS, company.symbol, since, EVER[1])):
            if not bar.suspended:
                key = {"ts_code": code, "trade_date": _day(bar.trade_date)}
                prices = {n: getattr(bar, n) for n in ("open", "high", "low", "close", "pre_close")}
                traded = {"vol": bar.volume / 100, "amount": bar.amount / 1000}
                tables["daily"].append({**key, **prices, **traded})
                tables["adj_factor"].append({**key, "adj_factor": bar.adj_factor})
        for value in reversed(await market.read(VALUATIONS, company.symbol, since, EVER[1])):
            ratios = {
                n: getattr(value, n) for n in ("close", "pe_ttm", "pb", "ps_ttm", "dv_ratio", "turnover_rate")
            }
            key = {"ts_code": code, "trade_date": _day(value.trade_date)}
            tables["daily_basic"].append({**key, **ratios, "total_mv": value.total_mv / 1e4})
        for report in reversed(await market.read(REPORTS, company.symbol)):
            key = {
                "ts_code": code,
                "end_date": _day(report.period_end),
                "ann_date": _day(report.announced_on),
            }
            for api, columns in FIGURES.items():
                figures = {column: getattr(report, ours) for ours, column in columns.items()}
                tables[api].append({**key, "report_type": "1", "update_flag": "1", **figures})
        for item in reversed(await market.read(NEWS, company.symbol, since, EVER[1])):
            if item.symbol:
                stated = {"title": item.title, "url": item.url, "ann_date": f"{item.available_at:%Y%m%d}"}
                tables["anns_d"].append({"ts_code": code, **stated})
    return tables


def _day(day: date) -> str:
    return f"{day:%Y%m%d}"
