"""The calendars of the markets: exchange-calendars for real exchanges, its own rule for the demo market."""

import warnings
from datetime import date
from functools import cache

from moot.modules.market_data.domain.trading_rules import TradingCalendar
from moot.modules.market_data.infrastructure.demo.noise import trading_days
from moot.shared.domain.symbol import Market

# The package's name of the exchange, and the first day to ask for. Shenzhen and Beijing keep Shanghai's days.
EXCHANGES = {Market.CN: ("XSHG", date(1990, 12, 19)), Market.US: ("XNYS", date(1990, 1, 2))}
DEMO_ENDS = date(2099, 12, 31)


@cache
def trading_calendar(market: Market) -> TradingCalendar:
    """Read when first asked for: exchange-calendars brings pandas, which is too heavy for a start."""
    if market is Market.DEMO:
        return TradingCalendar(market, trading_days(DEMO_ENDS))
    import exchange_calendars  # noqa: PLC0415 - heavy, see above

    name, first = EXCHANGES[market]
    with warnings.catch_warnings():  # exchange-calendars 4.13 uses what pandas 3.1 deprecates
        warnings.simplefilter("ignore", DeprecationWarning)
        sessions = exchange_calendars.get_calendar(name, start=first.isoformat()).sessions
    return TradingCalendar(market, [session.date() for session in sessions])
