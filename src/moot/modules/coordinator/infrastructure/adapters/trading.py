"""How the share of a session trades: what the exchange allows, for the judge and for the rules alike."""

import structlog

from moot.modules.market_data.application.market_data import TradingState, TradingStates
from moot.shared.domain.errors import AppError
from moot.shared.domain.symbol import Symbol
from moot.shared.infrastructure.execution_context import current_context

logger = structlog.get_logger(__name__)


async def read_trading(states: TradingStates | None, symbol: Symbol) -> TradingState | None:
    """Read once in a session. None where it cannot be had: whoever asks says what follows."""
    context = current_context()
    if states is None or context.as_of is None:
        return None
    if symbol not in context.read_once:
        try:
            context.read_once[symbol] = await states.of(symbol, as_of=context.as_of)
        except AppError as e:
            logger.warning("trading facts not known", symbol=symbol.text, error=str(e))
            return None
    state: TradingState | None = context.read_once[symbol]
    return state
