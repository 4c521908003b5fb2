"""How much an expert and a claim count: one table, by horizon, with its reasons."""

import pytest

from moot.modules.debate.domain.weighing import KindWeight, Weighing, count_over, load_weights
from moot.shared.domain.claims import HORIZONS
from moot.shared.domain.experts import ExpertType
from tests.fakes.debate import claim

TABLE = load_weights()


def test_every_expert_has_its_line_and_its_reason():
    assert set(TABLE.expert) == set(ExpertType)
    assert all(line.reason for line in TABLE.expert.values())
    assert all(line.reason for line in TABLE.kind.values())
    assert TABLE.fit.reason


@pytest.mark.parametrize("horizon", HORIZONS)
def test_together_they_are_the_whole_panel(horizon):
    counting = count_over(horizon)
    assert sum(counting.experts.values()) == pytest.approx(1)
    for expert, weight in counting.experts.items():
        own = [counting.places[expert, dimension] for dimension in expert.dimensions]
        assert sum(own) == pytest.approx(weight)


def test_an_expert_without_a_line_weighs_as_the_mean_of_the_others():
    known = {expert: line for expert, line in TABLE.expert.items() if expert != "macro_intelligence"}
    shares = TABLE.model_copy(update={"expert": known}).share_out(20)
    assert sum(shares.values()) == pytest.approx(1)
    others = [share for expert, share in shares.items() if expert != "macro_intelligence"]
    assert shares[ExpertType.MACRO_INTELLIGENCE] == pytest.approx(sum(others) / len(others))


def test_a_claim_fades_with_the_distance_of_its_horizon():
    week = claim("technical.rsi", 1.0).model_copy(update={"horizon": 5})
    left = [TABLE.scale(week.kind, week.horizon, horizon) for horizon in HORIZONS]
    assert left == TABLE.fit.steps
    assert left == sorted(left, reverse=True)
    leans = [Weighing([week], [], frozenset(ExpertType), horizon).lean for horizon in HORIZONS]
    assert leans[0] > leans[1] > leans[2] > 0


def test_a_kind_is_named_whole_or_by_its_rule():
    half = TABLE.model_copy(update={"kind": {"technical.rsi": KindWeight(weight=0.5, reason="measured")}})
    assert half.scale("technical.rsi.oversold", 20, 20) == 0.5
    assert half.scale("technical.macd.up", 20, 20) == 1
