"""What a company must announce: its reports, payouts, halts, special treatment and the end of its listing."""

from collections.abc import Iterator, Sequence
from datetime import date, datetime, timedelta

import numpy as np

from moot.modules.market_data.domain.facts import FinancialReport, NewsItem
from moot.modules.market_data.infrastructure.demo.accounts import Accounts
from moot.modules.market_data.infrastructure.demo.calendar import FIRST_TRADING_DAY, moment
from moot.modules.market_data.infrastructure.demo.companies import Firm
from moot.modules.market_data.infrastructure.demo.noise import uniforms
from moot.modules.market_data.infrastructure.demo.phrases import (
    Bilingual,
    money,
    name_of,
    news_item,
    phrases,
)
from moot.modules.market_data.infrastructure.demo.sessions import Sessions

PAYOUT_NOTICE = 5  # trading days before the ex-date
DELISTING_NOTICE = timedelta(days=21)
EVENING = 18
READ_WITHIN_MINUTES = 200

Notice = tuple[str, date, Bilingual]
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
    signed, shown = uniforms(2, seed, symbol, key, day).tolist()
    return (
        moment(day, 16, int(60 * signed)),
        moment(day, EVENING) + timedelta(minutes=int(READ_WITHIN_MINUTES * shown)),
    )


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


def _dated(firm: Firm, event: str, day: date) -> Bilingual:
    return phrases().event[event].say(name=name_of(firm), day=day)
