"""The reports of Eastmoney's data centre in our words: columns, units, and when each row was known.

AKShare asks many of them for the whole market; asked for one company, a page or two have all of it. Money is in CNY;
dates are days, and what is dated is out by the evening of that day. Unlocks are Sina's, and flows have a page apart.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import date
from typing import Any

from moot.modules.market_data.domain import facts
from moot.modules.market_data.domain.facts import Dataset
from moot.modules.market_data.infrastructure.providers import rows
from moot.modules.market_data.infrastructure.providers.akshare_rows import AKSHARE, COLUMNS
from moot.modules.market_data.infrastructure.providers.outside import Row
from moot.shared.domain.symbol import Market

CLOSE = rows.CLOSE_AND_RELEASE[Market.CN][0]
IMPLEMENTED = "实施分配"
LONGEST_NAME = 4
"""Letters in a person's name; one of another people has a dot in it."""
DIRECTIONS = {"增持": "buy", "减持": "sell"}
PROFIT_OF_OWNERS = "004"
"""Of the figures a forecast may be about."""

FILE = "RPT_F10"
EARNERS = "RPT_LICO_FN_CPD"
"""Everybody who reported a year, with the industry."""


def corrected(told: Row, raw: Row) -> Row:
    """Figures about a period stand as they were last corrected: known from then on. Where no day is told, it is the
    last one the law allows.
    """
    period_end = told.get("period_end")
    if not isinstance(period_end, date):
        return told
    days = [rows.read_day(raw.get(name)) for name in ("NOTICE_DATE", "UPDATE_DATE")]
    known = [day for day in days if isinstance(day, date)] or [rows.statutory_deadline(period_end, Market.CN)]
    times = {"event_time": AKSHARE.moment(period_end, CLOSE), "available_at": AKSHARE.moment(max(known))}
    return {**told, "announced_on": known[0], **times}


@dataclass(frozen=True)
class Report:
    """`row` makes ours of what the columns say and the raw row; None leaves it out. `narrowed`: the question is."""

    name: str
    columns: rows.Columns
    row: Callable[[Row, Row], Row | None] = corrected
    narrowed: str = ""

    def ask(self, symbol: str) -> str:
        """Reports of a company's file go by the symbol as we spell it, the others by its code alone."""
        code = symbol.partition(".")[0]
        about = f'SECUCODE="{symbol}"' if self.name.startswith(FILE) else f'SECURITY_CODE="{code}"'
        return f"({about}){self.narrowed}"

    def read(self, dataset: Dataset[Any], symbol: str, raw: Row) -> Row | None:
        told = {"symbol": symbol, **rows.read_columns(dataset, self.columns, raw)}
        row = self.row(told, raw)
        return None if row is None else AKSHARE.tell(dataset, row)


def merge_statements(parts: Iterable[Row]) -> Iterator[Row]:
    """Income, balance sheet and cash flow of a period together, known when the last of them was."""
    periods: dict[Any, dict[str, Any]] = {}
    for part in parts:
        so_far = periods.setdefault(part.get("period_end"), {})
        known = [told["available_at"] for told in (so_far, part) if "available_at" in told]
        so_far |= {**part, **({"available_at": max(known)} if known else {})}
    yield from periods.values()


def as_told(told: Row, _raw: Row) -> Row:
    return told


def _valuation(told: Row, _raw: Row) -> Row:
    """Nothing in free float is a figure that is missing."""
    return {**told, "circ_mv": told.get("circ_mv") or None}


def _dividend(told: Row, raw: Row) -> Row | None:
    """Known from the announcement of its dates, once it was carried out; a plan is no dividend yet."""
    if raw.get("ASSIGN_PROGRESS") != IMPLEMENTED:
        return None
    planned, settled = (rows.read_day(raw.get(name)) for name in ("PLAN_NOTICE_DATE", "NOTICE_DATE"))
    apart = isinstance(settled, date) and isinstance(planned, date) and settled > planned
    announced = settled if apart else told.get("record_date") or told.get("ex_date") or settled
    return {**told, "announced_on": announced}


def _forecast(told: Row, raw: Row) -> Row | None:
    if raw.get("PREDICT_FINANCE_CODE") != PROFIT_OF_OWNERS:
        return None
    said = " ".join(text for text in (raw.get("PREDICT_TYPE"), told.get("says")) if text)
    return {**told, "kind": "forecast", "says": said}


def _express(told: Row, raw: Row) -> Row:
    """One profit and one change: both ends of what a forecast gives."""
    ends = {f"{name}_high": told.get(f"{name}_low") for name in ("net_profit", "change")}
    return corrected({**told, **ends, "kind": "express"}, raw)


def _trade(told: Row, raw: Row) -> Row:
    """Sold shares may be negative; who they belonged to is told by the name alone."""
    shares, holder = told.get("shares"), str(told.get("holder", ""))
    person = len(holder) <= LONGEST_NAME or "·" in holder
    return {
        **told,
        "shares": abs(shares) if isinstance(shares, float) else shares,
        "kind": "person" if person else "company",
        "direction": DIRECTIONS.get(str(raw.get("DIRECTION"))),
    }


def last_full_year(day: date) -> str:
    """The question for the one that everybody has reported by `day`."""
    reported = day > rows.statutory_deadline(date(day.year - 1, 12, 31), Market.CN)
    return f"(REPORTDATE='{day.year - (1 if reported else 2)}-12-31')"


NORTHBOUND = Report("RPT_MUTUAL_HOLDSTOCKNDATE_STA", COLUMNS["northbound"], as_told, '(INTERVAL_TYPE="1")')
STATEMENTS = [
    [Report(f"RPT_F10_FINANCE_{kind}{part}", columns) for part, columns in COLUMNS["statements"].items()]
    for kind in "GBSI"
]
"""General, bank, securities, insurance: each kind has its own three, and a company is of one kind."""
REPORTS: dict[Dataset[Any], tuple[Report, ...]] = {
    facts.VALUATIONS: (Report("RPT_VALUEANALYSIS_DET", COLUMNS["valuation"], _valuation),),
    facts.REPORTS: (Report("RPT_F10_FINANCE_MAINFINADATA", COLUMNS["figures"]),),
    facts.DIVIDENDS: (Report("RPT_SHAREBONUS_DET", COLUMNS["dividend"], _dividend),),
    facts.NOTICES: (
        Report("RPT_PUBLIC_OP_NEWPREDICT", COLUMNS["forecast"], _forecast),
        Report("RPT_FCI_PERFORMANCEE", COLUMNS["express"], _express),
    ),
    facts.HOLDERS: (Report("RPT_HOLDERNUM_DET", COLUMNS["holders"], as_told),),
    facts.PLEDGES: (Report("RPT_CSDC_LIST", COLUMNS["pledge"], as_told),),
    facts.HOLDER_TRADES: (Report("RPT_SHARE_HOLDER_INCREASE", COLUMNS["trade"], _trade),),
}


def flows(symbol: str, moved: Iterable[Row], held: Iterable[Row]) -> Iterator[Row]:
    """By day: large orders are known that evening; a day with what is held by way of Hong Kong waits for it."""
    by_day = {row["trade_date"]: row for row in held if "trade_date" in row}
    for row in moved:
        told = AKSHARE.row(facts.FLOWS, COLUMNS["flow"], row, symbol=symbol)
        yield {**told, **by_day.pop(told.get("trade_date"), {})}
    yield from by_day.values()
