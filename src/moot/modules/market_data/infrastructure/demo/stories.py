"""What happens besides: orders, lawsuits, launches, analysts' opinions, and the notices of those who make policy."""

from collections.abc import Iterator, Sequence
from datetime import date, datetime, timedelta
from math import prod

from moot.modules.market_data.domain.facts import NewsItem
from moot.modules.market_data.infrastructure.demo import cycles
from moot.modules.market_data.infrastructure.demo.accounts import Accounts
from moot.modules.market_data.infrastructure.demo.calendar import FIRST_TRADING_DAY, moment, month_end, months
from moot.modules.market_data.infrastructure.demo.companies import Firm, Industry, industries
from moot.modules.market_data.infrastructure.demo.noise import uniforms
from moot.modules.market_data.infrastructure.demo.phrases import (
    Bilingual,
    Kind,
    Story,
    money,
    name_of,
    news_item,
    phrases,
)

STORIES_A_MONTH = (2, 4)
PICKS_A_STORY = 5  # its rank, day, size, minute and delay
TIDE_BIAS = 0.12  # how much a high tide favours good stories
POLICY_CHANCE = 0.45  # a month, for each industry and for the whole market
NEXT_MORNING_CHANCE = 0.25


def company_stories(firm: Firm, seed: int, accounts: Accounts, until: date) -> list[NewsItem]:
    periods = months(until)
    tide = cycles.industry(seed, firm.industry.name, len(periods)).tolist()
    counts = uniforms(len(periods), seed, firm.symbol, "stories").tolist()
    shape = (len(periods), len(phrases().story), PICKS_A_STORY)
    picks = uniforms(prod(shape), seed, firm.symbol, "picks").reshape(shape).tolist()
    return [
        item
        for month, level, count, picked in zip(periods, tide, counts, picks, strict=True)
        if month_end(month) >= max(FIRST_TRADING_DAY, firm.company.list_date)
        for item in _stories_of_month(firm, seed, accounts, month, _ranked(level, picked)[: _number(count)])
    ]


def policy_notices(seed: int, until: date) -> list[NewsItem]:
    scopes: list[Industry | None] = [None, *industries()]
    return [item for industry in scopes for item in _policies(seed, industry, until)]


def _number(pick: float) -> int:
    fewest, most = STORIES_A_MONTH
    return fewest + int(pick * (most - fewest + 1))


def _ranked(tide: float, picks: list[list[float]]) -> list[tuple[Story, list[float]]]:
    chosen = zip(phrases().story, picks, strict=True)
    return sorted(chosen, key=lambda pair: -pair[1][0] - TIDE_BIAS * tide * pair[0].tone)


def _stories_of_month(
    firm: Firm, seed: int, accounts: Accounts, month: date, chosen: Sequence[tuple[Story, list[float]]]
) -> Iterator[NewsItem]:
    for story, (_, when, size, minute, delay) in chosen:
        day = _day_of(month, when)
        if day >= FIRST_TRADING_DAY and firm.listed_on(day):
            title = _title(firm, story, day, size, accounts)
            times = _times(story.kind, day, minute, delay)
            yield news_item(seed, story.kind, story.id, title, times, symbol=firm.symbol)


def _title(firm: Firm, story: Story, day: date, size: float, accounts: Accounts) -> Bilingual:
    """Sums of money are a part of the revenue of the last full year published before `day`."""
    low, high = story.share
    percent = round(low + size * (high - low), 1)
    full_years = (s for s in reversed(accounts.statements) if s.period_end.month == 12)
    revenue = next(s.revenue for s in full_years if s.announced_on < day)
    products = firm.industry.products
    return story.say(
        name=name_of(firm),
        product=Bilingual(*products[day.toordinal() % len(products)]),
        percent=f"{percent:.1f}",
        **money(percent / 100 * revenue),
    )


def _policies(seed: int, industry: Industry | None, until: date) -> Iterator[NewsItem]:
    name = industry.name if industry else None
    said = Bilingual(industry.name, industry.name_en.lower()) if industry else None
    choice = [p for p in phrases().policy if p.for_industry == (industry is not None)]
    periods = months(until)
    picks = uniforms(5 * len(periods), seed, "policy", name).reshape(-1, 5).tolist()
    for month, (chance, which, when, minute, delay) in zip(periods, picks, strict=True):
        day = _day_of(month, when)
        if chance < POLICY_CHANCE and day >= FIRST_TRADING_DAY:
            policy = choice[int(which * len(choice))]
            times = _times("policy", day, minute, delay)
            yield news_item(seed, "policy", policy.id, policy.say(industry=said), times, industry=name)


def _times(kind: Kind, day: date, minute: float, delay: float) -> tuple[datetime, datetime]:
    """News is read within the hour; an announcement waits for the evening, or for the next morning."""
    if kind != "announcement":
        written = moment(day, 8) + timedelta(minutes=int(720 * minute))
        return written, written + timedelta(minutes=5 + int(55 * delay))
    signed = moment(day, 16, int(60 * minute))
    if delay < NEXT_MORNING_CHANCE:
        return signed, moment(day + timedelta(days=1), 7, 30 + int(30 * minute))
    return signed, moment(day, 18) + timedelta(minutes=int(200 * delay))


def _day_of(month: date, pick: float) -> date:
    return month + timedelta(days=int(pick * month_end(month).day))
