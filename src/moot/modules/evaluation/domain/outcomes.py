"""What became of a share that was bought the morning after: from bars that nobody saw who judged it."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from datetime import date, datetime, time
from math import fsum
from typing import NamedTuple

from moot.modules.evaluation.domain.observation import HORIZONS, Outcome
from moot.shared.domain.claims import Horizon
from moot.shared.domain.facts import DailyBar
from moot.shared.domain.symbol import TIME_ZONES, Market

EVENING = time(20)
"""After the close, when the day's bar is known, and before anybody can act on it."""


class Trade(NamedTuple):
    bought: date
    sold: date
    gain: float


def find_month_ends(sessions: Iterable[date]) -> list[date]:
    """The last session of each month."""
    return list({(day.year, day.month): day for day in sorted(sessions)}.values())


def evening_of(day: date, market: Market) -> datetime:
    return datetime.combine(day, EVENING, TIME_ZONES[market])


def trade(bars: Sequence[DailyBar], sessions: Sequence[date], day: date) -> dict[Horizon, Trade]:
    """Bought at the open of the session after `day`, sold at the close so many sessions later, adjusted.

    Sessions are the market's, whether or not the share traded. Who cannot sell on the day sells at the next close at
    which the share trades; who cannot buy on the morning after does not. Where the bars end before, there is nothing.
    """
    open_ = [bar for bar in bars if not bar.suspended]
    days, first = [bar.trade_date for bar in open_], bisect_right(sessions, day)
    if first >= len(sessions) or sessions[first] not in days:
        return {}
    bought, found = open_[days.index(sessions[first])], dict[Horizon, Trade]()
    for horizon in HORIZONS:
        due = sessions[first + horizon] if first + horizon < len(sessions) else date.max
        for sold in open_[bisect_left(days, due) :][:1]:
            gain = sold.close * sold.adj_factor / (bought.open * bought.adj_factor) - 1
            found[horizon] = Trade(bought.trade_date, sold.trade_date, gain)
    return found


def compare(trades: Mapping[str, Mapping[Horizon, Trade]]) -> dict[str, dict[Horizon, Outcome]]:
    """Each against the equal-weight mean of all that could be bought on the same morning and sold again."""
    gains: dict[Horizon, list[float]] = {horizon: [] for horizon in HORIZONS}
    for made in trades.values():
        for horizon, done in made.items():
            gains[horizon].append(done.gain)
    means = {horizon: fsum(all_) / len(all_) for horizon, all_ in gains.items() if all_}
    return {
        symbol: {
            horizon: Outcome(**done._asdict(), excess=done.gain - means[horizon])
            for horizon, done in made.items()
        }
        for symbol, made in trades.items()
    }
