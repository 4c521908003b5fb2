"""How numbers are measured, and how people read them."""

from dataclasses import dataclass
from typing import Annotated


@dataclass(frozen=True)
class Unit:
    """How a number is measured (`symbol`), and how people read it (`name` in the catalogue, decimal places)."""

    name: str
    symbol: str
    digits: int


PRICE = Unit("price", "CNY", 2)
AMOUNT = Unit("amount", "CNY", 2)
PERCENT = Unit("percent", "%", 1)
DAYS = Unit("days", "days", 0)

Price = Annotated[float | None, PRICE]
Amount = Annotated[float | None, AMOUNT]
HundredMillion = Annotated[float | None, Unit("plain", "100m CNY", 2)]
Percent = Annotated[float | None, PERCENT]
Rate = Annotated[float | None, Unit("percent", "%", 2)]
Points = Annotated[float | None, Unit("points", "pp", 1)]
RatePoints = Annotated[float | None, Unit("points", "pp", 2)]
Rank = Annotated[int | None, Unit("percent", "%", 0)]
Times = Annotated[float | None, Unit("times", "x", 2)]
Days = Annotated[float | None, DAYS]
Index = Annotated[float | None, Unit("plain", "index", 1)]
Ratio = Annotated[float | None, Unit("plain", "", 2)]
Fine = Annotated[float | None, Unit("plain", "", 4)]
Count = Annotated[int, Unit("plain", "", 0)]
Sessions = Annotated[int, Unit("plain", "sessions", 0)]
