"""Tushare's wire: one endpoint, columnar tables, and HTTP 200 whatever happened; the text says what did."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Self

import httpx
from pydantic import BaseModel, SecretStr, ValidationError, model_validator

from moot.modules.market_data.domain.provider import NotOffered
from moot.modules.market_data.domain.texts import SAY
from moot.modules.market_data.infrastructure.providers.outside import HttpAnswer, Outside, Trouble
from moot.modules.market_data.infrastructure.providers.tushare_rows import SOURCE, Row
from moot.shared.domain.errors import Unavailable

OK = 0
HIDDEN = "***"
LONGEST_QUOTE = 200


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

    @model_validator(mode="after")
    def _rows_fit(self) -> Self:
        if any(len(item) != len(self.fields) for item in self.items or []):
            raise ValueError("a row does not have one value for each field")
        return self

    def rows(self) -> list[Row]:
        names = [name.lower() for name in self.fields]
        return [dict(zip(names, item, strict=True)) for item in self.items or []]


class _Envelope(BaseModel):
    code: int
    msg: str | None = None
    data: _Table | None = None


@dataclass(frozen=True)
class _Page(HttpAnswer):
    table: _Table


class TushareClient:
    """Asks an interface for rows, page by page. The token goes out in the request and nowhere else."""

    def __init__(
        self, token: SecretStr, base_url: str, outside: Outside, open_client: Callable[[], httpx.AsyncClient]
    ) -> None:
        self._token, self._base_url, self._outside = token, base_url, outside
        self._open_client = open_client
        self._opened: httpx.AsyncClient | None = None

    async def aclose(self) -> None:
        if self._opened is not None:
            await self._opened.aclose()
            self._opened = None

    async def rows(self, api: str, params: Mapping[str, Any], columns: str, page_rows: int) -> list[Row]:
        """Every row there is; a page that comes twice is refused, for the rest would be missing in silence."""
        if not self._token.get_secret_value().strip():
            raise Unavailable(SAY("tushare.token"), code="TUSHARE_TOKEN")
        found: list[Row] = []
        page: list[Row] = []
        while True:
            asked = {**params, "limit": page_rows, "offset": len(found)}
            answer = await self._outside.call(api, asked, partial(self._page, api, asked, columns))
            last, page = page, answer.table.rows()
            if page and page == last:
                raise Unavailable(SAY("tushare.same_page", api=api))
            found += page
            if not page or not (answer.table.has_more or len(page) == page_rows):
                return found

    async def _page(self, api: str, params: Mapping[str, Any], columns: str) -> _Page:
        token = self._token.get_secret_value()
        body = {"api_name": api, "token": token, "params": params, "fields": columns}
        if self._opened is None:
            self._opened = self._open_client()
        response = await self._opened.post(self._base_url, json=body)
        return _read(api, HttpAnswer(response.status_code, response.text.replace(token, HIDDEN)))


def _read(api: str, answer: HttpAnswer) -> _Page:
    said = {"source": SOURCE, "operation": api, "status": answer.status_code}
    if answer.status_code != httpx.codes.OK:
        passing = answer.status_code >= 500 or answer.status_code == httpx.codes.TOO_MANY_REQUESTS
        raise Trouble(Unavailable(SAY("outside.status", **said)), passing=passing, answer=answer)
    try:
        envelope = _Envelope.model_validate_json(answer.text)
    except ValidationError:
        raise Trouble(Unavailable(SAY("outside.unreadable", **said)), answer=answer) from None
    if envelope.code != OK:
        raise _refusal(api, envelope, answer)
    return _Page(answer.status_code, answer.text, envelope.data or _Table())


def _refusal(api: str, envelope: _Envelope, answer: HttpAnswer) -> Trouble:
    text = envelope.msg or ""
    kind = next(k for k in REFUSALS if re.search(k.text, text) or envelope.code in k.codes)
    said = SAY(kind.key, api=api, code=envelope.code, text=text[:LONGEST_QUOTE])
    return Trouble(kind.error(said, code=kind.code), passing=kind.passing, answer=answer)
