"""Tushare's rows in our words: units, days, times. What is wrong with a row stays in it, to be refused by name.

Tushare counts volume in lots of 100, amounts in 1,000 CNY and market values in 10,000 CNY; days are YYYYMMDD.
"""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, date, datetime, time, timedelta
from typing import Any

from moot.modules.market_data.domain.facts import SpecialTreatment
from moot.modules.market_data.infrastructure.providers import moments
from moot.modules.market_data.infrastructure.providers.moments import ANNOUNCED_BY, CLOSE_AND_RELEASE
from moot.shared.domain.symbol import TIME_ZONES, Market

SOURCE = "tushare"
ZONE = TIME_ZONES[Market.CN]
CLOSE, RELEASE = CLOSE_AND_RELEASE[Market.CN]
END_OF_DAY = time(23, 59, 59)
LOT, THOUSAND, TEN_THOUSAND = 100, 1_000, 10_000
IMPLEMENTED = "实施"
ST_NAME = re.compile(r"S?\*?ST")

Row = Mapping[str, Any]


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
    return moments.moment(on, at, Market.CN) if isinstance(on, date) else None


def bar(row: Row, factor: Any, spells: Sequence[SpecialTreatment]) -> dict[str, Any]:
    """`factor` is the day's own adjustment factor; a day without one is refused, not given its neighbour's."""
    shares = number(row.get("vol"), LOT)
    prices = {name: number(row.get(name)) for name in ("open", "high", "low", "close", "pre_close")}
    daily = _daily(row)
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
    return _daily(row) | values | {name: number(row.get(name)) for name in plain}


def dividend(row: Row) -> dict[str, Any]:
    """Known when its execution was announced; where that day is missing, when it had surely been."""
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
        "event_time": moment(told, ANNOUNCED_BY),
        "available_at": moment(told, ANNOUNCED_BY),
        "source": SOURCE,
        **(stated or payout),
    }


def announcement(row: Row) -> dict[str, Any]:
    """Visible from its recorded time on; where only the printed day is known, from the end of that day."""
    seen = _recorded(row.get("rec_time")) or moment(day(row.get("ann_date")), END_OF_DAY)
    return {
        "kind": "announcement",
        "title": row.get("title"),
        "url": row.get("url"),
        "symbol": row.get("ts_code"),
        "event_time": seen,
        "available_at": seen,
        "source": SOURCE,
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


def _recorded(raw: Any) -> datetime | None:
    """A time of day that is midnight sharp is a day without a time."""
    try:
        found = datetime.fromisoformat(str(raw)).replace(tzinfo=ZONE)
    except ValueError:
        return None
    return moment(found.date(), END_OF_DAY) if found.time() == time() else found.astimezone(UTC)


def _daily(row: Row) -> dict[str, Any]:
    on = day(row.get("trade_date"))
    return {
        "symbol": row.get("ts_code"),
        "trade_date": on,
        "event_time": moment(on, CLOSE),
        "available_at": moment(on, RELEASE),
        "source": SOURCE,
    }
