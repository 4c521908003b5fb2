"""What the rubric claims of the whole demo market: each with evidence that carries it, in both languages, and never
against its own numbers.
"""

import asyncio
import re
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any, NamedTuple

import pytest

from moot.modules.market_data.application.market_data import MarketData
from moot.modules.market_data.infrastructure.demo.provider import DemoMarket
from moot.modules.research.container import ResearchContainer
from moot.shared.domain.claims import Claim
from moot.shared.domain.evidence import Evidence
from moot.shared.domain.experts import ExpertType
from moot.shared.domain.grounding import ground
from moot.shared.domain.messages import LOCALES, Locale
from moot.shared.domain.symbol import Market
from tests.fakes.clock import FixedClock

DATES = [
    datetime(*day, 10, tzinfo=UTC) for day in ((2026, 6, 30), (2025, 4, 21), (2024, 9, 2), (2023, 12, 18))
]
COMPANIES = [f"9000{n:02}.DEMO" for n in range(1, 13)]
DELISTED = "900007.DEMO"
ASKED = [
    *((symbol, at) for at in DATES for symbol in COMPANIES if symbol != DELISTED),
    *((DELISTED, datetime(2021, month, 18, 10, tzinfo=UTC)) for month in (3, 6, 9)),
]
CHINESE = re.compile(r"[\u4e00-\u9fff]")
NUMBER = re.compile(r"-?[0-9]+(?:\.[0-9]+)?")
LATIN_WORD = re.compile(r"(?<![A-Za-z])[a-z]{3,}")
SENTENCE = {"zh-CN": re.compile(r"[^。！？\n]+[。！？]"), "en-US": re.compile(r"[^\n]+?[.!?](?=\s|$)")}


class Told(NamedTuple):
    locale: Locale
    report: dict[str, Any]

    @property
    def body(self) -> dict[str, Any]:
        nested: dict[str, Any] = self.report.get("result", self.report)
        return nested

    @property
    def evidence(self) -> dict[str, Evidence]:
        return {item["id"]: Evidence(**item) for item in self.report["evidence"]}

    @property
    def claims(self) -> list[Claim]:
        return [Claim(**claim) for claim in self.report["claims"]]


async def ask_all() -> dict[ExpertType, list[Told]]:
    """Every expert about every company, in the two languages by turns."""
    desk = ResearchContainer(MarketData({Market.DEMO: DemoMarket(seed=7, clock=FixedClock(max(DATES)))}))
    told: dict[ExpertType, list[Told]] = {expert: [] for expert in ExpertType}
    for n, (symbol, as_of) in enumerate(ASKED):
        locale = "zh-CN" if symbol == DELISTED else LOCALES[n % 2]  # its last name has no English
        for expert in ExpertType:
            day = (as_of.date(),) if expert is ExpertType.TECHNICAL_ANALYST else ()
            report = await desk.service(expert).run(symbol, *day, as_of=as_of, locale=locale)
            plain = report if isinstance(report, dict) else report.model_dump(mode="json")
            told[expert].append(Told(locale, plain))
    return told


@pytest.fixture(scope="module")
def market() -> dict[ExpertType, list[Told]]:
    return asyncio.run(ask_all())


@pytest.fixture(params=ExpertType)
def told(request: pytest.FixtureRequest, market: dict[ExpertType, list[Told]]) -> list[Told]:
    return market[request.param]


def test_every_finding_that_was_scored_is_a_claim(told: list[Told]) -> None:
    for one in told:
        scorecard = one.report.get("output") or one.report["raw_llm_output"]
        scored = [line for line in scorecard.splitlines()[:-1] if re.match(r"[+-]", line)]
        assert len(one.claims) == len(scored) > 0
        assert len({claim.id for claim in one.claims}) == len(one.claims)


def test_every_number_of_a_claim_is_in_the_evidence_it_cites(told: list[Told]) -> None:
    for one in told:
        for claim in one.claims:
            cited = [one.evidence[id_] for id_ in claim.evidence]
            assert claim.as_of == max(item.as_of for item in cited)
            for text in claim.says.values():
                assert ground([text], cited).offenders == [], (claim.id, text)


def test_a_claim_is_told_in_both_languages_and_each_in_its_own(told: list[Told]) -> None:
    for one in told:
        for claim in one.claims:
            assert claim.says.keys() == set(LOCALES)
            assert not CHINESE.search(claim.says["en-US"])
            assert CHINESE.search(claim.says["zh-CN"])
            assert not LATIN_WORD.search(claim.says["zh-CN"]), claim.says["zh-CN"]


def test_both_languages_say_the_same_numbers(told: list[Told]) -> None:
    """But for what others wrote, and for large amounts, which each counts in its own multiples."""
    for claim in (claim for one in told for claim in one.claims):
        chinese, english = ([*map(float, NUMBER.findall(claim.says[locale]))] for locale in LOCALES)
        if not claim.reported and not re.search("[亿万]元", claim.says["zh-CN"]):
            assert sorted(chinese) == sorted(english), claim.says


def test_the_language_of_the_reader_changes_no_claim() -> None:
    async def claims(locale: Locale) -> list[Claim]:
        desk = ResearchContainer(MarketData({Market.DEMO: DemoMarket(seed=7, clock=FixedClock(DATES[0]))}))
        reports = [
            await desk.service(expert).run(COMPANIES[2], as_of=DATES[0], locale=locale)
            for expert in ("valuation_modeler", "macro_intelligence", "catalyst_detective")
        ]
        dumped = [report if isinstance(report, dict) else report.model_dump() for report in reports]
        return [Claim(**dict(claim)) for report in dumped for claim in report["claims"]]

    assert asyncio.run(claims("zh-CN")) == asyncio.run(claims("en-US"))


def test_what_rests_on_what_others_wrote_is_reported_and_nothing_else_is(
    market: dict[ExpertType, list[Told]],
) -> None:
    for told in market.values():
        for claim in (claim for one in told for claim in one.claims):
            assert claim.reported == any(".event." in id_ for id_ in claim.evidence)
            assert claim.dimension in claim.expert.dimensions


Numbers = Callable[[Callable[[str], float]], bool]
HOLDS: dict[str, Numbers] = {
    "technical.price_ma20.strong_above": lambda n: above(n, "ma20") and adx(n) >= 25 and directed(n) >= 0,
    "technical.price_ma20.above": lambda n: above(n, "ma20") and (adx(n) <= 25 or directed(n) <= 0),
    "technical.price_ma20.near": lambda n: abs(n("current_price") / n("ma20") - 1) < 0.011,
    "technical.price_ma20.below": lambda n: below(n, "ma20") and (adx(n) <= 25 or directed(n) >= 0),
    "technical.price_ma20.strong_below": lambda n: below(n, "ma20") and adx(n) >= 25 and directed(n) <= 0,
    "technical.ma20_ma60.above": lambda n: n("ma20") > n("ma60"),
    "technical.ma20_ma60.near": lambda n: abs(n("ma20") / n("ma60") - 1) < 0.006,
    "technical.ma20_ma60.below": lambda n: n("ma20") < n("ma60"),
    "technical.price_ma200.above": lambda n: above(n, "ma200"),
    "technical.price_ma200.near": lambda n: abs(n("current_price") / n("ma200") - 1) < 0.021,
    "technical.price_ma200.below": lambda n: below(n, "ma200"),
    "technical.macd.up": lambda n: n("macd_histogram") > 0 and n("macd_dif") > n("macd_dea"),
    "technical.macd.flat": lambda n: abs(n("macd_histogram")) <= n("current_price") / 999,
    "technical.macd.down": lambda n: n("macd_histogram") < 0 and n("macd_dif") < n("macd_dea"),
    "technical.rsi.oversold": lambda n: n("rsi_value") <= 30,
    "technical.rsi.even": lambda n: 30 <= n("rsi_value") <= 70,
    "technical.rsi.overbought": lambda n: n("rsi_value") >= 70,
    "technical.relative_strength.ahead": lambda n: min(leads(n)) > 0 and sum(leads(n)) >= 10,
    "technical.relative_strength.level": lambda n: (
        min(leads(n)) * max(leads(n)) <= 0 or abs(sum(leads(n))) < 10
    ),
    "technical.relative_strength.behind": lambda n: max(leads(n)) < 0 and sum(leads(n)) <= -10,
    "technical.obv.rising": lambda n: n("obv_change") > 0,
    "technical.obv.flat": lambda n: abs(n("obv_change")) <= 20,
    "technical.obv.falling": lambda n: n("obv_change") < 0,
    "technical.crowding.forgotten": lambda n: n("turnover_20d") < 0.6 * n("turnover_1y"),
    "technical.crowding.usual": lambda n: 0.6 <= n("turnover_20d") / n("turnover_1y") < 1.5,
    "technical.crowding.crowded": lambda n: n("turnover_20d") >= 1.5 * n("turnover_1y"),
    "technical.liquidity.deep": lambda n: n("position") < 0.1 * n("turnover_20d"),
    "technical.liquidity.fair": lambda n: 1 <= n("days_to_sell") < 5.1,
    "technical.liquidity.thin": lambda n: 5 <= n("days_to_sell") < 20.1,
    "technical.liquidity.stuck": lambda n: n("days_to_sell") >= 20,
    "technical.volatility.calm": lambda n: n("volatility_20d") < 0.71 * n("volatility_1y"),
    "technical.volatility.usual": lambda n: 0.69 < n("volatility_20d") / n("volatility_1y") < 1.41,
    "technical.volatility.wild": lambda n: n("volatility_20d") > 1.39 * n("volatility_1y"),
    "technical.patterns.bullish": lambda n: n("pattern_balance") > 0,
    "technical.patterns.none": lambda n: n("pattern_balance") == 0,
    "technical.patterns.bearish": lambda n: n("pattern_balance") < 0,
    "technical.room.wide": lambda n: up(n) >= 1.9 * down(n) > 0,
    "technical.room.even": lambda n: 0.45 * down(n) <= up(n) <= 2.1 * down(n),
    "technical.room.tight": lambda n: 0 < up(n) <= 0.55 * down(n),
    "financial.profit.profit": lambda n: n("profit_ttm") > 0,
    "financial.profit.loss": lambda n: n("profit_ttm") < 0,
    "financial.acceleration.quickening": lambda n: n("profit_growth") > n("profit_growth_before"),
    "financial.acceleration.slowing": lambda n: n("profit_growth") < n("profit_growth_before"),
    "financial.operating_leverage.leading": lambda n: n("profit_growth") > n("revenue_growth"),
    "financial.operating_leverage.lagging": lambda n: n("profit_growth") < n("revenue_growth"),
    "financial.net_debt.net_cash": lambda n: n("netdebt") < 0,
    "valuation.pe.cheap": lambda n: n("pe_ttm") <= n("pe_median"),
    "valuation.pe.dear": lambda n: n("pe_ttm") >= n("pe_median"),
    "valuation.residual.below": lambda n: n("current_price") < n("residual_value"),
    "valuation.residual.far_below": lambda n: 1.5 * n("current_price") <= 1.01 * n("residual_value"),
    "valuation.residual.above": lambda n: n("current_price") > n("residual_value"),
    "valuation.residual.far_above": lambda n: n("current_price") >= 1.99 * n("residual_value"),
    "valuation.implied.above": lambda n: n("implied_roe") > n("roe_best"),
    "valuation.implied.below": lambda n: n("implied_roe") < n("roe_worst"),
    "valuation.mid_cycle.peak": lambda n: 0 < n("pe_ttm") < n("mid_cycle_pe"),
    "valuation.mid_cycle.trough": lambda n: not 0 < n("pe_ttm") <= n("mid_cycle_pe"),
    "valuation.peer_pe.cheap": lambda n: n("pe_ttm") < n("peer_pe_median"),
    "valuation.peer_pe.dear": lambda n: n("pe_ttm") > n("peer_pe_median"),
    "valuation.peer_pb.cheap": lambda n: n("pb") < n("peer_pb_median"),
    "valuation.peer_pb.dear": lambda n: n("pb") > n("peer_pb_median"),
    "valuation.graham.below": lambda n: n("current_price") < n("graham_intrinsic_val"),
    "valuation.graham.far_below": lambda n: n("current_price") < n("graham_intrinsic_val"),
    "valuation.graham.above": lambda n: n("current_price") > n("graham_intrinsic_val"),
    "valuation.graham.far_above": lambda n: n("current_price") > n("graham_intrinsic_val"),
    "macro.pmi.expanding": lambda n: n("pmi_manufacturing") > 50,
    "macro.pmi.soft": lambda n: n("pmi_manufacturing") < 50,
    "macro.prosperity.good": lambda n: n("industry_prosperity") > 50,
    "macro.prosperity.weak": lambda n: n("industry_prosperity") < 50,
    "macro.ppi.firm": lambda n: n("ppi_yoy") > 0,
    "macro.lpr.held": lambda n: n("lpr_1y_change") == 0,
}
"""What a sentence compares must hold of the numbers as they are read, rounded."""
DIGITS = {"CNY": 2, "%": 1, "pp": 2, "x": 2, "index": 1, "": 4, "days": 1}


def above(n: Callable[[str], float], average: str) -> bool:
    return n("current_price") > n(average)


def below(n: Callable[[str], float], average: str) -> bool:
    return n("current_price") < n(average)


def adx(n: Callable[[str], float]) -> float:
    return n("adx_value")


def directed(n: Callable[[str], float]) -> float:
    return n("plus_di") - n("minus_di")


def leads(n: Callable[[str], float]) -> list[float]:
    """Beside market and industry; the demo market has an index of each."""
    places = ("market", "industry")
    for place in places:
        told = n("return_60d") - n(f"{place}_return_60d")
        assert n(f"{place}_excess_60d") == pytest.approx(told, abs=1e-6), "by the numbers that are read"
    return [n(f"{place}_excess_60d") for place in places]


def up(n: Callable[[str], float]) -> float:
    return n("resistance") - n("current_price")


def down(n: Callable[[str], float]) -> float:
    return n("current_price") - n("support")


def as_read(claim: Claim, evidence: dict[str, Evidence]) -> Callable[[str], float]:
    def number(name: str) -> float:
        item = evidence[f"{claim.expert.prefix}.{name}"]
        assert item.id in claim.evidence, (claim.id, name)
        assert not isinstance(item.value, str)
        return round(item.value, DIGITS[item.unit])

    return number


def test_no_claim_is_refuted_by_the_numbers_it_cites(market: dict[ExpertType, list[Told]]) -> None:
    met: Counter[str] = Counter()
    for told in market.values():
        for one in told:
            for claim in one.claims:
                if claim.kind in HOLDS:
                    met[claim.kind] += 1
                    assert HOLDS[claim.kind](as_read(claim, one.evidence)), claim
    assert len(met) >= 0.8 * len(HOLDS), HOLDS.keys() - met.keys()


def test_support_lies_below_the_price_and_resistance_above_as_they_are_read(
    market: dict[ExpertType, list[Told]],
) -> None:
    for one in market[ExpertType.TECHNICAL_ANALYST]:
        seen = one.report["technical_indicators"]
        price, levels = round(seen["current_price"], 2), one.body["key_technical_levels"]
        assert round(levels["support"], 2) < price < round(levels["resistance"], 2)


def test_a_valuation_agrees_with_what_its_models_say(market: dict[ExpertType, list[Told]]) -> None:
    """What would prove a view wrong has not happened yet."""
    met = set()
    for one in market[ExpertType.VALUATION_MODELER]:
        price = one.report["valuation_indicators"]["current_price"]
        ends = one.body["estimated_intrinsic_value_range"].values()
        verdict, risk = one.body["valuation_verdict"], one.body["risk_factors"][0]
        met.add(verdict)
        seen = one.report["valuation_indicators"]
        lower, upper = seen["value_low"], seen["value_high"]
        if lower is None or upper > 3 * lower:
            unknown = {"zh-CN": "未知", "en-US": "unknown"}[one.locale]
            assert all("N/A" in end if lower is None else end.startswith(unknown) for end in ends)
            continue
        assert [lower, upper] == [*map(float, ends)]
        if verdict == "Undervalued":
            assert price <= upper, risk
        elif verdict == "Overvalued":
            assert price >= lower, risk
            assert f"{upper if price > upper else lower:.2f}" in risk
        elif "合理的判断即须改变" in risk or "the view has to change" in risk:
            assert lower <= price <= upper, risk
    assert len(met) > 1


def test_nothing_is_the_best_and_the_worst_at_once(market: dict[ExpertType, list[Told]]) -> None:
    ends = re.compile(r"最强的是(.+?)（.+最弱的是(.+?)（|strongest: (.+?) \(.+weakest: (.+?) \(")
    for expert in (ExpertType.FINANCIAL_AUDITOR, ExpertType.MACRO_INTELLIGENCE):
        for one in market[expert]:
            found = ends.search(one.body[expert.fields.reasoning])
            named = [name for name in found.groups() if name] if found else []
            assert len(named) == len(set(named))


def texts_of(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for name, part in value.items():
            if name not in NOT_PROSE and not name.endswith("_indicators"):
                yield from texts_of(part)
    elif isinstance(value, list):
        for part in value:
            yield from texts_of(part)
    elif isinstance(value, str):
        yield value


NOT_PROSE = {"claims", "evidence", "input", "output", "information_sources", "expected_impact"}


def test_no_sentence_is_told_twice_in_a_result(told: list[Told]) -> None:
    for one in told:
        sentences = [s for text in texts_of(one.body) for s in SENTENCE[one.locale].findall(text)]
        twice = [s for s, n in Counter(sentences).items() if n > 1 and len(s) >= 20]
        assert twice == []


def test_a_narrative_is_as_long_as_a_reader_wants(told: list[Told]) -> None:
    for one in told:
        text = one.report["narrative_report"]
        if one.locale == "zh-CN":
            assert 300 <= len("".join(text.split())) <= 800
        else:
            assert 150 <= len(text.split()) <= 400
            assert not CHINESE.search(text)
