"""Reports of Eastmoney's data centre about a company, as it sends them: upper case, midnights for days."""

from datetime import date, timedelta
from typing import Any

Rows = list[dict[str, Any]]
KNOWN, BANK = "600519", "601398"


def at(day: str) -> str:
    return f"{day} 00:00:00"


def _filed(period: str, notice: str, update: str | None = None, **figures: Any) -> dict[str, Any]:
    who = {
        "SECUCODE": f"{KNOWN}.SH",
        "SECURITY_CODE": KNOWN,
        "SECURITY_NAME_ABBR": "甲",
        "REPORT_TYPE": "年报",
    }
    days = {"REPORT_DATE": at(period), "NOTICE_DATE": at(notice), "UPDATE_DATE": at(update or notice)}
    return who | days | figures


INCOME = [
    _filed("2024-03-31", "2024-04-27", OPERATE_INCOME=4.6e8, NETPROFIT=2.5e8, PARENT_NETPROFIT=2.4e8),
    _filed(
        "2023-12-31",
        "2024-04-03",
        OPERATE_INCOME=1.5e9,
        TOTAL_OPERATE_INCOME=1.6e9,
        OPERATE_COST=1.2e8,
        SALE_EXPENSE=4.0e7,
        MANAGE_EXPENSE=9.0e7,
        RESEARCH_EXPENSE=1.0e6,
        FINANCE_EXPENSE=-1.7e7,
        FE_INTEREST_EXPENSE=1.2e5,
        OPERATE_PROFIT=1.0e9,
        TOTAL_PROFIT=1.0e9,
        INCOME_TAX=2.6e8,
        NETPROFIT=7.7e8,
        PARENT_NETPROFIT=7.4e8,
    ),
]
BALANCE = [
    _filed("2024-03-31", "2024-04-27", TOTAL_ASSETS=2.8e9, TOTAL_LIABILITIES=4.2e8),
    _filed(
        "2023-12-31",
        "2024-04-03",
        "2024-08-09",  # a figure was put right later
        MONETARYFUNDS=6.9e8,
        ACCOUNTS_RECE=6.0e5,
        INVENTORY=4.6e8,
        TOTAL_CURRENT_ASSETS=2.2e9,
        FIXED_ASSET=1.9e8,
        INTANGIBLE_ASSET=8.5e7,
        GOODWILL=None,
        TOTAL_ASSETS=2.7e9,
        SHORT_LOAN=None,
        ACCOUNTS_PAYABLE=3.0e7,
        TOTAL_CURRENT_LIAB=4.8e8,
        LONG_LOAN=None,
        BOND_PAYABLE=None,
        TOTAL_LIABILITIES=4.9e8,
        UNASSIGN_RPOFIT=1.7e9,
        MINORITY_EQUITY=7.5e7,
        TOTAL_PARENT_EQUITY=2.1e9,
        SHARE_CAPITAL=1.25e9,
    ),
]
CASHFLOW = [
    _filed("2024-03-31", "2024-04-27", NETCASH_OPERATE=9.1e7, FA_IR_DEPR=None),
    _filed(
        "2023-12-31",
        "2024-04-03",
        NETCASH_OPERATE=6.6e8,
        NETCASH_INVEST=-9.7e7,
        NETCASH_FINANCE=-5.8e8,
        CONSTRUCT_LONG_ASSET=2.6e7,
        FA_IR_DEPR=1.8e7,
        CCE_ADD=-2.0e7,
    ),
]
OF_A_BANK = [_filed("2023-12-31", "2024-03-27", OPERATE_INCOME=8.4e11, PARENT_NETPROFIT=3.6e11)]


def _forecast(code: str, what: str, notice: str, low: float, high: float) -> dict[str, Any]:
    who = {
        "SECUCODE": f"{KNOWN}.SH",
        "SECURITY_CODE": KNOWN,
        "ORG_CODE": "1",
        "REPORT_DATE": at("2024-06-30"),
    }
    amounts = {
        "PREDICT_AMT_LOWER": low,
        "PREDICT_AMT_UPPER": high,
        "ADD_AMP_LOWER": 12.5,
        "ADD_AMP_UPPER": 15.0,
    }
    said = {"PREDICT_TYPE": "略增", "PREDICT_CONTENT": f"预计2024年1-6月{what}增长", "IS_LATEST": "T"}
    return (
        who
        | {"NOTICE_DATE": at(notice), "PREDICT_FINANCE_CODE": code, "PREDICT_FINANCE": what}
        | amounts
        | said
    )


FORECASTS = [
    _forecast("003", "每股收益", "2024-07-10", 0.33, 0.34),
    _forecast("004", "归属于上市公司股东的净利润", "2024-07-10", 4.1e8, 4.2e8),
    _forecast("004", "归属于上市公司股东的净利润", "2024-06-05", 4.0e8, 4.3e8),
]
EXPRESS = [
    _filed("2023-12-31", "2024-01-20", "2024-02-02", PARENT_NETPROFIT=7.35e8, JLRTBZCL=17.2)
    | {"TOTAL_OPERATE_INCOME": 1.49e9, "BASIC_EPS": 0.59, "ISNEW": "1", "QDATE": "2023Q4"}
]
HOLDERS = [
    {
        "SECURITY_CODE": KNOWN,
        "END_DATE": at(end),
        "HOLD_NOTICE_DATE": at(told) if told else None,
        "HOLDER_NUM": number,
    }
    for end, told, number in [
        ("2024-03-31", "2024-04-27", 171_000),
        ("2023-12-31", "2024-04-03", 161_000),
        ("2023-09-30", None, 155_000),
    ]
]
FRIDAYS = [date(2024, 6, 7) - timedelta(weeks=n) for n in range(600)]
PLEDGES = [
    {"SECUCODE": f"{KNOWN}.SH", "SECURITY_CODE": KNOWN, "TRADE_DATE": at(friday.isoformat())}
    | {"PLEDGE_RATIO": 0.06, "REPURCHASE_BALANCE": 73.66, "PLEDGE_DEAL_NUM": 7, "PLEDGE_MARKET_CAP": 1.5e3}
    for friday in FRIDAYS
]
TRADES = [
    {"CHANGE_NUM": number, "NOTICE_DATE": at(day), "SECURITY_CODE": KNOWN, "HOLDER_NAME": holder}
    | {
        "AFTER_CHANGE_RATE": 0.0086,
        "CHANGE_NUM_SYMBOL": number,
        "CHANGE_RATE": -0.3,
        "END_DATE": at("2024-05-30"),
    }
    | {"DIRECTION": direction, "TRADE_AVERAGE_PRICE": price, "MARKET": "二级市场"}
    for number, day, holder, direction, price in [
        (10.75, "2024-06-03", "某某集团有限责任公司", "增持", 20.1),
        (-3.2, "2024-05-08", "张三", "减持", None),
        (1.0, "2024-05-09", "李四", "不变", None),
    ]
]
NORTHBOUND = [
    {
        "SECURITY_CODE": KNOWN,
        "TRADE_DATE": at(day),
        "HOLD_SHARES": shares,
        "HOLD_SHARES_RATIO": 6.9,
        "INTERVAL_TYPE": "1",
    }
    for day, shares in [("2024-06-18", 8.6e7), ("2024-06-14", 8.5e7)]
]
OF_THE_MARKET = "RPT_LICO_FN_CPD"
EARNERS = [
    {"SECURITY_CODE": code, "REPORTDATE": at("2023-12-31"), "PUBLISHNAME": industry, "BASIC_EPS": 1.0}
    for code, industry in [(KNOWN, "酿酒行业"), ("000011", "房地产开发"), ("830001", None)]
]
REPORTS: dict[str, Rows] = {
    OF_THE_MARKET: EARNERS,
    "RPT_F10_FINANCE_GINCOME": INCOME,
    "RPT_F10_FINANCE_GBALANCE": BALANCE,
    "RPT_F10_FINANCE_GCASHFLOW": CASHFLOW,
    "RPT_PUBLIC_OP_NEWPREDICT": FORECASTS,
    "RPT_FCI_PERFORMANCEE": EXPRESS,
    "RPT_HOLDERNUM_DET": HOLDERS,
    "RPT_CSDC_LIST": PLEDGES,
    "RPT_SHARE_HOLDER_INCREASE": TRADES,
    "RPT_MUTUAL_HOLDSTOCKNDATE_STA": NORTHBOUND,
}
OTHER_KINDS = {
    f"RPT_F10_FINANCE_{kind}{part}" for kind in "BSI" for part in ("INCOME", "BALANCE", "CASHFLOW")
}


def report_about(name: str, about: str) -> Rows | None:
    """None for a report there is not; nothing about a company that is of another kind."""
    if BANK in about:
        return OF_A_BANK if name == "RPT_F10_FINANCE_BINCOME" else []
    if name in OTHER_KINDS:
        return []
    return REPORTS.get(name)


FLOWS = ["2024-06-17,-1.5e7", "2024-06-18,2.5e7", "2024-06-19,0.0"]
UNLOCKS = [
    ("2024-07-22", "1200.50", "2024-07-16"),
    ("2019-07-22", "800", "2016-07-20"),
    ("2018-01-02", "50", "--"),
]


def unlocks_page(symbol: str) -> str:
    """A table for people; only its heading where there is nothing."""
    heading = ("代码", "名称", "解禁日期", "解禁数量(万股)", "解禁股流通市值(亿元)", "上市批次", "公告日期")
    known = UNLOCKS if symbol == KNOWN else []
    rows = [(KNOWN, "甲", day, shares, "1.5", "1", told) for day, shares, told in known]
    body = "".join(f"<tr>{_cells('td', row)}</tr>" for row in rows)
    head = f"<thead><tr>{_cells('th', heading)}</tr></thead>"
    return f"<html><body><table id='dataTable'>{head}<tbody>{body}</tbody></table></body></html>"


def _cells(tag: str, texts: tuple[str, ...]) -> str:
    return "".join(f"<{tag}>{text}</{tag}>" for text in texts)


BOARDS = {"BK0477": "酿酒行业", "BK0475": "银行"}
BOARD_FIELDS = (  # in the order of their numbers, which AKShare relies on
    "1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 20 21 22 23 24 25 26 33 62 104 105 107 115 124 128 136 140 141 152 "
    "207 208 209 222"
)


def boards_page() -> dict[str, Any]:
    board = {f"f{number}": 1.0 for number in BOARD_FIELDS.split()}
    listed = [board | {"f12": code, "f14": name} for code, name in BOARDS.items()]
    return {"rc": 0, "rt": 6, "svr": 1, "data": {"total": len(listed), "diff": listed}}
