"""The synthetic market as a provider: the history that the seed implies, shown up to yesterday."""

from collections.abc import Callable, Sequence
from datetime import date, datetime
from functools import cached_property, lru_cache
from typing import Any, TypeVar

from pydantic import BaseModel

from moot.modules.market_data.domain import facts
from moot.modules.market_data.domain.provider import Batch
from moot.modules.market_data.infrastructure.demo import accounts, prices
from moot.modules.market_data.infrastructure.demo.companies import Firm, firms
from moot.modules.market_data.infrastructure.demo.macro import macro_observations
from moot.modules.market_data.infrastructure.demo.news import announcements, company_stories, policy_notices
from moot.modules.market_data.infrastructure.demo.noise import SOURCE, ZONE, moment
from moot.shared.domain.clock import Clock
from moot.shared.domain.symbol import Market

M = TypeVar("M", bound=BaseModel)


class DemoMarket:
    """A pure function of (seed, symbol, date). Nothing that became public today, or later, is there yet.

    `moment_of_reading` tells when a session that runs again first ran.
    """

    name = SOURCE

    def __init__(
        self, seed: int, clock: Clock, moment_of_reading: Callable[[datetime], datetime] = lambda now: now
    ) -> None:
        self._seed, self._clock, self._moment = seed, clock, moment_of_reading

    async def read(
        self, dataset: facts.Dataset[M], subject: str, start: date = date.min, end: date = date.max
    ) -> Batch[M]:
        every = self._all().all_of(dataset, subject)
        if dataset is facts.COMPANIES:
            return Batch(every)
        midnight, days = moment(_today(self._moment(self._clock.now())), 0), (start, end, Market.DEMO)
        own = (fact for fact in every if getattr(fact, "symbol", None) in (subject, None))
        public = (fact for fact in own if fact.available_at < midnight)
        return Batch(fact for fact in public if dataset.covers(getattr(fact, dataset.day), *days))

    def _all(self) -> "_World":
        """History is written ahead to the end of next year, so that one writing serves for many days."""
        return _world(self._seed, date(_today(self._clock.now()).year + 1, 12, 31))


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

    def all_of(self, dataset: facts.Dataset[Any], subject: str) -> Sequence[Any]:
        """All there will have been of a dataset; what is public is for the reader to say."""
        if dataset is facts.COMPANIES:
            return [firm.company for firm in firms().values()]
        home = self if dataset in (facts.MACRO, facts.NEWS) else self.histories.get(subject)
        found: Sequence[Any] = getattr(home, dataset.name) if home else ()
        return found

    @cached_property
    def macro(self) -> list[facts.MacroObservation]:
        return macro_observations(self._seed, self.until)

    @cached_property
    def news(self) -> list[facts.NewsItem]:
        items = [item for history in self.histories.values() for item in history.news()]
        items += policy_notices(self._seed, self.until)
        return sorted(items, key=lambda item: (item.available_at, item.url))


class _History:
    """One company."""

    def __init__(self, firm: Firm, seed: int, until: date) -> None:
        self._firm, self._seed, self._until = firm, seed, until

    @cached_property
    def bars(self) -> list[facts.DailyBar]:
        return prices.daily_bars(self._firm, self._sessions, self._tape)

    @cached_property
    def valuations(self) -> list[facts.DailyValuation]:
        return prices.daily_valuations(self._firm, self._accounts, self._sessions, self._tape)

    @cached_property
    def dividends(self) -> list[facts.Dividend]:
        return accounts.declared_dividends(self._firm, self._accounts)

    @cached_property
    def reports(self) -> list[facts.FinancialReport]:
        return accounts.published_reports(self._firm, self._seed, self._accounts)

    def news(self) -> list[facts.NewsItem]:
        told = announcements(self._firm, self._seed, self._accounts, self.reports, self._sessions)
        return told + company_stories(self._firm, self._seed, self._accounts, self._until)

    @cached_property
    def _accounts(self) -> accounts.Accounts:
        return accounts.keep_accounts(self._firm, self._seed, self._until)

    @cached_property
    def _sessions(self) -> prices.Sessions:
        return prices.sessions(self._firm, self._seed, self._until)

    @cached_property
    def _tape(self) -> prices.Tape:
        return prices.print_tape(self._firm, self._seed, self._accounts, self._sessions)
