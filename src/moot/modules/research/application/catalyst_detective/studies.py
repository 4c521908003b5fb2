"""What a share did after events: after its last report, and after all earlier ones of a kind."""

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from datetime import date, datetime
from itertools import pairwise
from math import sqrt
from statistics import stdev
from typing import Any

from moot.modules.research.application.catalyst_detective.disclosed import Disclosed, Occurrence
from moot.modules.research.domain.event_study import Study, add_up_abnormal, measure_after, study
from moot.modules.research.domain.events import WINDOW_DAYS, Event, sort_news
from moot.modules.research.domain.facts import Case
from moot.shared.domain.facts import DailyBar, FinancialReport, IndexBar, NewsItem

REACTION_SESSIONS, MONTH, YEAR = 3, 20, 250


class Tape:
    """The sessions of a share, beside the index of its market where there is one."""

    def __init__(self, found: Disclosed) -> None:
        levels = _pick_index(found.of(IndexBar))
        bars = [bar for bar in found.of(DailyBar) if not levels or bar.trade_date in levels]
        self._known = [bar.available_at for bar in bars]
        self.adjusted = bool(levels)
        market = [levels[bar.trade_date] for bar in bars] if levels else []
        self.sums = add_up_abnormal([bar.close * bar.adj_factor for bar in bars], market)

    def start(self, at: datetime) -> int:
        """The last session that was over then; -1 before the first."""
        return bisect_right(self._known, at) - 1

    def react(self, at: datetime) -> dict[str, float]:
        """What the first sessions after made of it, in per cent and against the usual swing of the year before."""
        start, end = self.start(at), self.start(at) + REACTION_SESSIONS
        year = self.sums[max(0, start - YEAR) : start + 1]
        if end >= len(self.sums) or len(year) <= MONTH:
            return {}
        moved, usual = self.sums[end] - self.sums[start], stdev(b - a for a, b in pairwise(year))
        swing = usual * sqrt(REACTION_SESSIONS)
        return {"reaction_3d": round(moved, 2), "reaction_times": round(moved / swing, 2)} if swing else {}


def _pick_index(bars: Sequence[IndexBar]) -> dict[date, float]:
    """Of those of the whole market the first by code."""
    code = min((bar.index for bar in bars if bar.industry is None), default=None)
    return {bar.trade_date: bar.close for bar in bars if bar.index == code}


def date_kinds(occurrences: Iterable[Occurrence], told: Iterable[NewsItem]) -> dict[str, list[datetime]]:
    """By kind, when each event about the company itself was known, in figures or by a headline."""
    known = [(one.category, one.at) for one in occurrences]
    known += [(category.id, item.available_at) for item, category in sort_news(n for n in told if n.symbol)]
    moments: dict[str, list[datetime]] = {}
    for category, at in sorted(known, key=lambda one: one[1]):
        moments.setdefault(category, []).append(at)
    return moments


def make_studies(
    events: Sequence[Event], moments: Mapping[str, Sequence[datetime]], tape: Tape
) -> list[Study]:
    """One for each kind that there is now, of those before the newest."""
    horizons = {event.category: event.horizon for event in events if event.points}
    return [
        study(category, horizon, measure_after(tape.sums, map(tape.start, before), horizon))
        for category, horizon in horizons.items()
        if tape.sums[1:] and (before := moments.get(category, ())[:-1])
    ]


def measure_reaction(found: Disclosed, tape: Tape, case: Case) -> dict[str, Any]:
    """To the last report, if that is not long ago."""
    told: dict[str, Any] = {"adjusted": tape.adjusted}
    if newest := found.newest(FinancialReport):
        day = case.symbol.local_date(newest.available_at)
        if (case.today - day).days <= WINDOW_DAYS:
            told |= {"reported_on": day, "reported": newest.period_end} | tape.react(newest.available_at)
    return told
