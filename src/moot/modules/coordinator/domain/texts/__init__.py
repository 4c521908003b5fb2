"""What the coordinator says to people."""

from pathlib import Path

from moot.shared.domain.datasets import DATASET_TEXTS
from moot.shared.domain.experts import EXPERT_TEXTS
from moot.shared.domain.messages import Catalogue

SAY = Catalogue(Path(__file__).parent, DATASET_TEXTS, EXPERT_TEXTS)
MEASURES = Catalogue(Path(__file__).parent / "measures")
"""How a report calls and writes what evidence measures; whoever reports nothing need not load it."""
