"""What moves do to an argument: it is weighed again, by the same semantics."""

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as some

from moot.modules.debate.application.debate_service import contest, move_on
from moot.modules.debate.domain.argument import Weighing, close
from moot.shared.domain.claims import ArgumentGraph, Claim, Move, Relation
from moot.shared.domain.experts import ExpertType
from moot.shared.domain.validation import validate

TECHNICAL = ExpertType.TECHNICAL_ANALYST


def a_claim(id_: str, side: str, strength: float, dimension: str = "trend") -> Claim:
    return Claim(
        id=id_,
        kind=f"{id_}.kind",
        expert=TECHNICAL,
        dimension=dimension,
        side=side,
        strength=strength,
        says={"zh-CN": id_, "en-US": id_},
        evidence=[f"{id_}.value"],
        as_of=datetime(2026, 3, 31, tzinfo=UTC),
    )


def an_argument(*relations: Relation) -> ArgumentGraph:
    claims = [
        a_claim("technical.up", "for", 0.75),
        a_claim("technical.down", "against", 0.5),
        a_claim("technical.thin", "against", 0.25, "volume"),
    ]
    return close(Weighing(claims, relations, frozenset(ExpertType)))


THIN_UNDERCUTS_UP = Relation(
    source="technical.thin", target="technical.up", kind="attack", scheme="thin", why={"en-US": "thin"}
)


def after(graph: ArgumentGraph, *moves: dict[str, Any]) -> ArgumentGraph:
    return close(move_on(graph, [validate(Move, move) for move in moves], "en-US"))


def test_what_is_struck_is_gone_with_what_it_said_of_others():
    before = an_argument(THIN_UNDERCUTS_UP)
    now = after(before, {"move": "strike", "claim": "technical.thin"})
    assert before.strengths["technical.up"] == pytest.approx(0.75 * (1 - 0.25))
    assert now.strengths == {"technical.up": 0.75, "technical.down": 0.5}
    assert now.relations == []
    assert now.motion > before.motion


def test_another_strength_is_the_one_it_is_weighed_with():
    now = after(an_argument(), {"move": "strength", "claim": "technical.down", "strength": 0.1})
    assert now.strengths["technical.down"] == 0.1
    assert now.dimensions["technical.trend"] == pytest.approx(0.75 - 0.1)


def test_what_a_person_says_is_as_strong_as_they_say_however_far_the_claim_looked():
    far = a_claim("technical.far", "for", 0.5).model_copy(update={"horizon": 60})
    before = close(Weighing([far], [], frozenset(ExpertType), horizon=5))
    assert before.strengths["technical.far"] < 0.5
    answer = {"move": "add", "claim": "technical.far", "says": "x", "strength": 0.2}
    now = after(before, {"move": "strength", "claim": "technical.far", "strength": 0.4}, answer)
    assert now.strengths == {"technical.far": pytest.approx(0.4 * (1 - 0.2)), "contest.1": 0.2}


def test_what_is_added_counts_through_its_target_alone():
    before = an_argument()
    now = after(before, {"move": "add", "claim": "technical.up", "says": "The index moved, not the share"})
    (added,) = [claim for claim in now.claims if claim.id == "contest.1"]
    assert (added.by, added.kind, added.side, added.strength) == ("person", "contest", "neither", 0.5)
    assert (added.dimension, added.evidence) == ("trend", ["technical.up.value"])
    assert added.says == {"en-US": "The index moved, not the share"}
    assert now.strengths["technical.up"] == pytest.approx(0.75 * 0.5)
    assert now.strengths["technical.down"] == 0.5
    supported = after(
        before, {"move": "add", "claim": "technical.up", "says": "x", "kind": "support", "strength": 0.2}
    )
    assert supported.strengths["technical.up"] == pytest.approx(0.75 + 0.25 * 0.2)


def test_what_is_added_later_has_the_next_number():
    one = {"move": "add", "claim": "technical.up", "says": "one"}
    first = after(an_argument(), one, {**one, "says": "two"})
    second = after(first, {**one, "claim": "contest.2", "says": "three"})
    assert [claim.id for claim in second.claims][3:] == ["contest.1", "contest.2", "contest.3"]


@given(weak=some.floats(0, 1), strong=some.floats(0, 1))
def test_a_stronger_answer_never_helps_what_it_attacks(weak, strong):
    weak, strong = sorted((weak, strong))
    one = {"move": "add", "claim": "technical.up", "says": "x"}
    motions = [after(an_argument(), {**one, "strength": strength}).motion for strength in (weak, strong)]
    assert motions[0] >= motions[1]


def test_no_move_leaves_the_argument_as_it_was():
    before = an_argument(THIN_UNDERCUTS_UP)
    assert after(before) == before


def test_the_outcome_follows_the_argument():
    graph = an_argument()
    case = {"core_thesis": "up", "supporting_arguments": ["up"]}
    outcome = {
        "symbol": "900001.DEMO",
        "direction": "BULLISH",
        "confidence": 0.9,
        "bull_case": {**case, "acknowledged_risks": []},
        "bear_case": {**case, "acknowledged_strengths": []},
        "risk_matrix": [],
        "key_disagreements": [],
        "conflict_resolution": "up",
        "narrative_report": "up",
        "evidence": [],
        "experts": list(ExpertType),
        "engine": "llm",
        "argument": graph.model_dump(mode="json"),
    }
    moves = [Move(move="strike", claim="technical.up")]
    now = contest(outcome, moves, "en-US")
    weighed = close(move_on(graph, moves, "en-US"))
    assert (now["direction"], now["confidence"]) == (weighed.direction, weighed.confidence)
    assert now["argument"] == weighed.model_dump(mode="json")
    assert (now["symbol"], now["experts"]) == ("900001.DEMO", list(ExpertType))
