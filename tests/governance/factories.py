"""Rules, facts and requests in a few words."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from moot.modules.governance.application.corrections import Corrections
from moot.modules.governance.application.rule_files import RuleReader
from moot.modules.governance.container import correct_sql
from moot.modules.governance.domain.conditions import Facts, ToolProfile
from moot.modules.governance.domain.decisions import DecisionRequest
from moot.modules.governance.domain.rules import ConditionEngine, EnhancedRule, NamedCondition
from moot.modules.governance.infrastructure.cel.index import CelConditions

NOON = datetime(2026, 3, 2, 12, 0, tzinfo=UTC)
ENGINE = CelConditions()
CORRECTIONS = Corrections(lambda sql, corrector: correct_sql(sql, corrector, {}))


def reader(
    tools: Mapping[str, ToolProfile] | None = None,
    conditions: Mapping[str, NamedCondition] | None = None,
    engine: ConditionEngine = ENGINE,
) -> RuleReader:
    """Of rules that replace no others."""
    return RuleReader(lambda: engine, tools or {}, conditions or {}, CORRECTIONS, list)


def rule(condition: Any = "payload.tool == 'rm'", **changes: Any) -> EnhancedRule:
    given = {"id": "a.rule", "name": "A rule", "category": "tool", "action": "reject", "source": "system"}
    if "tools" not in changes:
        given["decision_types"] = ("tool_call",)
    return EnhancedRule.model_validate(given | {"condition": condition} | changes)


def facts(
    payload: Mapping[str, Any],
    context: Mapping[str, Any] | None = None,
    decision_type: str = "tool_call",
    **changes: Any,
) -> Facts:
    context = context or {}
    values = dict(flat("payload", payload)) | dict(flat("context", context))
    given = {"decision_type": decision_type, "tool": payload.get("tool"), "now": NOON}
    return Facts(**given, values=values, payload=payload, context=context, **changes)


def flat(prefix: str, tree: Mapping[str, Any]) -> Any:
    """Every value under its dotted name, maps also as a whole."""
    for name, value in tree.items():
        yield f"{prefix}.{name}", value
        if isinstance(value, Mapping):
            yield from flat(f"{prefix}.{name}", value)


def request(payload: Mapping[str, Any], decision_type: str = "tool_call", **context: Any) -> DecisionRequest:
    return DecisionRequest("d-1", decision_type, payload, context, requester="agent", timestamp=NOON)
