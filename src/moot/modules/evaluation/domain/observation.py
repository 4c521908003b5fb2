"""What was said of a company at a moment, and what came of it: from bars that nobody saw who said it."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from datetime import date, datetime, time
from math import fsum
from pathlib import Path
from typing import NamedTuple, Protocol

from pydantic import BaseModel

from moot.shared.domain.claims import HORIZONS, Horizon
from moot.shared.domain.errors import InvalidInput
from moot.shared.domain.experts import EXPERT_TEXTS
from moot.shared.domain.facts import DailyBar
from moot.shared.domain.messages import Catalogue
from moot.shared.domain.symbol import TIME_ZONES, Market, Symbol

SAY = Catalogue(EXPERT_TEXTS, Path(__file__).parent / "texts")
ARGUED, UNARGUED = "all", "unargued"
EVENING = time(20)
"""After the close, when the day's bar is known, and before anybody can act on it."""


class Frozen(BaseModel, frozen=True, extra="forbid", allow_inf_nan=False):
    """As it is written to JSON."""


class View(Frozen):
    """A conclusion, an expert's or the judge's; `stance` runs from -1 (bear) to 1 (bull)."""

    signal: str
    stance: float
    confidence: float


class Said(Frozen):
    """A claim: `pull` as it was made, for (+) or against (-), `settled` what the argument left of its strength,
    `value` the number it rests on first, if that is one.
    """

    id: str
    kind: str
    pull: float
    settled: float
    horizon: Horizon
    value: float | None


class Deliberation(Frozen):
    """What the whole desk makes of a company at a moment, by rule; `failures` are codes, of experts or of the judge.

    `leans`: where it leads, from -1 (do not buy) to 1 (do), by who is heard: `all`, `only x`, `without x`; and
    `unargued`, the mean stance of the experts without any debate.
    """

    views: dict[str, View]
    failures: dict[str, str]
    claims: list[Said] = []
    leans: dict[str, float] = {}


class Outcome(Frozen):
    """Bought and sold on these days; `excess` is over the mean of all that were looked at on the same day."""

    bought: date
    sold: date
    gain: float
    excess: float


class Observation(Frozen):
    symbol: str
    day: date
    said: Deliberation
    came: dict[Horizon, Outcome]


class Panel(Protocol):
    async def deliberate(self, symbol: Symbol, as_of: datetime) -> Deliberation:
        """All experts, the debate and the judge, by what was known at `as_of`."""


class Prices(Protocol):
    """Read past the experts: who deliberates never sees them."""

    async def list_symbols(self, start: date, end: date) -> list[Symbol]:
        """Everybody with bars in that time."""

    def list_sessions(self, market: Market, start: date, end: date) -> list[date]: ...

    async def read_bars(self, symbol: Symbol, start: date, end: date) -> Sequence[DailyBar]:
        """Raw prices with their factors, oldest first; none where there are none."""


class NothingToWalk(InvalidInput, code="NOTHING_TO_WALK"):
    """No company, or no month, that could be looked at."""


class Trade(NamedTuple):
    bought: date
    sold: date
    gain: float


def find_month_ends(sessions: Iterable[date]) -> list[date]:
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
