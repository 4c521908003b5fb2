"""Who holds a share, and who is about to sell it: holders, pledges, lock-ups, their trades, borrowed money and flows.

All of it follows the price: a rise makes holders fewer, loans larger, pledges smaller and insiders sell.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from datetime import date, timedelta
from itertools import compress
from math import exp, sqrt

import numpy as np

from moot.modules.market_data.domain import trading_rules
from moot.modules.market_data.infrastructure.demo import accounts as books
from moot.modules.market_data.infrastructure.demo import market, noise
from moot.modules.market_data.infrastructure.demo.news import list_stories
from moot.modules.market_data.infrastructure.demo.noise import Array
from moot.modules.market_data.infrastructure.demo.prices import LOT, TRADING_DAYS_A_YEAR, Share
from moot.shared.domain.facts import FlowDay, HolderCount, HolderTrade, MarginDay, Pledge, Unlock

PACE = 0.05  # of the way to what is wanted, a day
PART_OF_TRADING = 0.15  # what one side makes of a day's trading, at most
LENT, LENT_AT_MOST, LENT_SHARES = 0.02, 0.08, 0.0004  # of market value
TURNED_OVER = 0.06  # of the day's trading
NORTHBOUND = (0.5, 6.0)  # per cent of the shares
PLEDGED, PLEDGED_AT_MOST, UNPLEDGED_CHANCE = (2.0, 25.0), 60.0, 0.35
PLEDGED_FOR = timedelta(days=365)
FRIDAY = 4
LOCKED = ((1, 15.0, "首发机构股东"), (3, 45.0, "首发原股东"))
"""Since the listing: for how many years, per cent of the shares, whose."""
GRANTED = (0.1, 0.6)  # per cent of the shares, each year, to those who work there
GRANT_DAYS, GRANT_NOTICE = (100, 320), timedelta(days=5)
TRADE_CHANCE, TRADE_DAYS = 0.18, 10  # a month; trading days up to the one it is told on


def _between(low: float, high: float, pick: float) -> float:
    return low + pick * (high - low)


def _stretch(share: Share) -> Array:
    """By day: how far, in logs, the price stands above its mean of a year."""
    logs = np.log(share.tape["close"] * share.tape["adj_factor"])
    sums, n = np.insert(np.cumsum(logs), 0, 0.0), np.arange(1, len(logs) + 1)
    since = np.maximum(n - TRADING_DAYS_A_YEAR, 0)
    return np.asarray(logs - (sums[n] - sums[since]) / (n - since))


def _follow(wanted: Array, most: Array) -> Array:
    """Towards what is wanted, each day by a part of the way and by no more than `most`."""
    held = wanted[:1].tolist()
    for goal, limit in zip(wanted[1:].tolist(), most[1:].tolist(), strict=True):
        held.append(held[-1] + min(max(PACE * (goal - held[-1]), -limit), limit))
    return np.array(held)


def _mood(share: Share, name: str) -> Array:
    return noise.wander(noise.normals(len(share.days), share.seed, share.firm.symbol, name), 0.99)


NEXT_MORNING = timedelta(days=1), 9


def tell_margin(share: Share) -> market.History[MarginDay]:
    """None under special treatment: nobody may lend on such a share."""
    value, amount = share.tape["close"] / 100 * share.shares, share.amounts
    rate = LENT * np.exp(0.3 * _mood(share, "margin loans") + _stretch(share))
    balance = _follow(np.minimum(rate, LENT_AT_MOST) * value, PART_OF_TRADING * amount)
    bought = np.maximum(np.diff(balance, prepend=balance[:1]), 0) + TURNED_OVER * amount
    columns = {
        "financing_balance": balance,
        "financing_bought": bought,
        "short_balance": LENT_SHARES * np.exp(0.5 * _mood(share, "short")) * value,
    }
    lent = ~share.special
    told = {name: np.round(values[lent], 2).tolist() for name, values in columns.items()}
    days = list(compress(share.days, lent))
    return market.tell_daily(MarginDay, days, told, *NEXT_MORNING, symbol=share.firm.symbol)


def tell_flows(share: Share) -> market.History[FlowDay]:
    """Large orders lean the way the price went."""
    tape, count, key = share.tape, len(share.days), (share.seed, share.firm.symbol)
    lean = 2.5 * np.log(tape["close"] / tape["pre_close"]) + 0.06 * noise.normals(count, *key, "large orders")
    base = _between(*NORTHBOUND, noise.uniforms(1, *key, "northbound")[0])
    wanted = base * np.exp(0.4 * _mood(share, "northbound"))
    percent = _follow(wanted, 100 * PART_OF_TRADING * tape["volume"] / share.shares)
    columns = {
        "net_inflow": np.round(np.clip(lean, -0.35, 0.35) * share.amounts, 2).tolist(),
        "northbound_shares": np.rint(percent / 100 * share.shares).tolist(),
        "northbound_percent": np.round(percent, 4).tolist(),
    }
    return market.tell_daily(FlowDay, share.days, columns, *NEXT_MORNING, symbol=share.firm.symbol)


def list_pledges(share: Share) -> list[Pledge]:
    """As of each Friday, known on Monday. What the news tells of is pledged for a year; beside it banks' holders, and
    some others, pledge nothing.
    """
    chance, size = noise.uniforms(2, share.seed, share.firm.symbol, "pledges").tolist()
    free = chance < UNPLEDGED_CHANCE or not share.firm.industry.working_capital
    usual = 0.0 if free else _between(*PLEDGED, size)
    told = np.zeros(len(share.days))
    for story, day, size, *_ in list_stories(share):
        if story.id == "pledge":
            first, end = bisect_left(share.days, day), bisect_left(share.days, day + PLEDGED_FOR)
            told[first:end] += story.percent(size)
    percents = np.minimum(usual * np.exp(-0.6 * _stretch(share)) + told, PLEDGED_AT_MOST).tolist()
    return [
        Pledge(
            symbol=share.firm.symbol,
            day=day,
            pledged_shares=float(round(percent / 100 * shares)),
            pledged_percent=round(percent, 4),
            **market.told(market.moment(day, 15), market.moment(day + timedelta(days=3), 9)),
        )
        for day, percent, shares in zip(share.days, percents, share.shares.tolist(), strict=True)
        if day.weekday() == FRIDAY
    ]


def list_holder_counts(share: Share) -> list[HolderCount]:
    """As of the end of a quarter, told with its report."""
    key, stretch, found = (share.seed, share.firm.symbol, "holders"), _stretch(share), []
    for s in share.accounts.statements:
        n = bisect_right(share.days, s.period_end) - 1
        if n >= 0 and share.firm.listed_on(s.period_end):
            mood = -0.6 * stretch[n] + 0.05 * noise.normals(1, *key, s.period_end)[0]
            told = market.filed(share.firm.symbol, s.period_end, s.announced_on)
            found.append(HolderCount(holders=int(4 * sqrt(share.shares[n]) * exp(mood)), **told))
    return found


def list_unlocks(share: Share) -> list[Unlock]:
    """What the prospectus locked, known with it, and what is granted to those who work there, told days before."""
    found = []
    for free, announced, percent, holder in sorted((*_list_locked(share), *_list_granted(share))):
        known = [s.shares for s in share.accounts.statements if s.period_end <= announced]
        shares = known[-1] if known else share.accounts.first_shares
        unlock = Unlock(
            symbol=share.firm.symbol,
            unlock_date=free,
            announced_on=announced,
            holder=holder,
            shares=round(percent / 100 * shares),
            percent=percent,
            **market.told(market.moment(free, 9), market.moment(announced, 18)),
        )
        found.append(unlock)
    return found


Locked = tuple[date, date, float, str]
"""The day it ends, the day it is told on, per cent of the shares, whose."""


def _list_locked(share: Share) -> Iterator[Locked]:
    listed = share.firm.company.list_date
    for years, percent, holder in LOCKED if listed.year >= market.FIRST_YEAR else ():
        free = date(listed.year + years, listed.month, min(listed.day, 28))
        yield free, listed - books.PROSPECTUS_LEAD, percent, holder


def _list_granted(share: Share) -> Iterator[Locked]:
    first = max(trading_rules.DEMO_BEGINS.year, share.firm.company.list_date.year + 1)
    for year in range(first, share.until.year + 1):
        day, size = noise.uniforms(2, share.seed, share.firm.symbol, "grants", year).tolist()
        free = date(year, 1, 1) + timedelta(days=int(_between(*GRANT_DAYS, day)))
        if share.firm.industry.working_capital and share.firm.listed_on(free):
            yield free, free - GRANT_NOTICE, round(_between(*GRANTED, size), 2), "股权激励对象"


def list_holder_trades(share: Share) -> list[HolderTrade]:
    """History on the evening after the last of the days on which they traded."""
    stretch, holders, periods = _stretch(share), market.list_holders(), market.months(share.until)
    picks = noise.uniforms(5 * len(periods), share.seed, share.firm.symbol, "holder trades").reshape(-1, 5)
    found = []
    for month, (chance, when, side, who, size) in zip(periods, picks.tolist(), strict=True):
        n = share.number.get(month + timedelta(days=int(when * 28)), 0)
        days = slice(max(n - TRADE_DAYS, 0), n)
        volume, amount = int(share.tape["volume"][days].sum()), float(share.amounts[days].sum())
        name, kind, most = holders[int(who * len(holders))]
        shares = int(volume * most * (0.2 + 0.8 * size)) // LOT * LOT
        if chance < TRADE_CHANCE and n > TRADE_DAYS and shares:
            trade = HolderTrade(
                symbol=share.firm.symbol,
                announced_on=share.days[n],
                holder=name,
                kind=kind,
                direction="sell" if side < 0.5 + stretch[n - 1] else "buy",
                shares=shares,
                percent=round(100 * shares / int(share.shares[n - 1]), 4),
                average_price=round(amount / volume, 2),
                **market.told(market.moment(share.days[n - 1], 15), market.moment(share.days[n], 18)),
            )
            found.append(trade)
    return found
