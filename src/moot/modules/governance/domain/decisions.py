"""A decision somebody wants to act on, and what the rules make of it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any, Literal

from moot.modules.governance.domain.rules import RuleAction, RuleCategory, RuleSource
from moot.shared.domain.clock import SystemClock


class ValidationStatus(StrEnum):
    """A lattice: whatever one rule says, another can only make it worse."""

    APPROVED = "approved"
    MODIFIED = "modified"
    ESCALATED = "escalated"
    REJECTED = "rejected"

    @property
    def severity(self) -> int:
        return SEVERITY[self]


SEVERITY = {status: place for place, status in enumerate(ValidationStatus)}


@dataclass(frozen=True, slots=True)
class DecisionRequest:
    """`payload` is what an agent proposes and may say anything; `context` is what the framework knows: trusted."""

    decision_id: str
    decision_type: str
    payload: Mapping[str, Any]
    context: Mapping[str, Any] = field(default_factory=dict)
    requester: str = ""
    timestamp: datetime = field(default_factory=lambda: SystemClock().now())


@dataclass(frozen=True, slots=True)
class RuleViolation:
    """`because` is the part of the condition that held, `values` what it saw (secrets taken out)."""

    rule_id: str
    rule_name: str
    action: RuleAction
    message: str
    version: int = 1
    category: RuleCategory = RuleCategory.BEHAVIOR
    source: RuleSource = RuleSource.SYSTEM
    mode: Literal["enforce", "shadow"] = "enforce"
    because: str = ""
    values: Mapping[str, Any] = field(default_factory=dict)
    suggestion: str | None = None
    error: str | None = None
    escalates: bool = False
    corrected: bool = False
    """The modified payload no longer breaks it."""

    @property
    def rule(self) -> str:
        return f"{self.rule_id}@{self.version}"


@dataclass(frozen=True, slots=True)
class Change:
    """One operation of a JSON Patch (RFC 6902), and the rule that asked for it."""

    op: Literal["add", "remove", "replace"]
    path: str
    rule: str
    value: Any = None
    was: Any = None


@dataclass(frozen=True, slots=True)
class ValidationResult:
    """`approved_instead`: a payload that would pass, where the rules can tell one."""

    status: ValidationStatus
    original_request: DecisionRequest
    modified_payload: dict[str, Any] | None
    violations: tuple[RuleViolation, ...]
    suggestions: tuple[str, ...]
    timestamp: datetime
    changes: tuple[Change, ...] = ()
    approved_instead: dict[str, Any] | None = None
    terminates: bool = False
    ruleset: str = ""
    """The digest of the rules that decided."""

    @property
    def may_proceed(self) -> bool:
        return self.status in (ValidationStatus.APPROVED, ValidationStatus.MODIFIED)

    @property
    def payload(self) -> Mapping[str, Any]:
        """What may be acted on, if anything."""
        return self.original_request.payload if self.modified_payload is None else self.modified_payload
