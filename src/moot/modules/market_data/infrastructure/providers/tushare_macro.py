"""The macro series Tushare has, and when their figures come out: it gives the period, not the release."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, datetime, time, timedelta
from typing import Any

from moot.modules.market_data.infrastructure.providers.tushare_rows import (
    CLOSE,
    SOURCE,
    Row,
    day,
    moment,
    number,
)


@dataclass(frozen=True)
class Release:
    """When a figure is out at the latest: on a day of the month after its own, or on its own day if none is named.

    `late` are the months whose figures wait for a holiday: January's for spring festival, September's for October.
    """

    at: time
    next_month_on: int | None = None
    late: Mapping[int, int] = field(default_factory=dict)

    def of(self, period: date | str | None) -> datetime | None:
        if self.next_month_on is None or not isinstance(period, date):
            return moment(period, self.at)
        following = _month_end(period) + timedelta(days=1)
        return moment(following.replace(day=self.late.get(period.month, self.next_month_on)), self.at)


@dataclass(frozen=True)
class Series:
    """`column` of interface `api` holds the figure; `asking` narrows the question, `dated` names the day's column."""

    name: str
    unit: str
    api: str
    column: str
    release: Release
    dated: str = "month"
    asking: Mapping[str, str] = field(default_factory=dict)

    @property
    def monthly(self) -> bool:
        return self.dated == "month"

    def question(self, start: date, end: date) -> dict[str, str]:
        if self.monthly:
            return {"start_m": f"{start:%Y%m}", "end_m": f"{end:%Y%m}", **self.asking}
        return {"start_date": f"{start:%Y%m%d}", "end_date": f"{end:%Y%m%d}", **self.asking}

    def observation(self, row: Row) -> dict[str, Any]:
        raw = row.get(self.dated)
        period = day(f"{raw}01" if self.monthly and raw is not None else raw)
        released = self.release.of(period)
        happened = _month_end(period) if self.monthly and isinstance(period, date) else None
        return {
            "series": self.name,
            "period": period,
            "value": number(row.get(self.column)),
            "unit": self.unit,
            "url": f"tushare://{self.api}/{self.column}/{period}",
            "event_time": moment(happened, CLOSE) or released,
            "available_at": released,
            "source": SOURCE,
        }


PRICES = Release(time(9, 30), next_month_on=12, late={1: 18, 9: 16})
SERIES = (
    Series("pmi_manufacturing", "index", "cn_pmi", "pmi010000", Release(time(9, 30), next_month_on=1)),
    Series("cpi_yoy", "%", "cn_cpi", "nt_yoy", PRICES),
    Series("ppi_yoy", "%", "cn_ppi", "ppi_yoy", PRICES),
    Series("m2_yoy", "%", "cn_m", "m2_yoy", Release(time(17), next_month_on=16, late={1: 20, 9: 18})),
    Series("lpr_1y", "%", "shibor_lpr", "1y", Release(time(11, 30)), dated="date"),
    Series(
        "cgb_10y",
        "%",
        "yc_cb",
        "yield",
        Release(time(18)),
        dated="trade_date",
        asking={"ts_code": "1001.CB", "curve_type": "0", "curve_term": "10"},
    ),
)


def _month_end(first: date) -> date:
    return (first.replace(day=1) + timedelta(days=31)).replace(day=1) - timedelta(days=1)
