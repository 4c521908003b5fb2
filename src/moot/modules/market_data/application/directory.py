"""Who is listed: from whatever a person writes to a company, or to a refusal that helps."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from moot.modules.market_data.domain.company_index import (
    CompanyIndex,
    How,
    Match,
    MentionIndex,
    Named,
    names_in,
)
from moot.modules.market_data.domain.facts import COMPANIES
from moot.modules.market_data.domain.provider import MarketDataProvider, NotOffered
from moot.modules.market_data.domain.spelling import find_unsupported, fold, infer, market_of, read_code
from moot.modules.market_data.domain.texts import SAY
from moot.shared.domain.errors import InvalidInput, Unavailable
from moot.shared.domain.facts import Company
from moot.shared.domain.messages import Message, shorten
from moot.shared.domain.symbol import Market, Symbol

__all__ = ["Directory", "How", "Match", "Named"]

_CHOICES_TOLD = 10
LONGEST_TOLD = 80


@dataclass
class Directory:
    """Asks each market's source for its list; a list is indexed once and again when it has changed."""

    sources: Mapping[Market, MarketDataProvider]
    _indexed: dict[Market, CompanyIndex] = field(default_factory=dict, init=False)

    async def find(self, text: str, *, limit: int = 10) -> list[Match]:
        """The companies that the text may mean, best first. Where it finds none, `resolve` says why."""
        matches, _ = await self._search(text)
        return matches[:limit]

    async def resolve(self, text: str) -> Company:
        """The one company that the text means, delisted or not; refuses a text that means several or none."""
        matches, failures = await self._search(text)
        meant = _meant(matches)
        if len(meant) == 1:
            return meant[0].company
        if meant:
            raise _refuse_ambiguous(text, meant)
        raise self._none(text, failures)

    async def symbol(self, text: str) -> Symbol:
        """The share that a person means by a code in any spelling, or by a name.

        A whole code is taken at its word, and so is a ticker that no list has: a source may know more than it lists.
        """
        try:
            written: Symbol | None = Symbol.parse(read_code(text) or text)
        except InvalidInput:
            written = None
        if written is not None and written.market is not Market.US:
            return written
        try:
            return Symbol.parse((await self.resolve(text)).symbol)
        except InvalidInput:
            if written is None or Market.US not in self.sources:
                raise
            return written

    async def listed(self, symbol: Symbol) -> Company | None:
        """The company under a symbol, if its market's list has it."""
        return (await self._index(symbol.market)).by_symbol.get(symbol.text)

    async def list_companies(self, market: Market) -> Mapping[str, Company]:
        """All that its list has, by symbol, delisted or not."""
        return (await self._index(market)).by_symbol

    async def list_industry(self, market: Market, industry: str) -> Sequence[Company]:
        return (await self._index(market)).by_industry.get(industry, ())

    async def find_in(self, text: str) -> list[Named]:
        """The companies that a sentence names, in its order; a market whose list cannot be had hides its own."""
        indexes: list[MentionIndex] = []
        for market in self.sources:
            with suppress(Unavailable):
                indexes.append((await self._index(market)).mentions)
        return names_in(text, indexes)

    async def _search(self, text: str) -> tuple[list[Match], dict[Market, Unavailable]]:
        """A market whose list cannot be had hides only its own companies."""
        if not fold(text):
            raise InvalidInput(SAY("directory.blank"), code="SYMBOL_UNKNOWN", field="symbol")
        matches: list[Match] = []
        failures: dict[Market, Unavailable] = {}
        for market in self.sources:
            try:
                matches += (await self._index(market)).search(text)
            except NotOffered:
                continue
            except Unavailable as e:
                failures[market] = e
        return sorted(matches, key=lambda match: match.rank), failures

    async def _index(self, market: Market) -> CompanyIndex:
        companies = await self.sources[market].read(COMPANIES, market.value)
        known = self._indexed.get(market)
        if known is None or known.companies != companies:
            known = self._indexed[market] = CompanyIndex(companies)
        return known

    def _none(self, text: str, failures: Mapping[Market, Unavailable]) -> InvalidInput | Unavailable:
        """Why there is no company: no share, no source, a list that could not be had, or nobody of that name."""
        if kind := find_unsupported(text):
            return _refuse(
                SAY("directory.unsupported", text=_told(text), kind=SAY(f"directory.kind.{kind}")),
                "SYMBOL_UNSUPPORTED",
                kind=kind,
            )
        market = _market_meant(text)
        if market and market not in self.sources:
            said = SAY("market_unsupported", symbol=_told(text), market=market.value)
            return _refuse(said, "SYMBOL_UNSUPPORTED", market=market.value)
        for failed, why in failures.items():
            if market in (failed, None):
                return why
        near = [c for m, index in self._indexed.items() if market in (m, None) for c in index.nearest(text)]
        return _refuse_unknown("directory.unknown", _told(text), near, SAY("directory.how_to_ask"))

    async def refuse_unlisted(self, symbol: Symbol) -> InvalidInput:
        """For a code in order that no list has."""
        near = (await self._index(symbol.market)).nearest(symbol.text)
        return _refuse_unknown("symbol_unknown", symbol.text, near, SAY("none_near"))


def _meant(matches: Sequence[Match]) -> list[Match]:
    """Whole codes and names outdo parts, and what a company is called outdoes what it was called."""
    whole = [match for match in matches if match.whole]
    return [match for match in whole if match.how is not How.FORMER_NAME] or whole or list(matches)


def _market_meant(text: str) -> Market | None:
    """A code in capitals or digits means a market; small letters may just as well be a name."""
    code = read_code(text) or infer(text)
    if code is None or (code.isalpha() and text.strip() != code):
        return None
    return market_of(code)


def _refuse_ambiguous(text: str, meant: Sequence[Match]) -> InvalidInput:
    companies = [match.company for match in meant[:_CHOICES_TOLD]]
    return _refuse(
        SAY("directory.ambiguous", text=_told(text), count=len(meant), choices=_tell(companies)),
        "SYMBOL_AMBIGUOUS",
        candidates=_list_candidates(companies),
    )


def _refuse_unknown(key: str, text: str, near: Sequence[Company], otherwise: Message) -> InvalidInput:
    hint = SAY("nearest", matches=_tell(near)) if near else otherwise
    said = SAY(key, text=text, hint=hint)
    return _refuse(said, "SYMBOL_UNKNOWN", candidates=_list_candidates(near))


def _list_candidates(companies: Sequence[Company]) -> list[dict[str, str]]:
    """What may have been meant, for programs and for whoever is asked back."""
    return [{"symbol": company.symbol, "name": company.name or company.name_en} for company in companies]


def _tell(companies: Sequence[Company]) -> list[Message]:
    return [
        SAY(
            "directory.delisted" if c.delist_date else "directory.listed",
            symbol=c.symbol,
            name=c.label,
            on=c.delist_date,
        )
        for c in companies
    ]


def _told(text: str) -> str:
    return shorten(text.strip(), LONGEST_TOLD)


def _refuse(message: Message, code: str, **details: object) -> InvalidInput:
    return InvalidInput(message, code=code, field="symbol", **details)
