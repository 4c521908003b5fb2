"""Rules, rulesets and what they decide, in the reader's language. What files spell is not translated."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import typer
from rich.console import Console
from rich.padding import Padding
from rich.table import Column, Table
from rich.text import Text

from moot.cli.printing import facts, folding, minute, number, table, whole
from moot.cli.texts import environment_locale, say
from moot.modules.governance.application.coordinator_agent import ValidationResult
from moot.modules.governance.application.decision_log import (
    DecisionRecord,
    Difference,
    SimulationReport,
    explain,
    recorded,
)
from moot.modules.governance.application.decision_validator import in_locale
from moot.modules.governance.application.rule_files import EnhancedRule, as_data
from moot.modules.governance.application.rulesets import Ruleset
from moot.shared.infrastructure.execution_context import DEFAULT_WORKSPACE

SHORT = 12
"""As much of a digest as people compare."""
SHOWN = 20
"""As many differences as people read."""
STATUS_COLOURS = {"approved": "green", "modified": "yellow", "escalated": "magenta", "rejected": "red"}
ACTION_COLOURS = {"log_warning": "", "suggest": "yellow", "reject": "red", "terminate": "bold red"}


def rule_table(rules: Sequence[EnhancedRule]) -> Table:
    """Two lines a rule: there is more to say than fits side by side. Ids are there to be copied, so never folded."""
    shown = table(
        folding("rules.column.rule", min_width=max(len(rule.id) for rule in rules)),
        whole("rules.column.kind"),
        whole("rules.column.action"),
        folding("rules.column.about"),
    )
    for rule in rules:
        about = [", ".join(rule.for_types) or say("rules.field.all"), *rule.tools]
        shown.add_row(
            Text.assemble((rule.id, "bold"), "\n", _text(rule, "name")),
            Text(f"{rule.category}\n{rule.source}"),
            Text.assemble((rule.action, ACTION_COLOURS[rule.action]), "\n", _state(rule)),
            Text("\n".join(about)),
        )
    return shown


def show_one(rule: EnhancedRule) -> None:
    data, console = as_data(rule), Console()
    console.print(Text.assemble((f"{rule.id}@{rule.version}", "bold"), " · ", _text(rule, "name")))
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
    console.print(facts({say(f"rules.field.{name}"): (value or "").strip() for name, value in told.items()}))


def ruleset_table(rulesets: Sequence[Ruleset], active: int | None) -> Table:
    shown = table(
        number("rules.column.number"),
        Column("", no_wrap=True),
        whole("rules.column.digest"),
        number("rules.column.rules"),
        whole("rules.column.when"),
        folding("rules.column.who"),
        folding("rules.column.note"),
    )
    for ruleset in rulesets:
        shown.add_row(
            str(ruleset.number),
            Text(say("rules.active_mark") if ruleset.number == active else "", "bold green"),
            ruleset.digest[:SHORT],
            str(len(ruleset.rules)),
            minute(ruleset.created_at),
            Text(ruleset.created_by),
            say("rules.shipped") if ruleset.number <= 0 else Text(ruleset.note),
        )
    return shown


class Tried(NamedTuple):
    result: ValidationResult
    expected: str | None


def trial_table(tried: Sequence[Tried]) -> Table:
    shown = table(
        folding("rules.column.request"),
        folding("rules.column.type"),
        whole("rules.column.status"),
        whole("rules.column.expected"),
        folding("rules.column.why"),
    )
    for result, expected in tried:
        request, mark = result.original_request, "✓" if expected == result.status else "✗"
        record = recorded(request, result, session_id=None, workspace=DEFAULT_WORKSPACE)
        shown.add_row(
            Text(request.decision_id),
            Text(request.decision_type),
            Text(result.status, STATUS_COLOURS[result.status]),
            Text(f"{mark} {expected}", "green" if mark == "✓" else "bold red") if expected else "—",
            Text(explain(record).in_locale(environment_locale())),
        )
    return shown


def decision_name(record: DecisionRecord) -> str:
    """Ids of the desk's own decisions say what they are of; others may say anything."""
    kind, named = record.decision_type, record.decision_id
    return named if named.startswith(kind) else f"{kind} {named}"


def show_simulation(report: SimulationReport, about: Mapping[str, Any]) -> None:
    """`about`: since which day, by which file, and how many rules that come with Moot stood beside it."""
    if not report.total:
        typer.echo(say("rules.nothing_to_simulate", **about))
        return
    key = "rules.simulated_beside" if about["shipped"] else "rules.simulated"
    typer.echo(say(key, count=report.total, **about))
    if not report.changed:
        typer.echo(say("rules.all_the_same"))
        return
    typer.echo(say("rules.same", same=report.same, changed=len(report.changed)) + "\n")
    console = Console()
    console.print(_counts(report))
    for difference in report.changed[:SHOWN]:
        _show_difference(console, difference)
    if (more := len(report.changed) - SHOWN) > 0:
        typer.echo("\n" + say("rules.more", count=more))


def _counts(report: SimulationReport) -> Table:
    shown = table(whole("rules.column.was"), whole("rules.column.now"), number("rules.column.count"))
    changed = [(difference.was, difference.now) for difference in report.changed]
    for was, now in sorted(set(changed), key=changed.index):
        shown.add_row(
            Text(was, STATUS_COLOURS[was]),
            Text(say("rules.otherwise", status=now) if was is now else now, STATUS_COLOURS[now]),
            str(changed.count((was, now))),
        )
    return shown


def _show_difference(console: Console, difference: Difference) -> None:
    decision = difference.decision
    headline = f"\n{minute(decision.decided_at)}  {decision_name(decision)}  "
    ending = (f"{difference.was} → {difference.now}", STATUS_COLOURS[difference.now])
    console.print(Text.assemble(headline, ending))
    if decision.session_id is not None:
        console.print(Text(f"  {say('rules.in_session', session_id=decision.session_id)}", "dim"))
    console.print(Padding(Text(difference.because.in_locale(environment_locale())), (0, 0, 0, 2)))


def _text(rule: EnhancedRule, name: str) -> str:
    return in_locale(rule, name, environment_locale()) or str(getattr(rule, name))


def _state(rule: EnhancedRule) -> str:
    return say(f"rules.state.{rule.mode if rule.enabled else 'off'}")


def _example(example: dict[str, Any]) -> str:
    label = say("rules.field.breaks" if example["violates"] else "rules.field.passes")
    return f"{label}: {_inline({name: part for name, part in example.items() if name != 'violates'})}"


def _inline(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False) if value else ""
