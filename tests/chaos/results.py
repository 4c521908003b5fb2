"""What must be equal in two runs of the same question."""

from typing import Any

from moot.modules.coordinator.application.dtos.research_dtos import ResearchResult

ACCIDENTAL = {"session_id", "usage", "audit_gaps"}
"""Which session it was, what this process paid for it, and what could not be written down."""


def essence(result: ResearchResult) -> dict[str, Any]:
    return result.model_dump(exclude=ACCIDENTAL)
