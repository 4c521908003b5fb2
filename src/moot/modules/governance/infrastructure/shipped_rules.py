"""The rules that come with Moot: a file each in `rules/`, put together to profiles."""

from collections.abc import Mapping
from pathlib import Path

from moot.modules.governance.application.facts import FactFinder
from moot.modules.governance.application.rule_files import read_rules
from moot.modules.governance.domain.conditions import ToolProfile
from moot.modules.governance.domain.rules import ConditionEngine, EnhancedRule, NamedCondition

FOLDER = Path(__file__).parent / "rules"
PROFILES: dict[str, tuple[str, ...]] = {
    "presets": ("presets",),
    "tools": ("presets", "tools"),
    "research": ("presets", "research", "tools"),
    "default": ("presets", "research", "risk", "ashare", "tools"),
}


def shipped_rules(
    profile: str = "default",
    *,
    engine: ConditionEngine,
    tools: Mapping[str, ToolProfile],
    conditions: Mapping[str, NamedCondition],
    facts: FactFinder | None = None,
) -> list[EnhancedRule]:
    """The rules of a profile. One whose metadata says so stands in the place of the rule it `replaces`."""
    rules = [
        rule
        for name in PROFILES[profile]
        for rule in read_rules(
            (FOLDER / f"{name}.yaml").read_text(encoding="utf-8"),
            where=f"{name}.yaml",
            engine=engine,
            tools=tools,
            conditions=conditions,
            facts=facts,
        )
    ]
    replaced = {rule.metadata.get("replaces") for rule in rules}
    return [rule for rule in rules if rule.id not in replaced]
