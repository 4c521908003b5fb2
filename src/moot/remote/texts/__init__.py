"""What is said when a desk elsewhere cannot be asked."""

from pathlib import Path

from moot.shared.domain.messages import Catalogue

SAY = Catalogue(Path(__file__).parent)
