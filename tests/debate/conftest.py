"""For tests of how an argument is held and told, which must not hang on what experts were found to be worth."""

import pytest

from moot.modules.debate.domain import weighing
from moot.modules.debate.domain.weighing import ExpertWeight, load_weights
from moot.shared.domain.experts import ExpertType


@pytest.fixture
def even_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every expert counts alike, and every kind of claim for what it says."""
    lines = {expert: ExpertWeight(weights=[0.2] * 3, reason="even") for expert in ExpertType}
    even = load_weights().model_copy(update={"expert": lines, "kind": {}})
    monkeypatch.setattr(weighing, "load_weights", lambda: even)
    monkeypatch.setattr(weighing, "count_over", weighing.count_over.__wrapped__)
