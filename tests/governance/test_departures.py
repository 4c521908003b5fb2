"""A model that rules otherwise than the rules would, or that alone makes an argument a trade: a person is asked."""

from typing import Any

import pytest

from moot.modules.debate.application.debate_service import lean_unaided
from moot.modules.governance.domain.decisions import ValidationStatus
from moot.shared.domain.claims import Author, Claim, Relation
from moot.shared.domain.experts import ExpertType
from tests.governance.test_shipped_rules import broken, verdict


@pytest.mark.parametrize(("ruled", "by_rule"), [("BUY", "HOLD"), ("BUY", "SELL"), ("HOLD", "SELL")])
@pytest.mark.parametrize(
    ("locale", "said"),
    [
        ("zh-CN", "模型的结论是 {}，按规则应为 {}"),
        ("en-US", "the model ruled {}, by rule it would have been {}"),
    ],
)
def test_a_person_is_asked_and_told_both(ruled: str, by_rule: str, locale: str, said: str) -> None:
    departs = {"action": by_rule, "confidence": 0.5}
    position = 0.15 if ruled == "BUY" else 0.0
    found = verdict({"locale": locale}, action=ruled, position_percent=position, departs=departs)
    assert found.status is ValidationStatus.ESCALATED
    assert broken(found) == ["risk.departs_from_rules"]
    assert said.format(ruled, by_rule) in found.violations[0].message


def test_where_both_rule_alike_nobody_is() -> None:
    for departs in (None, {"action": "BUY", "confidence": 0.9}):
        assert verdict(departs=departs).status is ValidationStatus.APPROVED


def test_a_grave_fact_needs_nobody_to_bring_a_model_back_to_the_rules() -> None:
    departs = {"action": "HOLD", "confidence": 0.5}
    found = verdict({"grave_facts": ["default"]}, departs=departs)
    assert (found.status, found.payload["action"]) == (ValidationStatus.MODIFIED, "HOLD")
    assert found.payload["position_percent"] == 0


def test_a_grave_fact_keeps_a_person_from_approving_a_purchase() -> None:
    found = verdict({"grave_facts": ["default"]}, departs={"action": "SELL", "confidence": 0.5})
    assert found.status is ValidationStatus.ESCALATED
    assert found.approved_instead is not None and found.approved_instead["action"] == "HOLD"
    assert broken(found) == ["risk.grave_facts", "risk.departs_from_rules"]


def a_claim(name: str, side: str, strength: float, by: Author = "rubric") -> dict[str, Any]:
    expert = ExpertType.TECHNICAL_ANALYST
    said = {"id": name, "kind": name, "expert": expert, "dimension": expert.dimensions[0], "side": side}
    rests = {"says": {"en-US": name}, "evidence": [name], "as_of": "2026-03-02T10:00:00Z", "by": by}
    return Claim.model_validate(said | rests | {"strength": strength}).model_dump(mode="json")


def an_argument(*claims: dict[str, Any], relations: tuple[Relation, ...] = ()) -> dict[str, Any]:
    told = [relation.model_dump(mode="json") for relation in relations]
    return {"claims": list(claims), "relations": told, "heard": [expert.value for expert in ExpertType]}


def test_what_a_model_said_is_not_counted_where_its_part_is_asked_for() -> None:
    rule = a_claim("rule", "for", 0.6)
    bull, doubt = a_claim("bull", "for", 1.0, "llm"), a_claim("doubt", "against", 0.3)
    attack = {
        "source": "rule",
        "target": "doubt",
        "kind": "attack",
        "scheme": "model",
        "why": {},
        "by": "llm",
    }
    aided = an_argument(rule, doubt, bull, relations=(Relation.model_validate(attack),))
    assert lean_unaided(aided) == lean_unaided(an_argument(rule, doubt)) > 0
    assert lean_unaided(an_argument(a_claim("down", "against", 0.9), bull)) < 0
    assert lean_unaided(an_argument(bull)) == 0


@pytest.mark.parametrize(
    ("action", "lean", "asked"),
    [("BUY", 0.19, True), ("BUY", 0.2, False), ("HOLD", 0.0, False), ("BUY", -0.5, True)],
)
def test_a_trade_that_only_a_model_makes_one_is_put_before_a_person(
    action: str, lean: float, asked: bool
) -> None:
    position = 0.15 if action == "BUY" else 0.0
    found = verdict({"unaided_lean": lean}, action=action, position_percent=position, engine="llm")
    assert broken(found) == (["risk.talked_round"] if asked else [])
    assert found.status is (ValidationStatus.ESCALATED if asked else ValidationStatus.APPROVED)


def test_by_rule_nobody_is_talked_round() -> None:
    assert verdict({"unaided_lean": 0.0}, engine="rubric").status is ValidationStatus.APPROVED
