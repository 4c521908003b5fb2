"""What the detective says of the whole demo market holds of its own numbers, and is not always the same."""

import asyncio
from collections import Counter
from collections.abc import Callable
from datetime import date
from typing import Any

import pytest

from moot.modules.market_data.application.market_data import MarketData
from moot.modules.market_data.infrastructure.demo.provider import DemoMarket
from moot.modules.research.application.catalyst_detective import CatalystDetectiveAgentResult
from moot.modules.research.container import ResearchContainer
from moot.shared.domain.messages import LOCALES
from moot.shared.domain.symbol import Market
from tests.fakes.clock import FixedClock
from tests.research.test_claims import ASKED, DATES, DELISTED

Report = CatalystDetectiveAgentResult
HOLDS: dict[str, Callable[[Any], bool]] = {
    "pledge_level.low": lambda seen: seen.pledged_percent < 30,
    "unlock.none": lambda seen: seen.unlock_ahead == 0 and seen.unlock_date is None,
    "unlock.large": lambda seen: seen.unlock_ahead >= 5 and seen.unlock_date > seen.current_date,
    "margin.falling": lambda seen: seen.margin_change_20d < -10,
    "margin.steady": lambda seen: abs(seen.margin_change_20d) <= 10,
    "margin.rising": lambda seen: 10 <= seen.margin_change_20d < 30,
    "margin.crowded": lambda seen: seen.margin_change_20d >= 30,
    "large_orders.even": lambda seen: abs(seen.inflow_share_20d) <= 5,
    "northbound.less": lambda seen: seen.northbound_change_20d < -0.3,
    "northbound.steady": lambda seen: abs(seen.northbound_change_20d) <= 0.3,
    "northbound.more": lambda seen: seen.northbound_change_20d >= 0.3,
    "report_reaction.fell_far": lambda seen: seen.reaction_3d < 0 and seen.reaction_times < -2,
    "report_reaction.fell": lambda seen: seen.reaction_3d < 0 and -2 <= seen.reaction_times < -1,
    "report_reaction.calm": lambda seen: abs(seen.reaction_times) <= 1,
    "report_reaction.rose": lambda seen: seen.reaction_3d > 0 and 1 <= seen.reaction_times < 2,
    "report_reaction.rose_far": lambda seen: seen.reaction_3d > 0 and seen.reaction_times >= 2,
    "report_due.ahead": lambda seen: (seen.report_due - seen.current_date).days == seen.report_due_days > 0,
    "ex_dividend.ahead": lambda seen: seen.ex_date > seen.current_date and seen.dividend_ahead > 0,
}


async def ask_all() -> list[Report]:
    desk = ResearchContainer(MarketData({Market.DEMO: DemoMarket(seed=7, clock=FixedClock(max(DATES)))}))
    asked = [(s, at, "zh-CN" if s == DELISTED else LOCALES[n % 2]) for n, (s, at) in enumerate(ASKED)]
    service = desk.service
    return [await service("catalyst_detective").run(s, as_of=at, locale=locale) for s, at, locale in asked]


@pytest.fixture(scope="module")
def reports() -> list[Report]:
    return asyncio.run(ask_all())


def test_no_answer_is_given_nine_times_of_ten(reports: list[Report]) -> None:
    answers = Counter(report.result.catalyst_assessment for report in reports)
    assert len(answers) == 3
    assert max(answers.values()) <= 0.9 * len(reports)


def test_no_sentence_is_refuted_by_its_own_numbers(reports: list[Report]) -> None:
    met = Counter[str]()
    for report in reports:
        for claim in report.claims:
            kind = claim.kind.removeprefix("catalyst.")
            if kind in HOLDS:
                met[kind] += 1
                assert HOLDS[kind](report.catalyst_context), claim
    assert len(met) >= 0.9 * len(HOLDS), HOLDS.keys() - met.keys()


def test_a_fact_points_as_its_figures_do_and_is_of_the_past(reports: list[Report]) -> None:
    facts = [(e, r) for r in reports for e in r.catalyst_context.events if e.kind == "fact"]
    assert len({event.category for event, _ in facts}) >= 5
    for event, report in facts:
        assert event.published <= report.catalyst_context.current_date
        if event.category in ("profit_up", "profit_warning"):
            ends = {event.figures["change_low"] > 0, event.figures["change_high"] > 0}
            assert ends == {event.category == "profit_up"} == {event.points > 0}


def test_a_study_is_claimed_where_it_excludes_chance_and_nowhere_else(reports: list[Report]) -> None:
    for report in reports:
        claimed = {claim.id for claim in report.claims if ".study." in claim.id}
        studies = report.catalyst_context.studies
        assert claimed == {f"catalyst.study.{one.category}" for one in studies if one.side}
        for one in studies:
            assert not one.side or (one.n >= 5 and one.low * one.high > 0)  # type: ignore[operator]
    studied = [one for report in reports for one in report.catalyst_context.studies if one.n >= 5]
    assert sum(bool(one.side) for one in studied) < 0.1 * len(studied)


def test_the_days_to_come_are_days(reports: list[Report]) -> None:
    for report in reports:
        days = [e.value for e in report.evidence if e.id.endswith(".due") or ".calendar." in e.id]
        assert all(date.fromisoformat(str(day)) > report.catalyst_context.current_date for day in days)
        assert days
