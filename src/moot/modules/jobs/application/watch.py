"""Watch-lists: which shares are on them, and what was ruled on each."""

from collections.abc import Sequence
from contextlib import suppress

from moot.modules.jobs.domain.texts import SAY
from moot.modules.jobs.domain.watch import (
    DEFAULT_LIST,
    MOST_WATCHED,
    Listed,
    Ruling,
    Rulings,
    WatchBody,
    Watched,
    Watchlist,
    WatchStore,
    find_before,
    newest,
)
from moot.shared.domain.clock import Clock
from moot.shared.domain.errors import AppError, InvalidInput, NotFound
from moot.shared.domain.facts import SymbolDirectory
from moot.shared.domain.messages import nearest
from moot.shared.domain.symbol import Symbol
from moot.shared.domain.validation import suggest, validate

__all__ = ["DEFAULT_LIST", "Ruling", "WatchBody", "Watched", "Watchlist", "WatchlistService"]


class WatchlistService:
    """The lists of one workspace."""

    def __init__(
        self, store: WatchStore, companies: SymbolDirectory, rulings: Rulings, clock: Clock, workspace: str
    ) -> None:
        self._store, self._companies, self._rulings = store, companies, rulings
        self._clock, self._workspace = clock, workspace

    async def list(self, list_name: str | None = None) -> Watchlist:
        listed = await self._store.list(self._workspace, list_name)
        return Watchlist(items=[await self._look_up(one) for one in listed])

    async def add(self, symbols: Sequence[str], list_name: str = DEFAULT_LIST) -> Watchlist:
        body = validate(WatchBody, {"symbols": list(symbols), "list_name": list_name})
        now = self._clock.now()
        meant = [await self._companies.symbol(text) for text in body.symbols]
        for symbol in meant:
            await self._companies.company(symbol, as_of=now)
        new = [Listed(list_name=list_name, symbol=text, added_at=now) for text in _each_once(meant)]
        if not await self._store.add(self._workspace, new, MOST_WATCHED):
            raise InvalidInput(SAY("watch.too_many", most=MOST_WATCHED), code="WATCHLIST_FULL")
        return await self.list(list_name)

    async def remove(self, symbols: Sequence[str], list_name: str = DEFAULT_LIST) -> Watchlist:
        body = validate(WatchBody, {"symbols": list(symbols), "list_name": list_name})
        known = [one.symbol for one in await self._store.list(self._workspace, list_name)]
        gone = _each_once([await self._companies.symbol(text) for text in body.symbols])
        for symbol in gone:
            if symbol not in known:
                said = SAY("watch.not_on_it", symbol=symbol, list=list_name)
                raise NotFound(suggest(said, nearest(symbol, known)), symbol=symbol)
        await self._store.remove(self._workspace, list_name, gone)
        return await self.list(list_name)

    async def _look_up(self, listed: Listed) -> Watched:
        names: dict[str, str] = {}
        with suppress(AppError):  # it is on the list, whoever lists it
            company = await self._companies.company(Symbol.parse(listed.symbol), as_of=self._clock.now())
            names = {"name": company.name, "name_en": company.name_en}
        rulings = await self._rulings.on(listed.symbol, self._workspace)
        last = newest(rulings)
        before = find_before(last, rulings) if last else None
        return Watched(**dict(listed), **names, last=last, before=before)


def _each_once(symbols: Sequence[Symbol]) -> list[str]:
    return list(dict.fromkeys(symbol.text for symbol in symbols))
