"""Four interfaces, one report: what was known of a period at each moment something of it was announced."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from itertools import groupby
from typing import Any

from moot.modules.market_data.infrastructure.providers.moments import ANNOUNCED_BY, statutory_deadline
from moot.modules.market_data.infrastructure.providers.tushare_rows import (
    CLOSE,
    SOURCE,
    Row,
    day,
    moment,
    number,
)
from moot.shared.domain.symbol import Market

FIGURES: dict[str, dict[str, str]] = {
    "fina_indicator": {
        "gross_margin": "grossprofit_margin",  # the column `gross_margin` is an amount in CNY
        "netprofit_margin": "netprofit_margin",
        "roe_waa": "roe_waa",
        "roic": "roic",
        "eps": "eps",
        "bps": "bps",
        "profit_dedt": "profit_dedt",
        "ocfps": "ocfps",
        "fcff_ps": "fcff_ps",
        "fcff": "fcff",
        "current_ratio": "current_ratio",
        "quick_ratio": "quick_ratio",
        "debt_to_assets": "debt_to_assets",
        "interestdebt": "interestdebt",
        "netdebt": "netdebt",
        "invturn_days": "invturn_days",
        "arturn_days": "arturn_days",
        "assets_turn": "assets_turn",
        "total_revenue_ps": "total_revenue_ps",
    },
    "income": {
        "total_revenue": "total_revenue",
        "operate_profit": "operate_profit",
        "net_profit": "n_income_attr_p",
    },
    "balancesheet": {
        "total_assets": "total_assets",
        "total_liab": "total_liab",
        "equity": "total_hldr_eqy_exc_min_int",
    },
    "cashflow": {"n_cashflow_act": "n_cashflow_act", "capex": "c_pay_acq_const_fiolta"},
}
"""For each interface: our figure, and the column it is in."""
KEYS = ("ts_code", "end_date", "ann_date", "f_ann_date", "report_type", "update_flag")
CONSOLIDATED = "1"


@dataclass(frozen=True)
class _Version:
    """What one interface says of a period; of two on the same day, the corrected one (flag 1) holds."""

    announced: date | str | None
    flag: str
    figures: dict[str, float | None]

    @property
    def order(self) -> tuple[str, str]:
        return str(self.announced), self.flag


def report_rows(symbol: str, tables: Mapping[str, Iterable[Row]]) -> Iterator[dict[str, Any]]:
    """A row for each day on which something of a period was announced, with all that was known of it then."""
    rows = [(api, row) for api, table in tables.items() for row in table if _consolidated(row)]
    actual = _actual_days(row for _, row in rows)
    periods: defaultdict[date | str | None, list[_Version]] = defaultdict(list)
    for api, row in rows:
        figures = {ours: number(row.get(theirs)) for ours, theirs in FIGURES[api].items()}
        version = _Version(_announced(row, actual), str(row.get("update_flag") or ""), figures)
        periods[day(row.get("end_date"))].append(version)
    for period_end, versions in periods.items():
        known: dict[str, float | None] = {}
        ordered = sorted(versions, key=lambda version: version.order)
        for announced, issue in groupby(ordered, key=lambda version: version.announced):
            for version in issue:
                known |= version.figures
            yield _report(symbol, period_end, announced) | known


def _report(symbol: str, period_end: date | str | None, announced: date | str | None) -> dict[str, Any]:
    return {
        "symbol": symbol,
        "period_end": period_end,
        "announced_on": announced,
        "event_time": moment(period_end, CLOSE),
        "available_at": moment(announced, ANNOUNCED_BY),
        "source": SOURCE,
    }


def _consolidated(row: Row) -> bool:
    return str(row.get("report_type") or CONSOLIDATED) == CONSOLIDATED


def _actual_days(rows: Iterable[Row]) -> dict[tuple[Any, ...], str]:
    """When an issue was really announced, which the indicators drawn from it do not tell; in doubt, the latest."""
    dated = [row for row in rows if row.get("f_ann_date")]
    return {_issue(row): row["f_ann_date"] for row in sorted(dated, key=lambda row: str(row["f_ann_date"]))}


def _issue(row: Row) -> tuple[Any, ...]:
    return row.get("end_date"), row.get("ann_date"), row.get("update_flag")


def _announced(row: Row, actual: Mapping[tuple[Any, ...], str]) -> date | str | None:
    told = day(row.get("f_ann_date") or actual.get(_issue(row)) or row.get("ann_date"))
    period_end = day(row.get("end_date"))
    if told is None and isinstance(period_end, date):
        return statutory_deadline(period_end, Market.CN)
    return told
