"""Wires the sources of each market, and its calendar, behind the one point-in-time door."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import SecretStr

from moot.modules.market_data.application.directory import Directory
from moot.modules.market_data.application.imports import ImportService
from moot.modules.market_data.application.market_data import MarketData
from moot.modules.market_data.application.sql import DatabaseTool
from moot.modules.market_data.application.sync import BY_REQUEST, SyncedSource, SyncService
from moot.modules.market_data.application.upkeep import MarketDataUpkeep
from moot.modules.market_data.domain.facts import COMPANIES, DATASETS
from moot.modules.market_data.domain.provider import MarketDataProvider
from moot.modules.market_data.domain.texts import SAY
from moot.modules.market_data.infrastructure.demo.provider import DemoMarket
from moot.modules.market_data.infrastructure.providers.outside import OutsideSource
from moot.shared.domain.clock import Clock
from moot.shared.domain.errors import InvalidInput
from moot.shared.domain.guard import Guard, let_through
from moot.shared.domain.rate_limits import Turns
from moot.shared.domain.symbol import Market
from moot.shared.infrastructure.call_audit import ExternalCalls
from moot.shared.infrastructure.execution_context import is_replay, moment_of_reading

if TYPE_CHECKING:
    from moot.modules.market_data.infrastructure.cross_section import MeasuringLake
    from moot.modules.market_data.infrastructure.lake_sql import LakeDatabase

OUTSIDE = ("tushare", *BY_REQUEST)
KNOWN = (*OUTSIDE, "files")


@dataclass(frozen=True)
class Sources:
    """What the settings say about sources outside; what they cannot mean is refused."""

    tushare_token: SecretStr
    tushare_url: str
    more: Sequence[str] = ()
    files: Path | None = None
    order: Mapping[str, Sequence[str]] = field(default_factory=dict)
    per_minute: Mapping[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        ordered = [name for names in self.order.values() for name in names]
        for setting, names, known in (
            ("MOOT_DATA_SOURCES", self.more, BY_REQUEST),
            ("MOOT_DATA_ORDER", self.order, list(DATASETS)),
            ("MOOT_DATA_ORDER", ordered, KNOWN),
            ("MOOT_DATA_REQUESTS_PER_MINUTE", self.per_minute, OUTSIDE),
        ):
            for name in (name for name in names if name not in known):
                said = SAY("setting_unknown", setting=setting, name=name, known=known)
                raise InvalidInput(said, code="SETTINGS_INVALID")


class MarketDataContainer:
    """`calls` keeps the calls to sources outside; each source passes `guard` under the name `data:<source>`, and for
    other hosts than its main one `data:<source>:<host>`. `turns` is where sources with a limit of their own count.

    The lake and the sources bring libraries that take long to load: they are imported where they are first needed.
    """

    def __init__(
        self,
        clock: Clock,
        *,
        demo_seed: int,
        lake: Path,
        sources: Sources,
        calls: ExternalCalls,
        guard: Guard = let_through,
        turns: Turns | None = None,
    ) -> None:
        self.clock = clock
        self._folder, self._order = lake, sources.order
        self._providers = _providers(sources, recorder=calls, guard=guard, turns=turns)
        self._sources: dict[Market, MarketDataProvider] = {
            Market.DEMO: DemoMarket(demo_seed, clock, moment_of_reading),
            **{
                m: SyncedSource(self._store, self._syncing, m, moment_of_reading, is_replay)
                for m in self._list_reachable()
            },
        }
        self._market_data = MarketData(self._sources)

    def market_data(self) -> MarketData:
        return self._market_data

    def database(self) -> DatabaseTool:
        """Of several exchanges, the days are those of the one where they end first: nothing shows too early."""
        first = next(iter(self._list_reachable()), Market.DEMO)
        return DatabaseTool(self._database, self._store, self._sources[Market.DEMO], market=first)

    def directory(self) -> Directory:
        return self._market_data.directory

    def upkeep(self) -> MarketDataUpkeep:
        return MarketDataUpkeep(self._market_data, self._syncing)

    def imports(self) -> ImportService:
        from moot.modules.market_data.infrastructure.providers.files import read_import

        return ImportService(read_import, self._store, self.clock)

    async def close(self) -> None:
        if "_database" in self.__dict__:
            await self._database.children.close()
        for providers in self._providers.values():
            for provider in providers.values():
                if isinstance(provider, OutsideSource):
                    await provider.aclose()

    @cached_property
    def _store(self) -> "MeasuringLake":
        from moot.modules.market_data.infrastructure.cross_section import MeasuringLake

        return MeasuringLake(self._folder)

    @cached_property
    def _database(self) -> "LakeDatabase":
        from moot.modules.market_data.infrastructure.lake_sql import Children, LakeDatabase

        return LakeDatabase(self._folder, Children())

    @cached_property
    def _syncing(self) -> SyncService:
        return SyncService(self._store, self._providers, self.clock, self._order)

    def _list_reachable(self) -> list[Market]:
        """Markets with a source, or with companies somebody imported."""
        kept = {file.stem for file in (self._folder / COMPANIES.name).glob("*.parquet")}
        return [m for m in (Market.CN, Market.US) if self._providers[m] or m.value in kept]


def _providers(sources: Sources, **ways: Any) -> dict[Market, dict[str, MarketDataProvider]]:
    """`ways` are what all sources outside go by."""
    china: dict[str, MarketDataProvider] = {}
    usa: dict[str, MarketDataProvider] = {}
    own: dict[str, MarketDataProvider] = {}

    def ways_of(source: str) -> dict[str, Any]:
        return ways | {"per_minute": sources.per_minute.get(source)}

    if sources.tushare_token.get_secret_value():
        from moot.modules.market_data.infrastructure.providers.tushare import TushareProvider

        token, url = sources.tushare_token, sources.tushare_url
        china["tushare"] = TushareProvider(token, base_url=url, **ways_of("tushare"))
    if "akshare" in sources.more:
        from moot.modules.market_data.infrastructure.providers.akshare import AkshareProvider

        china["akshare"] = AkshareProvider(**ways_of("akshare"))
    if "yfinance" in sources.more:
        from moot.modules.market_data.infrastructure.providers.yfinance import YfinanceProvider

        usa["yfinance"] = YfinanceProvider(**ways_of("yfinance"))
    if sources.files:
        from moot.modules.market_data.infrastructure.providers.files import FilesProvider

        own["files"] = FilesProvider(sources.files)
    return {Market.CN: china | own, Market.US: usa | own}
