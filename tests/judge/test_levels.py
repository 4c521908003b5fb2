"""Price levels: the stop at the wall that refutes the view, the target wherever is farther; what is not known stays
unknown.
"""

from datetime import datetime

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from moot.modules.judge.domain.levels import Levels, find_price, levels_for
from tests.fakes.judge import evidence

PRICES = st.floats(min_value=0.01, max_value=5000)
MAYBE = st.none() | PRICES


@pytest.mark.parametrize(
    ("known", "stop", "target"),
    [
        ({"atr_value": 0.5}, 9.0, 11.5),
        ({"atr_value": 0.5, "support": 9.4, "resistance": 10.8}, 9.4, 11.5),
        ({"atr_value": 0.5, "support": 8.7, "resistance": 12.2}, 8.7, 12.2),
        ({"support": 9.4, "resistance": 10.8}, 9.4, 10.8),
        ({"atr_value": None, "support": 9.4}, 9.4, None),
        ({"support": 10.3, "resistance": 9.9}, None, None),
        ({"atr_value": "N/A"}, None, None),
        ({"atr_value": 6.0}, None, 28.0),
        ({"atr_value": 0.001}, None, None),
        ({}, None, None),
    ],
)
def test_a_purchase_stops_below_its_price_and_takes_profit_above(known, stop, target):
    levels = levels_for("BUY", evidence(current_price=10.0, **known))
    assert levels == Levels(entry=10.0, stop=stop, target=target)


def test_what_is_held_is_watched_like_a_purchase():
    facts = evidence(current_price=10.0, atr_value=0.5, support=8.7)
    assert levels_for("HOLD", facts) == levels_for("BUY", facts) == Levels(entry=10.0, stop=8.7, target=11.5)


def test_a_sale_mirrors_a_purchase():
    facts = evidence(current_price=10.0, atr_value=0.5, support=8.2, resistance=11.3)
    assert levels_for("SELL", facts) == Levels(entry=10.0, stop=11.3, target=8.2)


@pytest.mark.parametrize("price", [None, "N/A", 0.0, -3.0])
def test_without_a_price_there_are_no_levels(price):
    assert levels_for("BUY", evidence(current_price=price, atr_value=0.5, support=9.4)) == Levels()


def later(day: str, **facts):
    return [item.model_copy(update={"as_of": datetime.fromisoformat(day)}) for item in evidence(**facts)]


def test_the_price_is_the_newest_that_anybody_cites():
    newer = later("2026-01-12T08:00:00+00:00", current_price=10.6)
    others = [item.model_copy(update={"id": "valuation.current_price"}) for item in newer]
    facts = [*evidence(current_price=10.0, atr_value=0.5, support=9.4), *others]
    assert find_price(facts) == others[0]
    assert levels_for("BUY", facts) == Levels(entry=10.6)  # what was measured before it is too old


def test_levels_that_the_price_has_passed_are_not_given():
    facts = evidence(current_price=10.0, support=10.4, resistance=9.6)
    assert levels_for("BUY", facts) == Levels(entry=10.0)


def test_levels_are_in_ticks():
    facts = evidence(current_price=10.004, atr_value=0.3333)
    assert levels_for("BUY", facts) == Levels(entry=10.0, stop=9.33, target=11.0)


@given(price=PRICES, atr=MAYBE, support=MAYBE, resistance=MAYBE)
def test_whatever_the_evidence_the_known_levels_are_in_order(price, atr, support, resistance):
    facts = evidence(current_price=price, atr_value=atr, support=support, resistance=resistance)
    assert all(levels_for(action, facts).fit(action) for action in ("BUY", "SELL", "HOLD"))


@given(price=st.floats(min_value=1, max_value=5000), share=st.floats(min_value=0.02, max_value=0.3))
def test_with_price_and_atr_stop_entry_and_target_of_a_purchase_are_known_and_ordered(price, share):
    levels = levels_for("BUY", evidence(current_price=price, atr_value=price * share))
    assert None not in (levels.stop, levels.entry, levels.target)
    assert 0 < levels.stop < levels.entry < levels.target


@given(price=PRICES, atr=PRICES, support=PRICES)
def test_the_stop_is_the_support_below_the_price(price, atr, support):
    assume(0.01 <= round(support, 2) < round(price, 2))
    stop = levels_for("BUY", evidence(current_price=price, atr_value=atr, support=support)).stop
    assert stop == round(support, 2)
