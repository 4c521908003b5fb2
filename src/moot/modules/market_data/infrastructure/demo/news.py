"""What is published: what a company must announce, what happens besides, and the notices of those who make policy.

Headlines come in two languages, from `phrases.toml`.
"""

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from datetime import date, datetime, timedelta
from functools import cache
from math import prod
from pathlib import Path
from typing import Literal

import numpy as np
from pydantic import BaseModel

from moot.modules.market_data.domain.facts import FinancialReport, NewsItem
from moot.modules.market_data.infrastructure.demo.accounts import Accounts
from moot.modules.market_data.infrastructure.demo.companies import Firm, Industry, industries
from moot.modules.market_data.infrastructure.demo.noise import (
    FIRST_TRADING_DAY,
    SOURCE,
    digest,
    industry_tide,
    moment,
    month_end,
    months,
    uniforms,
)
from moot.modules.market_data.infrastructure.demo.prices import Sessions

Kind = Literal["announcement", "news", "policy"]


class Phrase(BaseModel, frozen=True, extra="forbid"):
    """The same in both languages."""

    zh: str
    en: str

    def say(self, **values: object) -> "Phrase":
        """Fill the placeholders; a value that is a phrase goes into each language in that language."""
        zh = {name: value.zh if isinstance(value, Phrase) else value for name, value in values.items()}
        en = {name: value.en if isinstance(value, Phrase) else value for name, value in values.items()}
        return Phrase(zh=self.zh.format(**zh), en=self.en.format(**en))


class Story(Phrase):
    id: str
    kind: Kind
    tone: Literal[-1, 0, 1]
    share: tuple[float, float] = (0, 0)


class Policy(Phrase):
    id: str
    for_industry: bool


class Phrases(BaseModel, frozen=True, extra="forbid"):
    period: Mapping[int, Phrase]
    report: Mapping[str, Phrase]
    event: Mapping[str, Phrase]
    story: tuple[Story, ...]
    policy: tuple[Policy, ...]


@cache
def phrases() -> Phrases:
    return Phrases(**tomllib.loads(Path(__file__).with_name("phrases.toml").read_text(encoding="utf-8")))


def name_of(firm: Firm) -> Phrase:
    return Phrase(zh=firm.company.name, en=firm.company.name_en)


def money(amount: float) -> dict[str, str]:
    """In hundred millions for the Chinese headline, in millions for the English one."""
    return {"amount": f"{amount / 1e8:.2f}", "million": f"{amount / 1e6:,.0f}"}


def news_item(
    seed: int,
    kind: Kind,
    key: str,
    title: Phrase,
    times: tuple[datetime, datetime],
    *,
    symbol: str | None = None,
    industry: str | None = None,
) -> NewsItem:
    """`times` are when it was written and when the public could read it."""
    written, visible = times
    return NewsItem(
        kind=kind,
        title=title.zh,
        title_en=title.en,
        url=f"demo://news/{digest(seed, symbol, industry, key, written.isoformat())[:6].hex()}",
        symbol=symbol,
        industry=industry,
        event_time=written,
        available_at=visible,
        source=SOURCE,
    )


PAYOUT_NOTICE = 5  # trading days before the ex-date
DELISTING_NOTICE = timedelta(days=21)
READ_WITHIN_MINUTES = 200

Notice = tuple[str, date, Phrase]
"""What it is, the day it carries, and its title."""


def announcements(
    firm: Firm, seed: int, accounts: Accounts, reports: Sequence[FinancialReport], sessions: Sessions
) -> list[NewsItem]:
    notices = [
        *_report_notices(firm, reports),
        *_payout_notices(firm, accounts, sessions),
        *_status_notices(firm, sessions),
    ]
    return [
        news_item(seed, "announcement", key, title, _evening(seed, firm.symbol, key, day), symbol=firm.symbol)
        for key, day, title in notices
    ]


def _evening(seed: int, symbol: str, key: str, day: date) -> tuple[datetime, datetime]:
    """Signed in the afternoon, on the exchange's site in the evening."""
    return _signed_and_shown(day, *uniforms(2, seed, symbol, key, day).tolist())


def _signed_and_shown(day: date, signed: float, shown: float) -> tuple[datetime, datetime]:
    evening = moment(day, 18) + timedelta(minutes=int(READ_WITHIN_MINUTES * shown))
    return moment(day, 16, int(60 * signed)), evening


def _profit_change(now: float, year_ago: float) -> tuple[str, float]:
    """The name of the outcome in `phrases.toml`, and by how many per cent the profit or the loss grew or shrank."""
    percent = 100 * abs(now / year_ago - 1)
    if year_ago > 0:
        return ("growth" if now >= year_ago else "decline" if now > 0 else "into_loss"), percent
    return ("back_to_profit" if now > 0 else "wider_loss" if now < year_ago else "narrower_loss"), percent


def _report_notices(firm: Firm, reports: Sequence[FinancialReport]) -> Iterator[Notice]:
    since = max(FIRST_TRADING_DAY, firm.company.list_date)
    for report, year_ago in zip(reports[4:], reports, strict=False):
        now, before = report.profit_dedt, year_ago.profit_dedt
        if report.announced_on >= since and now is not None and before:
            outcome, percent = _profit_change(now, before)
            period = phrases().period[report.period_end.month].say(year=report.period_end.year)
            values = {"name": name_of(firm), "period": period, "percent": f"{percent:.1f}", **money(abs(now))}
            title = phrases().report[outcome].say(**values)
            yield f"report {report.period_end}", report.announced_on, title


def _payout_notices(firm: Firm, accounts: Accounts, sessions: Sessions) -> Iterator[Notice]:
    number = {day: n for n, day in enumerate(sessions.days)}
    for payout in accounts.payouts:
        if payout.ex_date in number:
            phrase = phrases().event["dividend_with_bonus" if payout.bonus_per_ten else "dividend"]
            title = phrase.say(
                name=name_of(firm),
                year=payout.fiscal_year,
                cash=f"{payout.cash_per_ten:.2f}",
                bonus=payout.bonus_per_ten,
                ex_date=payout.ex_date,
            )
            yield "payout", sessions.days[number[payout.ex_date] - PAYOUT_NOTICE], title


def _status_notices(firm: Firm, sessions: Sessions) -> Iterator[Notice]:
    """Each change is announced on the evening before the day it begins."""
    for flags, begins, ends in (
        (sessions.halted, "suspension", "resumption"),
        (sessions.special, "special_treatment", "special_treatment_lifted"),
    ):
        for n in (np.flatnonzero(np.diff(flags)) + 1).tolist():
            event = begins if flags[n] else ends
            yield event, sessions.days[n - 1], _dated(firm, event, sessions.days[n])
    gone = firm.company.delist_date
    if gone:
        yield "delisting", gone - DELISTING_NOTICE, _dated(firm, "delisting", gone)


def _dated(firm: Firm, event: str, day: date) -> Phrase:
    return phrases().event[event].say(name=name_of(firm), day=day)


STORIES_A_MONTH = (2, 4)
PICKS_A_STORY = 5  # its rank, day, size, minute and delay
TIDE_BIAS = 0.12  # how much a high tide favours good stories
POLICY_CHANCE = 0.45  # a month, for each industry and for the whole market
NEXT_MORNING_CHANCE = 0.25


def company_stories(firm: Firm, seed: int, accounts: Accounts, until: date) -> list[NewsItem]:
    periods = months(until)
    tide = industry_tide(seed, firm.industry.name, len(periods)).tolist()
    counts = uniforms(len(periods), seed, firm.symbol, "stories").tolist()
    shape = (len(periods), len(phrases().story), PICKS_A_STORY)
    picks = uniforms(prod(shape), seed, firm.symbol, "picks").reshape(shape).tolist()
    return [
        item
        for month, level, count, picked in zip(periods, tide, counts, picks, strict=True)
        if month_end(month) >= max(FIRST_TRADING_DAY, firm.company.list_date)
        for item in _stories_of_month(firm, seed, accounts, month, _rank(level, picked)[: _number(count)])
    ]


def policy_notices(seed: int, until: date) -> list[NewsItem]:
    scopes: list[Industry | None] = [None, *industries()]
    return [item for industry in scopes for item in _policies(seed, industry, until)]


def _number(pick: float) -> int:
    fewest, most = STORIES_A_MONTH
    return fewest + int(pick * (most - fewest + 1))


def _rank(tide: float, picks: list[list[float]]) -> list[tuple[Story, list[float]]]:
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


def _title(firm: Firm, story: Story, day: date, size: float, accounts: Accounts) -> Phrase:
    """Sums of money are a part of the revenue of the last full year published before `day`."""
    low, high = story.share
    percent = round(low + size * (high - low), 1)
    full_years = (s for s in reversed(accounts.statements) if s.period_end.month == 12)
    revenue = next(s.revenue for s in full_years if s.announced_on < day)
    products = firm.industry.products
    product, product_en = products[day.toordinal() % len(products)]
    return story.say(
        name=name_of(firm),
        product=Phrase(zh=product, en=product_en),
        percent=f"{percent:.1f}",
        **money(percent / 100 * revenue),
    )


def _policies(seed: int, industry: Industry | None, until: date) -> Iterator[NewsItem]:
    name = industry.name if industry else None
    said = Phrase(zh=industry.name, en=industry.name_en.lower()) if industry else None
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
    signed, shown = _signed_and_shown(day, minute, delay)
    if delay < NEXT_MORNING_CHANCE:
        shown = moment(day + timedelta(days=1), 7, 30 + int(30 * minute))
    return signed, shown


def _day_of(month: date, pick: float) -> date:
    return month + timedelta(days=int(pick * month_end(month).day))
