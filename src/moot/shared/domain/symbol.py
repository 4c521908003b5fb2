"""A tradable symbol as Moot writes it: `600519.SH`, `AAPL`, `900001.DEMO`."""

import re
import unicodedata
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from enum import StrEnum
from zoneinfo import ZoneInfo

from moot.shared.domain.errors import InvalidInput
from moot.shared.domain.messages import shorten
from moot.shared.domain.texts import SAY


class Market(StrEnum):
    CN = "CN"
    US = "US"
    DEMO = "DEMO"


SPELLINGS: dict[Market, re.Pattern[str]] = {
    Market.CN: re.compile(r"\d{6}\.(SH|SZ|BJ)"),
    Market.DEMO: re.compile(r"\d{6}\.DEMO"),
    Market.US: re.compile(r"[A-Z]{1,5}([.-][A-Z])?"),
}
TIME_ZONES: dict[Market, ZoneInfo] = {
    Market.CN: ZoneInfo("Asia/Shanghai"),
    Market.DEMO: ZoneInfo("Asia/Shanghai"),
    Market.US: ZoneInfo("America/New_York"),
}


@dataclass(frozen=True, slots=True)
class Symbol:
    """The canonical spelling and the market it belongs to. Whether anybody lists it is the directory's business."""

    text: str
    market: Market

    @classmethod
    def parse(cls, text: str) -> "Symbol":
        canonical = unicodedata.normalize("NFKC", text).strip().upper()
        for market, spelling in SPELLINGS.items():
            if spelling.fullmatch(canonical):
                return cls(canonical, market)
        raise InvalidInput(
            SAY("symbol_malformed", symbol=repr(shorten(text))), code="SYMBOL_UNKNOWN", field="symbol"
        )

    @property
    def synthetic(self) -> bool:
        return self.market is Market.DEMO

    def local_date(self, moment: datetime) -> date:
        """The exchange's calendar date at `moment`."""
        return moment.astimezone(TIME_ZONES[self.market]).date()

    def local_time(self, moment: datetime) -> str:
        """For people: to the minute, by the exchange's clock."""
        at = moment.astimezone(TIME_ZONES[self.market])
        return f"{at:%Y-%m-%d %H:%M} UTC{(at.utcoffset() or timedelta()) / timedelta(hours=1):+g}"

    def end_of(self, day: date) -> datetime:
        """The last moment of `day` on the exchange."""
        return datetime.combine(day, time.max, TIME_ZONES[self.market])

    def __str__(self) -> str:
        return self.text
