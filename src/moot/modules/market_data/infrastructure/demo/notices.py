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
    statements = share.accounts.statements
    years = zip(statements[4:], statements, strict=False)
    return [notice for now, before in years for notice in _notices(share, now, before)]


def _notices(share: Share, now: books.Statement, before: books.Statement) -> Iterator[EarningsNotice]:
    key = (share.seed, share.firm.symbol, "notice", now.period_end)
    day, express_day, chance, *bounds = noise.uniforms(5, *key).tolist()
    told = _range(now.net_profit, *bounds)
    if now.net_profit < 0 or abs(_change(now.net_profit, before)) >= LARGE:
        says = phrases().forecast[tell_outcome(now.net_profit, before.net_profit)]
        yield from _tell(
            share, now, before, told, FORECAST_DAYS[now.period_end.month], day, kind="forecast", says=says
        )
    if now.period_end.month == 12 and chance < EXPRESS_CHANCE:
        exact, figures = round(now.net_profit, 2), {"revenue": round(now.revenue, 2)}
        figures["eps"] = round(now.net_profit / now.shares, 4)
        yield from _tell(
            share, now, before, (exact, exact), EXPRESS_DAYS, express_day, kind="express", **figures
        )


def _range(profit: float, width: float, place: float) -> tuple[float, float]:
    """Ten thousands around the profit, which lies somewhere between."""
    narrow, wide = WIDTH
    whole = (narrow + width * (wide - narrow)) * abs(profit)
    low, high = profit - place * whole, profit + (1 - place) * whole
    return floor(low / TEN_THOUSAND) * TEN_THOUSAND, ceil(high / TEN_THOUSAND) * TEN_THOUSAND


def _change(profit: float, before: books.Statement) -> float:
    return 100 * (profit - before.net_profit) / abs(before.net_profit)


def _tell(
    share: Share,
    now: books.Statement,
    before: books.Statement,
    profit: tuple[float, float],
    due: tuple[int, int],
    pick: float,
    **said: Any,
) -> Iterator[EarningsNotice]:
    """On a day that is due and before the report; nobody tells before the share is listed, or after."""
    first, last = due
    after = timedelta(days=first + int(pick * (last - first + 1)))
    announced = min(now.period_end + after, now.announced_on - timedelta(days=1))
    if share.firm.listed_on(announced) and announced > now.period_end:
        yield EarningsNotice(
            symbol=share.firm.symbol,
            period_end=now.period_end,
            announced_on=announced,
            net_profit_low=profit[0],
            net_profit_high=profit[1],
            change_low=round(_change(profit[0], before), 2),
            change_high=round(_change(profit[1], before), 2),
            **said,
            **market.told(market.moment(announced, 16), market.moment(announced, 18)),
        )
