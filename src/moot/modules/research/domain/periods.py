"""Reports compared over time. Flows are cumulative, so a quarter is only ever compared with itself a year before."""

from collections.abc import Sequence
from datetime import date

from moot.modules.research.domain.facts import Report

Quarter = tuple[int, int]

SHARES_CHANGED = 0.03
"""A share count that differs by more than this was changed; less is the rounding of per-share figures."""


def quarter_of(day: date) -> Quarter:
    return day.year, (day.month - 1) // 3 + 1


def quarter_name(day: date) -> str:
    year, quarter = quarter_of(day)
    return f"{year}Q{quarter}"


class Periods:
    """Reports by quarter; whatever a comparison lacks makes it None."""

    def __init__(self, reports: Sequence[Report]) -> None:
        self._by_quarter = {quarter_of(report.period_end): report for report in reports}

    def growth(self, report: Report, field: str) -> float | None:
        """Growth over the same quarter a year before, in per cent; from a base of zero or less there is none."""
        now, base = _figure(report, field), _figure(self._year_before(report), field)
        if now is None or base is None or base <= 0:
            return None
        return round(100 * (now / base - 1), 1)

    def revenue_growth(self, report: Report) -> float | None:
        """Growth of revenue per share; once the share count has changed, of revenue, so that an issue is no loss."""
        before = self._year_before(report)
        growth = self.growth(report, "total_revenue_ps")
        if growth is None or before is None or not report.shares or not before.shares:
            return growth
        shares = report.shares / before.shares
        return growth if abs(shares - 1) < SHARES_CHANGED else round((100 + growth) * shares - 100, 1)

    def change(self, report: Report, field: str) -> float | None:
        """The difference to the same quarter a year before, in the field's own unit."""
        now, base = _figure(report, field), _figure(self._year_before(report), field)
        return None if now is None or base is None else round(now - base, 2)

    def trailing_year(self, report: Report, field: str) -> float | None:
        """A flow over the last four quarters: this year so far, plus last year, less last year so far."""
        year, quarter = quarter_of(report.period_end)
        now = _figure(report, field)
        if quarter == 4:
            return now
        full = _figure(self._by_quarter.get((year - 1, 4)), field)
        part = _figure(self._year_before(report), field)
        return None if now is None or full is None or part is None else round(now + full - part, 4)

    def _year_before(self, report: Report) -> Report | None:
        year, quarter = quarter_of(report.period_end)
        return self._by_quarter.get((year - 1, quarter))


def annualised(report: Report, field: str) -> float | None:
    """A cumulative return as if the rest of the year went like the part reported."""
    value = _figure(report, field)
    return None if value is None else round(value * 4 / quarter_of(report.period_end)[1], 1)


def ratio(part: float | None, whole: float | None) -> float | None:
    return None if part is None or not whole else round(part / whole, 2)


def difference(a: float | None, b: float | None) -> float | None:
    return None if a is None or b is None else a - b


def positive(value: float | None) -> float | None:
    """A base that can be divided by without turning the meaning of the sign around."""
    return value if value is not None and value > 0 else None


def _figure(report: Report | None, field: str) -> float | None:
    value: float | None = getattr(report, field) if report else None
    return value
