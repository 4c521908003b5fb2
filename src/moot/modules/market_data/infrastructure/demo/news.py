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
from moot.modules.market_data.infrastructure.demo import noise
from moot.modules.market_data.infrastructure.demo.accounts import Accounts
from moot.modules.market_data.infrastructure.demo.companies import Firm, Industry, industries
from moot.modules.market_data.infrastructure.demo.prices import Sessions

Kind = Literal["announcement", "news", "policy"]
Times = tuple[datetime, datetime]
"""When it was written and when the public could read it."""
Notice = tuple[str, date, "Phrase"]
"""What it is, the day it carries, and its title."""

PAYOUT_NOTICE = 5  # trading days before the ex-date
DELISTING_NOTICE = timedelta(days=21)
READ_WITHIN_MINUTES = 200
STORIES_A_MONTH = (2, 4)
PICKS_A_STORY = 5  # its rank, day, size, minute and delay
TIDE_BIAS = 0.12  # how much a high tide favours good stories
POLICY_CHANCE = 0.45  # a month, for each industry and for the whole market
NEXT_MORNING_CHANCE = 0.25


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
    kind: Kind = "policy"
    tone: Literal[-1, 0, 1] = 0
    share: tuple[float, float] = (0, 0)
    for_industry: bool = False


class Phrases(BaseModel, frozen=True, extra="forbid"):
    period: Mapping[int, Phrase]
    report: Mapping[str, Phrase]
    event: Mapping[str, Phrase]
    story: tuple[Story, ...]
    policy: tuple[Story, ...]


@cache
def phrases() -> Phrases:
    return Phrases(**tomllib.loads(Path(__file__).with_name("phrases.toml").read_text(encoding="utf-8")))


def announcements(
    firm: Firm, seed: int, accounts: Accounts, reports: Sequence[FinancialReport], sessions: Sessions
) -> list[NewsItem]:
    """Each on the evening of its day."""
    notices = (
        *_report_notices(firm, reports),
        *_payout_notices(firm, accounts, sessions),
        *_status_notices(firm, sessions),
    )
    items = []
    for key, day, title in notices:
        times = _sign_and_show(day, *noise.uniforms(2, seed, firm.symbol, key, day).tolist())
        items.append(_item(seed, "announcement", key, title, times, symbol=firm.symbol))
    return items


def company_stories(firm: Firm, seed: int, accounts: Accounts, until: date) -> list[NewsItem]:
    """A few a month, of all that are told; good ones come more often when the industry's tide is high."""
    periods, stories = noise.months(until), phrases().story
    tide = noise.industry_tide(seed, firm.industry.name, len(periods)).tolist()
    counts = noise.uniforms(len(periods), seed, firm.symbol, "stories").tolist()
    shape = (len(periods), len(stories), PICKS_A_STORY)
    picks = noise.uniforms(prod(shape), seed, firm.symbol, "picks").reshape(shape).tolist()
    fewest, most = STORIES_A_MONTH
    items = []
    for month, level, count, picked in zip(periods, tide, counts, picks, strict=True):
        ranked = sorted(
            zip(stories, picked, strict=True), key=lambda pair: -pair[1][0] - TIDE_BIAS * level * pair[0].tone
        )
        for story, (_, when, size, minute, delay) in ranked[: fewest + int(count * (most - fewest + 1))]:
            day = _day_of(month, when)
            if day >= noise.FIRST_TRADING_DAY and firm.listed_on(day):
                title, times = (
                    _title(firm, story, day, size, accounts),
                    _times(story.kind, day, minute, delay),
                )
                items.append(_item(seed, story.kind, story.id, title, times, symbol=firm.symbol))
    return items


def policy_notices(seed: int, until: date) -> list[NewsItem]:
    scopes: list[Industry | None] = [None, *industries()]
    return [item for industry in scopes for item in _policies(seed, industry, until)]


def _item(
    seed: int,
    kind: Kind,
    key: str,
    title: Phrase,
    times: Times,
    *,
    symbol: str | None = None,
    industry: str | None = None,
) -> NewsItem:
    written, visible = times
    return NewsItem(
        kind=kind,
        title=title.zh,
        title_en=title.en,
        url=f"demo://news/{noise.digest(seed, symbol, industry, key, written.isoformat())[:6].hex()}",
        symbol=symbol,
        industry=industry,
        event_time=written,
        available_at=visible,
        source=noise.SOURCE,
    )


def _say(firm: Firm, phrase: Phrase, **values: object) -> Phrase:
    return phrase.say(name=Phrase(zh=firm.company.name, en=firm.company.name_en), **values)


def _money(amount: float) -> dict[str, str]:
    """In hundred millions for the Chinese headline, in millions for the English one."""
    return {"amount": f"{amount / 1e8:.2f}", "million": f"{amount / 1e6:,.0f}"}


def _report_notices(firm: Firm, reports: Sequence[FinancialReport]) -> Iterator[Notice]:
    since = max(noise.FIRST_TRADING_DAY, firm.company.list_date)
    for report, year_ago in zip(reports[4:], reports, strict=False):
        now, before = report.profit_dedt, year_ago.profit_dedt
        if report.announced_on >= since and now is not None and before:
            period = phrases().period[report.period_end.month].say(year=report.period_end.year)
            percent = f"{100 * abs(now / before - 1):.1f}"
            phrase = phrases().report[_outcome(now, before)]
            title = _say(firm, phrase, period=period, percent=percent, **_money(abs(now)))
            yield f"report {report.period_end}", report.announced_on, title


def _outcome(now: float, year_ago: float) -> str:
    """As `phrases.toml` calls it."""
    if year_ago > 0:
        return "growth" if now >= year_ago else "decline" if now > 0 else "into_loss"
    return "back_to_profit" if now > 0 else "wider_loss" if now < year_ago else "narrower_loss"


def _payout_notices(firm: Firm, accounts: Accounts, sessions: Sessions) -> Iterator[Notice]:
    number = {day: n for n, day in enumerate(sessions.days)}
    for payout in accounts.payouts:
        if payout.ex_date in number:
            title = _say(
                firm,
                phrases().event["dividend_with_bonus" if payout.bonus_per_ten else "dividend"],
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
            yield event, sessions.days[n - 1], _say(firm, phrases().event[event], day=sessions.days[n])
    gone = firm.company.delist_date
    if gone:
        yield "delisting", gone - DELISTING_NOTICE, _say(firm, phrases().event["delisting"], day=gone)


def _title(firm: Firm, story: Story, day: date, size: float, accounts: Accounts) -> Phrase:
    """Sums of money are a part of the revenue of the last full year published before `day`."""
    low, high = story.share
    percent = round(low + size * (high - low), 1)
    full_years = (s for s in reversed(accounts.statements) if s.period_end.month == 12)
    revenue = next(s.revenue for s in full_years if s.announced_on < day)
    product, product_en = firm.industry.products[day.toordinal() % len(firm.industry.products)]
    values = {"product": Phrase(zh=product, en=product_en), "percent": f"{percent:.1f}"}
    return _say(firm, story, **values, **_money(percent / 100 * revenue))


def _policies(seed: int, industry: Industry | None, until: date) -> Iterator[NewsItem]:
    name = industry.name if industry else None
    said = Phrase(zh=industry.name, en=industry.name_en.lower()) if industry else None
    choice = [p for p in phrases().policy if p.for_industry == (industry is not None)]
    periods = noise.months(until)
    picks = noise.uniforms(5 * len(periods), seed, "policy", name).reshape(-1, 5).tolist()
    for month, (chance, which, when, minute, delay) in zip(periods, picks, strict=True):
        day = _day_of(month, when)
        if chance < POLICY_CHANCE and day >= noise.FIRST_TRADING_DAY:
            policy = choice[int(which * len(choice))]
            times = _times("policy", day, minute, delay)
            yield _item(seed, "policy", policy.id, policy.say(industry=said), times, industry=name)


def _times(kind: Kind, day: date, minute: float, delay: float) -> Times:
    """News is read within the hour; an announcement waits for the evening, or for the next morning."""
    if kind != "announcement":
        written = noise.moment(day, 8) + timedelta(minutes=int(720 * minute))
        return written, written + timedelta(minutes=5 + int(55 * delay))
    signed, shown = _sign_and_show(day, minute, delay)
    if delay < NEXT_MORNING_CHANCE:
        shown = noise.moment(day + timedelta(days=1), 7, 30 + int(30 * minute))
    return signed, shown


def _sign_and_show(day: date, signed: float, shown: float) -> Times:
    """Signed in the afternoon, on the exchange's site in the evening."""
    evening = noise.moment(day, 18) + timedelta(minutes=int(READ_WITHIN_MINUTES * shown))
    return noise.moment(day, 16, int(60 * signed)), evening


def _day_of(month: date, pick: float) -> date:
    return month + timedelta(days=int(pick * noise.month_end(month).day))
