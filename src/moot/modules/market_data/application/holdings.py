"""What is kept, and how old that is against the limit of its kind."""

from dataclasses import dataclass
from datetime import datetime

from moot.modules.market_data.domain.facts import DATASETS, Age, local_day
from moot.modules.market_data.domain.provider import Coverage, home_of
from moot.modules.market_data.domain.trading_rules import trading_calendar


@dataclass(frozen=True)
class Holding:
    """`age` is that of the newest row, in sessions or days as the limit counts; None without limit or rows."""

    coverage: Coverage
    limit: Age | None
    age: int | None = None

    @property
    def too_old(self) -> bool:
        return self.limit is not None and self.age is not None and self.age > self.limit.most


def hold(kept: Coverage, now: datetime) -> Holding:
    limit, day, subject = DATASETS[kept.dataset].limit, kept.newest, kept.subject
    if limit is None or day is None:
        return Holding(kept, limit)
    market = home_of(subject)
    today = local_day(now, market)
    return Holding(kept, limit, limit.measure(day, today, trading_calendar(market)))
