"""What the valuation modeler sees: multiples beside their past and their industry, what models make of the share, and
what they assume.
"""

from datetime import date
from typing import Annotated, Literal

from moot.modules.research.domain.evidence import Counted, Snapshot
from moot.modules.research.domain.facts import positive
from moot.shared.domain import units

FEWEST_SESSIONS = 250
"""A year of them: a rank among fewer is told as such and counts half, and their median is no usual multiple."""
FEWEST_YEARS = 3
"""Full years of returns that a cycle, or what a company has shown, can be told by."""
WIDEST = 3.0
"""A range whose upper end is more than so many times the lower is none."""

Assumed = Literal["risk_free", "payout"]
Years = Annotated[float | None, units.Unit("plain", "years", 1)]
Prices = Annotated[list[float], units.PRICE]
Shares = Annotated[float | None, units.Unit("shares", "shares", 2)]


class ValuationSnapshot(Snapshot):
    """Ranks and medians are of the days since `history_start` that had the multiple: so many `sessions`; those among
    peers, of the others of the industry that had it.

    `residual_` is what residual income makes of the share at `residual_roe`, which for a `cyclical` company is the
    median of its full years since `roe_from`; `residual_table` is by cost of equity and years of fading, as
    `residual_cases` name them. `implied_roe` is what the price assumes, `implied_growth` how fast the book would
    grow by it at first. `assumed` names what was not known and was taken as usual.

    `implausible` names reported fields that were out of all bounds and were therefore left out. `rebased` says that
    per-share figures were brought onto `shares_now` from `shares_then`, the count on `shares_since`; `unmatched`,
    that they did not fit the market's multiples for another reason and were taken from these.
    """

    stock_name: str
    stock_code: str
    current_date: date
    industry: str
    cyclical: bool
    report_period: date
    history_start: date
    history_years: Years
    current_price: Annotated[float, units.PRICE]
    total_mv: units.HundredMillion
    pe_ttm: units.Times
    pe_percentile: units.Rank
    pe_median: units.Times
    pe_sessions: units.Sessions
    pb: units.Times
    pb_percentile: units.Rank
    pb_median: units.Times
    pb_sessions: units.Sessions
    ps_ttm: units.Times
    ps_percentile: units.Rank
    ps_median: units.Times
    ps_sessions: units.Sessions
    peer_pe_percentile: units.Rank = None
    peer_pe_median: units.Times = None
    peer_pe_count: Counted = None
    peer_pb_percentile: units.Rank = None
    peer_pb_median: units.Times = None
    peer_pb_count: Counted = None
    peer_ps_percentile: units.Rank = None
    peer_ps_median: units.Times = None
    peer_ps_count: Counted = None
    profit_yoy: units.Percent = None
    peer_growth_percentile: units.Rank = None
    peer_growth_median: units.Percent = None
    peer_growth_count: Counted = None
    dv_ratio: units.Percent
    roe: units.Percent
    roe_ttm: units.Percent
    gros_profit_margin: units.Percent
    gross_margin_change: units.Points
    gross_margin_trend: str
    net_profit_margin: units.Percent
    debt_to_assets: units.Percent
    eps_ttm: units.Price
    bps: units.Price
    growth_rate_avg: units.Percent
    growth_periods: units.Count
    peg_ratio: units.Ratio
    graham_intrinsic_val: units.Price
    graham_safety_margin: units.Percent
    pe_implied_value: units.Price
    pb_implied_value: units.Price
    risk_free: units.Rate
    equity_premium: units.Percent
    cost_of_equity: units.Rate
    payout: units.Percent
    fade_years: Annotated[int, units.Unit("plain", "years", 0)]
    assumed: list[Assumed]
    roe_years: units.Count
    roe_from: date | None
    roe_until: date | None
    roe_middle: units.Percent
    roe_worst: units.Percent
    roe_best: units.Percent
    residual_roe: units.Percent = None
    residual_value: units.Price = None
    residual_margin: units.Percent = None
    residual_table: Prices
    residual_cases: list[str]
    residual_low: units.Price = None
    residual_high: units.Price = None
    implied_roe: units.Percent = None
    implied_growth: units.Percent = None
    mid_cycle_pe: units.Times = None
    value_low: units.Price = None
    value_high: units.Price = None
    shares_since: date
    shares_then: Shares
    shares_now: Shares
    rebased: bool
    unmatched: bool
    implausible: list[str]

    @property
    def nearest_shown(self) -> float | None:
        """The return on equity nearest to the one the price assumes that full years have shown."""
        roe, worst, best = self.implied_roe, self.roe_worst, self.roe_best
        if roe is None or worst is None or best is None or self.roe_years < FEWEST_YEARS:
            return None
        return min(max(roe, worst), best)

    @property
    def earning_pe(self) -> float | None:
        return positive(self.pe_ttm)

    def has_short_past(self, multiple: str) -> bool:
        """Whether its rank is among fewer sessions than a year has."""
        sessions: int = getattr(self, f"{multiple}_sessions")
        return sessions < FEWEST_SESSIONS

    @property
    def why_no_value(self) -> str:
        """What residual income lacks, where it makes nothing of the share."""
        if self.pb is None or self.pb <= 0 or (self.pe_ttm is None and not self.cyclical):
            return "unknown"
        if not self.cyclical:
            return "loss"
        return "few_years" if self.roe_years < FEWEST_YEARS else "poor_cycle"

    @property
    def is_known(self) -> bool:
        """Whether the models agree well enough for what they say to be a range."""
        low, high = self.value_low, self.value_high
        return low is not None and high is not None and high <= WIDEST * low
