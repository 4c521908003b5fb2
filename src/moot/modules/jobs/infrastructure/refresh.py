"""Bringing data up to date before they are researched: what `moot data sync` does, for shares that have a source."""

from collections import Counter
from collections.abc import Sequence

from moot.modules.jobs.domain.schedules import Synced
from moot.modules.market_data.application.sync import SyncEvent
from moot.modules.market_data.application.upkeep import MarketDataUpkeep
from moot.shared.domain.errors import AppError
from moot.shared.domain.messages import Locale, Message
from moot.shared.domain.symbol import Symbol
from moot.shared.infrastructure.redaction import REDACT, error_text

MOST_TOLD = 5


async def refresh(upkeep: MarketDataUpkeep, shares: Sequence[str], locale: Locale) -> Synced | None:
    """Whatever fails is told, and stops nothing: what is too old then counts as absent."""
    sources = upkeep.syncing.providers
    outside = [share for share in shares if sources.get(Symbol.parse(share).market)]
    if not outside:
        return None
    try:
        events = await upkeep.sync(await upkeep.plan(outside, None, None, None))
    except AppError as e:
        return Synced(failed=1, errors=[error_text(e, locale)])
    counted = Counter(event.outcome for event in events)
    failed = [_describe(event, locale) for event in events if event.outcome == "failed"]
    return Synced(
        fetched=counted["fetched"],
        up_to_date=counted["up_to_date"],
        failed=counted["failed"],
        errors=failed[:MOST_TOLD],
    )


def _describe(event: SyncEvent, locale: Locale) -> str:
    why = [f"{source}: {_word(error, locale)}".removeprefix(": ") for source, error in event.errors]
    return REDACT.text(f"{event.subject} {_word(event.dataset.label, locale)}: {'; '.join(why)}")


def _word(text: Message | str, locale: Locale) -> str:
    return text if isinstance(text, str) else text.in_locale(locale)
