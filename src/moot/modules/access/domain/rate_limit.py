"""How often one may ask: buckets of tokens that fill up again while nobody asks.

Whoever has a key asks as often as its bucket allows. Whoever has none shares a bucket with their address.
"""

import ipaddress
from collections import OrderedDict
from dataclasses import dataclass

REQUESTS_A_MINUTE = 600
ATTEMPTS_A_MINUTE = 60
PATIENCE = 5.0
"""Seconds an attempt waits for its token before it is sent away."""
REMEMBERED = 10_000
"""So many keys or addresses; who has many more to ask from has not one key more to find."""


@dataclass
class Bucket:
    """Times are seconds of a clock that never goes back."""

    per_minute: int
    filled_at: float
    tokens: float

    def take(self, now: float, patience: float = 0.0) -> float:
        """Seconds until there is a token. It is taken, or reserved, unless they are more than `patience`."""
        per_second = self.per_minute / 60
        self.tokens = min(self.per_minute, self.tokens + (now - self.filled_at) * per_second)
        self.filled_at = now
        wait = max(0.0, (1 - self.tokens) / per_second)
        if wait <= patience:
            self.tokens -= 1
        return wait

    def give_back(self) -> None:
        self.tokens += 1


class Buckets:
    """One for each key, or each address that came without a key that is known; those heard last are kept."""

    def __init__(self, per_minute: int) -> None:
        self._per_minute = per_minute
        self._buckets: OrderedDict[str, Bucket] = OrderedDict()

    def __len__(self) -> int:
        return len(self._buckets)

    def of(self, name: str, now: float) -> Bucket:
        bucket = self._buckets.setdefault(name, Bucket(self._per_minute, now, self._per_minute))
        self._buckets.move_to_end(name)
        if len(self._buckets) > REMEMBERED:
            self._buckets.popitem(last=False)
        return bucket


def network_of(address: str) -> str:
    """One customer of an IPv6 provider has at least 2^64 addresses: they count as one."""
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return address
    return address if parsed.version == 4 else str(ipaddress.ip_network((parsed.packed, 64), strict=False))
