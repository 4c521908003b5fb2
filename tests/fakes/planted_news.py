"""A market in whose news somebody has planted something."""

from collections.abc import Sequence
from datetime import date, datetime, timedelta
from typing import Any, TypeVar
from zlib import crc32

from pydantic import BaseModel

from moot.desk import Moot
from moot.modules.market_data.domain.facts import NEWS, Dataset
from moot.modules.market_data.domain.provider import Batch, MarketDataProvider
from moot.shared.domain.facts import NewsItem
from moot.shared.domain.symbol import Market

M = TypeVar("M", bound=BaseModel)


class PlantedNews:
    """`items` may be exchanged between two questions."""

    def __init__(self, source: MarketDataProvider) -> None:
        self._source, self.name = source, source.name
        self.items: Sequence[NewsItem] = ()

    async def read(
        self, dataset: Dataset[M], subject: str, start: date = date.min, end: date = date.max
    ) -> Batch[M]:
        found = await self._source.read(dataset, subject, start, end)
        if dataset.name != NEWS.name:
            return found
        planted: list[Any] = [
            item for item in self.items if dataset.covers(item.available_at, start, end, Market.DEMO)
        ]
        return Batch([*found, *planted])


def plant_in(desk: Moot) -> PlantedNews:
    sources = desk.market_data._sources
    planted = PlantedNews(sources[Market.DEMO])
    sources[Market.DEMO] = planted
    return planted


def a_headline(
    symbol: str, title: str, as_of: datetime, *, days_ago: int = 3, kind: str = "news"
) -> NewsItem:
    at = as_of - timedelta(days=days_ago)
    url = f"demo://planted/{crc32(title.encode())}/{days_ago}/{kind}"
    return NewsItem.model_validate(
        {
            "kind": kind,
            "title": title,
            "title_en": title,
            "url": url,
            "symbol": symbol,
            "event_time": at,
            "available_at": at,
            "source": "planted",
        }
    )
