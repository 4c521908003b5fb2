"""The door: conditions in CEL (and in code) checked, and made ready to be tried."""

from collections.abc import Mapping, Sequence

from moot.modules.governance.domain.conditions import Problem
from moot.modules.governance.domain.engine import ConditionEngine
from moot.modules.governance.domain.rules import EnhancedRule
from moot.modules.governance.domain.tool_profiles import ToolProfile
from moot.modules.governance.infrastructure.cel.environment import declared
from moot.modules.governance.infrastructure.cel.index import CelIndex, Ready
from moot.modules.governance.infrastructure.cel.problems import problems_of
from moot.modules.governance.infrastructure.cel.program import Program


class CelConditions(ConditionEngine):
    def problems(self, rule: EnhancedRule, tools: Mapping[str, ToolProfile]) -> list[Problem]:
        return problems_of(rule, tools)

    def index(self, rules: Sequence[EnhancedRule], tools: Mapping[str, ToolProfile]) -> CelIndex:
        return CelIndex([_ready(rule, tools) for rule in rules if rule.enabled])


def _ready(rule: EnhancedRule, tools: Mapping[str, ToolProfile]) -> Ready:
    condition = rule.condition
    return Ready(rule, Program(condition, declared(rule, tools)) if isinstance(condition, str) else None)
