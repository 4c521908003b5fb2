"""The trading days of a market, as far as they are known."""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from datetime import date

from moot.modules.market_data.domain.texts import SAY
from moot.shared.domain.errors import Unavailable
from moot.shared.domain.symbol import Market


class TradingCalendar:
    """Sessions from `first` to `last`; a question about a day outside raises `Unavailable`, never guesses."""

    def __init__(self, market: Market, sessions: Sequence[date]) -> None:
        self.market = market
        self._days = tuple(sessions)

    @property
    def first(self) -> date:
        return self._days[0]

    @property
    def last(self) -> date:
        return self._days[-1]

    def sessions(self, start: date, end: date) -> list[date]:
        """Both ends included."""
        self._require(start)
        self._require(end)
        return list(self._days[bisect_left(self._days, start) : bisect_right(self._days, end)])

    def next_session(self, day: date) -> date:
        """The first session after `day`."""
        self._require(day)
        if day == self.last:
            raise self._ended(day)
        return self._days[bisect_right(self._days, day)]

    def _require(self, day: date) -> None:
        if day < self.first:
            said = SAY("calendar.not_begun", market=self.market.value, first=self.first, day=day)
            raise Unavailable(
                said, code="CALENDAR_NOT_BEGUN", market=self.market.value, first=self.first.isoformat()
            )
        if day > self.last:
            raise self._ended(day)

    def _ended(self, day: date) -> Unavailable:
        said = SAY("calendar.ended", market=self.market.value, last=self.last, day=day)
        return Unavailable(said, code="CALENDAR_ENDED", market=self.market.value, last=self.last.isoformat())
