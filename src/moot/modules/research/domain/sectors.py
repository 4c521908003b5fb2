"""What kind of business an industry is in: whose books read otherwise, whose profits swing, what it is exposed to.

One table for all experts (`sectors.toml`); never a line for one company.
"""

import tomllib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Literal

from pydantic import BaseModel

Trade = Literal["bank", "insurer", "broker", "company"]
Factor = Literal["rates", "credit", "prices", "demand", "policy"]


class Sector(BaseModel, frozen=True, extra="forbid"):
    """`trade`: whose accounts it keeps. `cyclical`: one good year says little about the next. `manufacturer`: all of
    its industries make goods. `exposure`, from -1 to 1: what lower rates, easier credit, higher producer prices,
    stronger demand and a helping policy do to it.
    """

    name: str
    trade: Trade = "company"
    cyclical: bool = False
    manufacturer: bool = False
    exposure: Mapping[Factor, float] = {}
    industries: tuple[str, ...] = ()


UNKNOWN = Sector(
    name="other", exposure={"rates": 0.25, "credit": 0.25, "prices": 0.0, "demand": 0.5, "policy": 0.5}
)
"""As the market as a whole."""


@cache
def load_sectors() -> Mapping[str, Sector]:
    """By industry, as the sources of a market call it."""
    tables = tomllib.loads((Path(__file__).parent / "sectors.toml").read_text("utf-8"))
    sectors = [Sector(name=name, **table) for name, table in tables.items()]
    return {industry: sector for sector in sectors for industry in sector.industries}


def sector_of(industry: str) -> Sector:
    return load_sectors().get(industry, UNKNOWN)
