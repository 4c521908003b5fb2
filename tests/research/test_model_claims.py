"""What a model claims beside the rubric: accepted with its evidence, bounded by it, or dropped and named."""

import asyncio
from typing import Any

import pytest

from moot.modules.debate.domain.schemes import relate
from moot.modules.debate.domain.weighing import Weighing
from moot.modules.research.domain.claims import MOST_PROPOSED, with_claims
from moot.modules.research.infrastructure.llm_analyst import prompt
from moot.shared.domain.claims import Claim
from moot.shared.domain.errors import AppError
from moot.shared.domain.experts import ExpertType
from moot.shared.domain.messages import LOCALES, Locale
from tests.fakes.llm import FakeLLM
from tests.research.test_llm_analysts import AGENTS, EVERYONE, SERVICES, desk, good_answer, run, said

TECHNICAL, CATALYST = "technical_analyst", "catalyst_detective"


def a_claim(**changes: Any) -> dict[str, Any]:
    claim = {
        "says": "短期均线与中期均线的距离说明上涨已有一段时间。",
        "side": "neither",
        "strength": 0.4,
        "evidence": ["technical.ma5", "technical.ma120"],
        "dimension": "trend",
    }
    return claim | changes


async def told(*claims: dict[str, Any], agent: str = TECHNICAL, locale: Locale = "zh-CN") -> dict[str, Any]:
    """The report of an expert whose model adds these claims."""
    answer = await good_answer(agent, locale) | {"claims": list(claims)}
    return await run(desk(FakeLLM(said(answer))), agent, locale)


def by_model(report: dict[str, Any]) -> list[Claim]:
    return [claim for claim in map(Claim.model_validate, report["claims"]) if claim.by == "llm"]


def of_rubric(report: dict[str, Any], id_: str) -> Claim:
    (claim,) = [Claim(**claim) for claim in report["claims"] if claim["id"] == id_]
    return claim


@pytest.fixture(scope="module")
def plain() -> dict[str, Any]:
    """Without claims of the model's own."""
    return asyncio.run(told())


@pytest.mark.parametrize(("agent", "locale"), EVERYONE)
async def test_a_model_is_shown_what_the_rubric_claims(agent: str, locale: Locale) -> None:
    llm = FakeLLM(said(await good_answer(agent, locale)))
    report = await run(desk(llm), agent, locale)
    asked = llm.asked[0].prompt.splitlines()
    assert report["claims"]
    for claim in map(Claim.model_validate, report["claims"]):
        text = claim.kind if claim.reported else claim.says[locale]
        head = " | ".join((claim.id, claim.side, f"{claim.strength:g}", claim.dimension, ""))
        (line,) = (line for line in asked if line.startswith(head))
        cited, _, told = line.removeprefix(head).partition(" | ")
        assert told == text
        for named in cited.split():
            assert any(id_ == named or id_.startswith(named.removesuffix("*")) for id_ in claim.evidence)
        for id_ in claim.evidence:
            assert {id_, f"{id_.rpartition('.')[0]}.*"} & set(cited.split())
    assert f"dimensions: {' '.join(SERVICES[agent].expert.dimensions)}" in asked


async def test_what_others_wrote_is_not_shown_as_a_claim() -> None:
    """Headlines stand in the evidence alone, where they are quoted."""
    llm = FakeLLM(said(await good_answer(CATALYST, "zh-CN")))
    report = await run(desk(llm), CATALYST, "zh-CN")
    (shown,) = [part for part in llm.asked[0].prompt.split("\n\n") if "\nclaims:\n" in part]
    lines = shown.partition("\nclaims:\n")[2].splitlines()[: len(report["claims"])]
    events = report["catalyst_context"]["events"]
    titles = [event["title"] for event in events if event["kind"] != "fact"]
    assert not [title for title in titles for line in lines if title in line]


@pytest.mark.parametrize(("agent", "locale"), EVERYONE)
def test_the_prompt_says_how_to_claim(agent: str, locale: Locale) -> None:
    text = prompt(SERVICES[agent].folder, locale)
    wanted = ("claims", "says", "side", "strength", "evidence", "dimension", "contests")
    assert [name for name in wanted if f"`{name}`" not in text] == []


async def test_a_claim_with_evidence_stands_beside_those_of_the_rubric(plain: dict[str, Any]) -> None:
    report = await told(a_claim(), a_claim(evidence=["technical.high_20d"], dimension="range"))
    assert report["claims"][: len(plain["claims"])] == plain["claims"]
    first, second = by_model(report)
    assert (first.id, first.kind, first.by) == ("technical.model.1", "technical.model", "llm")
    assert first.says == {"zh-CN": a_claim()["says"]}
    assert (second.id, second.dimension) == ("technical.model.2", "range")
    evidence = {item["id"]: item for item in report["evidence"]}
    assert first.as_of.isoformat() == evidence["technical.ma5"]["as_of"].replace("Z", "+00:00")
    assert report["warnings"] == plain["warnings"]


@pytest.mark.parametrize("agent", AGENTS)
async def test_what_a_model_proposed_is_no_field_of_the_result(agent: str) -> None:
    answer = with_claims(SERVICES[agent].answer)
    told = answer.model_validate(await good_answer(agent, "zh-CN") | {"claims": [a_claim()]})
    assert told.model_dump().keys() == SERVICES[agent].answer.model_fields.keys()


@pytest.mark.parametrize(
    ("spoilt", "why"),
    [
        ({"evidence": []}, "没有引用证据"),
        ({"evidence": ["technical.ma5", "technical.made_up"]}, "technical.made_up"),
        ({"evidence": ["financial.roe"]}, "financial.roe"),
        ({"says": "五日均线已升到 98765.43 元，上涨已有一段时间。"}, "98765.43"),
        ({"dimension": "mood"}, "mood"),
        ({"says": "The moving averages have been rising for a while now, one above the other."}, "语言"),
    ],
    ids=["no evidence", "unknown evidence", "another expert's", "numbers", "dimension", "language"],
)
async def test_a_claim_that_does_not_hold_is_dropped_and_named(
    spoilt: dict[str, Any], why: str, plain: dict[str, Any]
) -> None:
    report = await told(a_claim(**spoilt), a_claim())
    assert [claim.says["zh-CN"] for claim in by_model(report)] == [a_claim()["says"]]
    (warning,) = [warning for warning in report["warnings"] if warning not in plain["warnings"]]
    assert "已剔除" in warning
    assert why in warning
    assert a_claim(**spoilt)["says"][:20] in warning


async def test_a_number_of_evidence_that_is_not_cited_is_not_its_own(plain: dict[str, Any]) -> None:
    price = plain["technical_indicators"]["current_price"]
    says = f"收盘价 {price:.2f} 元，与长期均线有一段距离。"
    assert by_model(await told(a_claim(says=says))) == []
    assert by_model(await told(a_claim(says=says, evidence=["technical.ma120", "technical.current_price"])))


def one_sided(report: dict[str, Any]) -> Claim:
    claims = map(Claim.model_validate, report["claims"])
    return next(c for c in claims if c.side != "neither" and c.by == "rubric")


async def test_evidence_that_says_otherwise_carries_no_claim(plain: dict[str, Any]) -> None:
    rule = one_sided(plain)
    other = "against" if rule.side == "for" else "for"
    report = await told(
        a_claim(side=other, evidence=rule.evidence),
        a_claim(side=other, evidence=[*rule.evidence, "technical.ma5"]),
    )
    assert by_model(report) == []
    assert sum(f"相反的结论，见 {rule.id}" in warning for warning in report["warnings"]) == 2


async def test_the_same_evidence_on_the_same_side_counts_once(plain: dict[str, Any]) -> None:
    rule = one_sided(plain)
    again = a_claim(side=rule.side, evidence=rule.evidence[::-1])
    report = await told(again, a_claim(), a_claim())
    assert len(by_model(report)) == 1
    assert [w for w in report["warnings"] if f"与 {rule.id} 重复" in w]
    assert [w for w in report["warnings"] if "与 technical.model.1 重复" in w]


async def test_a_claim_is_no_stronger_than_its_evidence_can_carry(plain: dict[str, Any]) -> None:
    rule = one_sided(plain)
    shares = a_claim(strength=1.0, side=rule.side, evidence=[rule.evidence[0], "technical.ma5"])
    alone, modest = a_claim(strength=1.0), a_claim(strength=0.1, evidence=["technical.ma10"])
    found = [claim.strength for claim in by_model(await told(shares, alone, modest))]
    related = [Claim(**c) for c in plain["claims"] if rule.evidence[0] in c["evidence"]]
    assert found == [max(claim.strength for claim in related), 0.5, 0.1]


async def test_what_rests_on_what_others_wrote_is_reported_and_weak() -> None:
    plain = await told(agent=CATALYST)
    events = [claim for claim in map(Claim.model_validate, plain["claims"]) if claim.side == "for"]
    pair = [id_ for claim in events[:2] for id_ in claim.evidence]
    claim = a_claim(
        says="两条消息互相印证，需求正在好转。", side="for", strength=0.9, evidence=pair, dimension="company"
    )
    (found,) = by_model(await told(claim, agent=CATALYST))
    assert (found.strength, found.reported) == (0.25, True)
    counted = claim | {"evidence": [*pair, "catalyst.event_count"]}
    (found,) = by_model(await told(counted, agent=CATALYST))
    assert not found.reported


async def test_a_number_that_only_others_wrote_makes_a_claim_reported() -> None:
    plain = await told(agent=CATALYST)
    numbered = next(e for e in plain["evidence"] if ".event." in e["id"] and "亿元" in str(e["value"]))
    amount = numbered["value"].partition("亿元")[0].rpartition("约")[2].rpartition("润")[2]
    claim = a_claim(
        says=f"公告提到的金额为 {amount}亿元，有待核实。",
        evidence=[numbered["id"], "catalyst.event_count"],
        dimension="company",
    )
    (found,) = by_model(await told(claim, agent=CATALYST))
    assert found.reported


@pytest.mark.parametrize("spoilt", [{"side": "up"}, {"strength": 1.5}, {"weight": 1}])
async def test_a_claim_out_of_shape_is_an_answer_out_of_shape(spoilt: dict[str, Any]) -> None:
    with pytest.raises(AppError):
        await told(a_claim(**spoilt))


async def test_there_is_an_end_to_claims() -> None:
    with pytest.raises(AppError):
        await told(*[a_claim()] * (MOST_PROPOSED + 1))


async def test_rules_that_step_in_for_a_model_make_their_own_claims_alone(plain: dict[str, Any]) -> None:
    report = await run(desk(FakeLLM("nonsense"), fallback="rubric"), TECHNICAL, "zh-CN")
    assert report["engine"] == "rubric"
    assert report["claims"] == plain["claims"]


@pytest.mark.parametrize("locale", LOCALES)
async def test_the_reader_is_told_in_their_language(locale: Locale) -> None:
    report = await told(a_claim(evidence=[]), locale=locale)
    assert any(("已剔除" if locale == "zh-CN" else "was dropped") in w for w in report["warnings"])


async def test_a_model_may_contest_a_claim_of_the_rules_and_counts_through_it_alone(plain) -> None:
    target = next(claim for claim in map(Claim.model_validate, plain["claims"]) if claim.side != "neither")
    denial = "against" if target.side == "for" else "for"
    contested = a_claim(
        evidence=target.evidence,
        dimension=target.dimension,
        side=denial,
        contests=target.id,
        says="这条论点只看收盘价，没有说明成交是否配合。",
    )
    report = await told(contested)
    (answer,) = by_model(report)
    assert (answer.side, answer.contests, answer.strength) == (
        "neither",
        target.id,
        min(0.4, target.strength),
    )
    (relation,) = [r for r in relate([target, answer]) if r.source == answer.id]
    assert (relation.target, relation.kind, relation.by) == (target.id, "attack", "llm")
    assert relation.why == answer.says
    before, after = (
        Weighing([target, *more], relate([target, *more]), frozenset(ExpertType)) for more in ([], [answer])
    )
    assert after.strengths[target.id] == pytest.approx(before.strengths[target.id] * (1 - answer.strength))


@pytest.mark.parametrize("id_", ["technical.nothing", "valuation.pe", ""])
async def test_nobody_contests_what_was_not_claimed(id_: str) -> None:
    report = await told(a_claim(contests=id_))
    assert by_model(report) == []
    assert any("并不是规则的论点" in warning for warning in report["warnings"])


@pytest.mark.parametrize("locale", LOCALES)
async def test_a_model_that_departs_from_the_rules_is_told_to(locale: Locale) -> None:
    plain = await good_answer(TECHNICAL, locale)
    others = {"BULLISH": "BEARISH", "BEARISH": "BULLISH", "NEUTRAL": "BULLISH"}
    remark = "模型的结论是" if locale == "zh-CN" else "The model concludes"
    departing = plain | {"signal": others[plain["signal"]]}
    for answer, told_so in ((plain, False), (departing, True)):
        report = await run(desk(FakeLLM(said(answer))), TECHNICAL, locale)
        assert any(remark in warning for warning in report["warnings"]) is told_so
