"""One measured ratio."""

from typing import NamedTuple


class Line(NamedTuple):
    name: str
    ratio: float
    budget: float
    detail: str

    @property
    def within(self) -> bool:
        return self.ratio <= self.budget
