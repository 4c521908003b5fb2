"""The reports of Eastmoney's data centre in our words: columns, units, and when each row was known.

AKShare asks many of them for the whole market; asked for one company, a page or two have all of it. Money is in CNY;
dates are days, and what is dated is out by the evening of that day. Unlocks are Sina's, and flows have a page apart.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import date, time
from typing import Any

from moot.modules.market_data.domain import facts
from moot.modules.market_data.domain.facts import Dataset
from moot.modules.market_data.infrastructure.providers import rows
from moot.modules.market_data.infrastructure.providers.akshare_rows import AKSHARE, columns_of
from moot.modules.market_data.infrastructure.providers.outside import Row
from moot.modules.market_data.infrastructure.providers.rows import NextSession
from moot.shared.domain.symbol import Market

BEFORE_OPENING, CLOSE = time(9), rows.CLOSE_AND_RELEASE[Market.CN][0]
TEN_THOUSAND, PER_TEN_SHARES = 10_000, 0.1
IMPLEMENTED = "实施分配"
LONGEST_NAME = 4
"""Letters in a person's name; one of another people has a dot in it."""
DIRECTIONS = {"增持": "buy", "减持": "sell"}
PROFIT_OF_OWNERS = "004"
"""Of the figures a forecast may be about."""

FILE = "RPT_F10"
EARNERS = "RPT_LICO_FN_CPD"
"""Everybody who reported a year, with the industry."""
FILED = "period_end=REPORT_DATE announced_on=NOTICE_DATE "
PARTS: dict[str, rows.Columns] = {
    "INCOME": columns_of(
        f"{FILED} revenue=OPERATE_INCOME cost_of_sales=OPERATE_COST selling_expense=SALE_EXPENSE "
        "admin_expense=MANAGE_EXPENSE research_expense=RESEARCH_EXPENSE finance_expense=FINANCE_EXPENSE "
        "interest_expense=FE_INTEREST_EXPENSE operating_profit=OPERATE_PROFIT profit_before_tax=TOTAL_PROFIT "
        "income_tax=INCOME_TAX net_profit=NETPROFIT net_profit_parent=PARENT_NETPROFIT"
    ),
    "BALANCE": columns_of(
        f"{FILED} cash=MONETARYFUNDS receivables=ACCOUNTS_RECE inventory=INVENTORY fixed_assets=FIXED_ASSET "
        "current_assets=TOTAL_CURRENT_ASSETS intangibles=INTANGIBLE_ASSET goodwill=GOODWILL total_assets=TOTAL_ASSETS"
        " short_debt=SHORT_LOAN payables=ACCOUNTS_PAYABLE current_liabilities=TOTAL_CURRENT_LIAB long_debt=LONG_LOAN "
        "bonds=BOND_PAYABLE total_liabilities=TOTAL_LIABILITIES retained_earnings=UNASSIGN_RPOFIT "
        "minority_interest=MINORITY_EQUITY equity=TOTAL_PARENT_EQUITY shares=SHARE_CAPITAL"
    ),
    "CASHFLOW": columns_of(
        f"{FILED} operating_cash=NETCASH_OPERATE investing_cash=NETCASH_INVEST financing_cash=NETCASH_FINANCE "
        "capex=CONSTRUCT_LONG_ASSET depreciation=FA_IR_DEPR cash_change=CCE_ADD"
    ),
}


def corrected(told: Row, raw: Row, _: NextSession) -> Row:
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
    row: Callable[[Row, Row, NextSession], Row | None] = corrected
    narrowed: str = ""

    def ask(self, symbol: str) -> str:
        """Reports of a company's file go by the symbol as we spell it, the others by its code alone."""
        code = symbol.partition(".")[0]
        about = f'SECUCODE="{symbol}"' if self.name.startswith(FILE) else f'SECURITY_CODE="{code}"'
        return f"({about}){self.narrowed}"

    def read(self, dataset: Dataset[Any], symbol: str, raw: Row, next_session: NextSession) -> Row | None:
        told = rows.read_columns(dataset, self.columns, raw)
        return self.row({"symbol": symbol, "source": AKSHARE.name, **told}, raw, next_session)


def merge_statements(parts: Iterable[Row]) -> Iterator[Row]:
    """Income, balance sheet and cash flow of a period together, known when the last of them was."""
    periods: dict[Any, dict[str, Any]] = {}
    for part in parts:
        so_far = periods.setdefault(part.get("period_end"), {})
        known = [told["available_at"] for told in (so_far, part) if "available_at" in told]
        so_far |= {**part, **({"available_at": max(known)} if known else {})}
    yield from periods.values()


def _announced(told: Row, _raw: Row, _: NextSession) -> Row:
    return {**told, **rows.known_from(AKSHARE.moment(told.get("announced_on")))}


def _valuation(told: Row, _raw: Row, _: NextSession) -> Row:
    """Nothing in free float is a figure that is missing."""
    return AKSHARE.tell(facts.VALUATIONS, {**told, "circ_mv": told.get("circ_mv") or None})


def _dividend(told: Row, raw: Row, later: NextSession) -> Row | None:
    """Known from the announcement of its dates, once it was carried out; a plan is no dividend yet."""
    if raw.get("ASSIGN_PROGRESS") != IMPLEMENTED:
        return None
    planned, settled = (rows.read_day(raw.get(name)) for name in ("PLAN_NOTICE_DATE", "NOTICE_DATE"))
    apart = isinstance(settled, date) and isinstance(planned, date) and settled > planned
    announced = settled if apart else told.get("record_date") or told.get("ex_date") or settled
    return _announced({**told, "announced_on": announced}, raw, later)


def _forecast(told: Row, raw: Row, later: NextSession) -> Row | None:
    if raw.get("PREDICT_FINANCE_CODE") != PROFIT_OF_OWNERS:
        return None
    said = " ".join(text for text in (raw.get("PREDICT_TYPE"), told.get("says")) if text)
    return _announced({**told, "kind": "forecast", "says": said}, raw, later)


def _express(told: Row, raw: Row, later: NextSession) -> Row:
    """One profit and one change: both ends of what a forecast gives."""
    ends = {f"{name}_high": told.get(f"{name}_low") for name in ("net_profit", "change")}
    return corrected({**told, **ends, "kind": "express"}, raw, later)


def _pledge(told: Row, _raw: Row, next_session: NextSession) -> Row:
    """Counted at the end of a week, out in the session after it."""
    return {**told, **AKSHARE.tell_next_session(told.get("day"), next_session, rows.ANNOUNCED_BY)}


def _trade(told: Row, raw: Row, next_session: NextSession) -> Row:
    """Sold shares may be negative; who they belonged to is told by the name alone."""
    shares, holder = told.get("shares"), str(told.get("holder", ""))
    person = len(holder) <= LONGEST_NAME or "·" in holder
    more = {
        "shares": abs(shares) if isinstance(shares, float) else shares,
        "kind": "person" if person else "company",
        "direction": DIRECTIONS.get(str(raw.get("DIRECTION"))),
    }
    return _announced({**told, **more}, raw, next_session)


def _northbound(told: Row, _raw: Row, next_session: NextSession) -> Row:
    """What is held by way of Hong Kong is told the morning after."""
    return {**told, **AKSHARE.tell_next_session(told.get("trade_date"), next_session, BEFORE_OPENING)}


def last_full_year(day: date) -> str:
    """The question for the one that everybody has reported by `day`."""
    reported = day > rows.statutory_deadline(date(day.year - 1, 12, 31), Market.CN)
    return f"(REPORTDATE='{day.year - (1 if reported else 2)}-12-31')"


NORTHBOUND = Report(
    "RPT_MUTUAL_HOLDSTOCKNDATE_STA",
    columns_of("trade_date=TRADE_DATE northbound_shares=HOLD_SHARES northbound_percent=HOLD_SHARES_RATIO"),
    _northbound,
    '(INTERVAL_TYPE="1")',
)
STATEMENTS = [
    [Report(f"RPT_F10_FINANCE_{kind}{part}", columns) for part, columns in PARTS.items()] for kind in "GBSI"
]
"""General, bank, securities, insurance: each kind has its own three, and a company is of one kind."""
FORECAST = columns_of(
    f"{FILED} net_profit_low=PREDICT_AMT_LOWER net_profit_high=PREDICT_AMT_UPPER change_low=ADD_AMP_LOWER "
    "change_high=ADD_AMP_UPPER says=PREDICT_CONTENT"
)
EXPRESS = columns_of(
    f"{FILED} net_profit_low=PARENT_NETPROFIT change_low=JLRTBZCL revenue=TOTAL_OPERATE_INCOME eps=BASIC_EPS"
)
VALUATION = columns_of(
    "trade_date=TRADE_DATE close=CLOSE_PRICE total_mv=TOTAL_MARKET_CAP circ_mv=NOTLIMITED_MARKETCAP_A pe=PE_LAR "
    "pe_ttm=PE_TTM pb=PB_MRQ ps_ttm=PS_TTM"
)
FIGURES = columns_of(
    f"{FILED} gross_margin=XSMLL netprofit_margin=XSJLL roe_waa=ROEJQ roic=ROIC eps=EPSJB bps=BPS ocfps=MGJYXJJE "
    "profit_dedt=KCFJCXSYJLR current_ratio=LD quick_ratio=SD debt_to_assets=ZCFZL invturn_days=CHZZTS "
    "arturn_days=YSZKZZTS assets_turn=TOAZZL total_revenue_ps=PER_TOI fcff=FCFF_BACK total_revenue=TOTALOPERATEREVE "
    "net_profit=PARENTNETPROFIT"
)
DIVIDEND: rows.Columns = {
    **columns_of("period_end=REPORT_DATE record_date=EQUITY_RECORD_DATE ex_date=EX_DIVIDEND_DATE"),
    "cash_per_share": ("PRETAX_BONUS_RMB", PER_TEN_SHARES),
    "bonus_per_share": ("BONUS_IT_RATIO", PER_TEN_SHARES),
}
HOLDERS = columns_of("period_end=END_DATE announced_on=HOLD_NOTICE_DATE holders=HOLDER_NUM")
PLEDGE: rows.Columns = {
    **columns_of("day=TRADE_DATE pledged_percent=PLEDGE_RATIO"),
    "pledged_shares": ("REPURCHASE_BALANCE", TEN_THOUSAND),
}
TRADE: rows.Columns = {
    **columns_of(
        "announced_on=NOTICE_DATE holder=HOLDER_NAME percent=AFTER_CHANGE_RATE average_price=TRADE_AVERAGE_PRICE"
    ),
    "shares": ("CHANGE_NUM", TEN_THOUSAND),
}
REPORTS: dict[Dataset[Any], tuple[Report, ...]] = {
    facts.VALUATIONS: (Report("RPT_VALUEANALYSIS_DET", VALUATION, _valuation),),
    facts.REPORTS: (Report("RPT_F10_FINANCE_MAINFINADATA", FIGURES),),
    facts.DIVIDENDS: (Report("RPT_SHAREBONUS_DET", DIVIDEND, _dividend),),
    facts.NOTICES: (
        Report("RPT_PUBLIC_OP_NEWPREDICT", FORECAST, _forecast),
        Report("RPT_FCI_PERFORMANCEE", EXPRESS, _express),
    ),
    facts.HOLDERS: (Report("RPT_HOLDERNUM_DET", HOLDERS, _announced),),
    facts.PLEDGES: (Report("RPT_CSDC_LIST", PLEDGE, _pledge),),
    facts.HOLDER_TRADES: (Report("RPT_SHARE_HOLDER_INCREASE", TRADE, _trade),),
}
UNLOCK: rows.Columns = {
    **columns_of("unlock_date=解禁日期 announced_on=公告日期"),
    "shares": ("解禁数量", TEN_THOUSAND),
}
"""Of Sina, for Eastmoney does not say when one was announced."""


def unlock(symbol: str, row: Row) -> Row:
    told = rows.read_columns(facts.UNLOCKS, UNLOCK, row)
    return _announced({"symbol": symbol, "source": AKSHARE.name, **told}, row, rows.next_weekday)


FLOW = columns_of("trade_date=f51 net_inflow=f52")


def flows(symbol: str, moved: Iterable[Row], held: Iterable[Row]) -> Iterator[Row]:
    """By day: large orders are known that evening; a day with what is held by way of Hong Kong waits for it."""
    by_day = {row["trade_date"]: row for row in held if "trade_date" in row}
    for row in moved:
        told = AKSHARE.row(facts.FLOWS, FLOW, row, symbol=symbol)
        yield {**told, **by_day.pop(told.get("trade_date"), {})}
    yield from by_day.values()
