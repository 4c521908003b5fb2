"""The pages AKShare reads — Eastmoney, Sina, the exchanges — on a local port, in the format each of them sends.

`redirect(monkeypatch)` sends every request meant for them here, the host as the first part of the path.
"""

import io
import json
import re
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pandas as pd
import pytest

from tests.fakes import eastmoney_reports, quote_pages

NOTHING = {"version": None, "result": None, "success": False, "message": "返回数据为空", "code": 9201}
KNOWN = "600519"

KLINES = [
    "2024-06-14,19.80,20.00,20.30,19.70,8000,16000000.00,3.00,0.50,0.10,0.64",
    "2024-06-17,20.00,20.40,20.80,19.90,10000,20300000.00,4.50,2.00,0.40,0.80",
    "2024-06-18,20.40,20.50,20.70,20.20,9000,18400000.00,2.45,0.49,0.10,0.72",
    "2024-06-19,20.10,20.10,20.40,19.95,12000,24200000.00,2.20,-1.95,-0.40,0.96",
    "2024-06-20,-,20.30,20.40,20.00,7000,14200000.00,1.99,1.00,0.20,0.56",
    "2024-06-21,20.30,20.25,20.35,20.10,6000,12150000.00,1.23,-0.25,-0.05,0.48",
]
FACTORS = {
    "total": 2,
    "data": [{"d": "2024-06-19", "f": "1.025"}, {"d": "1900-01-01", "f": "1.0000000000000000"}],
}
VALUATIONS = [
    {"PE_TTM": 12.5, "PE_LAR": 13.1, "PB_MRQ": 3.2, "PS_TTM": 4.0, "PCF_OCF_TTM": 9.0, "PEG_CAR": 1.1}
    | {"TRADE_DATE": "2024-06-19 00:00:00", "CLOSE_PRICE": 20.1, "CHANGE_RATE": 0.5}
    | {
        "TOTAL_MARKET_CAP": 2.52e10,
        "NOTLIMITED_MARKETCAP_A": 2.5e10,
        "TOTAL_SHARES": 1.25e9,
        "FREE_SHARES_A": 1.24e9,
    },
    {"PE_TTM": -8.5, "PE_LAR": None, "PB_MRQ": 3.3, "PS_TTM": "-", "PCF_OCF_TTM": None, "PEG_CAR": None}
    | {"TRADE_DATE": "2024-06-18 00:00:00", "CLOSE_PRICE": 20.5, "CHANGE_RATE": 0.49}
    | {
        "TOTAL_MARKET_CAP": 2.57e10,
        "NOTLIMITED_MARKETCAP_A": 2.55e10,
        "TOTAL_SHARES": 1.25e9,
        "FREE_SHARES_A": 1.24e9,
    },
    {"PE_TTM": 12.0, "PE_LAR": 12.0, "PB_MRQ": 3.0, "PS_TTM": 4.0, "PCF_OCF_TTM": 9.0, "PEG_CAR": 1.0}
    | {"TRADE_DATE": "2024-06-17 00:00:00", "CLOSE_PRICE": 20.4, "CHANGE_RATE": 2.0}
    | {
        "TOTAL_MARKET_CAP": -1.0,
        "NOTLIMITED_MARKETCAP_A": 2.5e10,
        "TOTAL_SHARES": 1.25e9,
        "FREE_SHARES_A": 1.24e9,
    },
]
INDICATORS = [
    {"SECUCODE": "600519.SH", "REPORT_DATE": "2024-03-31 00:00:00", "NOTICE_DATE": None, "UPDATE_DATE": None}
    | {
        "EPSJB": 0.5,
        "BPS": 6.4,
        "TOTALOPERATEREVE": 3.2e8,
        "PARENTNETPROFIT": 6.0e7,
        "ROEJQ": 7.9,
        "XSMLL": None,
    },
    {"SECUCODE": "600519.SH", "REPORT_DATE": "2023-12-31 00:00:00", "NOTICE_DATE": "2024-04-03 00:00:00"}
    | {"UPDATE_DATE": "2024-04-03 00:00:00", "EPSJB": 1.61, "BPS": 5.9, "TOTALOPERATEREVE": 1.1e9}
    | {
        "PARENTNETPROFIT": 2.0e8,
        "KCFJCXSYJLR": 1.9e8,
        "ROEJQ": 30.2,
        "XSMLL": 71.5,
        "XSJLL": 18.2,
        "ROIC": 27.0,
    }
    | {
        "MGJYXJJE": 1.4,
        "LD": 2.1,
        "SD": 1.7,
        "ZCFZL": 35.5,
        "CHZZTS": 210.0,
        "YSZKZZTS": 12.0,
        "TOAZZL": 0.8,
    },
]
BONUS_COLUMNS = (  # noqa: SIM905 - in this order, which AKShare relies on
    "SECUCODE SECURITY_NAME_ABBR SECURITY_INNER_CODE ORG_CODE SECURITY_CODE BONUS_IT_RATIO BONUS_RATIO IT_RATIO "
    "PRETAX_BONUS_RMB PUBLISH_DATE EQUITY_RECORD_DATE EX_DIVIDEND_DATE REPORT_DATE ASSIGN_PROGRESS IMPL_PLAN_PROFILE "
    "NOTICE_DATE IS_PAYCASH ASSIGN_OBJECT MARKET_TYPE BASIC_EPS BVPS PER_CAPITAL_RESERVE PER_UNASSIGN_PROFIT "
    "PNP_YOY_RATIO TOTAL_SHARES PLAN_NOTICE_DATE DIVIDENT_RATIO D10_CLOSE_ADJCHRATE BD10_CLOSE_ADJCHRATE EITIME"
).split()
BONUSES = [
    {"REPORT_DATE": "2023-12-31 00:00:00", "PLAN_NOTICE_DATE": "2024-04-03 00:00:00", "PRETAX_BONUS_RMB": 5}
    | {
        "NOTICE_DATE": "2024-06-12 00:00:00",
        "EQUITY_RECORD_DATE": "2024-06-18 00:00:00",
        "BONUS_IT_RATIO": None,
    }
    | {"EX_DIVIDEND_DATE": "2024-06-19 00:00:00", "ASSIGN_PROGRESS": "实施分配"},
    {
        "REPORT_DATE": "2022-12-31 00:00:00",
        "PLAN_NOTICE_DATE": "2023-04-03 00:00:00",
        "PRETAX_BONUS_RMB": None,
    }
    | {"NOTICE_DATE": "2023-04-03 00:00:00", "EQUITY_RECORD_DATE": "2023-06-15 00:00:00", "BONUS_IT_RATIO": 3}
    | {"EX_DIVIDEND_DATE": "2023-06-16 00:00:00", "ASSIGN_PROGRESS": "实施分配"},
    {"REPORT_DATE": "2024-06-30 00:00:00", "PLAN_NOTICE_DATE": "2024-08-20 00:00:00", "PRETAX_BONUS_RMB": 2}
    | {"NOTICE_DATE": "2024-08-20 00:00:00", "ASSIGN_PROGRESS": "董事会决议通过"},
]
MONTHS = [("2024-02-01 00:00:00", "2024年02月份", 0.7), ("2024-01-01 00:00:00", "2024年01月份", -0.8)]
MACRO_COLUMNS = {
    "RPT_ECONOMY_CPI": 2,
    "RPT_ECONOMY_PPI": 3,
    "RPT_ECONOMY_PMI": 2,
    "RPT_ECONOMY_CURRENCY_SUPPLY": 3,
}
"""Which of the asked columns holds the figure that counts."""
RATES = [
    {"TRADE_DATE": "2024-02-20 00:00:00", "LPR1Y": 3.45, "LPR5Y": 3.95, "RATE_1": 4.35, "RATE_2": 4.9},
    {"TRADE_DATE": "2012-07-06 00:00:00", "LPR1Y": None, "LPR5Y": None, "RATE_1": 6.0, "RATE_2": 6.55},
]
ARTICLES = [
    {
        "date": "2024-06-19 20:15:00",
        "title": "<em>600519</em>除息日成交平稳",
        "content": "…",
        "mediaName": "某报",
    }
    | {
        "code": "202406193107000001",
        "url": "http://finance.eastmoney.com/a/202406193107000001.html",
        "image": "",
    },
    {"date": "2024-05-01 08:00:00", "title": "旧闻", "content": "…", "mediaName": "某报", "image": ""}
    | {"code": "202405013107000002", "url": "http://finance.eastmoney.com/a/202405013107000002.html"},
]


def _notice(number: int, display_time: str, printed: str) -> dict[str, Any]:
    return {
        "art_code": f"AN{number:018d}",
        "codes": [
            {
                "ann_type": "A,SHA",
                "inner_code": "1",
                "market_code": "1",
                "short_name": "甲",
                "stock_code": KNOWN,
            }
        ],
        "columns": [{"column_code": "001002003", "column_name": "其他"}],
        "display_time": display_time,
        "eiTime": display_time,
        "notice_date": f"{printed} 00:00:00",
        "title": f"第{number}号公告",
    }


NOTICES = [_notice(900, "2024-06-19 18:02:31:656", "2024-06-20")] + [
    _notice(n, f"2024-06-{18 - n % 3:02d} 17:00:{n % 60:02d}:000", f"2024-06-{19 - n % 3:02d}")
    for n in range(150)
]


@dataclass
class EastmoneyServer:
    """What was asked is in `asked`; `broken` is an answer to give instead, `slow` seconds to wait before any.

    Places with one of `down` in them answer as a service does that shuts somebody out.
    """

    url: str = ""
    asked: list[tuple[str, dict[str, str]]] = field(default_factory=list)
    times: list[float] = field(default_factory=list)
    broken: tuple[int, str] | None = None
    broken_for: int = 1_000_000
    slow: float = 0.0
    down: set[str] = field(default_factory=set)

    def answer(self, place: str, query: dict[str, str]) -> tuple[int, str | bytes]:
        self.asked.append((place, query))
        self.times.append(time.monotonic())
        time.sleep(self.slow)
        if self.broken and self.broken_for > 0:
            self.broken_for -= 1
            return self.broken
        if any(part in place for part in self.down):
            return 403, "<html>Forbidden</html>"
        host, _, path = place.partition("/")
        if host.startswith("datacenter"):
            return 200, json.dumps(_data_centre(query), ensure_ascii=False)
        return 200, PAGES[host](path, query)

    def hosts(self) -> list[str]:
        return [place.partition("/")[0] for place, _ in self.asked]

    def redirect(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Every request of the `requests` library goes to this server instead of its host."""
        import requests

        real = requests.Session.request

        def request(session: Any, method: str, url: str, **kwargs: Any) -> Any:
            there = url.split("://", maxsplit=1)[1]
            kwargs["headers"] = {k: v for k, v in (kwargs.get("headers") or {}).items() if k != "Host"}
            return real(session, method, f"{self.url}/{there}", **kwargs)

        monkeypatch.setattr(requests.Session, "request", request)


INDEX_SECIDS = {
    f"1.{KNOWN}",
    "1.000001",
    "1.000300",
    "1.000905",
    "0.399001",
    "0.399006",
    "90.BK0477",
    "90.BK0475",
}
"""The share, and indexes, which have days of their own in life and the share's here."""


NAME = "贵州茅台"


def _klines(path: str, query: dict[str, str]) -> str:
    """As the service sends them: `data` is null for a code nobody has, and JSONP where a callback was named."""
    lines = eastmoney_reports.FLOWS
    if "fflow" not in path:
        lines = [k for k in KLINES if query["beg"] <= k[:10].replace("-", "") <= query["end"]]
    lines = [",".join(line.split(",")[: len(query["fields2"].split(","))]) for line in lines]
    data = {
        "code": KNOWN,
        "market": 1,
        "name": "甲",
        "decimal": 2,
        "dktotal": 100,
        "preKPrice": 19.9,
        "klines": lines,
    }
    body = {
        "rc": 0,
        "rt": 17,
        "svr": 1,
        "lt": 1,
        "full": 0,
        "dlmkts": "",
        "dsc": 1,
        "data": data if query["secid"] in INDEX_SECIDS else None,
    }
    text = json.dumps(body, ensure_ascii=False)
    return f"{query['cb']}({text});" if "cb" in query else text


def _data_centre(query: dict[str, str]) -> dict[str, Any]:
    name = query.get("reportName") or query["type"]
    about = query.get("filter", KNOWN)
    rows = _report(name, query.get("columns", ""), about)
    if rows is None:
        return NOTHING | {"message": "报表配置不存在", "code": 9501}
    if name == eastmoney_reports.OF_THE_MARKET:
        about = KNOWN if about == "(REPORTDATE='2023-12-31')" else ""
    if not rows or not {KNOWN, eastmoney_reports.BANK} & set(re.findall(r"\d{6}", about)):
        return NOTHING
    page, size = int(query.get("pageNumber", 1)), int(query.get("pageSize", 500))
    shown = rows[(page - 1) * size : page * size]
    result = {"pages": -(-len(rows) // size), "data": shown, "count": len(rows)}
    return {"version": "x", "result": result, "success": True, "message": "ok", "code": 0}


def _report(name: str, columns: str, about: str) -> list[dict[str, Any]] | None:
    if name in MACRO_COLUMNS:
        return [_figure(columns.split(","), MACRO_COLUMNS[name], *month) for month in MONTHS]
    return {
        "RPT_VALUEANALYSIS_DET": VALUATIONS,
        "RPT_F10_FINANCE_MAINFINADATA": INDICATORS,
        "RPT_SHAREBONUS_DET": [{name: row.get(name) for name in BONUS_COLUMNS} for row in BONUSES],
        "RPTA_WEB_RATE": RATES,
    }.get(name) or eastmoney_reports.report_about(name, about)


def _figure(columns: list[str], at: int, day: str, month: str, value: float) -> dict[str, Any]:
    row: dict[str, Any] = dict.fromkeys(columns, 99.0) | {columns[0]: day, columns[1]: month}
    return row | {columns[at]: value}


def _notices(_path: str, query: dict[str, str]) -> str:
    first = (int(query["page_index"]) - 1) * int(query["page_size"])
    mine = NOTICES if query["stock_list"] == KNOWN else []
    found = [n for n in mine if query["begin_time"] <= n["notice_date"][:10] <= query["end_time"]]
    page = found[first : first + int(query["page_size"])]
    data = {"list": page, "page_index": 1, "page_size": 100, "total_hits": len(found)}
    return json.dumps({"data": data, "error": "", "success": 1}, ensure_ascii=False)


def _articles(_path: str, query: dict[str, str]) -> str:
    found = ARTICLES if json.loads(query["param"])["keyword"] == KNOWN else []
    body = {"bizCode": "", "bizMsg": "", "code": 0, "hitsTotal": len(found), "msg": "OK", "result": {}}
    return f"{query['cb']}({json.dumps(body | {'result': {'cmsArticleWebOld': found}}, ensure_ascii=False)})"


def _shanghai(_path: str, query: dict[str, str]) -> str:
    names = {"SEC_NAME_FULL": "甲", "COMPANY_ABBR": "甲", "FULL_NAME": "甲股份有限公司"}
    listed = {
        "1": [{"A_STOCK_CODE": "600519", "SEC_NAME_CN": NAME, "LIST_DATE": "20010827", **names}],
        "8": [{"A_STOCK_CODE": "688001", "SEC_NAME_CN": "华兴源创", "LIST_DATE": "20190722", **names}],
        "1,2,8": [
            {
                "COMPANY_CODE": "600001",
                "COMPANY_ABBR": "邯郸钢铁",
                "LIST_DATE": "19980122",
                "DELIST_DATE": "20091229",
            },
            {
                "COMPANY_CODE": "900999",
                "COMPANY_ABBR": "某B股",
                "LIST_DATE": "19980122",
                "DELIST_DATE": "20091229",
            },
        ],
    }
    return json.dumps({"result": listed[query["STOCK_TYPE"]]}, ensure_ascii=False)


def _shenzhen(_path: str, query: dict[str, str]) -> bytes:
    row = {
        "板块": "主板",
        "A股总股本": "1",
        "A股流通股本": "1",
        "所属行业": "J 金融业",
        "A股上市日期": "1991-04-03",
    }
    listed = [row | {"A股代码": f"0000{n}", "A股简称": f"第 {n}"} for n in range(11, 23)]
    gone = [{"证券代码": "3", "证券简称": "PT金田A", "上市日期": "1991-07-03", "终止上市日期": "2002-06-14"}]
    renamed = [
        {"变更日期": day, "证券代码": "12", "证券简称": "第 12", "变更前简称": before, "变更后简称": after}
        for day, before, after in [("2021-05-06", "*ST 旧", "第 12"), ("2019-04-30", "老名", "*ST 旧")]
    ]
    sheet = io.BytesIO()
    tables = {"1110": listed, "SSGSGMXX": renamed}
    pd.DataFrame(tables.get(query["CATALOGID"], gone)).to_excel(sheet, index=False)
    return sheet.getvalue()


def _beijing(_path: str, _query: dict[str, str]) -> str:
    row: dict[str, Any] = {f"xx{n}": None for n in range(48)}
    row |= {"xx0": "20211115", "xx11": 1, "xx17": "软件", "xx22": "20240101", "xx29": "北京", "xx35": "券商"}
    row |= {"xx36": 1, "xx38": "430047", "xx40": "诺思兰德"}
    return f"null({json.dumps([{'content': [row], 'totalPages': 1}], ensure_ascii=False)})"


def _sina(path: str, _query: dict[str, str]) -> str:
    symbol = path.split("/")[2]
    if path.endswith("klc_kl.js"):
        return quote_pages.sina_history(symbol, quote_pages.read_days(KLINES))
    return f"var {symbol}hfq={json.dumps(FACTORS)}\n/* 1 */"


def _tencent(_path: str, query: dict[str, str]) -> str:
    """A year and the one after it, as it is asked for."""
    symbol, _, first, last, *_ = query["param"].split(",")
    days = [day for day in quote_pages.read_days(KLINES) if first <= day[0].isoformat() <= last]
    return quote_pages.tencent_days(query["_var"], symbol, days)


PAGES = {
    "push2his.eastmoney.com": _klines,
    "7.push2his.eastmoney.com": _klines,
    "17.push2.eastmoney.com": lambda *_: json.dumps(eastmoney_reports.boards_page(), ensure_ascii=False),
    "np-anotice-stock.eastmoney.com": _notices,
    "search-api-web.eastmoney.com": _articles,
    "finance.sina.com.cn": _sina,
    "stock.finance.sina.com.cn": lambda _, query: quote_pages.sina_shares(query["symbol"]),
    "vip.stock.finance.sina.com.cn": lambda _, query: eastmoney_reports.unlocks_page(query["symbol"]),
    "web.ifzq.gtimg.cn": lambda *_: 'trend_qfq={"code":0,"msg":"","data":[["2001-08-31","3.50"]]}',
    "proxy.finance.qq.com": _tencent,
    "query.sse.com.cn": _shanghai,
    "www.szse.cn": _shenzhen,
    "www.bse.cn": _beijing,
}


@contextmanager
def eastmoney_server() -> Iterator[EastmoneyServer]:
    stub = EastmoneyServer()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked = urlsplit(self.path)
            status, body = stub.answer(asked.path.lstrip("/"), dict(parse_qsl(asked.query)))
            raw = body if isinstance(body, bytes) else body.encode()
            self.send_response(status)
            self.send_header("Content-Type", "text/plain; charset=utf-8")
            self.send_header("Content-Length", str(len(raw)))
            self.end_headers()
            self.wfile.write(raw)

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length") or 0))
            self.do_GET()

        def log_message(self, *_: Any) -> None:
            """Quiet."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    stub.url = f"http://127.0.0.1:{server.server_port}"
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield stub
    finally:
        server.shutdown()
        server.server_close()
