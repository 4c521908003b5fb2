"""Tushare's rows in our words: units, days, times. What is wrong with a row stays in it, to be refused by name.

Which columns they are made of, and in which units, is in `tushare.toml`; days are YYYYMMDD.
"""

import re
import tomllib
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import Any

from moot.modules.market_data.domain import facts
from moot.modules.market_data.domain.series import in_spell
from moot.modules.market_data.infrastructure.providers.outside import Row
from moot.modules.market_data.infrastructure.providers.rows import (
    CLOSE_AND_RELEASE,
    END_OF_DAY,
    Columns,
    Series,
    Source,
    known_from,
    read_day,
    read_number,
    statutory_deadline,
)
from moot.shared.domain.facts import FinancialReport, NameSince, SpecialTreatment
from moot.shared.domain.symbol import Market

TUSHARE = Source("tushare", Market.CN)
IMPLEMENTED = "实施"
ST_NAME = re.compile(r"S?\*?ST")


def fields_of(columns: Columns, *more: str) -> str:
    """The columns that a table of ours is made of, and more, as they are asked for."""
    names = (column if isinstance(column, str) else column[0] for column in columns.values())
    return ",".join(dict.fromkeys((*names, *more)))


@dataclass(frozen=True)
class Interface:
    """An interface that has all of a dataset; `around` is how far its days may lie from those we go by."""

    api: str
    row: Callable[[Row], Row | None]
    around: timedelta = timedelta()


PRICES = ("open", "high", "low", "close", "pre_close")
_TABLES = tomllib.loads(Path(__file__).with_name("tushare.toml").read_text(encoding="utf-8"))
COLUMNS: dict[str, Columns] = _TABLES["columns"]
STATEMENTS: Mapping[str, Mapping[str, str]] = _TABLES["statements"]
REPORTED: Mapping[str, Mapping[str, str]] = _TABLES["reported"]
STATED = {figure for figures in REPORTED.values() for figure in figures}
INDICATORS = {
    name: name
    for name, field in FinancialReport.model_fields.items()
    if not field.is_required() and name not in STATED
} | {"gross_margin": "grossprofit_margin"}  # the column `gross_margin` is an amount in CNY
FIGURES: Mapping[str, Mapping[str, str]] = {"fina_indicator": INDICATORS, **REPORTED}
"""For each interface: our figure, and the column it is in."""
KEYS = ("ts_code", "end_date", "ann_date", "f_ann_date", "report_type", "update_flag")
CONSOLIDATED = CORRECTED = "1"
CLOSE = CLOSE_AND_RELEASE[TUSHARE.market][0]
MORE_FIELDS = _TABLES["more_fields"]
FIELDS = {
    **{api: fields_of(COLUMNS.get(api, {}), *MORE_FIELDS.get(api, ())) for api in COLUMNS | MORE_FIELDS},
    **{api: fields_of(STATEMENTS.get(api, {}), *KEYS, *told.values()) for api, told in FIGURES.items()},
}
"""What is asked for by name; the small macro tables come whole."""


def read(dataset: facts.Dataset[Any], api: str, row: Row, **given: Any) -> dict[str, Any]:
    return TUSHARE.row(dataset, COLUMNS[api], row, **given)


def bar(row: Row, factor: Any, spells: Sequence[SpecialTreatment]) -> Row:
    """`factor` is the day's own adjustment factor; a day without one is refused, not given its neighbour's."""
    told = read(facts.BARS, "daily", row, adj_factor=read_number(factor))
    on = told.get("trade_date")
    return told | {"is_st": isinstance(on, date) and in_spell(spells, on)}


def suspended_bars(quotes: Iterable[Row], halts: Iterable[Row]) -> Iterator[tuple[Row, Any]]:
    """Whole days without trading, as quotes that repeat the close before, each with the day of that one."""
    by_day = {str(row.get("trade_date")): row for row in quotes}
    days = sorted(by_day)
    for day in {str(row.get("trade_date")) for row in halts if not row.get("suspend_timing")} - by_day.keys():
        place = bisect_left(days, day)
        if place:
            last = by_day[days[place - 1]]
            still = dict.fromkeys(PRICES, last.get("close"))
            yield {**last, **still, "trade_date": day, "vol": 0, "amount": 0}, last.get("trade_date")


def dividend(row: Row) -> Row | None:
    """Known when its execution was announced, or had surely been; a plan is no dividend yet."""
    if row.get("div_proc") != IMPLEMENTED:
        return None
    days = (row.get(name) for name in ("imp_ann_date", "record_date", "ex_date", "ann_date"))
    told = read(
        facts.DIVIDENDS,
        "dividend",
        row,
        announced_on=read_day(next((found for found in days if found), None)),
    )
    return told if {"cash_per_share", "bonus_per_share"} & told.keys() else told | {"cash_per_share": None}


def announcement(row: Row) -> Row:
    """Visible from its recorded time on; where only a day is known, from the end of that day."""
    recorded = row.get("rec_time")
    printed = read_day(recorded) or read_day(row.get("ann_date"))
    seen = TUSHARE.read_moment(recorded) or TUSHARE.moment(printed, END_OF_DAY)
    return read(facts.NEWS, "anns_d", row, kind="announcement", **known_from(seen))


def company(row: Row, names: Iterable[Row]) -> Row:
    """`names` are the rows of its former and present names."""
    called = dict.fromkeys([row.get("fullname"), *(past.get("name") for past in names)])
    aliases = tuple(name for name in called if name and name != row.get("name"))
    told = {"aliases": aliases, "st_history": special_treatments(names), "names": names_since(names)}
    return read(facts.COMPANIES, "stock_basic", row, **told)


def names_since(names: Iterable[Row]) -> tuple[NameSince, ...]:
    """What it was called from when on; a row that comes twice, or goes on with the same name, tells nothing new."""
    told = {(_spell(row)[0], row["name"]) for row in names if row.get("name")}
    dated = [NameSince(name=name, start=start) for start, name in sorted(told) if start < date.max]
    return tuple(next(spell) for _, spell in groupby(dated, key=attrgetter("name")))


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
    start, last = read_day(row.get("start_date")), read_day(row.get("end_date"))
    first = start if isinstance(start, date) else date.max
    return first, last + timedelta(days=1) if isinstance(last, date) else date.max


@dataclass(frozen=True)
class Issue:
    """What a table told of a period on a day; `corrected` as it stands now, otherwise as it was first told."""

    table: str
    announced: Any
    corrected: bool
    figures: Mapping[str, Any]


def report_rows(
    symbol: str, tables: Mapping[str, Iterable[Row]], figures: Mapping[str, Mapping[str, str]] = FIGURES
) -> Iterator[dict[str, Any]]:
    """A row for each day on which something of a period was announced, with all that was known of it then."""
    for period_end, issues in _issues_by_period(tables, figures).items():
        known: dict[str, Any] = {}
        told = sorted(_date_corrections(issues), key=lambda issue: (str(issue.announced), issue.corrected))
        for announced, together in groupby(told, key=attrgetter("announced")):
            for issue in together:
                known |= issue.figures
            close, out = TUSHARE.moment(period_end, CLOSE), TUSHARE.moment(announced)
            times = {"event_time": close, "available_at": out} if close and out else {}
            about = {"symbol": symbol, "period_end": period_end, "announced_on": announced}
            yield {"source": TUSHARE.name, **about, **times, **known}


def _issues_by_period(
    tables: Mapping[str, Iterable[Row]], figures: Mapping[str, Mapping[str, str]]
) -> dict[Any, list[Issue]]:
    rows = [
        (api, row)
        for api, table in tables.items()
        for row in table
        if str(row.get("report_type") or CONSOLIDATED) == CONSOLIDATED
    ]
    actual = _actual_days(row for _, row in rows)
    periods: defaultdict[Any, list[Issue]] = defaultdict(list)
    for api, row in rows:
        told = {
            ours: read_number(row[theirs])
            for ours, theirs in figures[api].items()
            if row.get(theirs) is not None
        }
        corrected = str(row.get("update_flag")) == CORRECTED
        issue = Issue(api, _find_announcement(row, actual), corrected, told)
        periods[read_day(row.get("end_date"))].append(issue)
    return periods


def _date_corrections(issues: Sequence[Issue]) -> Iterator[Issue]:
    """A correction that bears the day of what it corrects came out later: on the last day on which a correction of
    the period is known to have come out, if there is one after it. Otherwise nobody knows when, and it is left out.
    """
    first = {(issue.table, issue.announced) for issue in issues if not issue.corrected}
    last = max((issue.announced for issue in issues if issue.corrected), key=str, default=None)
    for issue in issues:
        if not issue.corrected or (issue.table, issue.announced) not in first:
            yield issue
        elif str(last) > str(issue.announced):
            yield replace(issue, announced=last)


def _actual_days(rows: Iterable[Row]) -> dict[tuple[Any, ...], str]:
    """When an issue was really announced, which the indicators drawn from it do not tell; in doubt, the latest."""
    dated = [row for row in rows if row.get("f_ann_date")]
    return {_issue(row): row["f_ann_date"] for row in sorted(dated, key=lambda row: str(row["f_ann_date"]))}


def _issue(row: Row) -> tuple[Any, ...]:
    return row.get("end_date"), row.get("ann_date"), row.get("update_flag")


def _find_announcement(row: Row, actual: Mapping[tuple[Any, ...], str]) -> date | str | None:
    told = read_day(row.get("f_ann_date") or actual.get(_issue(row)) or row.get("ann_date"))
    period_end = read_day(row.get("end_date"))
    if told is None and isinstance(period_end, date):
        return statutory_deadline(period_end, Market.CN)
    return told


BOND_CURVE = {"ts_code": "1001.CB", "curve_type": "0", "curve_term": "10"}


def _series(name: str, api: str, column: str, dated: str = "month", **asking: str) -> Series:
    return Series(name, api, column, f"tushare://{api}/{column}/{{period}}", dated, asking)


SERIES = (
    _series("pmi_manufacturing", "cn_pmi", "pmi010000"),
    _series("cpi_yoy", "cn_cpi", "nt_yoy"),
    _series("ppi_yoy", "cn_ppi", "ppi_yoy"),
    _series("m2_yoy", "cn_m", "m2_yoy"),
    _series("lpr_1y", "shibor_lpr", "1y", dated="date"),
    _series("cgb_10y", "yc_cb", "yield", dated="trade_date", **BOND_CURVE),
)
