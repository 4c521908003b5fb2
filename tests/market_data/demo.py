"""The whole demo market as one value, read through its provider."""

from dataclasses import dataclass
from datetime import UTC, date, datetime
from itertools import pairwise

from moot.modules.market_data.domain.facts import BARS, COMPANIES, MACRO, NEWS, REPORTS, VALUATIONS
from moot.modules.market_data.infrastructure.demo.provider import DemoMarket
from moot.shared.domain.facts import (
    Company,
    DailyBar,
    DailyValuation,
    FinancialReport,
    MacroObservation,
    NewsItem,
)
from tests.fakes.clock import FixedClock

NOW = datetime(2026, 11, 15, 3, tzinfo=UTC)
FIRST_PEER = "920101.DEMO"
EVER = (date(2000, 1, 1), date(2100, 1, 1))


@dataclass(frozen=True)
class Listing:
    company: Company
    bars: list[DailyBar]
    valuations: list[DailyValuation]
    reports: list[FinancialReport]

    @property
    def traded(self) -> list[DailyBar]:
        return [bar for bar in self.bars if not bar.suspended]


@dataclass(frozen=True)
class Snapshot:
    """`listings` are the twelve companies that every industry is told by, without their peers."""

    listings: dict[str, Listing]
    macro: list[MacroObservation]
    news: list[NewsItem]


def demo_market(seed: int = 1, now: datetime = NOW) -> DemoMarket:
    return DemoMarket(seed=seed, clock=FixedClock(now))


async def snapshot(market: DemoMarket) -> Snapshot:
    listings = {
        company.symbol: Listing(
            company,
            list(await market.read(BARS, company.symbol, *EVER)),
            list(await market.read(VALUATIONS, company.symbol, *EVER)),
            list(await market.read(REPORTS, company.symbol)),
        )
        for company in await market.read(COMPANIES, "DEMO")
        if company.symbol < FIRST_PEER
    }
    return Snapshot(listings, list(await market.read(MACRO, "DEMO", *EVER)), await all_news(market, *EVER))


async def all_news(market: DemoMarket, start: date, end: date) -> list[NewsItem]:
    """What was published about anybody, each item once, oldest first."""
    items = {
        item.url: item
        for company in await market.read(COMPANIES, "DEMO")
        for item in await market.read(NEWS, company.symbol, start, end)
    }
    return sorted(items.values(), key=lambda item: (item.available_at, item.url))


def ex_right_days(listing: Listing) -> list[tuple[DailyBar, DailyBar]]:
    """Each ex-right day with the day before it."""
    return [(before, day) for before, day in pairwise(listing.bars) if before.close != day.pre_close]


def payouts(demo: Snapshot, listing: Listing) -> dict[str, NewsItem]:
    """The announcements of payouts by ex-date."""
    own = (i for i in demo.news if i.symbol == listing.company.symbol and "权益分派" in i.title)
    return {item.title[-10:]: item for item in own}
