"""How the kinds of market data are called, and up to which day somebody has used each."""

from datetime import date
from pathlib import Path
from typing import Final

DATASET_TEXTS: Final = Path(__file__).parent
"""For the catalogue of whoever names them: `dataset.<name>`."""

DataUntil = dict[str, date]
"""By dataset, the day of the newest row that was used."""
