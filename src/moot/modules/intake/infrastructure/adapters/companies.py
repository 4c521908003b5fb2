"""Companies by their names, as market data's directory knows them."""

from moot.modules.intake.domain.question import Mention
from moot.modules.market_data.application.directory import Directory


async def find_mentions(directory: Directory, text: str) -> list[Mention]:
    """Companies that a sentence names, in its order; codes, names, former and English names, parts of them."""
    mentions = list[Mention]()
    for named in await directory.find_in(text):
        companies = [match.company for match in named.matches]
        mention = Mention(
            text=named.text,
            symbols=tuple(company.symbol for company in companies),
            names=tuple(company.name or company.name_en for company in companies),
            names_en=tuple(company.name_en for company in companies),
        )
        mentions.append(mention)
    return mentions
