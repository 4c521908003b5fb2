"""How often a key may ask: a bucket of tokens that fills up again while nobody asks."""

from dataclasses import dataclass

REQUESTS_A_MINUTE = 600
PER_SECOND = REQUESTS_A_MINUTE / 60


@dataclass
class Bucket:
    """Times are seconds of a clock that never goes back."""

    filled_at: float
    tokens: float = REQUESTS_A_MINUTE

    def take(self, now: float) -> float:
        """0: a token was taken; otherwise the seconds until there is one."""
        self.tokens = min(REQUESTS_A_MINUTE, self.tokens + (now - self.filled_at) * PER_SECOND)
        self.filled_at = now
        if self.tokens < 1:
            return (1 - self.tokens) / PER_SECOND
        self.tokens -= 1
        return 0.0
