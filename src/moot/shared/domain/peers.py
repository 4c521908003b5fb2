"""A company among the others of its industry at a moment, everybody measured alike."""

from datetime import datetime

from pydantic import BaseModel

from moot.shared.domain.facts import Percent


class Peer(BaseModel, frozen=True):
    """None is what was not known, or too old. Growth is that of the newest report over the same period a year before,
    both in the version known then; returns are those of adjusted closes over so many months."""

    symbol: str
    name: str
    pe_ttm: float | None = None
    pb: float | None = None
    ps_ttm: float | None = None
    dv_ratio: Percent | None = None
    total_mv: float | None = None
    revenue_yoy: Percent | None = None
    profit_yoy: Percent | None = None
    return_1m: Percent | None = None
    return_3m: Percent | None = None
    return_6m: Percent | None = None
    return_12m: Percent | None = None


class Place(BaseModel, frozen=True):
    """`count` of the peers had the value; `percentile` of them lie below the company's own, equals by half."""

    count: int
    median: float | None = None
    percentile: Percent | None = None


class CrossSection(BaseModel, frozen=True):
    """`peers` are the others of the industry, by symbol; `places` are by measure."""

    industry: str
    as_of: datetime
    own: Peer
    peers: tuple[Peer, ...]
    places: dict[str, Place]
