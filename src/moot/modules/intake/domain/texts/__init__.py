"""What intake says to people, in each of their languages."""

from pathlib import Path

from moot.shared.domain.messages import Catalogue

SAY = Catalogue(Path(__file__).parent)
