"""The rows of a file of the lake, and the facts they were."""

import threading
from bisect import bisect_left, bisect_right
from collections.abc import Callable
from datetime import date
from typing import Any

import polars as pl

from moot.modules.market_data.application.columns import facts_of
from moot.modules.market_data.domain.facts import Dataset
from moot.shared.domain.symbol import TIME_ZONES, Market


class HeldRows:
    """The rows of a file in the order of their days, as the lake sorts them, loaded when they are first read. Each
    becomes a fact once, when days around it are asked for."""

    def __init__(self, dataset: Dataset[Any], load: Callable[[], pl.DataFrame], market: Market) -> None:
        self._dataset, self._load, self._market = dataset, load, market
        self._rows, self._days = pl.DataFrame(), list[date]()
        self._facts, self._first = list[Any](), 0
        self._making = threading.Lock()
        self.loaded = False

    def count_unmade(self, start: date, end: date) -> int:
        """How many rows have to become facts for what is asked."""
        first, last = self._find(start, end)
        before, after = self._first - first, last - self._first - len(self._facts)
        return max(before, 0) + max(after, 0) if self._facts else last - first

    def read(self, start: date, end: date) -> list[Any]:
        """What `Dataset.covers` says, for all rows."""
        with self._making:
            if not self.loaded:
                self._lay_out(self._load())
            first, last = self._find(start, end)
            if first >= last:
                return []
            begin = self._first if self._facts else first
            done = begin + len(self._facts)
            before, after = self._rows[min(first, begin) : begin], self._rows[done : max(last, done)]
            if before.height or after.height:
                model = self._dataset.model
                self._facts = [*facts_of(model, before), *self._facts, *facts_of(model, after)]
                self._first = min(first, begin)
            return self._facts[first - self._first : last - self._first]

    def _find(self, start: date, end: date) -> tuple[int, int]:
        if self._dataset.whole:
            return 0, self._rows.height
        return bisect_left(self._days, start), bisect_right(self._days, end)

    def _lay_out(self, rows: pl.DataFrame) -> None:
        """Days are the exchange's."""
        if not self._dataset.whole:
            days = rows[self._dataset.day]
            if days.dtype != pl.Date:
                days = days.dt.convert_time_zone(TIME_ZONES[self._market].key).dt.date()
            self._days = days.to_list()
        self._rows, self.loaded = rows, True
