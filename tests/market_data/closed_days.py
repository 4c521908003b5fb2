"""`python -m tests.market_data.closed_days` writes the table of closed days anew, from exchange-calendars.

Whoever does so when exchanges have announced a new year moves `LAST` first.
"""

import warnings
from datetime import date, timedelta

from moot.modules.market_data.domain.trading_rules import CLOSED_DAYS as TABLE
from moot.shared.domain.symbol import Market

NAMES = {Market.CN: "XSHG", Market.US: "XNYS"}
"""The package's names of the exchanges."""
FIRST = {Market.CN: date(1990, 12, 19), Market.US: date(1990, 1, 2)}
LAST = {Market.CN: date(2026, 12, 31), Market.US: date(2028, 12, 29)}
HEAD = """\
# Weekdays on which the exchanges were or will be closed, from the first session known to the last; at weekends they
# are. Shenzhen and Beijing keep Shanghai's days. A year a line, then month and day. A test holds the table against
# exchange-calendars; `python -m tests.market_data.closed_days` writes it.
"""


def sessions(market: Market) -> list[date]:
    import exchange_calendars

    with warnings.catch_warnings():  # exchange-calendars 4.13 uses what pandas 3.1 deprecates
        warnings.simplefilter("ignore", DeprecationWarning)
        span = {"start": FIRST[market].isoformat(), "end": LAST[market].isoformat()}
        found = exchange_calendars.get_calendar(NAMES[market], **span).sessions
    return [session.date() for session in found]


def table() -> str:
    parts = [HEAD]
    for market in NAMES:
        traded = set(sessions(market))
        first, last = FIRST[market], LAST[market]
        span = [first + timedelta(days=n) for n in range((last - first).days + 1)]
        closed = [day for day in span if day.weekday() < 5 and day not in traded]
        years = sorted({day.year for day in closed})
        lines = [" ".join([str(y), *(f"{d:%m%d}" for d in closed if d.year == y)]) for y in years]
        parts.append(
            f'[{market.value}]\nfirst = {first}\nlast = {last}\nclosed = """\n' + "\n".join(lines) + '\n"""\n'
        )
    return "\n".join(parts)


if __name__ == "__main__":
    TABLE.write_text(table(), encoding="utf-8")
