"""What governance says to people."""

from pathlib import Path

from moot.shared.domain.messages import Catalogue

SAY = Catalogue(Path(__file__).parent)
