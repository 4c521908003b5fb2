"""Daily valuations: the day's price against the statements published before the day."""

from collections.abc import Callable
from datetime import timedelta
from math import isnan

import numpy as np

from moot.modules.market_data.domain.facts import DailyValuation
from moot.modules.market_data.infrastructure.demo.accounts import Accounts, Statement, trailing_year
from moot.modules.market_data.infrastructure.demo.companies import Firm
from moot.modules.market_data.infrastructure.demo.noise import Array
from moot.modules.market_data.infrastructure.demo.prices import Tape
from moot.modules.market_data.infrastructure.demo.sessions import daily_rows

YEAR = timedelta(days=365)
Flow = Callable[[Statement], float | None]


def daily_valuations(firm: Firm, accounts: Accounts, tape: Tape) -> list[DailyValuation]:
    """Ratios begin on the second day: a share has no valuation history on its first."""
    market_value = tape.close / 100 * tape.shares
    equity = np.array([s.equity for s in accounts.statements])
    ratios = {
        "pe_ttm": market_value / _trailing(accounts, lambda s: s.net_profit)[tape.known],
        "pb": market_value / equity[tape.known],
        "ps_ttm": market_value / _trailing(accounts, _published_revenue)[tape.known],
        "dv_ratio": 100 * _cash_of_the_year(accounts, tape) / market_value,
    }
    for ratio in ratios.values():
        ratio[:1] = np.nan
    columns = {
        "close": (tape.close / 100).tolist(),
        "total_mv": np.round(market_value, 2).tolist(),
        "turnover_rate": np.round(100 * tape.volume / tape.shares, 4).tolist(),
        **{name: _rounded(ratio) for name, ratio in ratios.items()},
    }
    return [DailyValuation(symbol=firm.symbol, **row) for row in daily_rows(tape.sessions, columns)]


def _published_revenue(s: Statement) -> float | None:
    return s.revenue if s.revenue_published else None


def _trailing(accounts: Accounts, flow: Flow) -> Array:
    """By statement; NaN stands for unknown until `_rounded` says None."""
    statements = accounts.statements
    years = (trailing_year(statements, n, flow) for n in range(len(statements)))
    return np.array([np.nan if year is None else year for year in years])


def _cash_of_the_year(accounts: Accounts, tape: Tape) -> Array:
    """What went ex within the 365 days up to each day, as money for all shares."""
    paid = np.zeros(len(tape.sessions.days))
    days = np.array(tape.sessions.days, dtype="datetime64[D]")
    for payout in accounts.payouts:
        ex = np.datetime64(payout.ex_date)
        paid[(ex <= days) & (days < ex + np.timedelta64(YEAR))] += payout.cash
    return paid


def _rounded(ratio: Array) -> list[float | None]:
    return [None if isnan(value) else value for value in np.round(ratio, 4).tolist()]
