"""Rules in YAML, for people to write: read, tried on their own examples, and written.

A file holds `rules`, a list, and may hold `profile` and `description`, which tell what it is for, and `defaults`,
which every rule of it has unless it says otherwise.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from difflib import get_close_matches
from types import MappingProxyType
from typing import Any

import yaml
from pydantic import ValidationError

from moot.modules.governance.application.facts import FactFinder
from moot.modules.governance.application.rule_yaml import Document, Path, Unreadable, read_yaml
from moot.modules.governance.domain.conditions import DECISION_TYPES, Problem, ToolProfile
from moot.modules.governance.domain.decisions import DecisionRequest
from moot.modules.governance.domain.rules import (
    ConditionEngine,
    EnhancedRule,
    Example,
    NamedCondition,
    RuleIndex,
    RuleSource,
)
from moot.modules.governance.domain.rulesets import CALL, Complaint, Registered, RuleRefused, as_data
from moot.modules.governance.domain.texts import SAY
from moot.shared.domain.messages import LOCALES
from moot.shared.domain.validation import invalid_input

__all__ = ["Complaint", "EnhancedRule", "Reading", "RuleReader", "RuleRefused", "as_data", "write_rules"]

TOP = ("profile", "description", "defaults", "rules")
FIELDS = tuple(EnhancedRule.model_fields)
TEXTS = ("name", "description", "suggestion")
"""What `metadata` may say in several languages."""


def write_rules(rules: Iterable[EnhancedRule]) -> str:
    """A file that reads as the same rules, but for the order of their fields."""
    told = [{name: data[name] for name in FIELDS if name in data} for data in map(as_data, rules)]
    return yaml.dump({"rules": told}, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=110)


class _Dumper(yaml.SafeDumper):
    """Several lines of text are written as such. Nothing is written as an alias."""

    def ignore_aliases(self, _data: Any) -> bool:
        return True


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.Node:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)


_Dumper.add_representer(str, _text)


class RuleReader:
    """What rules may name, and whether they are sound. `conditions` are those in code, by name and version."""

    def __init__(
        self,
        engine: ConditionEngine,
        tools: Mapping[str, ToolProfile] = MappingProxyType({}),
        conditions: Mapping[str, NamedCondition] = MappingProxyType({}),
        facts: FactFinder | None = None,
    ) -> None:
        self.engine, self.tools, self.conditions = engine, tools, conditions
        self.facts = facts or FactFinder(lambda tool, _context: tools.get(tool), lambda *_: True)

    def read(self, text: str, where: str = "rules.yaml") -> list[EnhancedRule]:
        """The rules of a file, drafts switched off; `RuleRefused` lists everything that is wrong with it."""
        return self.inspect(text, where).accept()

    def inspect(self, text: str, where: str = "rules.yaml") -> "Reading":
        """With everything that is wrong with a file, and which of its rules are drafts."""
        return self.inspect_files({where: text})

    def inspect_files(self, texts: Mapping[str, str]) -> "Reading":
        """The same of several, by their names, which are to be used together."""
        reading = Reading(self)
        for where, text in texts.items():
            reading.add(text, where)
        return reading

    def inspect_rules(self, rules: Iterable[EnhancedRule]) -> "Reading":
        """The same of rules that came otherwise: lines are those of a condition's own text."""
        reading = Reading(self)
        reading.add_entries([as_data(rule) for rule in rules])
        return reading

    def index(self, rules: Sequence[EnhancedRule]) -> RuleIndex:
        return self.engine.index(rules, self.tools)

    def complaints(self, rule: EnhancedRule) -> list[Complaint]:
        """What is wrong with what the rule says; whether its examples bear it out is `tried`'s business."""
        found = [*_unknown_types(rule), *_unknown_paths(rule)]
        if not found:
            found = [_in_condition(problem) for problem in self.engine.problems(rule, self.tools)]
        return [replace(complaint, rule=rule.id) for complaint in found]

    def try_examples(self, rule: EnhancedRule) -> list[tuple[int, Complaint]]:
        """Which of the rule's examples do not come out as they say, by their place in the list."""
        index = self.index([rule.model_copy(update={"enabled": True})])
        outcomes = [_outcome(rule, example, index, self.facts) for example in rule.examples]
        return [(place, replace(found, rule=rule.id)) for place, found in enumerate(outcomes) if found]


@dataclass
class Reading:
    """What came of reading files one after the other, or rules that stand in none."""

    by: RuleReader
    where: str | None = None
    rules: list[EnhancedRule] = field(default_factory=list)
    complaints: list[Complaint] = field(default_factory=list)
    _document: Document = field(default_factory=Document)
    _seen: set[str] = field(default_factory=set)

    def accept(self) -> list[EnhancedRule]:
        """`RuleRefused` if there is an error anywhere."""
        if wrong := [complaint for complaint in self.complaints if complaint.severity == "error"]:
            raise RuleRefused(wrong)
        return self.rules

    def add(self, text: str, where: str) -> None:
        self.where = where
        try:
            self._document = read_yaml(text)
        except Unreadable as e:
            self.complaints.append(replace(e.complaint, file=self.where))
        else:
            self.add_entries(self._entries())

    def add_entries(self, entries: Sequence[Any]) -> None:
        for place, entry in enumerate(entries):
            self._read(place, entry)

    def _entries(self) -> list[Any]:
        tree = self._document.value
        entries = tree.get("rules") if isinstance(tree, Mapping) else None
        if not isinstance(tree, Mapping) or not isinstance(entries, list):
            self._complain((), Complaint(SAY("rules.no_rules")))
            return []
        self._refuse_unknown((), tree, TOP)
        defaults = tree.get("defaults") or {}
        if not isinstance(defaults, Mapping):
            self._complain(("defaults",), Complaint(SAY("rules.not_a_map"), field="defaults"))
            return []
        self._refuse_unknown(("defaults",), defaults, FIELDS)
        return [{**defaults, **entry} if isinstance(entry, Mapping) else entry for entry in entries]

    def _read(self, place: int, entry: Any) -> None:
        at: Path = ("rules", place)
        if not isinstance(entry, Mapping):
            self._complain(at, Complaint(SAY("rules.not_a_map")))
            return
        rule_id = str(entry.get("id", f"#{place + 1}"))
        if rule_id in self._seen:
            self._complain((*at, "id"), Complaint(SAY("rules.duplicate", rule=rule_id), rule_id, "id"))
        self._seen.add(rule_id)
        if (
            self._refuse_unknown(at, entry, FIELDS, rule_id)
            or (rule := self._built(at, entry, rule_id)) is None
        ):
            return
        if not self._is_sound(at, rule):
            return
        if rule.is_draft:
            self._complain(at, Complaint(SAY("rules.draft"), rule.id, "examples", severity="draft"))
            rule = rule.model_copy(update={"enabled": False})
        self.rules.append(rule)

    def _built(self, at: Path, entry: Mapping[str, Any], rule_id: str) -> EnhancedRule | None:
        wrong = [*self._bad_texts(entry)]
        called = self._find_condition(entry)
        if isinstance(called, Complaint):
            wrong.append(called)
        given = entry if isinstance(called, Complaint | None) else {**entry, "condition": called}
        try:
            rule = EnhancedRule.model_validate(given)
        except ValidationError as e:
            rule, wrong = None, [*wrong, *_findings(e)]
        for complaint in wrong:
            self._complain((*at, *_way(complaint.field)), replace(complaint, rule=rule_id))
        return rule if not wrong else None

    def _find_condition(self, entry: Mapping[str, Any]) -> Registered | Complaint | None:
        """The condition in code that `call:NAME@VERSION` names; None: it names none."""
        written = entry.get("condition")
        if not isinstance(written, str) or not written.startswith(CALL):
            return None
        reference = written.removeprefix(CALL).strip()
        if entry.get("source") != RuleSource.SYSTEM:
            return Complaint(SAY("rules.call_is_the_systems"), field="condition")
        if reference not in self.by.conditions:
            why = SAY("rules.unknown_call", reference=reference, known=sorted(self.by.conditions))
            return Complaint(why, field="condition", nearest=nearest(reference, self.by.conditions))
        return Registered(reference, self.by.conditions[reference])

    def _bad_texts(self, entry: Mapping[str, Any]) -> Iterator[Complaint]:
        metadata = entry.get("metadata")
        if not isinstance(metadata, Mapping):
            return
        for name in TEXTS:
            given = metadata.get(name, "")
            by_locale = isinstance(given, Mapping) and given and set(given) <= set(LOCALES)
            texts = list(given.values()) if by_locale else [given]
            if not all(isinstance(text, str) for text in texts):
                yield Complaint(SAY("rules.bad_text", known=list(LOCALES)), field=f"metadata.{name}")

    def _is_sound(self, at: Path, rule: EnhancedRule) -> bool:
        wrong = self.by.complaints(rule)
        for complaint in wrong:
            self._complain((*at, *_way(complaint.field)), complaint)
        failed = [] if wrong else self.by.try_examples(rule)
        for place, complaint in failed:
            self._complain((*at, "examples", place), replace(complaint, field=f"examples.{place}"))
        return not wrong and not failed

    def _refuse_unknown(
        self, at: Path, entry: Mapping[str, Any], known: tuple[str, ...], rule: str | None = None
    ) -> bool:
        unknown = [name for name in entry if name not in known]
        for name in unknown:
            why = SAY("rules.unknown_key", name=name, known=list(known))
            found = Complaint(why, rule, name, nearest=nearest(name, known))
            self._complain((*at, name), found)
        return bool(unknown)

    def _complain(self, at: Path, complaint: Complaint) -> None:
        line = self._document.line(*at) if self.where else None
        if complaint.line is not None:  # a line of the condition's own text
            line = self._document.texts.get(at, line or 1) + complaint.line - 1
        self.complaints.append(replace(complaint, file=self.where, line=line))


def _findings(error: ValidationError) -> Iterator[Complaint]:
    """What pydantic found, each in our words, with the nearest of what is allowed."""
    of_the_condition = [finding for finding in error.errors() if finding["loc"][:1] == ("condition",)]
    if of_the_condition:  # it is neither text nor code: two findings, one mistake
        yield Complaint(SAY("rules.bad_condition"), field="condition")
    for finding in (each for each in error.errors() if each not in of_the_condition):
        told = invalid_input([finding])
        problem = told.details["errors"][0]
        known = nearest(_word(problem.get("got")), problem.get("allowed", []))
        yield Complaint(told.message, field=problem["field"] if finding["loc"] else None, nearest=known)


def _word(got: Any) -> str:
    return str(got[0] if isinstance(got, list) and got else got).strip("'")


def _way(field_name: str | None) -> Path:
    """`examples.0.violates` as a path."""
    return tuple(int(part) if part.isdigit() else part for part in (field_name or "").split(".") if part)


NOON = datetime(2026, 1, 5, 12, tzinfo=UTC)
"""When examples take place."""


def nearest(name: str, known: Iterable[str]) -> str | None:
    return next(iter(get_close_matches(name, list(known), n=1)), None)


def _in_condition(problem: Problem) -> Complaint:
    line, column, why, advice = problem
    return Complaint(why, field="condition", line=line, column=column, advice=advice)


def _unknown_types(rule: EnhancedRule) -> Iterator[Complaint]:
    for name in rule.decision_types:
        if name not in DECISION_TYPES:
            why = SAY("rules.unknown_type", name=name, known=list(DECISION_TYPES))
            yield Complaint(why, field="decision_types", nearest=nearest(name, DECISION_TYPES))


def _unknown_paths(rule: EnhancedRule) -> Iterator[Complaint]:
    """A corrector that aims at a field no such decision has would never correct anything."""
    path: str | None = getattr(rule.corrector, "path", None)
    if path is None:
        return
    for name in (known for known in rule.for_types if known in DECISION_TYPES):
        fields = {f"payload.{field}": kind for field, kind in DECISION_TYPES[name].payload.items()}
        open_ended = [field for field, kind in fields.items() if kind in ("map", "list")]
        if path not in fields and not any(path.startswith(f"{field}.") for field in open_ended):
            why = SAY("rules.unknown_path", path=path, type=name, known=list(fields))
            yield Complaint(why, field="corrector.path", nearest=nearest(path, fields))


def _outcome(rule: EnhancedRule, example: Example, index: RuleIndex, facts: FactFinder) -> Complaint | None:
    types = [example.decision_type] if example.decision_type else list(rule.for_types)
    known = rule.for_types or DECISION_TYPES
    if len(types) != 1 or (rule.for_types and types[0] not in known):
        return Complaint(SAY("rules.example_without_type", known=list(known)))
    request = DecisionRequest("example", types[0], example.payload, example.context, "example", NOON)
    fired = index.find_broken(facts.facts(request, example.payload))
    finding = fired[0].finding if fired else None
    if finding is not None and finding.error is not None:  # it proves nothing
        return Complaint(SAY("rules.example_undecided", error=finding.error))
    if finding is not None and not example.violates:
        seen = ", ".join(f"{name} = {value!r}" for name, value in finding.values.items()) or "-"
        return Complaint(SAY("rules.example_fired", because=finding.because, seen=seen))
    return Complaint(SAY("rules.example_did_not_fire")) if finding is None and example.violates else None
