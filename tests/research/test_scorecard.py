"""The scorecard: points from bands, a score from -1 to +1, and confidence from agreement and completeness."""

from math import inf

import pytest

from moot.modules.research.application.technical_analyst import TechnicalSnapshot
from moot.modules.research.domain.evidence import show
from moot.modules.research.domain.rubric import Band, Finding, Rule, Scorecard
from moot.shared.domain.units import AMOUNT, Unit

RSI = Rule("rsi", "rsi_value", (Band(30, 1, "low"), Band(70, 0, "middle"), Band(inf, -2, "high")))


def card(*points: float | None, doubt: float = 0.0) -> Scorecard:
    return Scorecard(tuple(Finding("rule", f"{p}", p, 2.0, "side") for p in points), doubt)


@pytest.mark.parametrize(
    ("value", "says"), [(29.9, "low"), (30.0, "middle"), (69.9, "middle"), (70.0, "high"), (1e9, "high")]
)
def test_a_band_holds_what_lies_below_its_limit(value: float, says: str) -> None:
    band = RSI.judge(TechnicalSnapshot.model_construct(rsi_value=value))
    assert band is not None
    assert band.says == says


def test_without_data_a_rule_does_not_judge() -> None:
    assert RSI.judge(TechnicalSnapshot.model_construct(rsi_value=None)) is None


def test_a_rule_may_measure_one_field_by_another() -> None:
    wide = (Band(110, 0, "narrow"), Band(inf, 1, "wide"))
    share, gap = Rule("a", "ma20", wide, of="ma60"), Rule("b", "ma20", wide, less="ma60")
    known = TechnicalSnapshot.model_construct(ma20=120.0, ma60=100.0)
    assert [rule.judge(known) for rule in (share, gap)] == [wide[1], wide[0]]
    for missing in ({"ma20": None, "ma60": 100.0}, {"ma20": 120.0, "ma60": None}):
        hole = TechnicalSnapshot.model_construct(**missing)
        assert [rule.judge(hole) for rule in (share, gap)] == [None, None]


def test_a_rule_weighs_as_much_as_its_strongest_band() -> None:
    assert RSI.weight == 2


def test_the_score_runs_from_all_against_to_all_for() -> None:
    assert card(2, 2).score == 1.0
    assert card(-2, -2).score == -1.0
    assert card(2, -1).score == 0.25
    assert card(2, -1).score_100 == 62


def test_holes_do_not_count_as_neutral() -> None:
    assert card(2, None, None).score == 1.0
    assert card(None).score is None
    assert len(card(2, None, None).holes) == 2


def test_arguments_are_sorted_by_weight_and_neutral_ones_left_out() -> None:
    mixed = card(1, -2, 0, 2, -1)
    assert [[f.text for f in mixed.on_side(sign)] for sign in (1, -1)] == [["2", "1"], ["-2", "-1"]]


def test_confidence_is_full_only_when_everything_points_one_way_and_nothing_is_missing() -> None:
    assert card(2, 2).confidence == 0.95
    assert card(2, 2, None).confidence == 0.63
    assert card(2, -2).confidence == 0.30
    assert card(2, -1).confidence == pytest.approx(0.30 + 0.35 / 3 + 0.30 / 4, abs=0.005)


def test_doubt_keeps_a_lone_finding_from_filling_the_scale() -> None:
    assert card(2, doubt=2.0).score == 0.5
    assert card(2, doubt=2.0).of("side").score == 0.5


@pytest.mark.parametrize(
    ("value", "unit", "english", "chinese"),
    [
        (16.37e6, AMOUNT, "CNY 16.37 million", "1,637.00 万元"),
        (-2.6079e8, AMOUNT, "CNY -260.79 million", "-2.61 亿元"),
        (6.36e9, AMOUNT, "CNY 6.36 billion", "63.60 亿元"),
        (26.534, Unit("plain", "", 4), "26.53", "26.53"),
        (-0.0629, Unit("plain", "", 4), "-0.0629", "-0.0629"),
    ],
)
def test_a_number_is_told_in_the_unit_and_the_digits_of_its_size(
    value: float, unit: Unit, english: str, chinese: str
) -> None:
    assert str(show(value, unit, "en-US")) == english
    assert str(show(value, unit, "zh-CN")) == chinese
