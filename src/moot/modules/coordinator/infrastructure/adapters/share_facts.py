"""What is known of a session's share, whatever is argued: how it trades, for the judge and for the rules alike; and
what is grave enough to forbid a purchase, for the rules and for a verdict's first line.
"""

from collections.abc import Mapping
from typing import Any

import structlog

from moot.modules.coordinator.domain.texts import SAY
from moot.modules.market_data.application.market_data import MarketData, TradingState
from moot.modules.research.application.grave_news import WINDOW_DAYS, find_grave
from moot.shared.domain.claims import GRAVE_KINDS, Claim
from moot.shared.domain.errors import AppError
from moot.shared.domain.facts import NewsItem
from moot.shared.domain.messages import Locale, Message
from moot.shared.domain.symbol import Symbol
from moot.shared.domain.validation import validate
from moot.shared.infrastructure.execution_context import current_context

logger = structlog.get_logger(__name__)

BY_TRADING = {"st": "special_treatment", "suspended": "suspension"}
"""Trading facts that are grave by themselves, and what they are called."""


async def read_trading(market: MarketData | None, symbol: Symbol) -> TradingState | None:
    """Read once in a session. None where it cannot be had: whoever asks says what follows."""
    context = current_context()
    if market is None or context.as_of is None:
        return None
    if symbol not in context.read_once:
        try:
            context.read_once[symbol] = await market.trading_state(symbol, as_of=context.as_of)
        except AppError as e:
            logger.warning("trading facts not known", symbol=symbol.text, error=str(e))
            return None
    state: TradingState | None = context.read_once[symbol]
    return state


async def find_grave_facts(
    market: MarketData | None, symbol: Symbol, debate: Mapping[str, Any], known: Mapping[str, Any]
) -> dict[str, list[str]]:
    """The kinds of what is grave, and for each what it rests on: what was published, even where no expert read it;
    what was claimed; how the share trades (`known`).
    """
    locale = current_context().locale
    claims = (debate.get("argument") or {}).get("claims", [])
    grave = [validate(Claim, claim) for claim in claims if claim["kind"] in GRAVE_KINDS]
    found = {claim.kind.partition(".")[2]: claim.text(locale) for claim in grave}
    for kind, item in (await _read_news(market, symbol)).items():
        title = item.title if locale == "zh-CN" else item.title_en or item.title
        said = SAY("grave.published", day=symbol.local_date(item.available_at), title=title)
        found[kind] = said.in_locale(locale)
    for name, kind in BY_TRADING.items():
        if known.get(name):
            found.setdefault(kind, SAY("grave.trading", what=SAY(f"grave.{kind}")).in_locale(locale))
    return {"grave_facts": list(found), "grave_grounds": list(found.values())}


async def _read_news(market: MarketData | None, symbol: Symbol) -> dict[str, NewsItem]:
    as_of = current_context().as_of
    if market is None or as_of is None:
        return {}
    try:
        return find_grave(await market.news(symbol, WINDOW_DAYS, as_of=as_of))
    except AppError:  # whoever reads news for a living has said so
        return {}


def lead_with_grave(verdict: dict[str, Any], known: Mapping[str, Any], locale: Locale) -> dict[str, Any]:
    """What is grave is told first, unless the judge has told it."""
    kinds = known.get("grave_facts")
    if not kinds or verdict.get("grave"):
        return verdict
    named: list[Message] = [SAY(f"grave.{kind}") for kind in kinds]
    headline = SAY("grave.headline", kinds=named, rest=verdict.get("headline") or "").in_locale(locale)
    changes = [SAY("grave.until_gone").in_locale(locale), *verdict.get("would_change", [])]
    told = {"headline": headline.strip(), "would_change": changes}
    return {**verdict, **told, "grave": list(known["grave_grounds"])}
