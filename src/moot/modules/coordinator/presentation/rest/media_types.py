"""Which form of an answer a client prefers, as its `Accept` header says (RFC 9110, 12.5.1)."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple


class Range(NamedTuple):
    """`text/html`, `text/*` or `*/*`, and how much it is wanted: 0 is not at all."""

    kind: str
    quality: float

    @property
    def precision(self) -> int:
        return 2 - self.kind.count("*")

    def covers(self, media_type: str) -> bool:
        return self.kind in (media_type, f"{media_type.partition('/')[0]}/*", "*/*")


def preferred(accept: str | None, offered: Sequence[str]) -> str | None:
    """The type wanted most; among equals what was named more precisely, then what is offered first."""
    ranges = list(_ranges(accept)) or [Range("*/*", 1.0)]

    def wanted(media_type: str) -> tuple[float, int]:
        covering = [part for part in ranges if part.covers(media_type)]
        best = max(covering, key=lambda part: part.precision, default=Range("", 0.0))
        return best.quality, best.precision

    favourite = max(offered, key=wanted)
    return favourite if wanted(favourite)[0] > 0 else None


def _ranges(accept: str | None) -> Iterator[Range]:
    for part in (accept or "").lower().split(","):
        kind, *parameters = (piece.strip() for piece in part.split(";"))
        if kind:
            yield Range(kind, _quality(parameters))


def _quality(parameters: Sequence[str]) -> float:
    for parameter in parameters:
        name, _, value = parameter.partition("=")
        if name.strip() == "q":
            return _number(value)
    return 1.0


def _number(text: str) -> float:
    try:
        return min(max(float(text), 0.0), 1.0)
    except ValueError:
        return 0.0
