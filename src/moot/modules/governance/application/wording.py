"""What people are told about a broken rule, in their language."""

from collections.abc import Iterable, Mapping
from typing import Any

from moot.modules.governance.domain.decisions import RuleViolation
from moot.modules.governance.domain.engine import Fired
from moot.modules.governance.domain.rules import EnhancedRule
from moot.modules.governance.domain.texts import SAY
from moot.shared.domain.messages import Locale, Message, locale_of
from moot.shared.infrastructure.redaction import REDACT


def violation_of(fired: Fired, locale: str, *, escalates: bool, corrected: bool) -> RuleViolation:
    rule, finding = fired
    reader = locale_of(locale)
    values, because = REDACT(dict(finding.values)), REDACT(_said(finding.because, reader))
    error = None if finding.error is None else _said(finding.error, reader)
    name = in_locale(rule, "name", reader) or rule.name
    return RuleViolation(
        rule_id=rule.id,
        rule_name=name,
        action=rule.action,
        message=_message(name, because, values, error).in_locale(reader),
        version=rule.version,
        category=rule.category,
        source=rule.source,
        mode=rule.mode,
        because=because,
        values=values,
        suggestion=_said(finding.suggestion or "", reader) or in_locale(rule, "suggestion", reader) or None,
        error=error,
        escalates=escalates,
        corrected=corrected,
    )


def suggestions(violations: Iterable[RuleViolation]) -> tuple[str, ...]:
    """Each once, of the rules that count."""
    said = [v.suggestion or v.message for v in violations if v.mode == "enforce"]
    return tuple(dict.fromkeys(said))


def in_locale(rule: EnhancedRule, text: str, locale: Locale) -> str:
    """A text of the rule's metadata: one for everybody, or one per locale."""
    given = rule.metadata.get(text)
    if isinstance(given, Mapping):
        return str(given.get(locale) or next(iter(given.values()), ""))
    return str(given or "")


def _said(text: str | Message, reader: Locale) -> str:
    return text.in_locale(reader) if isinstance(text, Message) else text


def _message(name: str, because: str, values: Mapping[str, Any], error: str | None) -> Message:
    if error is not None:
        return SAY("violation.undecided", rule=name, error=error)
    seen = [f"{path} = {value!r}" for path, value in values.items()]
    key = "violation.with_values" if seen else "violation.plain"
    return SAY(key, rule=name, because=because, seen=seen)
