"""The slow tides under everything, the economy's and each industry's: monthly, around zero, of unit variance."""

import math

from moot.modules.market_data.infrastructure.demo.noise import Array, normals, wander

MEMORY = 0.94  # month to month: a tide turns in about a year
COMMON = 0.5  # how much of an industry's tide is the economy's


def economy(seed: int, months: int) -> Array:
    return wander(normals(months, seed, "economy"), MEMORY)


def industry(seed: int, name: str, months: int) -> Array:
    own = wander(normals(months, seed, "industry", name), MEMORY)
    return COMMON * economy(seed, months) + math.sqrt(1 - COMMON**2) * own


def by_quarter(monthly: Array) -> Array:
    """The mean of each three months; there must be whole quarters of them."""
    first, second, third = monthly.reshape(-1, 3).T
    return (first + second + third) / 3
