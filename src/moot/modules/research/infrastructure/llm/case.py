"""What a model is shown of a snapshot beside the evidence: who it is about, what is missing, what others wrote."""

import json
from collections.abc import Iterable
from typing import Any

from moot.modules.research.domain.evidence import Snapshot

MISSING = "N/A"


def case_of(snapshot: Snapshot, shows: Iterable[str], quotes: Iterable[str]) -> str:
    """Measurements come with the evidence; here they appear only where one is missing, lest it be overlooked."""
    holes = [name for name in snapshot.units() if _has_hole(getattr(snapshot, name))]
    return "\n".join(
        [
            *(f"{name}: {_shown(getattr(snapshot, name))}" for name in [*shows, *holes]),
            *(f"{name}:\n{_quoted(getattr(snapshot, name))}" for name in quotes),
        ]
    )


def _has_hole(value: Any) -> bool:
    return value is None or (isinstance(value, list) and None in value)


def _shown(value: Any) -> str:
    """On one line."""
    if value is None:
        return MISSING
    if isinstance(value, list):
        value = [MISSING if member is None else member for member in value]
    return _no_markup(" ".join(json.dumps(value, ensure_ascii=False, default=str).splitlines()))


def _quoted(text: str) -> str:
    """Every line is marked, so that nothing in a text can pose as a line of the desk's own."""
    return "\n".join(f"> {_no_markup(line)}" for line in text.splitlines())


def _no_markup(text: str) -> str:
    """Nor as one of the tags that frame the evidence."""
    return text.replace("<", "\\u003c")
