"""Fixtures of the ways in: the command line, and a desk whose nodes wait."""

from pathlib import Path

import pytest

from tests.entry.inside import Run, inside
from tests.entry.serving import Gate

AUTHORISE = "moot.modules.coordinator.infrastructure.adapters.governance_adapter.GovernanceAdapter.authorise"


@pytest.fixture
def moot(home: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """`moot`, as somebody runs it on the desk of the test."""
    return inside(home, monkeypatch)


@pytest.fixture
def gate(monkeypatch: pytest.MonkeyPatch) -> Gate:
    """Every desk asks it, instead of its rules, whether a node may run."""
    gate = Gate()
    monkeypatch.setattr(AUTHORISE, gate.authorise)
    return gate
