"""A rule: when it is broken, and what follows."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any, Literal, NamedTuple, Protocol, Self, cast

from pydantic import AfterValidator, BaseModel, Field, model_validator

from moot.modules.governance.domain.conditions import (
    CONTEXT,
    DECISION_TYPES,
    DecisionType,
    Facts,
    Fields,
    Finding,
    Kind,
    ToolProfile,
)
from moot.modules.governance.domain.texts import SAY
from moot.shared.domain.messages import Locale, Message, in_words
from moot.shared.domain.validation import Strict, refuse

Path = Annotated[str, Field(pattern=r"^payload(\.[A-Za-z0-9_-]+)+$")]
"""A field as a condition names it: `payload.args.limit`."""
Bound = Annotated[float, Field(strict=True, allow_inf_nan=False)]
Text = Annotated[str, Field(min_length=1)]
Names = tuple[Text, ...]


def _iso_time(text: str) -> str:
    """As databases compare it with a column: as text."""
    try:
        datetime.fromisoformat(text)
    except ValueError:
        raise refuse("moment_malformed", got=repr(text)) from None
    return text


IsoTime = Annotated[str, AfterValidator(_iso_time)]


class Mask(Strict):
    """Replaces the values of these fields, wherever they are below `path`, by `replacement`."""

    kind: Literal["mask"]
    path: Path | None = None
    fields: Names = Field(min_length=1)
    replacement: str = "***"


class Drop(Strict):
    """Takes fields out: keys of these names below `path`, or members of a list at `path` that are called so."""

    kind: Literal["drop"]
    path: Path | None = None
    fields: Names = Field(min_length=1)


class Clamp(Strict):
    """Brings a number into its bounds."""

    kind: Literal["clamp"]
    path: Path
    at_least: Bound | None = None
    at_most: Bound | None = None

    @model_validator(mode="after")
    def _has_a_bound(self) -> "Clamp":
        if self.at_least is None and self.at_most is None:
            raise refuse("no_bound")
        if self.at_least is not None and self.at_most is not None and self.at_least > self.at_most:
            raise refuse("bounds_inverted", got=f"{self.at_least:g} > {self.at_most:g}")
        return self


class SetValue(Strict):
    """Puts a value in the place of whatever is there."""

    kind: Literal["set"]
    path: Path
    value: Any


class RewriteSql(Strict):
    """Rewrites the statement at `path`: columns masked or left out, a limit, a time filter, `*` spelt out."""

    kind: Literal["sql"]
    path: Path
    mask: Names = ()
    drop: Names = ()
    limit: int | None = Field(default=None, ge=1, strict=True)
    time_column: Text | None = None
    since: IsoTime | None = None
    """ISO date or time; with `until`, what `time_column` must lie between (since included, until not)."""
    until: IsoTime | None = None

    @model_validator(mode="after")
    def _filters_something(self) -> "RewriteSql":
        if (self.time_column is None) != (self.since is None and self.until is None):
            raise refuse("half_a_filter")
        if self.since and self.until and self.since >= self.until:
            raise refuse("bounds_inverted", got=f"{self.since} >= {self.until}")
        return self


Corrector = Annotated[Mask | Drop | Clamp | SetValue | RewriteSql, Field(discriminator="kind")]


class RuleCategory(StrEnum):
    """In the order in which a decision is checked."""

    BEHAVIOR = "behavior"
    TOOL = "tool"
    DATA = "data"
    EXECUTION = "execution"
    GOAL = "goal"


class RuleSource(StrEnum):
    """Rules of `user` and `generated` can only tighten what the others allow."""

    USER = "user"
    SYSTEM = "system"
    TOOL = "tool"
    GENERATED = "generated"


class RuleAction(StrEnum):
    """`suggest`: go on as the rule's corrector changes it, or not at all. `terminate`: the session ends too."""

    LOG_WARNING = "log_warning"
    SUGGEST = "suggest"
    REJECT = "reject"
    TERMINATE = "terminate"


class Example(Strict):
    """A decision the rule is tried on when it is loaded."""

    violates: bool
    payload: dict[str, Any] = Field(default_factory=dict)
    context: dict[str, Any] = Field(default_factory=dict)
    decision_type: str | None = None
    """Needed only when the rule is for several, or for all."""


NamedCondition = Callable[[Facts], "bool | Finding | None"]
"""For SYSTEM rules of this process only, registered by name and version: `call:NAME@VERSION` in a rule file."""


class EnhancedRule(BaseModel, frozen=True, extra="forbid", arbitrary_types_allowed=True):
    """`condition` true means that the rule is broken. Smaller `priority` comes first."""

    id: str = Field(pattern=r"^[a-z0-9][a-z0-9_.-]*$", max_length=80)
    name: str = Field(min_length=1, max_length=200)
    category: RuleCategory
    description: str = ""
    condition: Annotated[str, Field(min_length=1, max_length=10_000)] | NamedCondition
    action: RuleAction
    priority: int = Field(default=100, ge=0, le=1_000_000)
    enabled: bool = True
    source: RuleSource = RuleSource.USER
    metadata: dict[str, Any] = {}
    """`suggestion` (a text, or one per locale) is told to whoever broke the rule."""
    version: int = Field(default=1, ge=1)
    mode: Literal["enforce", "shadow"] = "enforce"
    """`shadow`: what it would have done is noted, and nothing else."""
    decision_types: Names = ()
    """Empty: every decision, with `payload` untyped."""
    tools: Names = ()
    """Empty: every tool. Names one: the rule is for `tool_call` and sees that tool's own arguments."""
    requires_human: bool = False
    examples: tuple[Example, ...] = ()
    corrector: Corrector | None = None

    @model_validator(mode="after")
    def _code_is_the_systems(self) -> Self:
        if callable(self.condition) and self.source is not RuleSource.SYSTEM:
            raise refuse("code_by_others")
        if self.tools and self.decision_types not in ((), ("tool_call",)):
            raise refuse("tools_elsewhere")
        return self

    @property
    def for_types(self) -> tuple[str, ...]:
        """The decisions it is about; empty: all."""
        return ("tool_call",) if self.tools else self.decision_types

    @property
    def is_draft(self) -> bool:
        """A rule in words has to show one decision that breaks it and one that does not."""
        is_proven = {example.violates for example in self.examples} == {True, False}
        return isinstance(self.condition, str) and not is_proven

    @property
    def tightens(self) -> bool:
        return self.source in (RuleSource.USER, RuleSource.GENERATED)

    @property
    def order(self) -> tuple[int, int, str]:
        return CHECKED.index(self.category), self.priority, self.id


CHECKED = list(RuleCategory)


class Fired(NamedTuple):
    """A rule that is broken, and why."""

    rule: EnhancedRule
    finding: Finding


class RuleIndex(Protocol):
    """Rules made ready to be tried. Immutable: a decision is made by one index from beginning to end."""

    def find_broken(self, facts: Facts) -> list[Fired]:
        """Every rule of the index that applies and is broken, in the order in which rules are checked."""


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
        rule = SAY("rules.rule", rule=self.rule) if self.rule else None
        named = [part for part in (self._place, rule, field) if part]
        return SAY("rules.complaint", where=named, why=why) if named else SAY("rules.only", why=why)

    @property
    def _place(self) -> str | Message | None:
        if self.line is None:
            return self.file
        place = {"line": self.line, "column": self.column}
        if self.file is None:
            return SAY("rules.in_condition", **place)
        return SAY("rules.at_line" if self.column is None else "rules.at_column", file=self.file, **place)

    def as_details(self, reader: Locale) -> dict[str, Any]:
        suggestion = self.nearest or in_words(self.advice, reader)
        said = {"message": in_words(self.why, reader), "suggestion": suggestion, "severity": self.severity}
        place = {"rule": self.rule, "field": self.field, "file": self.file}
        told = place | {"line": self.line, "column": self.column} | said
        return {name: value for name, value in told.items() if value is not None}


class ConditionEngine(Protocol):
    def problems(self, rule: EnhancedRule, tools: Mapping[str, ToolProfile]) -> list[Complaint]:
        """What keeps the rule's condition from being used: syntax, unknown names, types. Empty: nothing."""

    def index(self, rules: Sequence[EnhancedRule], tools: Mapping[str, ToolProfile]) -> RuleIndex:
        """Make `rules` ready, all without problems; disabled ones are left out, shadowed ones are not."""


Declared = dict[str, Kind]
"""Of which kind the fields of a rule's decisions are: what its condition may name and its corrector change."""


def fields_for(rule: EnhancedRule, tools: Mapping[str, ToolProfile]) -> Declared:
    """The fields that mean the same in every decision the rule is for."""
    if not rule.for_types:
        return {"payload": "map", **_prefix("context", CONTEXT)}
    seen = [decision_type_for(rule, name, tools) for name in rule.for_types]
    return _intersect([_prefix("payload", each.payload) | _prefix("context", each.context) for each in seen])


def decision_type_for(rule: EnhancedRule, name: str, tools: Mapping[str, ToolProfile]) -> DecisionType:
    """As the rule sees it: with the arguments of its tools, where they are known; any of them may be missing."""
    known, arguments = DECISION_TYPES[name], arguments_of(rule, tools)
    if arguments is None:
        return known
    given = _prefix("args", arguments)
    fields = {field: kind for field, kind in known.payload.items() if field != "args"}
    return known._replace(payload=fields | given, optional=known.optional.union(given))


def _prefix(prefix: str, fields: Fields) -> Declared:
    return {f"{prefix}.{name}": kind for name, kind in fields.items()}


def _intersect(several: list[Declared]) -> Declared:
    first, *others = several
    return {name: kind for name, kind in first.items() if all(other.get(name) == kind for other in others)}


def arguments_of(rule: EnhancedRule, tools: Mapping[str, ToolProfile]) -> Declared | None:
    """None: some tool of the rule does not say what its arguments are, or calls one what no condition can."""
    schemas = [tools[name].parameters if name in tools else {} for name in rule.tools]
    properties = [schema.get("properties") for schema in schemas]
    if not schemas or not all(isinstance(each, Mapping) and each for each in properties):
        return None
    if not all(name.isidentifier() and name.isascii() for each in properties for name in each or ()):
        return None
    return _intersect([{name: _kind_of(said) for name, said in each.items()} for each in properties if each])


def _kind_of(schema: Any) -> Kind:
    """Null beside a type says only that the argument may be missing."""
    match schema:
        case {"anyOf": [choice, {"type": "null"}] | [{"type": "null"}, choice]}:
            return _kind_of(choice)
        case {"type": [kind, "null"] | ["null", kind]}:
            return _kind_of({**schema, "type": kind})
        case {"type": "array", "items": {"type": "string"}}:
            return "strings"
        case {"type": "array" | "object" as kind}:
            return "list" if kind == "array" else "map"
        case {"type": "string" | "number" | "integer" | "boolean"}:
            return cast(Kind, schema["type"])
    return "any"
