"""Rules and rulesets in the terminal, in the reader's language. What files spell is not translated."""

import json
from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.table import Column, Table
from rich.text import Text

from moot.cli.texts import environment_locale, say
from moot.modules.governance.application.decision_log import DecisionRecord
from moot.modules.governance.application.decision_validator import in_locale
from moot.modules.governance.application.rule_files import EnhancedRule, as_data
from moot.modules.governance.application.rulesets import Ruleset

SHORT = 12
"""As much of a digest as people compare."""
STATUS_COLOURS = {"approved": "green", "modified": "yellow", "escalated": "magenta", "rejected": "red"}
ACTION_COLOURS = {"log_warning": "", "suggest": "yellow", "reject": "red", "terminate": "bold red"}


def rule_table(rules: Sequence[EnhancedRule]) -> Table:
    """Two lines a rule: there is more to say than fits side by side. Ids are there to be copied, so never folded."""
    columns = [
        Column(say("rules.column.rule"), overflow="fold", min_width=max(len(rule.id) for rule in rules)),
        Column(say("rules.column.kind"), no_wrap=True),
        Column(say("rules.column.action"), no_wrap=True),
        Column(say("rules.column.about"), overflow="fold"),
    ]
    table = Table(*columns, box=None, pad_edge=False, header_style="bold")
    for rule in rules:
        about = [", ".join(rule.for_types) or say("rules.field.all"), *rule.tools]
        table.add_row(
            Text.assemble((rule.id, "bold"), "\n", _text(rule, "name")),
            Text(f"{rule.category}\n{rule.source}"),
            Text.assemble((rule.action, ACTION_COLOURS[rule.action]), "\n", _state(rule)),
            Text("\n".join(about)),
        )
    return table


def show_one(console: Console, rule: EnhancedRule) -> None:
    data = as_data(rule)
    console.print(Text.assemble((f"{rule.id}@{rule.version}", "bold"), " · ", _text(rule, "name")))
    facts = Table(box=None, show_header=False, pad_edge=False)
    facts.add_column(style="bold", no_wrap=True)
    facts.add_column(overflow="fold")
    told = {
        "description": _text(rule, "description"),
        "condition": data["condition"],
        "action": rule.action,
        "requires_human": "✓" if rule.requires_human else "",
        "suggestion": in_locale(rule, "suggestion", environment_locale()),
        "corrector": _inline(data.get("corrector")),
        "decision_types": ", ".join(rule.for_types) or say("rules.field.all"),
        "tools": ", ".join(rule.tools),
        "category": rule.category,
        "source": rule.source,
        "priority": str(rule.priority),
        "state": _state(rule),
        "examples": "\n".join(map(_example, data.get("examples", ()))),
    }
    for name, value in told.items():
        if value:
            facts.add_row(say(f"rules.field.{name}"), Text(value.strip()))
    console.print(facts)


def ruleset_table(rulesets: Sequence[Ruleset], active: int | None) -> Table:
    columns = [
        Column(say("rules.column.number"), justify="right", no_wrap=True),
        Column("", no_wrap=True),
        Column(say("rules.column.digest"), no_wrap=True),
        Column(say("rules.column.rules"), justify="right", no_wrap=True),
        Column(say("rules.column.when"), no_wrap=True),
        Column(say("rules.column.who"), overflow="fold"),
        Column(say("rules.column.note"), overflow="fold"),
    ]
    table = Table(*columns, box=None, pad_edge=False, header_style="bold")
    for ruleset in rulesets:
        table.add_row(
            str(ruleset.number),
            Text(say("rules.active_mark") if ruleset.number == active else "", "bold green"),
            ruleset.digest[:SHORT],
            str(len(ruleset.rules)),
            f"{ruleset.created_at:%Y-%m-%d %H:%M}",
            Text(ruleset.created_by),
            say("rules.shipped") if ruleset.number <= 0 else Text(ruleset.note),
        )
    return table


def decision_name(record: DecisionRecord) -> str:
    """Ids of the desk's own decisions say what they are of; others may say anything."""
    kind, named = record.decision_type, record.decision_id
    return named if named.startswith(kind) else f"{kind} {named}"


def _text(rule: EnhancedRule, name: str) -> str:
    return in_locale(rule, name, environment_locale()) or str(getattr(rule, name))


def _state(rule: EnhancedRule) -> str:
    return say(f"rules.state.{rule.mode if rule.enabled else 'off'}")


def _example(example: dict[str, Any]) -> str:
    label = say("rules.field.breaks" if example["violates"] else "rules.field.passes")
    return f"{label}: {_inline({name: part for name, part in example.items() if name != 'violates'})}"


def _inline(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False) if value else ""
