"""Companies by their names, as market data's directory knows them."""

from collections.abc import Iterable, Sequence

from moot.modules.intake.domain.question import Mention
from moot.modules.market_data.application.directory import Directory, Match
from moot.shared.domain.errors import InvalidInput


class DirectoryCompanies:
    def __init__(self, directory: Directory) -> None:
        self._directory = directory

    async def mentioned(self, text: str) -> Sequence[Mention]:
        return [_mention(named.text, named.matches) for named in await self._directory.find_in(text)]

    async def find(self, text: str) -> Sequence[Mention]:
        try:
            matches = await self._directory.find(text)
        except InvalidInput:  # nothing was asked for
            return []
        return [_mention(text, [match]) for match in matches]


def _mention(text: str, matches: Iterable[Match]) -> Mention:
    companies = [match.company for match in matches]
    return Mention(
        text=text,
        symbols=tuple(company.symbol for company in companies),
        names=tuple(company.name or company.name_en for company in companies),
        names_en=tuple(company.name_en for company in companies),
    )
