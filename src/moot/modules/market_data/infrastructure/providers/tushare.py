"""Tushare Pro as a provider: which interfaces make up which dataset, and within which limits they are asked.

On the wire it is one endpoint, columnar tables, and HTTP 200 whatever happened; the text says what did.
"""

import asyncio
import math
import re
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import date, timedelta
from functools import partial
from typing import Any

import httpx
from pydantic import BaseModel, SecretStr

from moot.modules.market_data.domain import facts
from moot.modules.market_data.domain.facts import Dataset
from moot.modules.market_data.domain.provider import Batch, Missing, NotOffered
from moot.modules.market_data.domain.texts import SAY
from moot.modules.market_data.infrastructure.providers import outside, rows, tushare_deep, tushare_rows
from moot.modules.market_data.infrastructure.providers.outside import Reader, Row
from moot.modules.market_data.infrastructure.providers.rows import LONGEST_HOLIDAY, MACRO_RELEASES, Series
from moot.modules.market_data.infrastructure.providers.tushare_deep import Tell
from moot.modules.market_data.infrastructure.providers.tushare_rows import (
    FIELDS,
    FIGURES,
    SERIES,
    TUSHARE,
    Interface,
)
from moot.shared.domain.errors import Unavailable
from moot.shared.domain.symbol import Market

BASE_URL = "https://api.tushare.pro"
PAGE_ROWS = dict.fromkeys(("daily", "adj_factor", "daily_basic"), 6000) | {"pledge_stat": 1000}
PAGE_ROWS |= dict.fromkeys(FIGURES, 100)
OTHER_PAGE_ROWS = 2000
"""A longer answer is cut short by the service."""
NAMES_HOLD = 6 * 3600.0
"""Seconds for which the list of names is good."""
REFUSAL_HOLDS = 3600.0
"""Seconds for which an interface that the token may not read is not asked again."""
LIST_STATES = ("L", "D", "P")
"""Listed, delisted, paused."""
TWO_MONTHS = timedelta(days=62)
HIDDEN = "***"
OK = 0
LONGEST_QUOTE = 200

INTERFACES: dict[Dataset[Any], Interface] = {
    facts.VALUATIONS: Interface("daily_basic", partial(tushare_rows.read, facts.VALUATIONS, "daily_basic")),
    facts.DIVIDENDS: Interface("dividend", tushare_rows.dividend),
    facts.NEWS: Interface("anns_d", tushare_rows.announcement, around=LONGEST_HOLIDAY),
    **tushare_deep.INTERFACES,
}
SEVERAL: dict[Dataset[Any], tuple[Iterable[str], Tell]] = {
    facts.REPORTS: (FIGURES, tushare_rows.report_rows),
    **tushare_deep.SEVERAL,
}


@dataclass(frozen=True)
class Refused:
    """A way in which Tushare says no, known by what its text says or by the code it sends."""

    key: str
    text: str
    codes: tuple[int, ...] = ()
    error: type[Unavailable] = Unavailable
    code: str | None = None
    passing: bool = False


REFUSALS = (  # in this order: the text about the rate speaks of permissions too, under the same code
    Refused("tushare.busy", "每分钟.*最多访问", code="TUSHARE_BUSY", passing=True),
    Refused("tushare.quota", "最多访问", code="TUSHARE_QUOTA"),
    Refused("tushare.no_permission", "没有.*权限", (2002,), NotOffered),
    Refused("tushare.token", "(?i)token", (40101,), code="TUSHARE_TOKEN"),
    Refused("tushare.refused", ""),
)


class _Table(BaseModel):
    """Columns may come in any order and number: they are read by name, in small letters."""

    fields: list[str] = []
    items: list[list[Any]] | None = None
    has_more: bool | None = None

    def rows(self) -> list[Row]:
        names = [name.lower() for name in self.fields]
        return [dict(zip(names, item, strict=True)) for item in self.items or []]


class _Envelope(BaseModel):
    code: int
    msg: str | None = None
    data: _Table | None = None


@dataclass(frozen=True)
class Page(outside.HttpAnswer):
    rows: list[Row]
    has_more: bool | None


def read_page(api: str, answer: outside.HttpAnswer) -> Page:
    outside.refuse_status(TUSHARE.name, api, answer)
    said = {"source": TUSHARE.name, "operation": api, "status": answer.status_code}
    try:
        envelope = _Envelope.model_validate_json(answer.text)
        table = envelope.data or _Table()
        told = table.rows()
    except ValueError:  # no envelope, or a row that has not one value for each field
        raise outside.Trouble(Unavailable(SAY("outside.unreadable", **said)), answer=answer) from None
    if envelope.code != OK:
        raise _refusal(api, envelope, answer)
    return Page(answer.status_code, answer.text, told, table.has_more)


def _refusal(api: str, envelope: _Envelope, answer: outside.HttpAnswer) -> outside.Trouble:
    text = envelope.msg or ""
    kind = next(k for k in REFUSALS if re.search(k.text, text) or envelope.code in k.codes)
    said = SAY(kind.key, api=api, code=envelope.code, text=text[:LONGEST_QUOTE])
    return outside.Trouble(kind.error(said, code=kind.code), passing=kind.passing, answer=answer)


class TushareProvider(outside.OutsideSource):
    """A-shares, their companies and the Chinese economy, as far as the token's permissions reach.

    The token goes out in the request and nowhere else.
    """

    name = TUSHARE.name
    market = Market.CN
    pace = outside.Pace(calls=195, per_seconds=60, concurrency=4)
    deadline = 30.0
    passing = (httpx.TransportError,)

    def __init__(
        self,
        token: SecretStr,
        *,
        base_url: str = BASE_URL,
        client: Callable[[], httpx.AsyncClient] | None = None,
        **limits: Any,
    ) -> None:
        super().__init__(**limits)
        self._refused: dict[str, tuple[float, NotOffered]] = {}
        self._token, self._base_url = token, base_url
        self._open_client = client or partial(httpx.AsyncClient, trust_env=True, timeout=2 * self.deadline)
        self._opened: httpx.AsyncClient | None = None
        self._names: tuple[float, Mapping[str, list[Row]]] = (-math.inf, {})
        self._reading_names = asyncio.Lock()

    def readers(self) -> dict[Dataset[Any], Reader]:
        return {
            facts.COMPANIES: self._companies,
            facts.BARS: self._bars,
            facts.MACRO: self._macro,
            facts.INDEX_BARS: self._index_bars,
            **{dataset: partial(self._interface, dataset, told) for dataset, told in INTERFACES.items()},
            **{dataset: partial(self._several, dataset, *told) for dataset, told in SEVERAL.items()},
        }

    async def aclose(self) -> None:
        if self._opened is not None:
            await self._opened.aclose()
            self._opened = None

    async def _companies(self, *_: object) -> list[Row]:
        """Listed, delisted and paused ones; without permission for their names, without former names and ST."""
        found: list[Row] = []
        for status in LIST_STATES:
            found += await self._rows("stock_basic", {"exchange": "", "list_status": status})
        names = await self._names_by_symbol()
        return [tushare_rows.company(row, names.get(row.get("ts_code", ""), [])) for row in found]

    async def _bars(self, symbol: str, start: date, end: date) -> list[Row]:
        asked = {"ts_code": symbol, **_days(start, end)}
        quotes = await self._rows("daily", asked)
        if not quotes:
            return []
        found = await self._rows("adj_factor", asked)
        factors = {row.get("trade_date"): row.get("adj_factor") for row in found}
        spells = tushare_rows.special_treatments((await self._names_by_symbol()).get(symbol, []))
        halts = await self._permitted("suspend_d", {**asked, "suspend_type": "S"})
        return [
            *(tushare_rows.bar(row, factors.get(row.get("trade_date")), spells) for row in quotes),
            *(
                {**tushare_rows.bar(row, factors.get(last), spells), "suspended": True}
                for row, last in tushare_rows.suspended_bars(quotes, halts)
            ),
        ]

    async def _interface(
        self, dataset: Dataset[Any], interface: Interface, symbol: str, start: date, end: date
    ) -> list[Row]:
        """A row that comes twice as it is, which happens in some tables, is one."""
        days = {} if dataset.whole else _days(start - interface.around, end + interface.around)
        found = await self._rows(interface.api, {"ts_code": symbol, **days})
        distinct = {tuple(row.items()): row for row in found}.values()
        return [told for row in distinct if (told := interface.row(row)) is not None]

    async def _several(
        self, dataset: Dataset[Any], apis: Iterable[str], tell: Tell, symbol: str, start: date, end: date
    ) -> Batch[Row]:
        """What several interfaces tell together; one the token may not use leaves its part out, and says so."""
        asked = {"ts_code": symbol} if dataset.whole else {"ts_code": symbol, **_days(start, end)}
        tables, missing = await self._read_permitted({api: (api, asked) for api in apis})
        return Batch(tell(symbol, tables), missing)

    async def _index_bars(self, _: str, start: date, end: date) -> Batch[Row]:
        """Of the market, and of those industries that are called as the industries of companies are."""
        listed = {"index_classify": ("index_classify", tushare_deep.INDUSTRIES)}
        listed["stock_basic"] = ("stock_basic", {"exchange": "", "list_status": "L"})
        lists, lacking = await self._read_permitted(listed)
        names = {**rows.MARKET_INDEXES, **tushare_deep.industry_indexes(**lists)}
        apis = {c: "index_daily" if c in rows.MARKET_INDEXES else "sw_daily" for c in names}
        days = _days(start, end)
        tables, missing = await self._read_permitted({c: (apis[c], {"ts_code": c, **days}) for c in names})
        told = (tushare_deep.index_bar(apis[c], row, names[c]) for c in tables for row in tables[c])
        return Batch(told, [*lacking, *missing])

    async def _macro(self, _: str, start: date, end: date) -> Batch[Row]:
        asked = {series.name: (series.table, _question(series, start, end)) for series in SERIES}
        tables, missing = await self._read_permitted(asked)
        return Batch(
            (row for s in SERIES for row in s.observations(tables.get(s.name, []), self.name)), missing
        )

    async def constituents(self, index: str, day: date) -> list[str]:
        """Published by the month: the newest list of the last two."""
        asked = {"index_code": index, **_days(day - TWO_MONTHS, day)}
        found = await self._rows("index_weight", asked)
        newest = max((row["trade_date"] for row in found), default=None)
        return sorted({row["con_code"] for row in found if row["trade_date"] == newest})

    async def _read_permitted(
        self, asked: Mapping[str, tuple[str, Mapping[str, Any]]]
    ) -> tuple[dict[str, list[Row]], list[Missing]]:
        """The tables the token may read, and what it may not; nothing at all is `NotOffered`."""
        tables: dict[str, list[Row]] = {}
        missing: list[Missing] = []
        for name, (api, params) in asked.items():
            try:
                tables[name] = await self._rows(api, params)
            except NotOffered as e:
                missing.append(Missing(api, str(e), SAY("tushare.no_permission", api=api)))
        if not tables:
            raise NotOffered(SAY("tushare.no_permission", api=list(dict.fromkeys(m.row for m in missing))))
        return tables, list(dict.fromkeys(missing))

    async def _names_by_symbol(self) -> Mapping[str, list[Row]]:
        """Every name every company ever had, read once a while; nothing where the token may not read it."""
        async with self._reading_names:
            if time.monotonic() > self._names[0]:
                names = defaultdict[str, list[Row]](list)
                for row in await self._permitted("namechange", {}):
                    names[row.get("ts_code", "")].append(row)
                self._names = (time.monotonic() + NAMES_HOLD, names)
            return self._names[1]

    async def _permitted(self, api: str, params: Mapping[str, Any]) -> list[Row]:
        """Every row there is; none where the token may not read it, for what does without."""
        with suppress(NotOffered):
            return await self._rows(api, params)
        return []

    async def _rows(self, api: str, params: Mapping[str, Any]) -> list[Row]:
        """Every row there is. What the token may not read is not asked for again and again."""
        if not self._token.get_secret_value().strip():
            raise Unavailable(SAY("tushare.token"), code="TUSHARE_TOKEN")
        until, refused = self._refused.get(api, (-math.inf, None))
        if refused is not None and self._now() < until:
            raise NotOffered(refused.message)
        try:
            return await self._pages(api, params)
        except NotOffered as e:
            self._refused[api] = (self._now() + REFUSAL_HOLDS, e)
            raise

    async def _pages(self, api: str, params: Mapping[str, Any]) -> list[Row]:
        """A page that comes twice is refused, for the rest would be missing in silence."""
        page_rows = PAGE_ROWS.get(api, OTHER_PAGE_ROWS)
        found: list[Row] = []
        page: list[Row] = []
        while True:
            asked = {**params, "limit": page_rows, "offset": len(found)}
            answer = await self.call(api, asked, partial(self._page, api, asked))
            last, page = page, answer.rows
            if page and page == last:
                raise Unavailable(SAY("tushare.same_page", api=api))
            found += page
            if not page or not (answer.has_more or len(page) == page_rows):
                return found

    async def _page(self, api: str, params: Mapping[str, Any]) -> Page:
        token = self._token.get_secret_value()
        body = {"api_name": api, "token": token, "params": params, "fields": FIELDS.get(api, "")}
        if self._opened is None:
            self._opened = self._open_client()
        response = await self._opened.post(self._base_url, json=body)
        return read_page(api, outside.HttpAnswer(response.status_code, response.text.replace(token, HIDDEN)))


def _days(start: date, end: date) -> dict[str, str]:
    return {"start_date": f"{start:%Y%m%d}", "end_date": f"{end:%Y%m%d}"}


def _question(series: Series, start: date, end: date) -> dict[str, str]:
    if MACRO_RELEASES[series.name].monthly:
        return {"start_m": f"{start:%Y%m}", "end_m": f"{end:%Y%m}"}
    return {**_days(start, end), **series.asking}
