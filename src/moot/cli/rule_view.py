"""Rules, rulesets and what they decide, in the reader's language. What files spell is not translated."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import typer
from rich.console import Console
from rich.padding import Padding
from rich.table import Column
from rich.text import Text

from moot.cli.printing import Field, field, line_field, list_facts, minute, print_table, tell
from moot.cli.texts import environment_locale, say
from moot.modules.governance.application.coordinator_agent import ValidationResult
from moot.modules.governance.application.decision_log import (
    DecisionRecord,
    Difference,
    SimulationReport,
    explain,
    make_record,
)
from moot.modules.governance.application.decision_validator import in_locale
from moot.modules.governance.application.rule_files import EnhancedRule, as_data
from moot.modules.governance.application.rulesets import RuleChanges, Ruleset
from moot.shared.infrastructure.execution_context import DEFAULT_WORKSPACE

SHORT = 12
"""As much of a digest as people compare."""
SHOWN = 20
"""As many differences as people read."""
STATUS_COLOURS = {"approved": "green", "modified": "yellow", "escalated": "magenta", "rejected": "red"}
ACTION_COLOURS = {"log_warning": "", "suggest": "yellow", "reject": "red", "terminate": "bold red"}


def show_rules(rules: Sequence[EnhancedRule]) -> None:
    """Two lines a rule: there is more to say than fits side by side. Ids are there to be copied, so never folded."""
    longest = max(len(rule.id) for rule in rules)
    print_table(
        rules,
        field(
            "rules.column.rule",
            lambda rule: Text.assemble((rule.id, "bold"), "\n", _text(rule, "name")),
            min_width=longest,
        ),
        line_field("rules.column.kind", lambda rule: f"{rule.category}\n{rule.source}"),
        line_field(
            "rules.column.action",
            lambda rule: Text.assemble((rule.action, ACTION_COLOURS[rule.action]), "\n", _state(rule)),
        ),
        field("rules.column.about", lambda rule: "\n".join([_types(rule), *rule.tools])),
    )


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
        "decision_types": _types(rule),
        "tools": ", ".join(rule.tools),
        "category": rule.category,
        "source": rule.source,
        "priority": str(rule.priority),
        "state": _state(rule),
        "examples": "\n".join(map(_example, data.get("examples", ()))),
    }
    console.print(
        list_facts({say(f"rules.field.{name}"): (value or "").strip() for name, value in told.items()})
    )


def show_rulesets(rulesets: Sequence[Ruleset], active: int) -> None:
    mark = Text(say("rules.active_mark"), "bold green")
    altered = Text(say("rules.altered_mark"), "bold red")
    print_table(
        rulesets,
        line_field("rules.column.number", lambda ruleset: str(ruleset.number), justify="right"),
        Field(Column("", no_wrap=True), lambda ruleset: mark if ruleset.number == active else ""),
        Field(Column("", no_wrap=True), lambda ruleset: "" if ruleset.intact else altered),
        line_field("rules.column.digest", lambda ruleset: ruleset.digest[:SHORT]),
        line_field("rules.column.rules", lambda ruleset: str(len(ruleset.rules)), justify="right"),
        line_field("rules.column.when", lambda ruleset: minute(ruleset.created_at)),
        field("rules.column.who", lambda ruleset: ruleset.created_by),
        field("rules.column.note", lambda r: say("rules.shipped") if r.number <= 0 else r.note),
    )


def show_changes(changes: RuleChanges) -> None:
    """What goes and what comes, a line each, before anybody is asked about it."""
    rows = [
        *((("-", "red"), *gone) for gone in changes.removed.items()),
        *((("+", "green"), *new) for new in changes.added.items()),
        *((("~", "yellow"), rule_id, ", ".join(names)) for rule_id, names in changes.changed.items()),
    ]
    counts = {kind: len(getattr(changes, kind)) for kind in ("removed", "added", "changed")}
    tell("rules.changes" if rows else "rules.no_changes", **counts)
    for (sign, colour), rule_id, told in rows:
        Console().print(Text.assemble((f"{sign} {rule_id}", colour), f"  {told}"))


class Tried(NamedTuple):
    result: ValidationResult
    expected: str | None

    @property
    def expectation(self) -> Text:
        if self.expected is None:
            return Text("—")
        met = self.expected == self.result.status
        return Text(f"{'✓' if met else '✗'} {self.expected}", "green" if met else "bold red")

    @property
    def why(self) -> str:
        request = self.result.original_request
        record = make_record(request, self.result, session_id=None, workspace=DEFAULT_WORKSPACE)
        return explain(record).in_locale(environment_locale())


def show_trials(tried: Sequence[Tried]) -> None:
    print_table(
        tried,
        field("rules.column.request", lambda each: each.result.original_request.decision_id),
        field("rules.column.type", lambda each: each.result.original_request.decision_type),
        line_field("rules.column.status", lambda each: colour_status(each.result.status)),
        line_field("rules.column.expected", lambda each: each.expectation),
        field("rules.column.why", lambda each: each.why),
    )


def colour_status(status: str) -> Text:
    return Text(status, STATUS_COLOURS[status])


def decision_name(record: DecisionRecord) -> str:
    """Ids of the desk's own decisions say what they are of; others may say anything."""
    kind, named = record.decision_type, record.decision_id
    return named if named.startswith(kind) else f"{kind} {named}"


def show_decisions(records: Sequence[DecisionRecord]) -> None:
    """What a session was allowed to do, and why, a sentence each."""
    print_table(
        records,
        field("rules.column.request", decision_name),
        line_field("rules.column.status", lambda record: colour_status(record.status)),
        field("rules.column.why", lambda record: explain(record).in_locale(environment_locale())),
        none="decide.none_of_session",
    )


def show_simulation(report: SimulationReport, about: Mapping[str, Any]) -> None:
    """`about`: since which day, by which file, and how many rules that come with Moot stood beside it."""
    if not report.total:
        tell("rules.nothing_to_simulate", **about)
        return
    key = "rules.simulated_beside" if about["shipped"] else "rules.simulated"
    tell(key, count=report.total, **about)
    if not report.changed:
        tell("rules.all_the_same")
        return
    typer.echo(say("rules.same", same=report.same, changed=len(report.changed)) + "\n")
    changed = [(difference.was, difference.now) for difference in report.changed]
    print_table(
        list(dict.fromkeys(changed)),
        line_field("rules.column.was", lambda pair: colour_status(pair[0])),
        line_field("rules.column.now", _now),
        line_field("rules.column.count", lambda pair: str(changed.count(pair)), justify="right"),
    )
    for difference in report.changed[:SHOWN]:
        _show_difference(difference)
    if (more := len(report.changed) - SHOWN) > 0:
        typer.echo("\n" + say("rules.more", count=more))


def _now(pair: tuple[str, str]) -> Text:
    was, now = pair
    return Text(say("rules.otherwise", status=now) if was == now else now, STATUS_COLOURS[now])


def _show_difference(difference: Difference) -> None:
    console, decision = Console(), difference.decision
    headline = f"\n{minute(decision.decided_at)}  {decision_name(decision)}  "
    ending = (f"{difference.was} → {difference.now}", STATUS_COLOURS[difference.now])
    console.print(Text.assemble(headline, ending))
    if decision.session_id is not None:
        console.print(Text(f"  {say('rules.in_session', session_id=decision.session_id)}", "dim"))
    console.print(Padding(Text(difference.because.in_locale(environment_locale())), (0, 0, 0, 2)))


def _text(rule: EnhancedRule, name: str) -> str:
    return in_locale(rule, name, environment_locale()) or str(getattr(rule, name))


def _types(rule: EnhancedRule) -> str:
    return ", ".join(rule.for_types) or say("rules.field.all")


def _state(rule: EnhancedRule) -> str:
    return say(f"rules.state.{rule.mode if rule.enabled else 'off'}")


def _example(example: dict[str, Any]) -> str:
    label = say("rules.field.breaks" if example["violates"] else "rules.field.passes")
    return f"{label}: {_inline({name: part for name, part in example.items() if name != 'violates'})}"


def _inline(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False) if value else ""
