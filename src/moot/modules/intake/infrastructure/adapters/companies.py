"""Companies by their names, as market data's directory knows them."""

from moot.modules.intake.domain.question import Mention
from moot.modules.market_data.application.directory import Directory
from moot.shared.domain.clock import SystemClock
from moot.shared.domain.errors import AppError


async def find_mentions(directory: Directory, text: str) -> list[Mention]:
    """Companies that a sentence names, in its order; codes, names, former and English names, parts of them."""
    mentions, today = list[Mention](), SystemClock().now().date()
    for named in await directory.find_in(text):
        companies = [match.company for match in named.matches]
        gone = companies[0].delist_date if len(companies) == 1 else None
        mention = Mention(
            text=named.text,
            symbols=tuple(company.symbol for company in companies),
            names=tuple(company.name or company.name_en for company in companies),
            names_en=tuple(company.name_en for company in companies),
            delisted_on=gone if gone and gone <= today else None,
        )
        mentions.append(mention)
    return mentions


async def find_near(directory: Directory, text: str) -> list[str]:
    """Companies that a text nearly names, by code and name."""
    try:
        symbols = [(await directory.resolve(text)).symbol]
    except AppError as e:
        symbols = e.details.get("nearest") or e.details.get("choices") or []
    found = [match.company for symbol in symbols for match in await directory.find(symbol, limit=1)]
    return [f"{company.symbol} {company.label}" for company in found]
