"""The valuation modeler: what the market pays, used to pay, and what simple models would; whether a price is low, and
deserves to be.

What the data do not allow is None: a loss has no PE rank, a shrinking profit no PEG.
"""

from collections.abc import Mapping, Sequence
from datetime import date, datetime, timedelta
from math import sqrt
from pathlib import Path
from statistics import fmean, median
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field

from moot.modules.research.application.expert_service import Answer, ExpertService
from moot.modules.research.domain.evidence import Confidence, ExpertResult, Snapshot, cite
from moot.modules.research.domain.facts import COMMON, Case, Periods, annualise
from moot.modules.research.domain.rubric import Scorecard, Voice
from moot.shared.domain import units
from moot.shared.domain.experts import ExpertType
from moot.shared.domain.facts import DailyValuation, FinancialReport
from moot.shared.domain.messages import Catalogue, Locale

FOLDER = Path(__file__).parent
SAY = Catalogue(COMMON, FOLDER)
MIN_VALID_HISTORY = 60
GROWTH_PERIODS = 4
GRAHAM_FACTOR = 22.5
SHARE_BASIS_TOLERANCE = 0.05
"""How far a reported per-share figure may be from the one the market's multiple implies."""

PLAUSIBLE: Mapping[str, tuple[float, float]] = {
    "gross_margin": (-100, 100),
    "roe_waa": (-500, 500),
    "netprofit_margin": (-1000, 1000),
    "debt_to_assets": (0, 300),
}

ValuationVerdict = Literal["Undervalued", "Fair", "Overvalued"]


class ValuationSnapshot(Snapshot):
    """Ranks and medians are of the days since `history_start`.

    `implausible` names reported fields that were out of all bounds and were therefore left out; `rebased` says that
    per-share figures did not fit today's share count and were brought onto it.
    """

    stock_name: str
    stock_code: str
    current_date: date
    industry: str
    report_period: date
    history_start: date
    current_price: Annotated[float, units.PRICE]
    total_mv: units.HundredMillion
    pe_ttm: units.Times
    pe_percentile: units.Rank
    pe_median: units.Times
    pb: units.Times
    pb_percentile: units.Rank
    pb_median: units.Times
    ps_ttm: units.Times
    ps_percentile: units.Rank
    dv_ratio: units.Percent
    roe: units.Percent
    roe_annualised: units.Percent
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
    rebased: bool
    implausible: list[str]

    @property
    def leverage(self) -> float | None:
        """Books without a gross margin are a bank's or an insurer's: its debts are its trade."""
        return None if self.gros_profit_margin is None else self.debt_to_assets


FROM_REPORTS = (
    *("roe", "roe_annualised", "gros_profit_margin", "gross_margin_change", "net_profit_margin"),
    *("debt_to_assets", "eps_ttm", "bps", "growth_rate_avg", "growth_periods"),
)


class IntrinsicValueRange(BaseModel, frozen=True):
    lower_bound: str
    upper_bound: str


class ValuationResult(ExpertResult):
    """`reasoning_summary` says whether a low price is an opportunity or a trap."""

    valuation_verdict: ValuationVerdict
    confidence_score: Confidence
    estimated_intrinsic_value_range: IntrinsicValueRange
    key_evidence: list[str] = Field(min_length=1)
    risk_factors: list[str] = Field(min_length=1)
    reasoning_summary: str


def margin_trend(change: float | None, locale: Locale) -> str:
    if change is None:
        return SAY("not_available").in_locale(locale)
    size = round(change, 1)
    direction = "flat" if size == 0 else "up" if size > 0 else "down"
    return SAY(f"margin.{direction}", change=f"{abs(size):.1f}").in_locale(locale)


def valuation_snapshot(
    case: Case, history: Sequence[DailyValuation], reports: Sequence[FinancialReport]
) -> ValuationSnapshot:
    """`history` is oldest first and ends today; `reports` are newest first."""
    today, latest = history[-1], reports[0]
    return ValuationSnapshot(
        stock_name=case.stock_name,
        stock_code=case.company.symbol,
        current_date=case.today,
        industry=case.industry,
        report_period=latest.period_end,
        history_start=history[0].trade_date,
        current_price=today.close,
        total_mv=round(today.total_mv / 1e8, 2),
        **{name: getattr(today, name) for name in ("pe_ttm", "pb", "ps_ttm", "dv_ratio")},
        pe_percentile=percentile(today.pe_ttm, [day.pe_ttm for day in history]),
        pb_percentile=percentile(today.pb, [day.pb for day in history]),
        ps_percentile=percentile(today.ps_ttm, [day.ps_ttm for day in history]),
        **_quality(reports, case.locale),
        **_models(today, history, reports),
    )


def _quality(reports: Sequence[FinancialReport], locale: Locale) -> dict[str, Any]:
    implausible = sorted({name for report in reports for name in PLAUSIBLE if not _plausible(report, name)})
    cleaned = [_clean(report) for report in reports]
    latest = cleaned[0]
    change = None if "gross_margin" in implausible else Periods(cleaned).change(latest, "gross_margin")
    return {
        "roe": latest.roe_waa,
        "roe_annualised": annualise(latest, "roe_waa"),
        "gros_profit_margin": latest.gross_margin,
        "gross_margin_change": change,
        "gross_margin_trend": margin_trend(change, locale),
        "net_profit_margin": latest.netprofit_margin,
        "debt_to_assets": latest.debt_to_assets,
        "implausible": implausible,
    }


def _models(
    today: DailyValuation, history: Sequence[DailyValuation], reports: Sequence[FinancialReport]
) -> dict[str, Any]:
    reported_eps, reported_bps = Periods(reports).trailing_year(reports[0], "eps"), reports[0].bps
    eps = on_todays_shares(reported_eps, today.close, today.pe_ttm)
    bps = on_todays_shares(reported_bps, today.close, today.pb)
    growth, periods = growth_average(reports)
    graham = graham_value(eps, bps)
    pe_median, pb_median = (find_usual([getattr(day, name) for day in history]) for name in ("pe_ttm", "pb"))
    return {
        "eps_ttm": None if eps is None else round(eps, 4),
        "bps": bps,
        "rebased": (eps, bps) != (reported_eps, reported_bps),
        "growth_rate_avg": growth,
        "growth_periods": periods,
        "peg_ratio": peg(today.pe_ttm, growth),
        "graham_intrinsic_val": graham,
        "graham_safety_margin": safety_margin(graham, today.close),
        "pe_median": pe_median,
        "pb_median": pb_median,
        "pe_implied_value": implied_value(today.close, today.pe_ttm, pe_median),
        "pb_implied_value": implied_value(today.close, today.pb, pb_median),
    }


def _plausible(report: FinancialReport, name: str) -> bool:
    value, (low, high) = getattr(report, name), PLAUSIBLE[name]
    return value is None or low <= value <= high


def _clean(report: FinancialReport) -> FinancialReport:
    return report.model_copy(update={name: None for name in PLAUSIBLE if not _plausible(report, name)})


def percentile(current: float | None, history: Sequence[float | None]) -> int | None:
    """The share of past days that were no dearer, in per cent; loss years and short histories have none."""
    valid = _valid(history)
    if current is None or current <= 0 or len(valid) < MIN_VALID_HISTORY:
        return None
    return round(100 * sum(value <= current for value in valid) / len(valid))


def find_usual(history: Sequence[float | None]) -> float | None:
    valid = _valid(history)
    return round(median(valid), 2) if len(valid) >= MIN_VALID_HISTORY else None


def implied_value(price: float, multiple: float | None, usual: float | None) -> float | None:
    """What the share would cost at its usual multiple."""
    return round(price * usual / multiple, 2) if multiple and usual and multiple > 0 else None


def peg(pe: float | None, growth: float | None) -> float | None:
    return round(pe / growth, 2) if pe and growth and pe > 0 and growth > 0 else None


def growth_average(reports: Sequence[FinancialReport]) -> tuple[float | None, int]:
    """The mean year-on-year growth of deducted profit over the last four periods, and how many of them had one."""
    periods = Periods(reports)
    rates = [rate for r in reports[:GROWTH_PERIODS] if (rate := periods.growth(r, "profit_dedt")) is not None]
    return (round(fmean(rates), 1), len(rates)) if rates else (None, 0)


def graham_value(eps: float | None, bps: float | None) -> float | None:
    return round(sqrt(GRAHAM_FACTOR * eps * bps), 2) if eps and bps and eps > 0 and bps > 0 else None


def safety_margin(value: float | None, price: float) -> float | None:
    """How far the value lies above the price, in per cent of the price; positive is cheap."""
    return None if value is None else round(100 * (value - price) / price, 1)


def on_todays_shares(reported: float | None, price: float, multiple: float | None) -> float | None:
    """A per-share figure on today's share count: after a bonus issue, what the market's multiple implies."""
    if not reported or not multiple:
        return reported
    implied = price / multiple
    return reported if abs(reported / implied - 1) <= SHARE_BASIS_TOLERANCE else round(implied, 4)


def _valid(history: Sequence[float | None]) -> list[float]:
    return [value for value in history if value is not None and value > 0]


HISTORY_DAYS = 3 * 365
FINANCE_PERIODS = 8
GLOSSED = {
    f"{verdict}{gloss}": verdict
    for verdict, chinese in (("Undervalued", "低估"), ("Fair", "合理"), ("Overvalued", "高估"))
    for gloss in (f" ({chinese})", f"({chinese})", f"（{chinese}）", f" （{chinese}）")
}

CHEAP_AT = 0.25
POOR_AT = -0.3
MOST_EVIDENCE = 6

Situation = Literal["opportunity", "trap", "fair", "overvalued", "above", "below"]
VERDICTS: dict[Situation, ValuationVerdict] = {"opportunity": "Undervalued", "overvalued": "Overvalued"}


def case_for(price: float, quality: float) -> Situation:
    """A low price with poor quality is a trap, and a trap is not cheap."""
    if price >= CHEAP_AT:
        return "trap" if quality <= POOR_AT else "opportunity"
    return "overvalued" if price <= -CHEAP_AT else "fair"


def against_models(case: Situation, price: float, worth: Sequence[float]) -> Situation:
    """What is dearer than every model says is no bargain nor fair, what is cheaper than every model not dear."""
    if worth and case != "overvalued" and price > worth[-1]:
        return "above"
    return "below" if worth and case in ("overvalued", "fair") and price < worth[0] else case


def model_values(s: ValuationSnapshot) -> list[float]:
    """What the models that apply make of a share, from the lowest to the highest, to the cent."""
    models = (s.graham_intrinsic_val, s.pe_implied_value, s.pb_implied_value)
    return sorted(round(value, 2) for value in models if value is not None)


def value_range(worth: Sequence[float], say: Voice) -> IntrinsicValueRange:
    unknown = say("not_available")
    lower, upper = (f"{worth[0]:.2f}", f"{worth[-1]:.2f}") if worth else (unknown, unknown)
    return IntrinsicValueRange(lower_bound=lower, upper_bound=upper)


def _name_worth(price: float, worth: Sequence[float], say: Voice) -> Voice:
    """A voice that can name the ends of the range, the nearer one below the price, and all of it in a clause."""
    ends = value_range(worth, say)
    bound = ends.upper_bound if worth and price > worth[-1] else ends.lower_bound
    say = say.also(lower=ends.lower_bound, upper=ends.upper_bound, bound=bound)
    kind = "none" if not worth else "single" if ends.lower_bound == ends.upper_bound else "range"
    return say.also(worth=say(f"worth.{kind}"))


def _risks(s: ValuationSnapshot, case: Situation, has_range: bool, say: Voice) -> list[str]:
    """The price that would prove the view wrong, and what weakens the figures themselves."""
    caveats = {"rebased": s.rebased, "implausible": bool(s.implausible)}
    return [
        say(f"risk.{case if has_range else 'no_range'}"),
        *(say(key) for key, holds in caveats.items() if holds),
    ]


class ValuationModelerService(ExpertService[ValuationSnapshot, ValuationResult]):
    expert = ExpertType.VALUATION_MODELER
    folder, texts = FOLDER, SAY
    answer = ValuationResult
    shows = (
        *("stock_name", "stock_code", "industry", "current_date", "report_period"),
        *("gross_margin_trend", "rebased", "implausible"),
    )

    def conclude(self, snapshot: ValuationSnapshot, card: Scorecard, say: Voice) -> ValuationResult:
        case = case_for(card.of("price").score or 0.0, card.of("quality").score or 0.0)
        price, worth = snapshot.current_price, model_values(snapshot)
        case = against_models(case, price, worth)
        say = _name_worth(price, worth, say)
        conclusion, risks = say(f"conclusion.{case}"), _risks(snapshot, case, bool(worth), say)
        verdict = VERDICTS.get(case, "Fair")
        stance = self.expert.stances[verdict]
        basis = card if case in ("opportunity", "trap") else card.of("price")
        return ValuationResult(
            valuation_verdict=verdict,
            confidence_score=basis.confidence,
            estimated_intrinsic_value_range=value_range(worth, say),
            key_evidence=[finding.brief for _, finding in card.marked][:MOST_EVIDENCE],
            risk_factors=[*risks, *(f.brief for f in card.on_side(-1))],
            reasoning_summary=card.summarise(say, conclusion, stance),
            narrative_report=card.narrate(say, view=say(f"view.{case}"), stance=stance, basis=basis),
        )

    def check(self, snapshot: ValuationSnapshot, answer: Answer) -> Answer:
        """`Undervalued (低估)` is how some models write `Undervalued`."""
        plain = GLOSSED.get(str(answer.get("valuation_verdict")))
        return answer | {"valuation_verdict": plain} if plain else answer

    async def run(self, symbol: str, *, as_of: datetime, locale: Locale) -> dict[str, Any]:
        case = await self._open(symbol, as_of, locale)
        start = case.today - timedelta(days=HISTORY_DAYS)
        history = await self._facts.daily_valuations(case.symbol, start, case.today, as_of=as_of)
        if not history:
            raise self._refusal(case, "no_valuations")
        reports = await self._facts.financial_reports(case.symbol, FINANCE_PERIODS, as_of=as_of)
        if not reports:
            raise self._refusal(case, "no_reports")
        snapshot = valuation_snapshot(case, history, reports)
        origins = dict.fromkeys(FROM_REPORTS, reports[0])
        evidence = cite(self.expert.prefix, snapshot, history[-1], origins=origins)
        return await self._report(case, snapshot, evidence)


SERVICE = ValuationModelerService
