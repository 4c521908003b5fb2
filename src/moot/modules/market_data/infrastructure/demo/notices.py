"""What a company says of its profit before the report: it must where the change is large or there is a loss."""

from collections.abc import Iterator
from datetime import timedelta
from math import ceil, floor
from typing import Any

from moot.modules.market_data.infrastructure.demo import accounts as books
from moot.modules.market_data.infrastructure.demo import market, noise
from moot.modules.market_data.infrastructure.demo.news import phrases, tell_outcome
from moot.modules.market_data.infrastructure.demo.prices import Share
from moot.shared.domain.facts import EarningsNotice

LARGE = 50  # per cent of last year's profit: a change that must be told
FORECAST_DAYS = {3: (1, 15), 6: (1, 15), 9: (8, 15), 12: (5, 31)}
"""After the end of a period: when its forecast is due, by the period's last month."""
EXPRESS_DAYS, EXPRESS_CHANCE = (40, 59), 0.4
WIDTH = (0.05, 0.25)  # of the profit: how far apart the ends of a forecast are
TEN_THOUSAND = 10_000


def list_notices(share: Share) -> list[EarningsNotice]:
    """Each on a day that is due and before the report; nobody tells before the share is listed, or after."""
    statements, found = share.accounts.statements, []
    for now, before in zip(statements[4:], statements, strict=False):
        for said, (first, last), pick in _say(share, now, before):
            due = now.period_end + timedelta(days=first + int(pick * (last - first + 1)))
            day = min(due, now.announced_on - timedelta(days=1))
            if share.firm.listed_on(day) and day > now.period_end:
                found.append(EarningsNotice(**said, **market.filed(share.firm.symbol, now.period_end, day)))
    return found


def _say(
    share: Share, now: books.Statement, before: books.Statement
) -> Iterator[tuple[dict[str, Any], tuple[int, int], float]]:
    """What is said, between which days after the period's end, and which of them is picked."""
    profit, key = now.net_profit, (share.seed, share.firm.symbol, "notice", now.period_end)
    day, express_day, chance, width, place = noise.uniforms(5, *key).tolist()
    if profit < 0 or abs(_change(profit, before)) >= LARGE:
        whole = (WIDTH[0] + width * (WIDTH[1] - WIDTH[0])) * abs(profit)
        low = floor((profit - place * whole) / TEN_THOUSAND) * TEN_THOUSAND
        high = ceil((profit + (1 - place) * whole) / TEN_THOUSAND) * TEN_THOUSAND
        says = phrases().forecast[tell_outcome(profit, before.net_profit)]
        told = {"kind": "forecast", "says": says, **_range(low, high, before)}
        yield told, FORECAST_DAYS[now.period_end.month], day
    if now.period_end.month == 12 and chance < EXPRESS_CHANCE:
        figures = {"revenue": round(now.revenue, 2), "eps": round(profit / now.shares, 4)}
        told = {"kind": "express", **figures, **_range(profit, profit, before)}
        yield told, EXPRESS_DAYS, express_day


def _range(low: float, high: float, before: books.Statement) -> dict[str, float]:
    changes = {"change_low": _change(low, before), "change_high": _change(high, before)}
    figures = {"net_profit_low": low, "net_profit_high": high, **changes}
    return {name: round(value, 2) for name, value in figures.items()}


def _change(profit: float, before: books.Statement) -> float:
    return 100 * (profit - before.net_profit) / abs(before.net_profit)
