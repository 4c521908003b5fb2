"""Rules in YAML, for people to write: read, tried on their own examples, and written.

A file holds `rules`, a list, and may hold `profile` and `description`, which tell what it is for, and `defaults`,
which every rule of it has unless it says otherwise. Only what JSON can say: dates stay text, `yes` and `no` are
words, tags, anchors and aliases are refused, and so is a key that stands there twice.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import yaml
from pydantic import ValidationError

from moot.modules.governance.application.rule_checks import TEXTS, RuleChecker, name_unknown
from moot.modules.governance.domain.rules import Complaint, EnhancedRule, RuleSource
from moot.modules.governance.domain.rulesets import CALL, Registered, RuleRefused, as_data
from moot.modules.governance.domain.texts import SAY
from moot.shared.domain.messages import LOCALES, LOG_LOCALE, Locale
from moot.shared.domain.validation import invalid_input

__all__ = ["Complaint", "EnhancedRule", "Reading", "RuleReader", "RuleRefused", "as_data", "write_rules"]

LARGEST = 1_000_000
DEEPEST = 30
TOP = ("profile", "description", "defaults", "rules")
FIELDS = tuple(EnhancedRule.model_fields)
PLAIN: tuple[tuple[re.Pattern[str], Callable[[str], Any]], ...] = (
    (re.compile(r"~|null|Null|NULL|"), lambda _: None),
    (re.compile(r"true|True|TRUE"), lambda _: True),
    (re.compile(r"false|False|FALSE"), lambda _: False),
    (re.compile(r"[-+]?\d{1,18}"), int),
    (re.compile(r"[-+]?(\d+\.\d*|\.\d+|\d+)([eE][-+]?\d{1,2})?"), float),
)
"""What an unquoted word may mean besides itself."""
PARSER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


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


@dataclass
class Document:
    """`lines` holds the line of everything by its dotted path; `texts`, the first line of a block of text."""

    value: Any = None
    lines: dict[str, int] = field(default_factory=dict)
    texts: dict[str, int] = field(default_factory=dict)

    def line(self, path: str) -> int:
        """Where that is; if it is not there, where the nearest thing around it is."""
        while path and path not in self.lines:
            path = path.rpartition(".")[0]
        return self.lines.get(path, 1)


def read_yaml(text: str) -> Document:
    """`RuleRefused` says why it is not YAML Moot reads."""
    if len(text) > LARGEST:
        raise RuleRefused([Complaint(SAY("rules.too_large", most=LARGEST))])
    document = Document()
    try:
        _refuse_magic(yaml.parse(text, Loader=PARSER))
        if node := yaml.compose(text, Loader=PARSER):
            document.value = _build(node, "", document)
    except (yaml.YAMLError, UnicodeEncodeError) as e:
        mark = getattr(e, "problem_mark", None)
        why = SAY("rules.bad_yaml", why=getattr(e, "problem", None) or str(e))
        raise RuleRefused([Complaint(why, line=mark.line + 1 if mark else None)]) from e
    return document


def _refuse_magic(events: Iterable[yaml.Event]) -> None:
    """How deep a text goes is its author's choice, how high the stack gets is not: so before anything is built."""
    documents = depth = 0
    for event in events:
        documents += isinstance(event, yaml.DocumentStartEvent)
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if documents > 1:
            raise _refuse("rules.several_documents", event)
        if depth > DEEPEST:
            raise _refuse("rules.too_deep", event, most=DEEPEST)
        if getattr(event, "anchor", None) is not None:  # an alias has the name of its anchor
            raise _refuse("rules.anchor", event)
        if (tag := getattr(event, "tag", None)) not in (None, "!"):
            raise _refuse("rules.tag", event, tag=tag)


def _build(node: yaml.Node, path: str, document: Document) -> Any:
    document.lines.setdefault(path, _line(node))
    if isinstance(node, yaml.SequenceNode):
        return [_build(member, f"{path}.{place}", document) for place, member in enumerate(node.value)]
    if isinstance(node, yaml.ScalarNode):
        if node.style == "|":
            document.texts[path] = _line(node) + 1
        meanings = (read for pattern, read in PLAIN if not node.style and pattern.fullmatch(node.value))
        return next(meanings, str)(node.value)
    built: dict[str, Any] = {}
    for key, value in node.value:
        if not isinstance(key, yaml.ScalarNode):
            raise _refuse("rules.bad_key", key)
        if key.value in built:
            raise _refuse("rules.key_twice", key, key=key.value)
        document.lines[f"{path}.{key.value}"] = _line(key)
        built[key.value] = _build(value, f"{path}.{key.value}", document)
    return built


def _line(part: yaml.Event | yaml.Node) -> int:
    return part.start_mark.line + 1 if part.start_mark else 1


def _refuse(text: str, part: yaml.Event | yaml.Node, **values: Any) -> RuleRefused:
    return RuleRefused([Complaint(SAY(text, **values), line=_line(part))])


class RuleReader(RuleChecker):
    def read(self, text: str, where: str = "rules.yaml", *, tried: bool = False) -> list[EnhancedRule]:
        """The rules of a file, drafts switched off; `RuleRefused` lists everything that is wrong with it.

        One that was `tried` before is not compiled, nor are its examples.
        """
        return self.inspect_files({where: text}, tried=tried).accept()

    def inspect_files(self, texts: Mapping[str, str], *, tried: bool = False) -> "Reading":
        """Everything that is wrong with files, by their names, to be used together, and which rules are drafts."""
        reading = Reading(self, tried=tried)
        for where, text in texts.items():
            reading.add(text, where)
        return reading


@dataclass
class Reading:
    """What came of reading files one after the other, or rules that stand in none."""

    by: RuleReader
    where: str | None = None
    tried: bool = False
    rules: list[EnhancedRule] = field(default_factory=list)
    complaints: list[Complaint] = field(default_factory=list)
    _document: Document = field(default_factory=Document)
    _seen: set[str] = field(default_factory=set)

    @property
    def errors(self) -> list[Complaint]:
        return [complaint for complaint in self.complaints if complaint.severity == "error"]

    def accept(self, reader: Locale = LOG_LOCALE) -> list[EnhancedRule]:
        """`RuleRefused` if there is an error anywhere."""
        if self.errors:
            raise RuleRefused(self.errors, reader)
        return self.rules

    def add(self, text: str, where: str) -> None:
        self.where = where
        try:
            self._document = read_yaml(text)
        except RuleRefused as e:
            self.complaints += [replace(complaint, file=where) for complaint in e.complaints]
        else:
            self.add_entries(self._entries())

    def add_entries(self, entries: Iterable[Any]) -> None:
        """Rules as data; where they stand in no file, lines are those of a condition's own text."""
        for place, entry in enumerate(entries):
            if isinstance(entry, Mapping):
                self._read(f".rules.{place}", str(entry.get("id", f"#{place + 1}")), entry)
            else:
                self._complain(f".rules.{place}", Complaint(SAY("rules.not_a_map")))

    def _entries(self) -> list[Any]:
        tree = self._document.value
        entries = tree.get("rules") if isinstance(tree, Mapping) else None
        if not isinstance(tree, Mapping) or not isinstance(entries, list):
            self._complain("", Complaint(SAY("rules.no_rules")))
            return []
        defaults = tree.get("defaults") or {}
        self._complain("", *_find_unknown(tree, TOP))
        if not isinstance(defaults, Mapping):
            self._complain("", Complaint(SAY("rules.not_a_map"), field="defaults"))
            return []
        self._complain(".defaults", *_find_unknown(defaults, FIELDS))
        return [{**defaults, **entry} if isinstance(entry, Mapping) else entry for entry in entries]

    def _read(self, at: str, rule_id: str, entry: Mapping[str, Any]) -> None:
        if rule_id in self._seen:
            self._complain(at, Complaint(SAY("rules.duplicate", rule=rule_id), rule_id, "id"))
        self._seen.add(rule_id)
        wrong: list[Complaint] = [*_find_unknown(entry, FIELDS)]
        rule = None if wrong else self._build(entry, wrong)
        self._complain(at, *(replace(complaint, rule=rule_id) for complaint in wrong))
        if rule is None or wrong:
            return
        for find in () if self.tried else (self.by.complaints, self.by.try_examples, self.by.find_idle):
            if found := find(rule):
                self._complain(at, *found)
                return
        if rule.is_draft:
            self._complain(at, Complaint(SAY("rules.draft"), rule.id, "examples", severity="draft"))
            rule = rule.model_copy(update={"enabled": False})
        self.rules.append(rule)

    def _build(self, entry: Mapping[str, Any], wrong: list[Complaint]) -> EnhancedRule | None:
        """Adds to `wrong` what keeps it from being one."""
        wrong += _find_bad_texts(entry)
        called = self._find_condition(entry)
        if isinstance(called, Complaint):
            wrong.append(called)
        try:
            return EnhancedRule.model_validate(
                {**entry, "condition": called} if isinstance(called, Registered) else entry
            )
        except ValidationError as e:
            wrong += _findings(e)
            return None

    def _find_condition(self, entry: Mapping[str, Any]) -> Registered | Complaint | None:
        """The condition in code that `call:NAME@VERSION` names; None: it names none."""
        written = entry.get("condition")
        if not isinstance(written, str) or not written.startswith(CALL):
            return None
        reference = written.removeprefix(CALL).strip()
        if entry.get("source") != RuleSource.SYSTEM:
            return Complaint(SAY("rules.call_is_the_systems"), field="condition")
        if reference not in self.by.conditions:
            known = sorted(self.by.conditions)
            return name_unknown("rules.unknown_call", reference, known, "condition", reference=reference)
        return Registered(reference, self.by.conditions[reference])

    def _complain(self, at: str, *complaints: Complaint) -> None:
        """Each of its field below `at`."""
        for complaint in complaints:
            place = f"{at}.{complaint.field}" if complaint.field else at
            line = self._document.line(place) if self.where else None
            if complaint.line is not None:  # a line of the condition's own text
                line = self._document.texts.get(place, line or 1) + complaint.line - 1
            self.complaints.append(replace(complaint, file=self.where, line=line))


def _find_unknown(entry: Mapping[str, Any], known: Sequence[str]) -> Iterator[Complaint]:
    unknown = (name for name in entry if name not in known)
    return (name_unknown("rules.unknown_key", name, known, name) for name in unknown)


def _find_bad_texts(entry: Mapping[str, Any]) -> Iterator[Complaint]:
    metadata = entry.get("metadata")
    for name in (*TEXTS, "because") if isinstance(metadata, Mapping) else ():
        given = entry["metadata"].get(name, "")
        by_locale = isinstance(given, Mapping) and given and set(given) <= set(LOCALES)
        texts = list(given.values()) if by_locale else [given]
        if not all(isinstance(text, str) for text in texts):
            yield Complaint(SAY("rules.bad_text", known=list(LOCALES)), field=f"metadata.{name}")


def _findings(error: ValidationError) -> Iterator[Complaint]:
    """What pydantic found, each in our words, with the nearest of what is allowed."""
    of_the_condition = [finding for finding in error.errors() if finding["loc"][:1] == ("condition",)]
    if of_the_condition:  # it is neither text nor code: two findings, one mistake
        yield Complaint(SAY("rules.bad_condition"), field="condition")
    for finding in (each for each in error.errors() if each not in of_the_condition):
        told = invalid_input([finding])
        problem = told.details["errors"][0]
        where, near = problem["field"] if finding["loc"] else None, problem.get("nearest")
        yield Complaint(told.message, field=where, nearest=near[0] if near else None)
