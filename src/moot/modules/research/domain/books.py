"""A company's books by quarter: the lines of its statements and what its reports tell, over windows that compare.

Flows run from the start of the year; here they are told of one quarter or of four, and a quarter is only compared
with itself a year before. What lacks makes it None.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence

from moot.modules.research.domain.facts import difference
from moot.shared.domain.facts import Filed, FinancialReport, Statement, quarter_of

FLOWS = frozenset(
    (
        *("revenue", "cost_of_sales", "selling_expense", "admin_expense", "research_expense"),
        *("finance_expense", "interest_expense", "operating_profit", "profit_before_tax", "income_tax"),
        *("net_profit", "net_profit_parent", "operating_cash", "investing_cash", "financing_cash"),
        *("capex", "depreciation", "cash_change"),
    )
)
LINES = tuple(name for name in Statement.model_fields if name not in (*Filed.model_fields, "shares"))
NIL_IF_BLANK = ("short_debt", "long_debt", "bonds", "minority_interest")
"""Lines that a balance sheet leaves out where there is nothing to tell."""

REPORTED = (
    *("net_profit", "eps", "total_revenue", "total_revenue_ps", "netprofit_margin"),
    *("n_cashflow_act", "ocfps", "roe_waa", "assets_turn"),
)

Column = Mapping[int, float]

SHARES_CHANGED = 0.03
"""A share count that differs by more than this was changed; less is the rounding of per-share figures."""


def quarter_number(filed: Filed) -> int:
    year, quarter = quarter_of(filed.period_end)
    return 4 * year + quarter - 1


def name_quarter(number: int) -> str:
    return f"{number // 4}Q{number % 4 + 1}"


def last_full_year(number: int) -> int:
    return number - (number + 1) % 4


class Quarters(ABC):
    """Lines by quarter."""

    @abstractmethod
    def at(self, line: str, quarter: int) -> float | None:
        """As told: a balance, or a flow from the start of the year."""

    def trailing(self, line: str, quarter: int) -> float | None:
        """A flow over four quarters: this year so far, plus last year, less last year so far."""
        now = self.at(line, quarter)
        if quarter % 4 == 3 or now is None:
            return now
        full, part = self.at(line, last_full_year(quarter)), self.at(line, quarter - 4)
        return None if full is None or part is None else now + full - part

    def growth(self, line: str, quarter: int) -> float | None:
        """Over the year before, in per cent."""
        return grow(self.at(line, quarter), self.at(line, quarter - 4))


class Books(Quarters):
    """Of reports and statements together. Beside the lines of statements, `sales` and `profit` are told alike in all
    quarters, by whatever tells most of them; `roe` and `turnover` are as reported. Profit is the shareholders' own;
    only where nothing tells that it is all there is, with the part of the `minorities`.
    """

    def __init__(self, reports: Sequence[FinancialReport], statements: Sequence[Statement]) -> None:
        told = {name: _column(statements, name) for name in (*LINES, "shares")}
        for name in NIL_IF_BLANK:
            told[name] = dict.fromkeys(told["total_liabilities"], 0.0) | told[name]
        known = {name: _column(reports, name) for name in REPORTED}
        shares = told["shares"] or {quarter_number(r): n for r in reports if (n := shares_of(r))}
        margin = {quarter: percent / 100 for quarter, percent in known["netprofit_margin"].items()}
        whole = told["net_profit"] or known["net_profit"]
        implied = {q: p / margin[q] for q, p in whole.items() if margin.get(q)}
        profit = [known["net_profit"], told["net_profit_parent"], _times(known["eps"], shares)]
        self.minorities = not any(profit)
        sales = [known["total_revenue"], told["revenue"], _times(known["total_revenue_ps"], shares), implied]
        cash = [told["operating_cash"], known["n_cashflow_act"], _times(known["ocfps"], shares)]
        self._columns: dict[str, Column] = {
            **told,
            "profit": _fullest(profit) or told["net_profit"],
            "sales": _fullest(sales),
            "cash_earned": _fullest(cash),
            "roe": known["roe_waa"],
            "turnover": known["assets_turn"],
            "shares": shares,
        }

    def at(self, line: str, quarter: int) -> float | None:
        return self._columns[line].get(quarter)

    def single(self, line: str, quarter: int) -> float | None:
        """A flow in one quarter."""
        now, before = self.at(line, quarter), self.at(line, quarter - 1) if quarter % 4 else 0.0
        return None if now is None or before is None else now - before

    def year(self, line: str, quarter: int) -> float | None:
        """As a year's accounts tell it: a flow over four quarters, a balance at their end."""
        return self.trailing(line, quarter) if line in FLOWS else self.at(line, quarter)

    def margin(self, quarter: int) -> float | None:
        """What was left of a hundred of sales over four quarters."""
        return percent_of(self.trailing("profit", quarter), self.trailing("sales", quarter))


def grow(now: float | None, base: float | None) -> float | None:
    """In per cent; from a base of zero or less there is no growth."""
    return None if now is None or base is None or base <= 0 else round(100 * (now / base - 1), 1)


def ratio(part: float | None, whole: float | None) -> float | None:
    return None if part is None or not whole else round(part / whole, 2)


def percent_of(part: float | None, whole: float | None) -> float | None:
    return None if part is None or not whole else round(100 * part / whole, 2)


def _column(filed: Iterable[FinancialReport] | Iterable[Statement], name: str) -> dict[int, float]:
    return {quarter_number(one): value for one in filed if (value := getattr(one, name)) is not None}


def _times(column: Column, shares: Column) -> Column:
    return {quarter: value * shares[quarter] for quarter, value in column.items() if quarter in shares}


def _fullest(columns: Iterable[Column]) -> Column:
    """One source for all quarters: what two tell of the same line is seldom the same number."""
    return max(columns, key=len)


class Periods(Quarters):
    """Of reports alone, rounded to what they tell."""

    def __init__(self, reports: Sequence[FinancialReport]) -> None:
        self._by_quarter = {quarter_number(report): report for report in reports}

    def at(self, line: str, quarter: int) -> float | None:
        report = self._by_quarter.get(quarter)
        value: float | None = getattr(report, line) if report else None
        return value

    def revenue_growth(self, quarter: int) -> float | None:
        """Growth of revenue per share; once the share count has changed, of revenue, so that an issue is no loss."""
        growth = self.growth("total_revenue_ps", quarter)
        reports = (self._by_quarter.get(one) for one in (quarter, quarter - 4))
        now, then = (report and shares_of(report) for report in reports)
        if growth is None or not now or not then:
            return growth
        shares = now / then
        return growth if abs(shares - 1) < SHARES_CHANGED else round((100 + growth) * shares - 100, 1)

    def change(self, line: str, quarter: int) -> float | None:
        """In the line's own unit."""
        changed = difference(self.at(line, quarter), self.at(line, quarter - 4))
        return None if changed is None else round(changed, 2)

    def trailing(self, line: str, quarter: int) -> float | None:
        told = super().trailing(line, quarter)
        return told if told is None or quarter == last_full_year(quarter) else round(told, 4)

    def annualise(self, line: str, quarter: int) -> float | None:
        """A cumulative return as if the rest of the year went like the part reported."""
        value = self.at(line, quarter)
        return None if value is None else round(value * 4 / (quarter % 4 + 1), 1)


def shares_of(report: FinancialReport) -> float | None:
    """The share count, told by free cash flow being reported both ways; None where that is too coarse."""
    if report.fcff is None or report.fcff_ps is None or abs(report.fcff_ps) < 0.01:
        return None
    return report.fcff / report.fcff_ps
