"""An index of the market and one of each industry: what a day made of the market value of the day before."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from moot.modules.market_data.infrastructure.demo import market
from moot.modules.market_data.infrastructure.demo.prices import Share
from moot.shared.domain.facts import IndexBar

BASE = 1000.0
MARKET_INDEX = ("900000.DEMO", "演示综合指数")
PRICES = ("open", "high", "low", "close")


def list_index_bars(shares: Sequence[Share]) -> list[IndexBar]:
    """Oldest first. Shares of one market have one calendar."""
    found = list(_bars(shares, *MARKET_INDEX, None))
    for n, industry in enumerate(market.industries(), 1):
        members = [share for share in shares if share.firm.industry == industry]
        found += _bars(members, f"98{n:04}.DEMO", f"{industry.name}指数", industry.name)
    return sorted(found, key=lambda bar: (bar.trade_date, bar.index))


def _bars(shares: Sequence[Share], index: str, name: str, industry: str | None) -> Iterator[IndexBar]:
    days = market.trading_days(shares[0].until)
    sums = _sum_up(shares, len(days))
    there = np.flatnonzero(sums["weight"] > 0).tolist()
    moves = {price: (sums[price][there] / sums["weight"][there]) for price in PRICES}
    closes = BASE * np.cumprod(moves["close"])
    before = np.insert(closes[:-1], 0, BASE)
    levels = {price: np.round(before * move, 2).tolist() for price, move in moves.items()}
    levels["pre_close"] = np.round(before, 2).tolist()
    for row, n in enumerate(there):
        prices = {price: values[row] for price, values in levels.items()}
        yield IndexBar(
            index=index,
            name=name,
            industry=industry,
            trade_date=days[n],
            **prices | {"high": max(prices[p] for p in PRICES), "low": min(prices[p] for p in PRICES)},
            volume=float(sums["volume"][n]),
            amount=round(float(sums["amount"][n]), 2),
            **market.told(market.moment(days[n], 15), market.moment(days[n], 16)),
        )


def _sum_up(shares: Sequence[Share], count: int) -> dict[str, Any]:
    """By day: the value of yesterday, what became of it at each price, and what changed hands."""
    sums = {name: np.zeros(count) for name in ("weight", "volume", "amount", *PRICES)}
    for share in shares:
        tape, since = share.tape, slice(share.own.start + 1, share.own.stop)
        weight = (tape["close"] / 100 * share.shares)[:-1]
        sums["weight"][since] += weight
        for price in PRICES:
            sums[price][since] += weight * (tape[price] / tape["pre_close"])[1:]
        sums["volume"][share.own] += tape["volume"]
        sums["amount"][share.own] += share.amounts
    return sums
