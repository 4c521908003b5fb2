"""Tushare's rows in our words: units, days, times. What is wrong with a row stays in it, to be refused by name.

Tushare counts volume in lots of 100, amounts in 1,000 CNY and market values in 10,000 CNY; days are YYYYMMDD.
"""

import math
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta
from itertools import groupby
from typing import Any

from moot.modules.market_data.domain.facts import FinancialReport, SpecialTreatment
from moot.modules.market_data.infrastructure.providers import release_times
from moot.modules.market_data.infrastructure.providers.outside import Row
from moot.modules.market_data.infrastructure.providers.release_times import (
    ANNOUNCED_BY,
    CLOSE_AND_RELEASE,
    MACRO_RELEASES,
    known_from,
    of_day,
    statutory_deadline,
)
from moot.shared.domain.symbol import TIME_ZONES, Market

SOURCE = "tushare"
ZONE = TIME_ZONES[Market.CN]
CLOSE = CLOSE_AND_RELEASE[Market.CN][0]
END_OF_DAY = time(23, 59, 59)
LOT, THOUSAND, TEN_THOUSAND = 100, 1_000, 10_000
IMPLEMENTED = "实施"
ST_NAME = re.compile(r"S?\*?ST")
STATEMENTS = {
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
STATED = {figure for figures in STATEMENTS.values() for figure in figures}
INDICATORS = {
    name: name
    for name, field in FinancialReport.model_fields.items()
    if not field.is_required() and name not in STATED
} | {"gross_margin": "grossprofit_margin"}  # the column `gross_margin` is an amount in CNY
FIGURES: dict[str, dict[str, str]] = {"fina_indicator": INDICATORS, **STATEMENTS}
"""For each interface: our figure, and the column it is in."""
KEYS = ("ts_code", "end_date", "ann_date", "f_ann_date", "report_type", "update_flag")
CONSOLIDATED = "1"


def day(raw: Any) -> date | str | None:
    """A day, or what is there instead, worded so that nobody takes it for one."""
    if raw is None:
        return None
    try:
        return datetime.strptime(str(raw), "%Y%m%d").replace(tzinfo=ZONE).date()
    except ValueError:
        return f"not a day: {raw}"


def number(raw: Any, unit: int = 1) -> float | None:
    """The number in single units; what is no number becomes NaN, which no fact accepts."""
    if raw is None:
        return None
    try:
        return round(float(raw) * unit, 4) if unit != 1 else float(raw)
    except (TypeError, ValueError):
        return math.nan


def moment(on: date | str | None, at: time) -> datetime | None:
    """Exchange time on a day, in UTC; none where the day is none."""
    return release_times.moment(on, at, Market.CN) if isinstance(on, date) else None


def bar(row: Row, factor: Any, spells: Sequence[SpecialTreatment]) -> dict[str, Any]:
    """`factor` is the day's own adjustment factor; a day without one is refused, not given its neighbour's."""
    shares = number(row.get("vol"), LOT)
    prices = {name: number(row.get(name)) for name in ("open", "high", "low", "close", "pre_close")}
    daily = of_day(row.get("ts_code"), day(row.get("trade_date")), Market.CN, SOURCE)
    return {
        **daily,
        **prices,
        "volume": round(shares) if shares is not None and math.isfinite(shares) else shares,
        "amount": number(row.get("amount"), THOUSAND),
        "adj_factor": number(factor),
        "is_st": any(_lasts(spell, daily["trade_date"]) for spell in spells),
    }


def valuation(row: Row) -> dict[str, Any]:
    plain = ("close", "pe", "pe_ttm", "pb", "ps_ttm", "dv_ratio", "turnover_rate")
    values = {name: number(row.get(name), TEN_THOUSAND) for name in ("total_mv", "circ_mv")}
    daily = of_day(row.get("ts_code"), day(row.get("trade_date")), Market.CN, SOURCE)
    return daily | values | {name: number(row.get(name)) for name in plain}


def dividend(row: Row) -> dict[str, Any] | None:
    """Known when its execution was announced, or had surely been; a plan is no dividend yet."""
    if row.get("div_proc") != IMPLEMENTED:
        return None
    days = (row.get(name) for name in ("imp_ann_date", "record_date", "ex_date", "ann_date"))
    told = day(next((found for found in days if found), None))
    payout = {
        "cash_per_share": number(row.get("cash_div_tax")),
        "bonus_per_share": number(row.get("stk_div")),
    }
    stated = {name: value for name, value in payout.items() if value is not None}
    return {
        "symbol": row.get("ts_code"),
        "period_end": day(row.get("end_date")),
        "announced_on": told,
        "ex_date": day(row.get("ex_date")),
        "record_date": day(row.get("record_date")),
        "source": SOURCE,
        **known_from(moment(told, ANNOUNCED_BY)),
        **(stated or payout),
    }


def announcement(row: Row) -> dict[str, Any]:
    """Visible from its recorded time on; where only the printed day is known, from the end of that day."""
    seen = _parse_recorded(row.get("rec_time")) or moment(day(row.get("ann_date")), END_OF_DAY)
    return {
        "kind": "announcement",
        "title": row.get("title"),
        "url": row.get("url"),
        "symbol": row.get("ts_code"),
        "source": SOURCE,
        **known_from(seen),
    }


def company(row: Row, names: Iterable[Row]) -> dict[str, Any]:
    """`names` are the rows of its former and present names."""
    called = dict.fromkeys([row.get("fullname"), *(past.get("name") for past in names)])
    return {
        "symbol": row.get("ts_code"),
        "name": row.get("name"),
        "name_en": row.get("enname") or "",
        "industry": row.get("industry") or "",
        "industry_en": "",
        "list_date": day(row.get("list_date")),
        "delist_date": day(row.get("delist_date")),
        "board": row.get("market") or "",
        "pinyin": row.get("cnspell") or "",
        "aliases": tuple(name for name in called if name and name != row.get("name")),
        "st_history": special_treatments(names),
        "source": SOURCE,
    }


def special_treatments(names: Iterable[Row]) -> tuple[SpecialTreatment, ...]:
    """The spells under ST that the names tell of; ST that turns into *ST is one spell."""
    spells: list[tuple[date, date]] = []
    for start, end in sorted({_spell(row) for row in names if ST_NAME.match(row.get("name") or "")}):
        if spells and start <= spells[-1][1]:
            begun, until = spells.pop()
            spells.append((begun, max(until, end)))
        elif start < end:
            spells.append((start, end))
    return tuple(SpecialTreatment(start=a, end=None if b == date.max else b) for a, b in spells)


def _spell(row: Row) -> tuple[date, date]:
    """From its first day to the day after its last; a name without a first day has no spell."""
    start, last = day(row.get("start_date")), day(row.get("end_date"))
    first = start if isinstance(start, date) else date.max
    return first, last + timedelta(days=1) if isinstance(last, date) else date.max


def _lasts(spell: SpecialTreatment, on: Any) -> bool:
    return isinstance(on, date) and spell.start <= on and (spell.end is None or on < spell.end)


def _parse_recorded(raw: Any) -> datetime | None:
    """A time of day that is midnight sharp is a day without a time."""
    try:
        found = datetime.fromisoformat(str(raw)).replace(tzinfo=ZONE)
    except ValueError:
        return None
    return moment(found.date(), END_OF_DAY) if found.time() == time() else found.astimezone(UTC)


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
            yield {
                "symbol": symbol,
                "period_end": period_end,
                "announced_on": announced,
                "event_time": moment(period_end, CLOSE),
                "available_at": moment(announced, ANNOUNCED_BY),
                "source": SOURCE,
                **known,
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


@dataclass(frozen=True)
class Series:
    """`column` of interface `api` holds the figure; `asking` narrows the question, `dated` names the day's column."""

    name: str
    api: str
    column: str
    dated: str = "month"
    asking: Mapping[str, str] = field(default_factory=dict)

    def question(self, start: date, end: date) -> dict[str, str]:
        if MACRO_RELEASES[self.name].monthly:
            return {"start_m": f"{start:%Y%m}", "end_m": f"{end:%Y%m}", **self.asking}
        return {"start_date": f"{start:%Y%m%d}", "end_date": f"{end:%Y%m%d}", **self.asking}

    def observation(self, row: Row) -> dict[str, Any]:
        raw = row.get(self.dated)
        period = day(f"{raw}01" if self.dated == "month" and raw is not None else raw)
        url = f"tushare://{self.api}/{self.column}/{period}"
        return release_times.observation(self.name, period, number(row.get(self.column)), url, SOURCE)


BOND_CURVE = {"ts_code": "1001.CB", "curve_type": "0", "curve_term": "10"}
SERIES = (
    Series("pmi_manufacturing", "cn_pmi", "pmi010000"),
    Series("cpi_yoy", "cn_cpi", "nt_yoy"),
    Series("ppi_yoy", "cn_ppi", "ppi_yoy"),
    Series("m2_yoy", "cn_m", "m2_yoy"),
    Series("lpr_1y", "shibor_lpr", "1y", dated="date"),
    Series("cgb_10y", "yc_cb", "yield", dated="trade_date", asking=BOND_CURVE),
)
