"""What people are told about a broken rule, in their language."""

from collections.abc import Iterable, Mapping
from typing import Any

from moot.modules.governance.domain.decisions import RuleViolation
from moot.modules.governance.domain.engine import Fired
from moot.modules.governance.domain.rules import EnhancedRule
from moot.modules.governance.domain.texts import SAY
from moot.shared.domain.messages import Locale, locale_of
from moot.shared.infrastructure.redaction import REDACT


def violation_of(fired: Fired, locale: str, *, escalates: bool, corrected: bool) -> RuleViolation:
    rule, finding = fired
    reader = locale_of(locale)
    values = REDACT(dict(finding.values))
    return RuleViolation(
        rule_id=rule.id,
        rule_name=in_locale(rule, "name", reader) or rule.name,
        action=rule.action,
        message=_message(rule, fired, values, reader),
        version=rule.version,
        category=rule.category,
        source=rule.source,
        mode=rule.mode,
        because=REDACT(finding.because),
        values=values,
        suggestion=finding.suggestion or in_locale(rule, "suggestion", reader) or None,
        error=finding.error,
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


def _message(rule: EnhancedRule, fired: Fired, values: Mapping[str, Any], locale: Locale) -> str:
    name, finding = in_locale(rule, "name", locale) or rule.name, fired.finding
    if finding.error is not None:
        return SAY("violation.undecided", rule=name, error=finding.error).in_locale(locale)
    seen = [f"{path} = {value!r}" for path, value in values.items()]
    key = "violation.with_values" if seen else "violation.plain"
    return SAY(key, rule=name, because=finding.because, seen=seen).in_locale(locale)
