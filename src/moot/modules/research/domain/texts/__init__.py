"""What all experts say to people alike; what only one of them says stands in its own folder."""

from pathlib import Path

from moot.shared.domain.messages import Catalogue

COMMON = Path(__file__).parent
SAY = Catalogue(COMMON)
