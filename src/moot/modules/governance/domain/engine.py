"""The engine that tries many rules on one decision, and its port."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

from moot.modules.governance.domain.conditions import Facts, Finding, Problem
from moot.modules.governance.domain.rules import EnhancedRule
from moot.modules.governance.domain.tool_profiles import ToolProfile


class Fired(NamedTuple):
    """A rule that is broken, and why."""

    rule: EnhancedRule
    finding: Finding


class RuleIndex(Protocol):
    """Rules made ready to be tried. Immutable: a decision is made by one index from beginning to end."""

    def fired(self, facts: Facts) -> list[Fired]:
        """Every rule of the index that applies and is broken, in the order in which rules are checked."""


class ConditionEngine(Protocol):
    def problems(self, rule: EnhancedRule, tools: Mapping[str, ToolProfile]) -> list[Problem]:
        """What keeps the rule's condition from being used: syntax, unknown names, types. Empty: nothing."""

    def index(self, rules: Sequence[EnhancedRule], tools: Mapping[str, ToolProfile]) -> RuleIndex:
        """Make `rules` ready, all without problems; disabled ones are left out, shadowed ones are not."""
