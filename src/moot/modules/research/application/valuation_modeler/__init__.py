"""The valuation modeler: what the market pays, used to pay and pays for others, what models would, and what the price
assumes; whether a price is low, and deserves to be.

What the data do not allow is None: a loss has no PE rank and no earnings value, a shrinking profit no PEG.
"""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, Literal, get_args

from pydantic import BaseModel, Field

from moot.modules.research.application.expert_service import Answer, ExpertService, refuse_answer
from moot.modules.research.application.valuation_modeler.appraisal import (
    FEWEST_PEERS,
    FOLDER,
    SAY,
    Material,
    valuation_snapshot,
)
from moot.modules.research.application.valuation_modeler.snapshot import ValuationSnapshot
from moot.modules.research.domain.evidence import Confidence, ExpertResult, cite
from moot.modules.research.domain.facts import Case, Cited
from moot.modules.research.domain.rubric import Rule, Scorecard, Voice, sign_of
from moot.shared.domain.evidence import Evidence
from moot.shared.domain.experts import ExpertType
from moot.shared.domain.facts import Fact, MacroObservation
from moot.shared.domain.messages import Locale

ValuationVerdict = Literal["Undervalued", "Fair", "Overvalued"]


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


HISTORY_DAYS = 3 * 365
REPORTS_READ = 24
"""Quarters: six full years of returns, of which a cycle can be told."""
YIELD, YIELD_DAYS = "cgb_10y", 100
GLOSSED = {
    f"{verdict}{gloss}": verdict
    for verdict, chinese in (("Undervalued", "低估"), ("Fair", "合理"), ("Overvalued", "高估"))
    for gloss in (f" ({chinese})", f"({chinese})", f"（{chinese}）", f" （{chinese}）")
}
FROM_REPORTS = (
    *("roe", "roe_ttm", "gros_profit_margin", "gross_margin_change", "net_profit_margin"),
    *("debt_to_assets", "eps_ttm", "bps", "growth_rate_avg", "growth_periods"),
    *("roe_years", "roe_middle", "roe_worst", "roe_best"),
)

PER_SHARE = ("eps_ttm", "bps")
ASSUMPTION = "assumption"
ALWAYS_ASSUMED = ("equity_premium", "fade_years")

PAST = ("pe", "pb", "ps")
MULTIPLES = (*PAST, "peer_pe", "peer_pb", "peer_ps")
ONE_YEARS_EARNINGS = frozenset({"pe", "peer_pe", "peg", "graham"})
"""What a cyclical company is not asked: at its peak it looks cheapest."""
CYCLE = frozenset({"mid_cycle"})
CHEAP_AT = 0.25
CLEAR_AT = 0.5
POOR_AT = -0.3
MOST_EVIDENCE, MOST_TOLD = 6, 8

Situation = Literal["opportunity", "trap", "fair", "overvalued", "above", "below", "unclear"]
VERDICTS: dict[Situation, ValuationVerdict] = {"opportunity": "Undervalued", "overvalued": "Overvalued"}


def case_for(price: float, quality: float) -> Situation:
    """A low price with poor quality is a trap, and a trap is not cheap."""
    if price >= CHEAP_AT:
        return "trap" if quality <= POOR_AT else "opportunity"
    return "overvalued" if price <= -CHEAP_AT else "fair"


def against_models(case: Situation, s: ValuationSnapshot) -> Situation:
    """What is dearer than every model says is no bargain nor fair, what is cheaper than every model not dear."""
    if s.value_low is None or s.value_high is None:
        return case
    if case != "overvalued" and s.current_price > s.value_high:
        return "above"
    return "below" if case in ("overvalued", "fair") and s.current_price < s.value_low else case


def decide(s: ValuationSnapshot, card: Scorecard) -> Situation:
    """Multiples and models count together, and no verdict stands that the range of the models refutes.

    Where these lie too far apart to be a range they carry no verdict: there is one only if the multiples beside their
    past and their peers say the same by themselves, and clearly.
    """
    price, quality = (card.of(dimension).score or 0.0 for dimension in ("price", "quality"))
    case = against_models(case_for(price, quality), s)
    if s.is_known:
        return case
    agreed = (_multiples(card).score or 0.0) * sign_of(price) >= CLEAR_AT
    return case if agreed and case != "fair" else "unclear"


def rest_on(case: Situation, card: Scorecard) -> Scorecard:
    """The part of the card that the case rests on; where nothing is clear, the part that is least so."""
    if case in ("opportunity", "trap"):
        return card
    price = card.of("price")
    return min(price, _multiples(card), key=lambda part: part.confidence) if case == "unclear" else price


def _multiples(card: Scorecard) -> Scorecard:
    return replace(card, findings=tuple(f for f in card.findings if f.id in MULTIPLES))


def _name_worth(s: ValuationSnapshot, say: Voice) -> Voice:
    """A voice that can name the ends of the range, the nearer one below the price, and all of it in a clause."""
    low, high = s.value_low, s.value_high
    if low is None or high is None:
        return say.also(worth=say("worth.none"), lower=say("not_available"), upper=say("not_available"))
    lower, upper = f"{low:.2f}", f"{high:.2f}"
    say = say.also(lower=lower, upper=upper, bound=upper if s.current_price > high else lower)
    kind = "unknown" if not s.is_known else "single" if low == high else "range"
    return say.also(worth=say(f"worth.{kind}"))


def value_range(s: ValuationSnapshot, say: Voice) -> IntrinsicValueRange:
    """Figures where they are a range, and how far apart they lie where they are none."""
    kind = "unknown" if s.value_low is not None and not s.is_known else "plain"
    return IntrinsicValueRange(lower_bound=say(f"{kind}.lower"), upper_bound=say(f"{kind}.upper"))


def _risks(s: ValuationSnapshot, case: Situation, say: Voice) -> list[str]:
    """The price that would prove the view wrong, what the models assume, and what weakens the figures themselves."""
    fails = "no_range" if s.value_high is None else case if s.is_known or case == "unclear" else "unknown"
    taken = {
        name: say(f"assumed.{name}" if name in s.assumed else f"known.{name}")
        for name in ("risk_free", "payout")
    }
    peers = (s.peer_pe_count, s.peer_pb_count)
    caveats = {
        "assumptions": s.residual_value is not None,
        f"no_value.{s.why_no_value}": s.residual_value is None,
        "no_peers": None in peers,
        "few_peers": any(count is not None and count < FEWEST_PEERS for count in peers),
        "rebased": s.rebased,
        "unmatched": s.unmatched,
        "implausible": bool(s.implausible),
    }
    return [say(f"risk.{fails}"), *(say(key, **taken) for key, holds in caveats.items() if holds)]


class ValuationModelerService(ExpertService[ValuationSnapshot, ValuationResult]):
    expert = ExpertType.VALUATION_MODELER
    folder, texts = FOLDER, SAY
    answer = ValuationResult
    shows = (
        *("stock_name", "stock_code", "industry", "cyclical", "current_date", "report_period", "assumed"),
        *("gross_margin_trend", "roe_from", "roe_until", "rebased", "unmatched", "implausible"),
    )

    def speak(self, snapshot: ValuationSnapshot, case: Case, locale: Locale) -> Voice:
        """Each rank names the window it is of, and residual income the return it begins with."""
        say = super().speak(snapshot, case, locale)
        lengths = {n: "short" if snapshot.has_short_past(n) else "long" for n in PAST}
        counts = {n: getattr(snapshot, f"{n}_sessions") for n in PAST}
        say = say.also(residual_return=say(f"return.{'cycle' if snapshot.cyclical else 'year'}"))
        return say.also(**{f"{n}_window": say(f"window.{lengths[n]}", sessions=counts[n]) for n in PAST})

    @classmethod
    def trust(cls, rule: Rule, snapshot: ValuationSnapshot) -> float:
        """A cyclical company is judged by its cycle and not by a year; a rank in a short past counts half."""
        if rule.name in (ONE_YEARS_EARNINGS if snapshot.cyclical else CYCLE):
            return 0.0
        short = rule.name in PAST and snapshot.has_short_past(rule.name)
        return super().trust(rule, snapshot) * (0.5 if short else 1.0)

    def conclude(self, snapshot: ValuationSnapshot, card: Scorecard, say: Voice) -> ValuationResult:
        case = decide(snapshot, card)
        say = _name_worth(snapshot, say)
        verdict = VERDICTS.get(case, "Fair")
        stance = self.expert.stances[verdict]
        basis = rest_on(case, card)
        return ValuationResult(
            valuation_verdict=verdict,
            confidence_score=basis.confidence,
            estimated_intrinsic_value_range=value_range(snapshot, say),
            key_evidence=[finding.brief for _, finding in card.marked][:MOST_EVIDENCE],
            risk_factors=[*_risks(snapshot, case, say), *(f.brief for f in card.on_side(-1))],
            reasoning_summary=card.summarise(say, say(f"conclusion.{case}"), stance),
            narrative_report=card.narrate(
                say, view=say(f"view.{case}"), stance=stance, basis=basis, most=MOST_TOLD
            ),
        )

    def check(self, snapshot: ValuationSnapshot, answer: Answer) -> Answer:
        """`Undervalued (低估)` is how some models write `Undervalued`; none may say what the price refutes."""
        plain = GLOSSED.get(str(answer.get("valuation_verdict")))
        answer = answer | {"valuation_verdict": plain} if plain else answer
        given = answer.get("valuation_verdict")
        for case, verdict in VERDICTS.items():
            if given == verdict and against_models(case, snapshot) != case:
                left = [other for other in get_args(ValuationVerdict) if other != given]
                raise refuse_answer("enum", "valuation_verdict", got=given, allowed=left)
        return answer

    async def run(self, symbol: str, *, as_of: datetime, locale: Locale) -> dict[str, Any]:
        case = await self._open(symbol, as_of, locale)
        start = case.today - timedelta(days=HISTORY_DAYS)
        history = await self._facts.daily_valuations(case.symbol, start, case.today, as_of=as_of)
        if not history:
            raise self._refusal(case, "no_valuations")
        reports = await self._facts.financial_reports(case.symbol, REPORTS_READ, as_of=as_of)
        if not reports:
            raise self._refusal(case, "no_reports")
        figures = await self._spare(self._facts.macro(case.symbol, YIELD_DAYS, as_of=as_of), ())
        peers = await self._spare(self._facts.peers(case.symbol, as_of=as_of), None)
        material = Material(history, reports, peers, find_bond(figures))
        snapshot = valuation_snapshot(case, material)
        return await self._report(case, snapshot, self._cite(snapshot, material))

    def _cite(self, snapshot: ValuationSnapshot, material: Material) -> list[Evidence]:
        today, bond = material.today, material.bond
        restated = snapshot.rebased or snapshot.unmatched or material.reports[0].bps is None
        ours = Cited(available_at=today.available_at, source=ASSUMPTION, url=ASSUMPTION)
        origins: dict[str, Fact | Cited] = {
            **dict.fromkeys(FROM_REPORTS, material.reports[0]),
            **(dict.fromkeys(PER_SHARE, today) if restated else {}),
            **dict.fromkeys(("risk_free", "cost_of_equity"), bond or ours),
            **dict.fromkeys((*ALWAYS_ASSUMED, *snapshot.assumed), ours),
        }
        labels = snapshot.residual_cases or None
        return cite(self.expert.prefix, snapshot, today, origins=origins, labels=labels)


def find_bond(figures: Sequence[MacroObservation]) -> MacroObservation | None:
    yields = [figure for figure in figures if figure.series == YIELD]
    return max(yields, key=lambda figure: figure.period, default=None)


SERVICE = ValuationModelerService
