"""What keeps a rule or a ruleset from being used."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from moot.modules.governance.domain.texts import SAY, joined
from moot.shared.domain.errors import Conflict, InvalidInput, NotFound
from moot.shared.domain.messages import LOG_LOCALE, Locale, Message

SHOWN = 10
"""As many complaints are told in one sentence; `details` hold them all."""


@dataclass(frozen=True, slots=True)
class Complaint:
    """One thing that is wrong with a rule. `line` is of the file, `column` of the text that stands in the field.

    `nearest` is the word that was meant, perhaps; `advice` says more than a word.
    """

    why: str | Message
    rule: str | None = None
    field: str | None = None
    file: str | None = None
    line: int | None = None
    column: int | None = None
    nearest: str | None = None
    advice: Message | None = None
    severity: Literal["error", "draft"] = "error"

    @property
    def said(self) -> Message:
        why = self.why
        if self.nearest:
            why = SAY("rules.did_you_mean", why=why, nearest=self.nearest)
        if self.advice:
            why = SAY("rules.with_advice", why=why, advice=self.advice)
        field = None if self.field and str(self.why).startswith(self.field) else self.field
        named = [part for part in (self._place, self._rule, field) if part]
        return SAY("rules.complaint", where=named, why=why) if named else SAY("rules.only", why=why)

    @property
    def _place(self) -> str | Message | None:
        if self.line is None:
            return self.file
        place = {"line": self.line, "column": self.column}
        if self.file is None:
            return SAY("rules.in_condition", **place)
        return SAY("rules.at_line" if self.column is None else "rules.at_column", file=self.file, **place)

    @property
    def _rule(self) -> Message | None:
        return SAY("rules.rule", rule=self.rule) if self.rule else None

    def as_details(self, reader: Locale) -> dict[str, Any]:
        why = self.why.in_locale(reader) if isinstance(self.why, Message) else self.why
        advice = self.advice.in_locale(reader) if self.advice else None
        said = {"message": why, "suggestion": self.nearest or advice, "severity": self.severity}
        place = {"rule": self.rule, "field": self.field, "file": self.file}
        told = place | {"line": self.line, "column": self.column} | said
        return {name: value for name, value in told.items() if value is not None}


class RuleRefused(InvalidInput):
    """Nothing was stored; `complaints` say what to change, and where. `reader` is who reads the details."""

    code = "RULE_REFUSED"

    def __init__(self, complaints: Sequence[Complaint], reader: Locale = LOG_LOCALE) -> None:
        said = [complaint.said for complaint in complaints[:SHOWN]]
        if more := len(complaints) - len(said):
            said.append(SAY("rules.and_more", more=more))
        super().__init__(joined(said), problems=[complaint.as_details(reader) for complaint in complaints])
        self.complaints = tuple(complaints)


class DuplicateRuleError(Conflict):
    code = "RULE_DUPLICATE"

    def __init__(self, rule_id: str) -> None:
        super().__init__(SAY("rules.duplicate", rule=rule_id), rule=rule_id)


class NoSuchRule(NotFound):
    code = "RULE_NOT_FOUND"

    def __init__(self, rule_id: str) -> None:
        super().__init__(SAY("rules.no_such_rule", rule=rule_id), rule=rule_id)


class NoSuchRuleset(NotFound):
    code = "RULESET_NOT_FOUND"

    def __init__(self, ruleset: int) -> None:
        super().__init__(SAY("rules.no_such_ruleset", ruleset=ruleset), ruleset=ruleset)
