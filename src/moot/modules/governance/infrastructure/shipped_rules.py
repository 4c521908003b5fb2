"""The rules that come with Moot: a file each in `rules/`, put together to profiles."""

from pathlib import Path

from moot.modules.governance.application.rule_files import RuleReader
from moot.modules.governance.domain.rules import EnhancedRule

FOLDER = Path(__file__).parent / "rules"
PROFILES: dict[str, tuple[str, ...]] = {
    "presets": ("presets",),
    "tools": ("presets", "tools"),
    "research": ("presets", "research", "tools"),
    "default": ("presets", "research", "risk", "ashare", "tools"),
}


def shipped_rules(profile: str, reader: RuleReader) -> list[EnhancedRule]:
    """The rules of a profile. One whose metadata says so stands in the place of the rule it `replaces`."""
    rules = [
        rule
        for name in PROFILES[profile]
        for rule in reader.read((FOLDER / f"{name}.yaml").read_text(encoding="utf-8"), f"{name}.yaml")
    ]
    replaced = {rule.metadata.get("replaces") for rule in rules}
    return [rule for rule in rules if rule.id not in replaced]
