"""What the debate says to people."""

from collections.abc import Sequence
from pathlib import Path

from moot.shared.domain.experts import EXPERT_TEXTS
from moot.shared.domain.messages import Catalogue, Locale

SAY = Catalogue(Path(__file__).parent, EXPERT_TEXTS)


def bullets(lines: Sequence[str], locale: Locale) -> str:
    """One line each; an empty list says that it is empty."""
    return "\n".join(f"- {line}" for line in lines or [SAY("none").in_locale(locale)])
