"""Tushare's deeper tables in our words: statements, notices, indexes, owners, pressure, and when each was known."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Any

from moot.modules.market_data.domain import facts
from moot.modules.market_data.infrastructure.providers.outside import Row
from moot.modules.market_data.infrastructure.providers.rows import (
    read_columns,
    read_number,
)
from moot.modules.market_data.infrastructure.providers.tushare_rows import (
    COLUMNS,
    STATEMENTS,
    TUSHARE,
    Interface,
    read,
    report_rows,
)

Tables = Mapping[str, Iterable[Row]]
Tell = Callable[[str, Tables], Iterable[Row]]
TEN_THOUSAND = 10_000
PLEDGED = {"unrest_pledge": TEN_THOUSAND, "rest_pledge": TEN_THOUSAND}
LARGE_ORDERS = {
    f"{way}_{size}_amount": sign * TEN_THOUSAND
    for way, sign in (("buy", 1), ("sell", -1))
    for size in ("lg", "elg")
}
HOLDER_KINDS = {"G": "executive", "P": "person", "C": "company"}
DIRECTIONS = {"IN": "buy", "DE": "sell"}
INDUSTRIES = {"src": "SW2021"}
LEVELS = "ⅠⅡⅢ"
"""After the name of an industry that another level has too."""


def notices(_: str, tables: Tables) -> Iterable[Row]:
    return {(api, *row.items()): _notice(api, row) for api in tables for row in tables[api]}.values()


def _notice(api: str, row: Row) -> Row:
    """A forecast says of which kind it is before it says more."""
    told = read(facts.NOTICES, api, row)
    said = [text for text in (row.get("type"), told.get("says")) if text]
    return {**told, "kind": api, "says": " ".join(said)}


def pledge(row: Row) -> Row:
    return read(facts.PLEDGES, "pledge_stat", row, pledged_shares=_sum(PLEDGED, row))


def unlock(row: Row) -> Row:
    """Where its announcement has no day, it had surely been told when the day came."""
    told = read_columns(facts.UNLOCKS, COLUMNS["share_float"], row)
    return TUSHARE.tell(facts.UNLOCKS, {"announced_on": told.get("unlock_date"), **told})


def holder_trade(row: Row) -> Row:
    kind, way = HOLDER_KINDS.get(str(row.get("holder_type"))), DIRECTIONS.get(str(row.get("in_de")))
    return read(facts.HOLDER_TRADES, "stk_holdertrade", row, kind=kind, direction=way)


def flows(_: str, tables: Tables) -> Iterator[Row]:
    """By day: large orders are known that evening, what is held by way of Hong Kong the morning after."""
    moved, held = (
        {row.get("trade_date"): row for row in tables.get(api, ())} for api in ("moneyflow", "hk_hold")
    )
    for day in moved | held:
        net = _sum(LARGE_ORDERS, moved.get(day, {}))
        yield read(facts.FLOWS, "hk_hold", held.get(day) or moved[day], net_inflow=net)


INTERFACES = {
    facts.PLEDGES: Interface("pledge_stat", pledge),
    facts.UNLOCKS: Interface("share_float", unlock),
    facts.HOLDERS: Interface("stk_holdernumber", partial(read, facts.HOLDERS, "stk_holdernumber")),
    facts.HOLDER_TRADES: Interface("stk_holdertrade", holder_trade),
    facts.MARGIN: Interface("margin_detail", partial(read, facts.MARGIN, "margin_detail")),
}
SEVERAL: dict[facts.Dataset[Any], tuple[Iterable[str], Tell]] = {
    facts.STATEMENTS: (STATEMENTS, partial(report_rows, figures=STATEMENTS)),
    facts.NOTICES: (("forecast", "express"), notices),
    facts.FLOWS: (("moneyflow", "hk_hold"), flows),
}


def index_bar(api: str, row: Row, name: str) -> Row:
    """An index of an industry bears its name; where the close before is not told, it follows from the change."""
    industry = None if api == "index_daily" else name
    told = read(facts.INDEX_BARS, api, row, name=name, industry=industry)
    close, change = told.get("close"), read_number(row.get("change"))
    if "pre_close" in told or not isinstance(close, float) or not isinstance(change, float):
        return told
    return told | {"pre_close": round(close - change, 4)}


def industry_indexes(index_classify: Iterable[Row] = (), stock_basic: Iterable[Row] = ()) -> dict[str, str]:
    """By code: the industries that are called as those of companies are, each on its highest level only."""
    ours = {row.get("industry") for row in stock_basic}
    found: dict[str, str] = {}
    for row in sorted(index_classify, key=lambda row: str(row.get("level"))):
        name = str(row.get("industry_name")).rstrip(LEVELS)
        if name in ours and row.get("is_pub") != "0" and row.get("index_code"):
            found.setdefault(name, row["index_code"])
    return {code: name for name, code in found.items()}


def _sum(units: Mapping[str, int], row: Row) -> float | None:
    """Of what is told; None where nothing is."""
    told = [read_number(row[name], unit) for name, unit in units.items() if row.get(name) is not None]
    numbers = [number for number in told if isinstance(number, float)]
    return sum(numbers) if numbers else None
