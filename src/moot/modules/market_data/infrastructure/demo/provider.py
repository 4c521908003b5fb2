"""The synthetic market as a provider: the history that the seed implies, shown up to yesterday."""

from collections.abc import Sequence
from datetime import date, datetime, timedelta
from functools import cached_property, lru_cache
from typing import TypeVar

from moot.modules.market_data.domain.facts import (
    Company,
    DailyBar,
    DailyValuation,
    Dividend,
    Fact,
    FinancialReport,
    MacroObservation,
    NewsItem,
)
from moot.modules.market_data.domain.provider import Batch
from moot.modules.market_data.infrastructure.demo.accounts import Accounts, keep_accounts
from moot.modules.market_data.infrastructure.demo.announcements import announcements
from moot.modules.market_data.infrastructure.demo.calendar import SOURCE, ZONE, moment
from moot.modules.market_data.infrastructure.demo.companies import Firm, firms
from moot.modules.market_data.infrastructure.demo.macro import macro_observations
from moot.modules.market_data.infrastructure.demo.prices import Tape, daily_bars, print_tape
from moot.modules.market_data.infrastructure.demo.reports import declared_dividends, published_reports
from moot.modules.market_data.infrastructure.demo.sessions import Sessions, sessions
from moot.modules.market_data.infrastructure.demo.stories import company_stories, policy_notices
from moot.modules.market_data.infrastructure.demo.valuations import daily_valuations
from moot.shared.domain.clock import Clock
from moot.shared.infrastructure.execution_context import moment_of_reading

F = TypeVar("F", bound=Fact)


class DemoMarket:
    """A pure function of (seed, symbol, date). Nothing that became public today, or later, is there yet.

    News is found by the day it became public, macro figures by their period.
    """

    def __init__(self, seed: int, clock: Clock) -> None:
        self._seed = seed
        self._clock = clock

    @property
    def name(self) -> str:
        return SOURCE

    async def companies(self) -> Batch[Company]:
        return Batch(firm.company for firm in firms().values())

    async def daily_bars(self, symbol: str, start: date, end: date) -> Batch[DailyBar]:
        history = self._history(symbol)
        return self._public([b for b in history.bars if start <= b.trade_date <= end] if history else [])

    async def daily_valuations(self, symbol: str, start: date, end: date) -> Batch[DailyValuation]:
        history = self._history(symbol)
        return self._public(
            [v for v in history.valuations if start <= v.trade_date <= end] if history else []
        )

    async def financial_reports(self, symbol: str) -> Batch[FinancialReport]:
        history = self._history(symbol)
        return self._public(history.reports if history else [])

    async def dividends(self, symbol: str) -> Batch[Dividend]:
        history = self._history(symbol)
        return self._public(history.dividends if history else [])

    async def macro(self, start: date, end: date) -> Batch[MacroObservation]:
        return self._public([o for o in self._all().macro if start <= o.period <= end])

    async def news(self, symbol: str, start: date, end: date) -> Batch[NewsItem]:
        first, after = moment(start, 0), moment(end + timedelta(days=1), 0)
        concerning = [item for item in self._all().news if item.symbol in (symbol, None)]
        return self._public([item for item in concerning if first <= item.available_at < after])

    def _history(self, symbol: str) -> "_History | None":
        return self._all().histories.get(symbol)

    def _all(self) -> "_World":
        """History is written ahead to the end of next year, so that one writing serves for many days."""
        return _world(self._seed, date(_today(self._clock.now()).year + 1, 12, 31))

    def _public(self, facts: Sequence[F]) -> Batch[F]:
        midnight = moment(_today(moment_of_reading(self._clock.now())), 0)
        return Batch(fact for fact in facts if fact.available_at < midnight)


def _today(now: datetime) -> date:
    return now.astimezone(ZONE).date()


@lru_cache(maxsize=4)
def _world(seed: int, until: date) -> "_World":
    """All desks of a process share it: nothing in it changes."""
    return _World(seed, until)


class _World:
    """Everything up to `until`, each part worked out when it is first asked for."""

    def __init__(self, seed: int, until: date) -> None:
        self.until = until
        self._seed = seed
        self.histories = {symbol: _History(firm, seed, until) for symbol, firm in firms().items()}

    @cached_property
    def macro(self) -> list[MacroObservation]:
        return macro_observations(self._seed, self.until)

    @cached_property
    def news(self) -> list[NewsItem]:
        items = [item for history in self.histories.values() for item in history.news()]
        items += policy_notices(self._seed, self.until)
        return sorted(items, key=lambda item: (item.available_at, item.url))


class _History:
    """One company."""

    def __init__(self, firm: Firm, seed: int, until: date) -> None:
        self._firm, self._seed, self._until = firm, seed, until

    @cached_property
    def bars(self) -> list[DailyBar]:
        return daily_bars(self._firm, self._tape)

    @cached_property
    def valuations(self) -> list[DailyValuation]:
        return daily_valuations(self._firm, self._accounts, self._tape)

    @cached_property
    def dividends(self) -> list[Dividend]:
        return declared_dividends(self._firm, self._accounts)

    @cached_property
    def reports(self) -> list[FinancialReport]:
        return published_reports(self._firm, self._seed, self._accounts)

    def news(self) -> list[NewsItem]:
        told = announcements(self._firm, self._seed, self._accounts, self.reports, self._sessions)
        return told + company_stories(self._firm, self._seed, self._accounts, self._until)

    @cached_property
    def _accounts(self) -> Accounts:
        return keep_accounts(self._firm, self._seed, self._until)

    @cached_property
    def _sessions(self) -> Sessions:
        return sessions(self._firm, self._seed, self._until)

    @cached_property
    def _tape(self) -> Tape:
        return print_tape(self._firm, self._seed, self._accounts, self._sessions)
