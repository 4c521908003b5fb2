"""What is kept, and how old that is against the limit of its kind."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from moot.modules.market_data.domain.facts import DATASETS, Age
from moot.modules.market_data.domain.provider import A_DAY, Coverage
from moot.modules.market_data.domain.trading_rules import TradingCalendar
from moot.shared.domain.symbol import TIME_ZONES, Market, Symbol


@dataclass(frozen=True)
class Holding:
    """`age` is that of the newest row, in sessions or days as the limit counts; None without limit or rows."""

    coverage: Coverage
    limit: Age | None
    age: int | None = None

    @property
    def too_old(self) -> bool:
        return self.limit is not None and self.age is not None and self.age > self.limit.most


def hold(kept: Coverage, now: datetime, calendar_of: Callable[[Market], TradingCalendar]) -> Holding:
    limit, day, subject = DATASETS[kept.dataset].limit, kept.newest, kept.subject
    if limit is None or day is None:
        return Holding(kept, limit)
    market = Market(subject) if subject in list(Market) else Symbol.parse(subject).market
    today = now.astimezone(TIME_ZONES[market]).date()
    by_session = limit.sessions is not None and day < today
    age = calendar_of(market).count(day + A_DAY, today) if by_session else (today - day).days
    return Holding(kept, limit, age)
