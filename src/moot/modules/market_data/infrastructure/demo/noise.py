"""Random numbers that depend on their name alone.

The same key gives the same stream, a longer draw only appends. Philox's raw output is stable across numpy versions,
numpy's distributions are not: hence our own transforms. The slow tides under everything, the economy's and each
industry's, are monthly, around zero and of unit variance.
"""

import hashlib
import math

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def digest(*key: object) -> bytes:
    return hashlib.sha256("/".join(map(str, key)).encode()).digest()


def uniforms(count: int, *key: object) -> Array:
    """Uniform on the open interval (0, 1)."""
    stream = np.random.Philox(key=int.from_bytes(digest(*key)[:16], "little"))
    mantissas = stream.random_raw(count) >> np.uint64(11)
    return (mantissas.astype(np.float64) + 0.5) * 2.0**-53


def normals(count: int, *key: object) -> Array:
    """Standard normal, by Box and Muller."""
    u = uniforms(2 * count, *key).reshape(count, 2)
    radius: Array = np.sqrt(-2 * np.log(u[:, 0]))
    return radius * np.cos(2 * np.pi * u[:, 1])


def fat_tailed(count: int, *key: object) -> Array:
    """Student's t with four degrees of freedom, scaled to unit variance."""
    logs: Array = np.log(uniforms(2 * count, *key, "scale").reshape(count, 2))
    scale: Array = np.sqrt(-logs.sum(axis=1))
    return normals(count, *key) / scale


def wander(shocks: Array, memory: float) -> Array:
    """A stationary walk around zero with the variance of its shocks; `memory` is its lag-1 correlation."""
    fresh = math.sqrt(1 - memory**2)
    path: list[float] = shocks[:1].tolist()
    for shock in shocks[1:].tolist():
        path.append(memory * path[-1] + fresh * shock)
    return np.array(path)


MEMORY = 0.94  # month to month: a tide turns in about a year
COMMON = 0.5  # how much of an industry's tide is the economy's


def economy_tide(seed: int, months: int) -> Array:
    return wander(normals(months, seed, "economy"), MEMORY)


def industry_tide(seed: int, name: str, months: int) -> Array:
    own = wander(normals(months, seed, "industry", name), MEMORY)
    return COMMON * economy_tide(seed, months) + math.sqrt(1 - COMMON**2) * own
