"""The rows of a file of the lake, and the facts they were."""

import threading
from bisect import bisect_left, bisect_right
from datetime import date
from typing import Any

import polars as pl

from moot.modules.market_data.application.columns import facts_of
from moot.modules.market_data.domain.facts import Dataset
from moot.shared.domain.symbol import TIME_ZONES, Market


class HeldRows:
    """The rows of a file in the order of their days, as the lake sorts them. Each becomes a fact once, when days
    around it are asked for."""

    def __init__(self, dataset: Dataset[Any], rows: pl.DataFrame, market: Market) -> None:
        self._model, self._rows = dataset.model, rows
        self._days = [] if dataset.whole else _days_in(rows[dataset.day], market)
        self._whole, self._first = dataset.whole, 0
        self._facts: list[Any] = []
        self._making = threading.Lock()

    def count_unmade(self, start: date, end: date) -> int:
        """How many rows have to become facts for what is asked."""
        first, last = self._find(start, end)
        before, after = self._first - first, last - self._first - len(self._facts)
        return max(before, 0) + max(after, 0) if self._facts else last - first

    def read(self, start: date, end: date) -> list[Any]:
        """What `Dataset.covers` says, for all rows."""
        first, last = self._find(start, end)
        if first >= last:
            return []
        with self._making:
            begin = self._first if self._facts else first
            done = begin + len(self._facts)
            before, after = self._rows[min(first, begin) : begin], self._rows[done : max(last, done)]
            if before.height or after.height:
                made = (*facts_of(self._model, before), *self._facts, *facts_of(self._model, after))
                self._facts, self._first = list(made), min(first, begin)
            return self._facts[first - self._first : last - self._first]

    def _find(self, start: date, end: date) -> tuple[int, int]:
        if self._whole:
            return 0, self._rows.height
        return bisect_left(self._days, start), bisect_right(self._days, end)


def _days_in(days: pl.Series, market: Market) -> list[date]:
    """The exchange's."""
    if days.dtype != pl.Date:
        days = days.dt.convert_time_zone(TIME_ZONES[market].key).dt.date()
    return days.to_list()
