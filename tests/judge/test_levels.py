"""Price levels: ATR distance or the nearest wall, whichever is farther; what cannot be known stays unknown."""

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from moot.modules.judge.domain.verdict import Levels, levels_for
from tests.fakes.judge import evidence

PRICES = st.floats(min_value=0.01, max_value=5000)
MAYBE = st.none() | PRICES


@pytest.mark.parametrize(
    ("known", "stop", "target"),
    [
        ({"atr_value": 0.5}, 9.0, 11.5),
        ({"atr_value": 0.5, "support": 9.4, "resistance": 10.8}, 9.0, 11.5),
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
def test_the_stop_is_never_above_the_support_below_the_price(price, atr, support):
    assume(0.01 <= round(support, 2) < price)
    stop = levels_for("BUY", evidence(current_price=price, atr_value=atr, support=support)).stop
    assert stop is not None
    assert stop <= round(support, 2)
