"""What the jobs say to people: in notifications, and when something cannot be done."""

from pathlib import Path

from moot.shared.domain.experts import EXPERT_TEXTS
from moot.shared.domain.messages import Catalogue

SAY = Catalogue(Path(__file__).parent, EXPERT_TEXTS)
