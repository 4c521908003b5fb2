"""What is published: what a company must announce, what happens besides, notices of policy, monthly macro figures.

Headlines come in two languages, from `phrases.toml`. A macro figure moves around a level, partly with the economy,
and is released by its own timetable.
"""

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from functools import cache
from math import prod, sqrt
from pathlib import Path
from typing import Literal

import numpy as np
from pydantic import BaseModel

from moot.modules.market_data.domain import trading_rules
from moot.modules.market_data.infrastructure.demo import market, noise
from moot.modules.market_data.infrastructure.demo.market import Firm, Industry, industries
from moot.modules.market_data.infrastructure.demo.prices import Share
from moot.shared.domain.facts import MacroObservation, NewsItem

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

    def percent(self, size: float) -> float:
        low, high = self.share
        return round(low + size * (high - low), 1)


class Phrases(BaseModel, frozen=True, extra="forbid"):
    period: Mapping[int, Phrase]
    report: Mapping[str, Phrase]
    forecast: Mapping[str, str]
    event: Mapping[str, Phrase]
    story: tuple[Story, ...]
    policy: tuple[Story, ...]


@cache
def phrases() -> Phrases:
    return Phrases(**tomllib.loads(Path(__file__).with_name("phrases.toml").read_text(encoding="utf-8")))


def list_news(share: Share) -> list[NewsItem]:
    return [*_announcements(share), *_company_stories(share)]


def list_policies(seed: int, until: date) -> list[NewsItem]:
    return [item for industry in (None, *industries()) for item in _policies(seed, industry, until)]


def _announcements(share: Share) -> Iterator[NewsItem]:
    """Each on the evening of its day."""
    seed, symbol = share.seed, share.firm.symbol
    for key, day, title in (*_report_notices(share), *_payout_notices(share), *_status_notices(share)):
        times = _sign_and_show(day, *noise.uniforms(2, seed, symbol, key, day).tolist())
        yield _item(seed, "announcement", key, title, times, symbol=symbol)


def _company_stories(share: Share) -> Iterator[NewsItem]:
    for story, day, size, minute, delay in list_stories(share):
        title, times = _title(share, story, day, size), _times(story.kind, day, minute, delay)
        yield _item(share.seed, story.kind, story.id, title, times, symbol=share.firm.symbol)


def list_stories(share: Share) -> Iterator[tuple[Story, date, float, float, float]]:
    """With the day and three numbers from 0 to 1: how much it is about, when of the day it comes, how late it is.

    A few a month, of all there are; good ones come more often when the industry's tide is high.
    """
    firm, seed, periods, stories = share.firm, share.seed, market.months(share.until), phrases().story
    tide = noise.industry_tide(seed, firm.industry.name, len(periods)).tolist()
    counts = noise.uniforms(len(periods), seed, firm.symbol, "stories").tolist()
    shape = (len(periods), len(stories), PICKS_A_STORY)
    picks = noise.uniforms(prod(shape), seed, firm.symbol, "picks").reshape(shape).tolist()
    fewest, most = STORIES_A_MONTH
    for month, level, count, picked in zip(periods, tide, counts, picks, strict=True):
        pairs = zip(stories, picked, strict=True)
        ranked = sorted(pairs, key=lambda pair: -pair[1][0] - TIDE_BIAS * level * pair[0].tone)
        for story, (_, when, size, minute, delay) in ranked[: fewest + int(count * (most - fewest + 1))]:
            day = _day_of(month, when)
            if day >= trading_rules.DEMO_BEGINS and firm.listed_on(day):
                yield story, day, size, minute, delay


def _item(seed: int, kind: Kind, key: str, title: Phrase, times: Times, **about: str | None) -> NewsItem:
    """`about` is the symbol or the industry that it concerns."""
    known = (about.get("symbol"), about.get("industry"), key, times[0].isoformat())
    return NewsItem(
        kind=kind,
        title=title.zh,
        title_en=title.en,
        url=f"demo://news/{noise.digest(seed, *known)[:6].hex()}",
        **about,
        **market.told(*times),
    )


def _say(firm: Firm, phrase: Phrase, **values: object) -> Phrase:
    return phrase.say(name=Phrase(zh=firm.company.name, en=firm.company.name_en), **values)


def _money(amount: float) -> dict[str, str]:
    """In hundred millions for the Chinese headline, in millions for the English one."""
    return {"amount": f"{amount / 1e8:.2f}", "million": f"{amount / 1e6:,.0f}"}


def _report_notices(share: Share) -> Iterator[Notice]:
    since = max(trading_rules.DEMO_BEGINS, share.firm.company.list_date)
    for report, year_ago in zip(share.reports[4:], share.reports, strict=False):
        now, before = report.profit_dedt, year_ago.profit_dedt
        if report.announced_on >= since and now is not None and before:
            period = phrases().period[report.period_end.month].say(year=report.period_end.year)
            percent = f"{100 * abs(now / before - 1):.1f}"
            phrase = phrases().report[tell_outcome(now, before)]
            title = _say(share.firm, phrase, period=period, percent=percent, **_money(abs(now)))
            yield f"report {report.period_end}", report.announced_on, title


def tell_outcome(now: float, year_ago: float) -> str:
    """As `phrases.toml` calls it."""
    if year_ago > 0:
        return "growth" if now >= year_ago else "decline" if now > 0 else "into_loss"
    return "back_to_profit" if now > 0 else "wider_loss" if now < year_ago else "narrower_loss"


def _payout_notices(share: Share) -> Iterator[Notice]:
    for n, payout in share.list_ex_rights():
        title = _say(
            share.firm,
            phrases().event["dividend_with_bonus" if payout.bonus_per_ten else "dividend"],
            year=payout.fiscal_year,
            cash=f"{payout.cash_per_ten:.2f}",
            bonus=payout.bonus_per_ten,
            ex_date=payout.ex_date,
        )
        yield "payout", share.days[n - PAYOUT_NOTICE], title


def _status_notices(share: Share) -> Iterator[Notice]:
    """Each change is announced on the evening before the day it begins."""
    firm, days = share.firm, share.days
    for flags, begins, ends in (
        (share.halted, "suspension", "resumption"),
        (share.special, "special_treatment", "special_treatment_lifted"),
    ):
        for n in (np.flatnonzero(np.diff(flags)) + 1).tolist():
            event = begins if flags[n] else ends
            yield event, days[n - 1], _say(firm, phrases().event[event], day=days[n])
    gone = firm.company.delist_date
    if gone:
        yield "delisting", gone - DELISTING_NOTICE, _say(firm, phrases().event["delisting"], day=gone)


def _title(share: Share, story: Story, day: date, size: float) -> Phrase:
    """Sums of money are a part of the revenue of the last full year published before `day`."""
    percent = story.percent(size)
    full_years = (s for s in reversed(share.accounts.statements) if s.period_end.month == 12)
    revenue = next(s.revenue for s in full_years if s.announced_on < day)
    products = share.firm.industry.products
    product, product_en = products[day.toordinal() % len(products)]
    values = {"product": Phrase(zh=product, en=product_en), "percent": f"{percent:.1f}"}
    return _say(share.firm, story, **values, **_money(percent / 100 * revenue))


def _policies(seed: int, industry: Industry | None, until: date) -> Iterator[NewsItem]:
    name = industry.name if industry else None
    said = Phrase(zh=industry.name, en=industry.name_en.lower()) if industry else None
    choice = [p for p in phrases().policy if p.for_industry == (industry is not None)]
    periods = market.months(until)
    picks = noise.uniforms(5 * len(periods), seed, "policy", name).reshape(-1, 5).tolist()
    for month, (chance, which, when, minute, delay) in zip(periods, picks, strict=True):
        day = _day_of(month, when)
        if chance < POLICY_CHANCE and day >= trading_rules.DEMO_BEGINS:
            policy = choice[int(which * len(choice))]
            times = _times("policy", day, minute, delay)
            yield _item(seed, "policy", policy.id, policy.say(industry=said), times, industry=name)


def _times(kind: Kind, day: date, minute: float, delay: float) -> Times:
    """News is read within the hour; an announcement waits for the evening, or for the next morning."""
    if kind != "announcement":
        written = market.moment(day, 8) + timedelta(minutes=int(720 * minute))
        return written, written + timedelta(minutes=5 + int(55 * delay))
    signed, shown = _sign_and_show(day, minute, delay)
    if delay < NEXT_MORNING_CHANCE:
        shown = market.moment(day + timedelta(days=1), 7, 30 + int(30 * minute))
    return signed, shown


def _sign_and_show(day: date, signed: float, shown: float) -> Times:
    """Signed in the afternoon, on the exchange's site in the evening."""
    evening = market.moment(day, 18) + timedelta(minutes=int(READ_WITHIN_MINUTES * shown))
    return market.moment(day, 16, int(60 * signed)), evening


def _day_of(month: date, pick: float) -> date:
    return month + timedelta(days=int(pick * market.month_end(month).day))


FIRST_PERIOD = date(2017, 1, 1)


@dataclass(frozen=True)
class Series:
    """A month's figure comes out in the month itself or the next, on one of `days`, at a time of day."""

    name: str
    unit: str
    level: float
    swing: float
    memory: float
    with_economy: float  # correlation
    step: float  # published to multiples of it
    next_month: bool
    days: tuple[int, int]
    at: tuple[int, int]


SERIES = (
    Series("pmi_manufacturing", "index", 50.4, 1.1, 0.80, 0.8, 0.1, False, (31, 31), (9, 30)),
    Series("cpi_yoy", "%", 1.7, 0.9, 0.92, 0.4, 0.1, True, (9, 11), (9, 30)),
    Series("ppi_yoy", "%", 0.9, 3.2, 0.95, 0.6, 0.1, True, (9, 11), (9, 30)),
    Series("m2_yoy", "%", 8.8, 1.0, 0.94, -0.3, 0.1, True, (11, 13), (16, 0)),
    Series("lpr_1y", "%", 3.75, 0.3, 0.985, 0.2, 0.05, False, (20, 20), (9, 15)),
    Series("cgb_10y", "%", 2.75, 0.35, 0.96, 0.3, 0.01, True, (1, 1), (17, 30)),
)
PROSPERITY = Series("industry_prosperity", "index", 50.0, 5.0, 0.0, 1.0, 0.1, True, (14, 16), (10, 0))


def list_macro(seed: int, until: date) -> list[MacroObservation]:
    """Every figure for the months up to `until`, oldest month first."""
    periods = market.months(until)
    economy = noise.economy_tide(seed, len(periods))
    found = [o for series in SERIES for o in _observations(seed, series, economy, periods)]
    for industry in industries():
        tide = noise.industry_tide(seed, industry.name, len(periods))
        found += _observations(seed, PROSPERITY, tide, periods, industry)
    return sorted(found, key=lambda o: (o.period, o.available_at, o.series, o.industry or ""))


def _observations(
    seed: int, series: Series, tide: noise.Array, periods: list[date], industry: Industry | None = None
) -> Iterator[MacroObservation]:
    own = noise.wander(noise.normals(len(periods), seed, series.name), series.memory)
    moved = series.with_economy * tide + sqrt(1 - series.with_economy**2) * own
    values = series.level + series.swing * moved
    picks = noise.uniforms(len(periods), seed, "release", *series.days)
    place = f"{series.name}/{industry.slug}" if industry else series.name
    for period, value, pick in zip(periods, values.tolist(), picks.tolist(), strict=True):
        if period < FIRST_PERIOD:
            continue
        released = market.moment(_release_day(series, period, pick), *series.at)
        yield MacroObservation(
            series=series.name,
            period=period,
            value=round(round(value / series.step) * series.step, 2),
            unit=series.unit,
            url=f"demo://macro/{place}/{period:%Y-%m}",
            industry=industry.name if industry else None,
            **market.told(min(released, market.moment(market.month_end(period), 0)), released),
        )


def _release_day(series: Series, period: date, pick: float) -> date:
    month = market.month_end(period) + timedelta(days=1) if series.next_month else period
    first, last = series.days
    return month.replace(day=min(first + int(pick * (last - first + 1)), market.month_end(month).day))
