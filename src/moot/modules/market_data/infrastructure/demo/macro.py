"""Monthly macro figures: each moves around a level, partly with the economy, and is released by its own timetable."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, timedelta

from moot.modules.market_data.domain.facts import MacroObservation
from moot.modules.market_data.infrastructure.demo import noise
from moot.modules.market_data.infrastructure.demo.companies import Industry, industries

FIRST_PERIOD = date(2017, 1, 1)


@dataclass(frozen=True)
class Series:
    """A month's figure comes out in the month itself or the next, on one of `days`, at a time of day."""

    name: str
    unit: str
    level: float
    swing: float
    memory: float
    with_economy: float  # correlation
    step: float  # published to multiples of it
    next_month: bool
    days: tuple[int, int]
    at: tuple[int, int]


SERIES = (
    Series("pmi_manufacturing", "index", 50.4, 1.1, 0.80, 0.8, 0.1, False, (31, 31), (9, 30)),
    Series("cpi_yoy", "%", 1.7, 0.9, 0.92, 0.4, 0.1, True, (9, 11), (9, 30)),
    Series("ppi_yoy", "%", 0.9, 3.2, 0.95, 0.6, 0.1, True, (9, 11), (9, 30)),
    Series("m2_yoy", "%", 8.8, 1.0, 0.94, -0.3, 0.1, True, (11, 13), (16, 0)),
    Series("lpr_1y", "%", 3.75, 0.3, 0.985, 0.2, 0.05, False, (20, 20), (9, 15)),
    Series("cgb_10y", "%", 2.75, 0.35, 0.96, 0.3, 0.01, True, (1, 1), (17, 30)),
)
PROSPERITY = Series("industry_prosperity", "index", 50.0, 5.0, 0.0, 1.0, 0.1, True, (14, 16), (10, 0))


def macro_observations(seed: int, until: date) -> list[MacroObservation]:
    """Every figure for the months up to `until`, oldest month first."""
    periods = noise.months(until)
    economy = noise.economy_tide(seed, len(periods))
    found = [o for series in SERIES for o in _observations(seed, series, economy, periods)]
    for industry in industries():
        tide = noise.industry_tide(seed, industry.name, len(periods))
        found += _observations(seed, PROSPERITY, tide, periods, industry)
    return sorted(found, key=lambda o: (o.period, o.available_at, o.series, o.industry or ""))


def _observations(
    seed: int, series: Series, tide: noise.Array, periods: list[date], industry: Industry | None = None
) -> Iterator[MacroObservation]:
    own = noise.wander(noise.normals(len(periods), seed, series.name), series.memory)
    moved = series.with_economy * tide + math.sqrt(1 - series.with_economy**2) * own
    values = series.level + series.swing * moved
    picks = noise.uniforms(len(periods), seed, "release", *series.days)
    place = f"{series.name}/{industry.slug}" if industry else series.name
    for period, value, pick in zip(periods, values.tolist(), picks.tolist(), strict=True):
        if period < FIRST_PERIOD:
            continue
        released = noise.moment(_release_day(series, period, pick), *series.at)
        yield MacroObservation(
            series=series.name,
            period=period,
            value=round(round(value / series.step) * series.step, 2),
            unit=series.unit,
            url=f"demo://macro/{place}/{period:%Y-%m}",
            industry=industry.name if industry else None,
            event_time=min(released, noise.moment(noise.month_end(period), 0)),
            available_at=released,
            source=noise.SOURCE,
        )


def _release_day(series: Series, period: date, pick: float) -> date:
    month = noise.month_end(period) + timedelta(days=1) if series.next_month else period
    first, last = series.days
    return month.replace(day=min(first + int(pick * (last - first + 1)), noise.month_end(month).day))
