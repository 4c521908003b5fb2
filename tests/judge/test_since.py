"""What a verdict stands between: the last one, what would refute it, the next dates; and that it does not flutter."""

from datetime import date, timedelta

import pytest

from moot.modules.judge.application.judge_service import VerdictDTO
from moot.modules.judge.container import JudgeContainer
from moot.shared.domain.claims import PastClaim
from moot.shared.domain.evidence import Evidence
from tests.fakes.debate import BY_RULE
from tests.fakes.judge import a_debate, argued, claim, evidence, last_time

PRICED = evidence(current_price=10.0, atr_value=0.2, turnover_20d=1e9)


async def rule(**changes) -> VerdictDTO:
    debate = a_debate(**{"evidence": PRICED, "as_of": "2026-01-09T10:00:00Z"} | changes)
    return await JudgeContainer(2, *BY_RULE).judge_service().run(debate)


async def test_claims_that_came_went_or_changed_are_told_with_what_moved_most_first():
    verdict = await rule(
        previous=last_time(
            "HOLD",
            technical__rsi=-0.5,
            technical__macd=0.25,
            technical__adx=0.25,
            macro__m2=0.05,
            technical__gone=0.4,
            technical__idle=0.0,
        ),
        **argued(
            claim("technical.rsi", 0.5),
            claim("technical.macd", 0.3),
            claim("technical.adx", 0.5),
            claim("macro.m2", -0.04, "monetary"),
            claim("technical.new", 0.3),
            claim("technical.quiet", 0.0),
        ),
    )
    assert verdict.since.action == "HOLD"
    assert [(m.claim, m.before, m.after) for m in verdict.since.moved] == [
        ("technical.rsi", -0.5, 0.5),
        ("technical.gone", 0.4, None),
        ("technical.new", None, 0.3),
        ("technical.adx", 0.25, 0.5),
        ("macro.m2", 0.05, -0.04),  # it changed sides
    ]


async def test_at_most_eight_are_told():
    past = last_time("BUY", **{f"technical__c{n}": 0.5 for n in range(12)})
    assert len((await rule(previous=past, **argued(claim("macro.m2", 0.5, "monetary")))).since.moved) == 8


async def test_an_event_is_known_by_what_happened_and_when_whatever_its_number_or_language():
    event = claim("catalyst.event.2", 0.4, "company", kind="catalyst.buyback")
    told = {"zh-CN": "公司宣布回购。"}
    then = PastClaim(pull=0.4, says=told, kind=event.kind, as_of=event.as_of)
    past = last_time("BUY").model_copy(update={"claims": {"catalyst.event.7": then}})
    now = event.model_copy(update={"says": {"en-US": "A buyback was announced."}})
    assert (await rule(previous=past, **argued(now))).since.moved == []
    for other in ({"kind": "catalyst.dilution"}, {"as_of": event.as_of + timedelta(days=1)}):
        another = now.model_copy(update=other)
        assert len((await rule(previous=past, **argued(another))).since.moved) == 2
    twin = now.model_copy(update={"id": "catalyst.event.3"})
    moved = (await rule(previous=past, **argued(now, twin))).since.moved
    assert [(m.claim, m.before, m.after) for m in moved] == [("catalyst.event.3", None, 0.4)]


async def test_without_a_verdict_before_there_is_no_since():
    assert (await rule(**argued(claim("technical.rsi", 0.5)))).since is None


@pytest.mark.parametrize(
    ("locale", "said"),
    [
        (
            "en-US",
            "the action went from Hold to Buy, moved above all by “The claim technical.rsi holds” (-0.25 to +0.50)",
        ),
        ("zh-CN", "动作由观望变为买入，主要由以下论点推动：“论点 technical.rsi 成立”（由 -0.25 变为 +0.50）"),
    ],
)
async def test_a_change_of_action_names_the_claims_that_moved_it(locale, said):
    case = argued(claim("technical.rsi", 0.5))
    verdict = await rule(previous=last_time("HOLD", technical__rsi=-0.25), locale=locale, **case)
    assert said in verdict.reasoning
    same = await rule(previous=last_time("BUY", technical__rsi=-0.25), locale=locale, **case)
    assert said[:20] not in same.reasoning


@pytest.mark.parametrize(
    ("before", "lean", "conviction", "action"),
    [
        (None, 1, 0.2, "BUY"),
        (None, 1, 0.19, "HOLD"),
        ("BUY", 1, 0.19, "BUY"),
        ("BUY", 1, 0.15, "BUY"),
        ("BUY", 1, 0.14, "HOLD"),
        ("HOLD", 1, 0.19, "HOLD"),
        ("SELL", 1, 0.19, "HOLD"),
        ("SELL", -1, 0.16, "SELL"),
        ("BUY", -1, 0.16, "HOLD"),
        ("BUY", -1, 0.2, "SELL"),
        ("SELL", 1, 0.2, "BUY"),
    ],
)
async def test_small_movements_do_not_flip_a_verdict_and_large_ones_do(before, lean, conviction, action):
    previous = last_time(before) if before else None
    verdict = await rule(
        previous=previous, **argued(claim("technical.rsi", 0.5), lean=lean, conviction=conviction)
    )
    assert verdict.action == action


async def test_a_verdict_that_is_kept_says_so():
    case = argued(claim("technical.rsi", 0.5), conviction=0.16)
    kept = await rule(previous=last_time("BUY"), **case)
    assert "below the 0.60 at which this verdict is opened, but not below the 0.575" in kept.reasoning
    told = await rule(previous=last_time("BUY"), locale="zh-CN", **case)
    assert "低于作出这一裁决所需的 0.60，但不低于终止它的 0.575" in told.reasoning


@pytest.mark.parametrize(
    ("lean", "stop", "said"), [(1, "9.60", "below CNY 9.60"), (-1, "10.40", "above CNY 10.40")]
)
async def test_what_would_change_it_are_the_stop_and_the_decisive_claims(lean, stop, said):
    rsi, m2 = claim("technical.rsi", lean * 0.5), claim("macro.m2", lean * 0.5, "monetary")
    verdict = await rule(**argued(rsi, m2, lean=lean, decisive=["technical.rsi"]))
    assert f"{verdict.levels.stop:.2f}" == stop
    assert said in verdict.would_change[0]
    assert stop in verdict.stop_loss
    assert verdict.would_change[1] == "The direction would change without the claim that decides it (Trend)."
    assert len(verdict.would_change) == 2


async def test_decisive_claims_are_told_by_what_they_are_about_each_once():
    claims = [claim(f"technical.c{n}", 0.5) for n in range(4)]
    m2 = claim("macro.m2", 0.5, "monetary")
    verdict = await rule(locale="zh-CN", **argued(*claims, m2, decisive=[c.id for c in (*claims, m2)]))
    assert verdict.would_change[1] == "若没有决定结论的 5 条论点（趋势、货币与信用），方向就会改变。"


async def test_where_many_decide_together_they_are_not_listed():
    claims = [claim(f"technical.c{n}", 0.5) for n in range(6)]
    verdict = await rule(**argued(*claims, decisive=[c.id for c in claims]))
    assert len(verdict.would_change) == 1, "what refutes it"
    assert "Only 6 of them together carry the direction." in verdict.narrative_report


async def test_without_levels_only_claims_would_change_it():
    verdict = await rule(evidence=[], **argued(claim("technical.rsi", 0.5), decisive=["technical.rsi"]))
    assert len(verdict.would_change) == 1


@pytest.mark.parametrize(
    ("as_of", "newest", "day", "what"),
    [
        ("2026-01-09", "2025Q3", date(2026, 4, 30), "annual report for 2025"),
        ("2026-04-20", "2025Q4", date(2026, 4, 30), "first quarter of 2026"),
        ("2026-05-08", "2026Q1", date(2026, 8, 31), "first half of 2026"),
        ("2026-08-31", None, date(2026, 10, 31), "first three quarters of 2026"),
        ("2026-09-01", "2026Q2", date(2026, 10, 31), "first three quarters of 2026"),
        ("2026-10-20", "2026Q3", date(2027, 4, 30), "annual report for 2026"),
        ("2026-12-01", None, date(2027, 4, 30), "annual report for 2026"),
    ],
)
async def test_the_next_report_is_due_by_law(as_of, newest, day, what):
    cited = [
        Evidence(
            id=f"financial.roic_series.{newest}", value=1, unit="%", source="x", as_of="2025-10-31T00:00:00Z"
        )
    ]
    facts = [*PRICED, *(cited if newest else [])]
    verdict = await rule(evidence=facts, as_of=f"{as_of}T10:00:00Z")
    assert [(d.day, d.what.endswith(what)) for d in verdict.next_dates] == [(day, True)]


async def test_where_no_law_of_ours_sets_a_day_none_is_given():
    assert (await rule(symbol="AAPL")).next_dates == []
    assert (await rule(as_of=None)).next_dates == []


def due(**days: str | float) -> list[Evidence]:
    """`catalyst__unlock__1` is `catalyst.unlock.1.due`."""
    said = {"unit": "", "source": "demo", "as_of": "2026-01-05T08:00:00Z"}
    return [Evidence(id=f"{id_.replace('__', '.')}.due", value=day, **said) for id_, day in days.items()]


async def test_of_the_days_that_experts_cite_the_next_of_each_kind_is_given_in_order():
    cited = due(
        catalyst__unlock__1="2026-09-01",
        catalyst__unlock__2="2026-02-03",
        catalyst__unlock__3="2026-01-09",  # today is no day to wait for
        financial__ex_dividend="2026-06-12",
        catalyst__party="2026-03-03",  # nobody has words for it
        catalyst__meeting__1="soon",
        catalyst__meeting__2=20260303,
    )
    verdict = await rule(evidence=[*PRICED, *cited])
    assert [(d.day, d.what) for d in verdict.next_dates] == [
        (date(2026, 2, 3), "Locked-up shares may be sold"),
        (date(2026, 3, 3), "Shareholders' meeting"),
        (date(2026, 4, 30), "Deadline of the annual report for 2025"),
        (date(2026, 6, 12), "Ex-dividend date"),
    ]
    assert verdict.narrative_report.count("The next fixed date") == 1
    assert "2026-02-03" in verdict.narrative_report


async def test_a_report_is_awaited_on_its_own_day_where_that_is_cited():
    verdict = await rule(locale="zh-CN", evidence=[*PRICED, *due(catalyst__report="2026-03-20")])
    assert [(d.day, d.what) for d in verdict.next_dates] == [(date(2026, 3, 20), "公司预约披露定期报告")]


async def test_only_what_moved_its_way_is_named_for_a_change():
    case = argued(claim("technical.rsi", 0.5), claim("technical.new", 0.3), claim("technical.macd", -0.5))
    previous = last_time("HOLD", technical__rsi=-0.25, technical__macd=0.5)
    reasoning = (await rule(previous=previous, **case)).reasoning
    assert "“The claim technical.new holds” (new, +0.30)" in reasoning
    assert "technical.macd" not in reasoning
    against = await rule(
        previous=last_time("SELL", technical__macd=0.5), **argued(claim("technical.macd", -0.5))
    )
    assert "although no claim moved that way" in against.reasoning
