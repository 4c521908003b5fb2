"""What the jobs say to people: in notifications, and when something cannot be done."""

from pathlib import Path
from typing import Final

from moot.shared.domain.experts import EXPERT_TEXTS
from moot.shared.domain.messages import Catalogue

JOB_TEXTS: Final = Path(__file__).parent
SAY = Catalogue(JOB_TEXTS, EXPERT_TEXTS)
