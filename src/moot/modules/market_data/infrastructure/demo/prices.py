"""Daily prices and valuations: on which days a share trades, at what price, and what the market paid for the books.

A price is pulled slowly towards what the published books are worth, and pushed by market, industry and own noise.
Prices are whole fen inside, so that rounding, price limits and ex-right references are exact.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from math import exp, isnan, log
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from moot.modules.market_data.domain.facts import DailyBar, DailyValuation
from moot.modules.market_data.infrastructure.demo import noise
from moot.modules.market_data.infrastructure.demo.accounts import Accounts, trailing_years
from moot.modules.market_data.infrastructure.demo.companies import Firm
from moot.modules.market_data.infrastructure.demo.noise import Array

Flags = NDArray[np.bool_]
Ints = NDArray[np.int64]
Fen = TypeVar("Fen", int, Ints)
Tape = Mapping[str, Any]
"""What the exchange prints, by name: an array with an entry for each session, prices in fen.

`known` is the newest statement published before the day, `shares` those outstanding.
"""

TRADING_DAYS_A_YEAR = 250
HALT_DAYS = (2, 8)
NO_HALTS = (6, 7)  # the months in which shares go ex-right
PULL = 0.004  # of the gap to fair value, closed a day
SURPRISE = 0.2  # of a revaluation, taken at once
ROE_PREMIUM = 3.0  # log price-to-book for a unit of return on equity
ROE_RANGE = (-0.25, 0.40)  # beyond it nobody pays less or more
MARKET_VOLATILITY = 0.0095
INDUSTRY_VOLATILITY = 0.0065
STORMINESS = 0.48
LIMIT, SPECIAL_LIMIT = 10, 5  # per cent of the reference price
LOT = 100
YEAR = timedelta(days=365)


@dataclass(frozen=True)
class Sessions:
    """The trading days on which the share is listed; `first` is the market's number of the first of them."""

    days: tuple[date, ...]
    first: int
    halted: Flags
    special: Flags

    def pick_own(self, stream: Array) -> Array:
        """Of a stream over the market's calendar, which all shares share, these days."""
        return stream[self.first : self.end]

    @property
    def end(self) -> int:
        return self.first + len(self.days)


def sessions(firm: Firm, seed: int, until: date) -> Sessions:
    calendar = noise.trading_days(until)
    listed = [n for n, day in enumerate(calendar) if firm.listed_on(day)]
    first = listed[0] if listed else len(calendar)
    days = calendar[first : first + len(listed)]
    halted = _halts(firm, seed, calendar)[first : first + len(listed)]
    halted[:1] = False  # a share trades on its first day
    special = np.array([firm.under_special_treatment(day) for day in days], dtype=bool)
    return Sessions(days, first, halted, special)


def _halts(firm: Firm, seed: int, calendar: tuple[date, ...]) -> Flags:
    shortest, longest = HALT_DAYS
    chances = noise.uniforms(2 * len(calendar), seed, firm.symbol, "halts").reshape(-1, 2)
    allowed: Flags = np.array([day.month not in NO_HALTS for day in calendar], dtype=bool)
    halted = np.zeros_like(allowed)
    for start in np.flatnonzero(chances[:, 0] < firm.trading.halts_per_year / TRADING_DAYS_A_YEAR):
        halted[start : start + shortest + int(chances[start, 1] * (longest - shortest + 1))] = True
    return halted & allowed


def print_tape(firm: Firm, seed: int, accounts: Accounts, sessions: Sessions) -> Tape:
    announced = [s.announced_on.toordinal() for s in accounts.statements]
    known = np.searchsorted(announced, [day.toordinal() for day in sessions.days], side="left") - 1
    cash, bonus, shares = _ex_rights(accounts, sessions)
    fair, shocks = _log_fair_values(firm, accounts)[known], _shocks(firm, seed, sessions)
    pre_close, close = _walk(fair, shocks, (cash, bonus, shares), sessions)
    steps = np.ones(
        len(close)
    )  # the factor grows on ex-right days by what the reference fell below the last close
    steps[1:] = close[:-1] / pre_close[1:]
    return {
        "known": known,
        "shares": shares,
        "pre_close": pre_close,
        "close": close,
        **_intraday(firm, seed, sessions, pre_close, close),
        "volume": _volume(firm, seed, sessions, pre_close, close, shares),
        "adj_factor": np.round(np.cumprod(steps), 6),
    }


def daily_bars(firm: Firm, sessions: Sessions, tape: Tape) -> list[DailyBar]:
    mean_price = (tape["open"] + tape["high"] + tape["low"] + tape["close"]) / 400
    columns = {
        **{name: (tape[name] / 100).tolist() for name in ("open", "high", "low", "close", "pre_close")},
        "volume": tape["volume"].tolist(),
        "amount": np.round(mean_price * tape["volume"], 2).tolist(),
        "adj_factor": tape["adj_factor"].tolist(),
        "suspended": sessions.halted.tolist(),
        "is_st": sessions.special.tolist(),
    }
    return [DailyBar(**row) for row in _daily_rows(firm, sessions, columns)]


def daily_valuations(firm: Firm, accounts: Accounts, sessions: Sessions, tape: Tape) -> list[DailyValuation]:
    """Ratios begin on the second day: a share has no valuation history on its first."""
    market_value, known = tape["close"] / 100 * tape["shares"], tape["known"]
    earned, sold = (
        np.array(trailing_years(accounts.statements, flow), dtype=float)  # None is NaN until the end
        for flow in ("net_profit", "published_revenue")
    )
    ratios = {
        "pe_ttm": market_value / earned[known],
        "pb": market_value / np.array([s.equity for s in accounts.statements])[known],
        "ps_ttm": market_value / sold[known],
        "dv_ratio": 100 * _cash_of_the_year(accounts, sessions) / market_value,
    }
    for ratio in ratios.values():
        ratio[:1] = np.nan
    columns = {
        "close": (tape["close"] / 100).tolist(),
        "total_mv": np.round(market_value, 2).tolist(),
        "turnover_rate": np.round(100 * tape["volume"] / tape["shares"], 4).tolist(),
        **{
            name: [None if isnan(value) else value for value in np.round(ratio, 4).tolist()]
            for name, ratio in ratios.items()
        },
    }
    return [DailyValuation(**row) for row in _daily_rows(firm, sessions, columns)]


def _daily_rows(
    firm: Firm, sessions: Sessions, columns: Mapping[str, Sequence[object]]
) -> Iterator[dict[str, Any]]:
    """The columns as the fields of one fact a day, with its date and times."""
    for day, *values in zip(sessions.days, *columns.values(), strict=True):
        told = {"symbol": firm.symbol, "trade_date": day, "source": noise.SOURCE, **noise.day_times(day)}
        yield told | dict(zip(columns, values, strict=True))


def _cash_of_the_year(accounts: Accounts, sessions: Sessions) -> Array:
    """What went ex within the 365 days up to each day, as money for all shares."""
    paid = np.zeros(len(sessions.days))
    days = np.array(sessions.days, dtype="datetime64[D]")
    for payout in accounts.payouts:
        ex = np.datetime64(payout.ex_date)
        paid[(ex <= days) & (days < ex + np.timedelta64(YEAR))] += payout.cash
    return paid


def _ex_rights(accounts: Accounts, sessions: Sessions) -> tuple[Array, Array, Ints]:
    """By day: cash in fen per share, new shares per share, shares outstanding."""
    count = len(sessions.days)
    cash, bonus = np.zeros(count), np.zeros(count)
    shares = np.full(count, accounts.first_shares, dtype=np.int64)
    number = {day: n for n, day in enumerate(sessions.days)}
    for payout in accounts.payouts:
        if (n := number.get(payout.ex_date)) is not None:
            cash[n], bonus[n] = payout.cash_per_ten * 10, payout.bonus_per_ten / 10
            shares[n:] = payout.shares_after
    return cash, bonus, shares


def _log_fair_values(firm: Firm, accounts: Accounts) -> Array:
    """By statement: book value at the normal price-to-book, more for a better return on equity, less for a worse."""
    trading, statements, fair = firm.trading, accounts.statements, []
    for statement, earned in zip(statements, trailing_years(statements, "net_profit"), strict=True):
        roe = trading.normal_roe if earned is None else earned / statement.equity
        premium = ROE_PREMIUM * (min(max(roe, ROE_RANGE[0]), ROE_RANGE[1]) - trading.normal_roe)
        fair.append(log(statement.equity * trading.normal_pb) + premium)
    return np.array(fair)


def _shocks(firm: Firm, seed: int, sessions: Sessions) -> Array:
    """Daily log returns before the pull."""
    count = sessions.end
    market = _restless(noise.normals(count, seed, "market"), seed, "market")
    industry = _restless(noise.normals(count, seed, firm.industry.name), seed, firm.industry.name)
    own = _restless(noise.fat_tailed(count, seed, firm.symbol, "own"), seed, firm.symbol)
    return sessions.pick_own(
        firm.trading.beta * MARKET_VOLATILITY * market
        + INDUSTRY_VOLATILITY * industry
        + firm.trading.volatility / 100 * own
    )


def _restless(moves: Array, *key: object) -> Array:
    """Calm and stormy weeks come in clusters; the variance stays what it was over the years."""
    storms = noise.wander(noise.normals(len(moves), *key, "storms"), 0.97)
    return moves * np.exp(STORMINESS * storms - STORMINESS**2)


def _walk(
    fair: Array,
    shocks: Array,
    ex_rights: tuple[Array, Array, Ints],
    sessions: Sessions,
) -> tuple[Ints, Ints]:
    """Reference prices and closes."""
    surprises = SURPRISE * np.diff(fair, prepend=fair[:1])
    close = round(100 * exp(fair[0]) / int(ex_rights[2][0])) if len(fair) else 0
    pre_closes, closes = [], []
    columns = (fair, shocks + surprises, *ex_rights, sessions.halted, sessions.special)
    for value, push, cash, bonus, shares, halted, special in zip(*(c.tolist() for c in columns), strict=True):
        reference = int((close - cash) / (1 + bonus) + 0.5)
        if not halted:
            gap = value - log(reference / 100 * shares)
            limit = SPECIAL_LIMIT if special else LIMIT
            target = round(reference * exp(push + PULL * gap))
            close = min(max(target, _limit_price(reference, -limit)), _limit_price(reference, limit))
        pre_closes.append(reference)
        closes.append(close)
    return np.array(pre_closes, dtype=np.int64), np.array(closes, dtype=np.int64)


def _limit_price(reference: Fen, percent: Fen) -> Fen:
    """The furthest price of the day, rounded half up as exchanges do."""
    return (reference * (100 + percent) + 50) // 100


def _intraday(firm: Firm, seed: int, sessions: Sessions, pre_close: Ints, close: Ints) -> dict[str, Ints]:
    """Open, high and low around the day's way from reference to close, within the limits."""
    stray = sessions.pick_own(noise.normals(3 * sessions.end, seed, firm.symbol, "intraday").reshape(-1, 3))
    spread = np.where(sessions.halted, 0.0, firm.trading.volatility / 100)
    open_ = pre_close * np.exp(0.4 * np.log(close / pre_close) + 0.35 * spread * stray[:, 0])
    high = np.maximum(open_, close) * np.exp(0.5 * spread * np.abs(stray[:, 1]))
    low = np.minimum(open_, close) * np.exp(-0.5 * spread * np.abs(stray[:, 2]))
    limit = np.where(sessions.special, SPECIAL_LIMIT, LIMIT)
    floor, ceiling = _limit_price(pre_close, -limit), _limit_price(pre_close, limit)
    return {
        name: np.clip(np.rint(price), floor, ceiling).astype(np.int64)
        for name, price in (("open", open_), ("high", high), ("low", low))
    }


def _volume(firm: Firm, seed: int, sessions: Sessions, pre_close: Ints, close: Ints, shares: Ints) -> Ints:
    """Whole lots; more hands change on days that move more."""
    mood = sessions.pick_own(noise.wander(noise.normals(sessions.end, seed, firm.symbol, "volume"), 0.9))
    stir = np.abs(np.log(close / pre_close)) / (firm.trading.volatility / 100)
    rate = firm.trading.turnover / 100 * np.exp(0.4 * mood + 0.25 * np.minimum(stir, 4) - 0.25)
    lots = np.maximum(np.rint(rate * shares / LOT), 1).astype(np.int64)
    return np.where(sessions.halted, 0, lots * LOT)
