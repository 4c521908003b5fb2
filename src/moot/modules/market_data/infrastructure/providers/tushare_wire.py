"""Tushare's wire: one endpoint, columnar tables, and HTTP 200 whatever happened; the text says what did."""

import re
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel

from moot.modules.market_data.domain.provider import NotOffered
from moot.modules.market_data.domain.texts import SAY
from moot.modules.market_data.infrastructure.providers import outside
from moot.modules.market_data.infrastructure.providers.outside import Row
from moot.modules.market_data.infrastructure.providers.tushare_rows import TUSHARE
from moot.shared.domain.errors import Unavailable

OK = 0
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
        rows = table.rows()
    except ValueError:  # no envelope, or a row that has not one value for each field
        raise outside.Trouble(Unavailable(SAY("outside.unreadable", **said)), answer=answer) from None
    if envelope.code != OK:
        raise _refusal(api, envelope, answer)
    return Page(answer.status_code, answer.text, rows, table.has_more)


def _refusal(api: str, envelope: _Envelope, answer: outside.HttpAnswer) -> outside.Trouble:
    text = envelope.msg or ""
    kind = next(k for k in REFUSALS if re.search(k.text, text) or envelope.code in k.codes)
    said = SAY(kind.key, api=api, code=envelope.code, text=text[:LONGEST_QUOTE])
    return outside.Trouble(kind.error(said, code=kind.code), passing=kind.passing, answer=answer)
