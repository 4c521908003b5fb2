"""Daily prices and valuations: on which days a share trades, at what price, and what the market paid for the books.

A price is pulled slowly towards what the published books are worth, and pushed by market, industry and own noise.
Prices are whole fen inside, so that rounding, price limits and ex-right references are exact. The index of the market
and that of each industry is what a day made of the market value of the day before.
"""

from collections.abc import Sequence
from datetime import date, timedelta
from functools import cached_property
from math import exp, isnan, log
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from moot.modules.market_data.domain import trading_rules
from moot.modules.market_data.infrastructure.demo import accounts as books
from moot.modules.market_data.infrastructure.demo import market, noise
from moot.modules.market_data.infrastructure.demo.noise import Array
from moot.shared.domain.facts import DailyBar, DailyValuation, Dividend, FinancialReport, IndexBar

Flags = NDArray[np.bool_]
Ints = NDArray[np.int64]
Fen = TypeVar("Fen", int, Ints)

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

BASE = 1000.0
MARKET_INDEX = ("900000.DEMO", "演示综合指数")
PRICES = ("open", "high", "low", "close")


class Share:
    """All there will have been of one company up to `until`, each part worked out when it is first asked for.

    `days` are the trading days on which the share is listed. Arrays have an entry for each of them, prices in fen.
    """

    def __init__(self, firm: market.Firm, seed: int, until: date) -> None:
        self.firm, self.seed, self.until = firm, seed, until
        self._calendar = trading_rules.demo_days(until)
        self.days = tuple(day for day in self._calendar if firm.listed_on(day))
        first = self._calendar.index(self.days[0]) if self.days else len(self._calendar)
        self.own = slice(first, first + len(self.days))
        """Of a stream over the market's calendar, which all shares share, these days."""
        self.number = {day: n for n, day in enumerate(self.days)}

    @cached_property
    def accounts(self) -> books.Accounts:
        return books.keep_accounts(self.firm, self.seed, self.until)

    @cached_property
    def reports(self) -> list[FinancialReport]:
        return books.publish_reports(self.firm, self.seed, self.accounts)

    @cached_property
    def dividends(self) -> list[Dividend]:
        return books.declare_dividends(self.firm, self.accounts)

    @cached_property
    def bars(self) -> market.History[DailyBar]:
        tape = self.tape
        columns = {
            **{name: (tape[name] / 100).tolist() for name in ("open", "high", "low", "close", "pre_close")},
            "volume": tape["volume"].tolist(),
            "amount": self.amounts.tolist(),
            "adj_factor": tape["adj_factor"].tolist(),
            "suspended": self.halted.tolist(),
            "is_st": self.special.tolist(),
        }
        return market.tell_daily(DailyBar, self.days, columns, symbol=self.firm.symbol)

    @cached_property
    def valuations(self) -> market.History[DailyValuation]:
        """Ratios begin on the second day: a share has no valuation history on its first."""
        statements, tape, known = self.accounts.statements, self.tape, self._known
        market_value = tape["close"] / 100 * self.shares
        earned, sold = (
            np.array(books.sum_trailing_years(statements, flow), dtype=float)  # None is NaN until the end
            for flow in ("net_profit", "published_revenue")
        )
        ratios = {
            "pe_ttm": market_value / earned[known],
            "pb": market_value / np.array([s.equity for s in statements])[known],
            "ps_ttm": market_value / sold[known],
            "dv_ratio": 100 * self._cash_of_the_year() / market_value,
        }
        columns = {
            "close": (tape["close"] / 100).tolist(),
            "total_mv": np.round(market_value, 2).tolist(),
            "turnover_rate": np.round(100 * tape["volume"] / self.shares, 4).tolist(),
        }
        for name, ratio in ratios.items():
            ratio[:1] = np.nan
            columns[name] = [None if isnan(value) else value for value in np.round(ratio, 4).tolist()]
        return market.tell_daily(DailyValuation, self.days, columns, symbol=self.firm.symbol)

    @cached_property
    def amounts(self) -> Array:
        """What was paid, at the mean price of the day."""
        tape = self.tape
        mean_price = (tape["open"] + tape["high"] + tape["low"] + tape["close"]) / 400
        amounts: Array = np.round(mean_price * tape["volume"], 2)
        return amounts

    @cached_property
    def special(self) -> Flags:
        return np.array([self.firm.under_special_treatment(day) for day in self.days], dtype=bool)

    @cached_property
    def halted(self) -> Flags:
        shortest, longest = HALT_DAYS
        chances = noise.uniforms(2 * len(self._calendar), self.seed, self.firm.symbol, "halts").reshape(-1, 2)
        allowed: Flags = np.array([day.month not in NO_HALTS for day in self._calendar], dtype=bool)
        halted = np.zeros_like(allowed)
        for start in np.flatnonzero(chances[:, 0] < self.firm.halts_per_year / TRADING_DAYS_A_YEAR):
            halted[start : start + shortest + int(chances[start, 1] * (longest - shortest + 1))] = True
        own = (halted & allowed)[self.own]
        own[:1] = False  # a share trades on its first day
        return own

    @cached_property
    def _known(self) -> Ints:
        """The newest statement published before each day."""
        announced = [s.announced_on.toordinal() for s in self.accounts.statements]
        return np.searchsorted(announced, [day.toordinal() for day in self.days], side="left") - 1

    @cached_property
    def shares(self) -> Ints:
        """Those outstanding."""
        shares = np.full(len(self.days), self.accounts.first_shares, dtype=np.int64)
        for n, payout in self.list_ex_rights():
            shares[n:] = payout.shares_after
        return shares

    def list_ex_rights(self) -> list[tuple[int, books.Payout]]:
        """Each payout with the number of the day on which it goes ex."""
        return [(self.number[p.ex_date], p) for p in self.accounts.payouts if p.ex_date in self.number]

    def _cash_of_the_year(self) -> Array:
        """What went ex within the 365 days up to each day, as money for all shares."""
        paid = np.zeros(len(self.days))
        days = np.array(self.days, dtype="datetime64[D]")
        for payout in self.accounts.payouts:
            ex = np.datetime64(payout.ex_date)
            paid[(ex <= days) & (days < ex + np.timedelta64(YEAR))] += payout.cash
        return paid

    @cached_property
    def tape(self) -> dict[str, Any]:
        """What the exchange prints, by name."""
        pre_close, close = self._walk(self._log_fair_values()[self._known])
        steps = np.ones(len(close))  # the factor grows by what the reference fell below the last close
        steps[1:] = close[:-1] / pre_close[1:]
        return {
            "pre_close": pre_close,
            "close": close,
            **self._intraday(pre_close, close),
            "volume": self._volume(pre_close, close),
            "adj_factor": np.round(np.cumprod(steps), 6),
        }

    def _log_fair_values(self) -> Array:
        """By statement: the books at the normal price-to-book, at more for a better return on equity."""
        firm, statements, fair = self.firm, self.accounts.statements, []
        earned_by_then = books.sum_trailing_years(statements, "net_profit")
        for statement, earned in zip(statements, earned_by_then, strict=True):
            roe = firm.normal_roe if earned is None else earned / statement.equity
            premium = ROE_PREMIUM * (min(max(roe, ROE_RANGE[0]), ROE_RANGE[1]) - firm.normal_roe)
            fair.append(log(statement.equity * firm.normal_pb) + premium)
        return np.array(fair)

    def _shocks(self) -> Array:
        """Daily log returns before the pull."""
        count, industry, symbol = self.own.stop, self.firm.industry.name, self.firm.symbol
        market = _restless(noise.normals(count, self.seed, "market"), self.seed, "market")
        sector = _restless(noise.normals(count, self.seed, industry), self.seed, industry)
        own = _restless(noise.fat_tailed(count, self.seed, symbol, "own"), self.seed, symbol)
        moves: Array = (
            self.firm.beta * MARKET_VOLATILITY * market
            + INDUSTRY_VOLATILITY * sector
            + self.firm.volatility / 100 * own
        )
        return moves[self.own]

    def _walk(self, fair: Array) -> tuple[Ints, Ints]:
        """Reference prices and closes."""
        pushes = self._shocks() + SURPRISE * np.diff(fair, prepend=fair[:1])
        payouts = dict(self.list_ex_rights())
        close = round(100 * exp(fair[0]) / int(self.shares[0])) if len(fair) else 0
        pre_closes, closes = [], []
        columns = (fair, pushes, self.shares, self.halted, self.special)
        for n, (value, push, shares, halted, special) in enumerate(
            zip(*(c.tolist() for c in columns), strict=True)
        ):
            paid = payouts.get(n)
            cash, bonus = (paid.cash_per_ten * 10, paid.bonus_per_ten / 10) if paid else (0.0, 0.0)
            reference = int((close - cash) / (1 + bonus) + 0.5)
            if not halted:
                gap = value - log(reference / 100 * shares)
                limit = SPECIAL_LIMIT if special else LIMIT
                target = round(reference * exp(push + PULL * gap))
                close = min(max(target, _limit_price(reference, -limit)), _limit_price(reference, limit))
            pre_closes.append(reference)
            closes.append(close)
        return np.array(pre_closes, dtype=np.int64), np.array(closes, dtype=np.int64)

    def _intraday(self, pre_close: Ints, close: Ints) -> dict[str, Ints]:
        """Open, high and low around the day's way from reference to close, within the limits."""
        drawn = noise.normals(3 * self.own.stop, self.seed, self.firm.symbol, "intraday")
        stray = drawn.reshape(-1, 3)[self.own]
        spread = np.where(self.halted, 0.0, self.firm.volatility / 100)
        open_ = pre_close * np.exp(0.4 * np.log(close / pre_close) + 0.35 * spread * stray[:, 0])
        high = np.maximum(open_, close) * np.exp(0.5 * spread * np.abs(stray[:, 1]))
        low = np.minimum(open_, close) * np.exp(-0.5 * spread * np.abs(stray[:, 2]))
        limit = np.where(self.special, SPECIAL_LIMIT, LIMIT)
        floor, ceiling = _limit_price(pre_close, -limit), _limit_price(pre_close, limit)
        return {
            name: np.clip(np.rint(price), floor, ceiling).astype(np.int64)
            for name, price in (("open", open_), ("high", high), ("low", low))
        }

    def _volume(self, pre_close: Ints, close: Ints) -> Ints:
        """Whole lots; more hands change on days that move more."""
        firm, count = self.firm, self.own.stop
        mood = noise.wander(noise.normals(count, self.seed, firm.symbol, "volume"), 0.9)[self.own]
        stir = np.abs(np.log(close / pre_close)) / (firm.volatility / 100)
        rate = firm.turnover / 100 * np.exp(0.4 * mood + 0.25 * np.minimum(stir, 4) - 0.25)
        lots = np.maximum(np.rint(rate * self.shares / LOT), 1).astype(np.int64)
        return np.where(self.halted, 0, lots * LOT)


def _restless(moves: Array, *key: object) -> Array:
    """Calm and stormy weeks come in clusters; the variance stays what it was over the years."""
    storms = noise.wander(noise.normals(len(moves), *key, "storms"), 0.97)
    return moves * np.exp(STORMINESS * storms - STORMINESS**2)


def _limit_price(reference: Fen, percent: Fen) -> Fen:
    """The furthest price of the day, rounded half up as exchanges do."""
    return (reference * (100 + percent) + 50) // 100


def tell_index_bars(shares: Sequence[Share]) -> market.History[IndexBar]:
    """Oldest first. Shares of one market have one calendar."""
    found = {MARKET_INDEX[0]: _tell_bars(shares, *MARKET_INDEX, None)}
    for n, industry in enumerate(market.industries(), 1):
        members = [share for share in shares if share.firm.industry == industry]
        index = f"98{n:04}.DEMO"
        found[index] = _tell_bars(members, index, f"{industry.name}指数", industry.name)
    rows = sorted((day, index, n) for index, bars in found.items() for n, day in enumerate(bars.days))
    return market.History([day for day, *_ in rows], lambda row: found[rows[row][1]].make(rows[row][2]))


def _tell_bars(
    shares: Sequence[Share], index: str, name: str, industry: str | None
) -> market.History[IndexBar]:
    calendar = trading_rules.demo_days(shares[0].until)
    sums = _sum_up(shares, len(calendar))
    there = np.flatnonzero(sums["weight"] > 0).tolist()
    moves = {price: (sums[price][there] / sums["weight"][there]) for price in PRICES}
    closes = BASE * np.cumprod(moves["close"])
    before = np.insert(closes[:-1], 0, BASE)
    levels = {price: np.round(before * move, 2) for price, move in moves.items()}
    all_four = list(levels.values())
    levels |= {"high": np.max(all_four, axis=0), "low": np.min(all_four, axis=0)}
    columns = {**levels, "pre_close": np.round(before, 2), "volume": sums["volume"][there]}
    told = {name: values.tolist() for name, values in columns.items()}
    told["amount"] = [round(amount, 2) for amount in sums["amount"][there].tolist()]
    days = [calendar[n] for n in there]
    return market.tell_daily(IndexBar, days, told, index=index, name=name, industry=industry)


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
