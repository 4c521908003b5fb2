"""Rules that are kept together, numbered and known by the digest of what they say; and what keeps some out."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple, Protocol

from pydantic import BaseModel

from moot.modules.governance.domain.conditions import Facts, Finding
from moot.modules.governance.domain.decisions import digest_json
from moot.modules.governance.domain.rules import CHECKED, Complaint, EnhancedRule, NamedCondition, RuleIndex
from moot.modules.governance.domain.texts import SAY, join
from moot.shared.domain.errors import Conflict, InvalidInput, NotFound, Unavailable
from moot.shared.domain.messages import LOG_LOCALE, Locale, Message, nearest, shorten

RuleData = Mapping[str, Any]
"""A rule as `as_data` tells it."""
CALL = "call:"
SHIPPED = 0
"""The number of the rules that come with the package, in force until others are activated.

Those of another version of the package, kept because decisions name them, are numbered down from there.
"""


@dataclass(frozen=True, slots=True)
class Registered:
    """A condition in code under the name and version it is registered by: `unproven_argument@1`."""

    reference: str
    function: NamedCondition

    def __call__(self, facts: Facts) -> bool | Finding | None:
        return self.function(facts)


def as_data(rule: EnhancedRule) -> dict[str, Any]:
    """The rule as JSON, as files and tables keep it; what is as usual is left out."""
    condition = rule.condition
    if not isinstance(condition, str):
        name = getattr(condition, "__qualname__", type(condition).__qualname__)
        here = f"{name}@{rule.version}"
        condition = CALL + (condition.reference if isinstance(condition, Registered) else here)
    told = rule.model_dump(mode="json", by_alias=True, exclude_defaults=True, exclude={"condition"})
    return told | {"condition": condition}


def digest_of(rules: Iterable[RuleData]) -> str:
    """SHA-256 of what the rules say, enabled or not, whatever the order they came in."""
    usual = EnhancedRule.model_fields["priority"].default
    place = {category.value: number for number, category in enumerate(CHECKED)}
    return digest_json(
        sorted(rules, key=lambda rule: (place[rule["category"]], rule.get("priority", usual), rule["id"]))
    )


class RuleChanges(BaseModel):
    """What other rules in force bring and take away, by id with its name; of a changed rule, which fields differ."""

    added: dict[str, str]
    removed: dict[str, str]
    changed: dict[str, list[str]]

    @classmethod
    def between(cls, before: Iterable[RuleData], after: Iterable[RuleData]) -> "RuleChanges":
        was, will = ({rule["id"]: rule for rule in rules} for rules in (before, after))
        both = {rule_id: (was[rule_id], will[rule_id]) for rule_id in will if rule_id in was}
        fields = {
            rule_id: sorted(name for name in {**old, **new} if old.get(name) != new.get(name))
            for rule_id, (old, new) in both.items()
        }
        return cls(
            added={rule_id: rule["name"] for rule_id, rule in will.items() if rule_id not in was},
            removed={rule_id: rule["name"] for rule_id, rule in was.items() if rule_id not in will},
            changed={rule_id: names for rule_id, names in fields.items() if names},
        )

    @property
    def count(self) -> int:
        return len(self.added) + len(self.removed) + len(self.changed)


@dataclass(frozen=True, slots=True)
class Active:
    """What decides at one moment. Whoever decides takes it once, and sees no change until the decision is made."""

    index: RuleIndex
    digest: str
    rules: tuple[EnhancedRule, ...]
    number: int | None = None
    """That of the stored ruleset, where it is one."""

    def find(self, rule_id: str) -> EnhancedRule:
        known = {rule.id: rule for rule in self.rules}
        if rule_id not in known:
            raise NoSuchRule(rule_id, known)
        return known[rule_id]


class Ruleset(NamedTuple):
    """`rules` are as `as_data` tells them."""

    workspace_id: str
    number: int
    digest: str
    rules: Sequence[Mapping[str, Any]]
    note: str
    created_by: str
    created_at: datetime

    @property
    def intact(self) -> bool:
        """Whether the rules are those that were stored: they still have their digest."""
        try:
            return digest_of(self.rules) == self.digest
        except (AttributeError, KeyError, TypeError):  # not even rules any more
            return False


@dataclass(frozen=True, slots=True)
class Activation:
    """The one with the highest `sequence` of its workspace is in force."""

    sequence: int
    number: int
    by: str
    at: datetime


class RulesMovedOn(Conflict, code="RULES_MOVED_ON"):
    """Other rules are in force than those somebody has changed; theirs were not touched."""

    def __init__(self, instead_of: int, in_force: int) -> None:
        said = SAY("rulesets.moved_on", expected=instead_of, found=in_force)
        super().__init__(said, expected=instead_of, ruleset=in_force)


class RulesetUnusable(Unavailable, code="RULESET_UNUSABLE", passing=False):
    """The ruleset in force cannot decide: it is not what was stored, or this version of Moot cannot use it."""

    def __init__(self, ruleset: int, why: str | Message) -> None:
        super().__init__(SAY("rulesets.unusable", number=ruleset, why=why), ruleset=ruleset)


class RulesetStore(Protocol):
    """Each of its deeds is one transaction; what is stored is never changed."""

    async def save(self, ruleset: Ruleset, *, shipped: bool = False) -> Ruleset:
        """Store it under the next number, whatever its own says; shipped ones count down from 0.

        Where the workspace has one of the same digest already, intact, that one is returned.
        """

    async def get(self, workspace: str, number: int) -> Ruleset | None: ...

    async def list(self, workspace: str) -> Sequence[Ruleset]:
        """The newest first."""

    async def activate(
        self, workspace: str, number: int, by: str, at: datetime, instead_of: int | None = None
    ) -> Activation:
        """Put it in force. In force already: nothing is added.

        With `instead_of`, `RulesMovedOn` unless that one is in force; a shipped one is until others were activated.
        """

    async def active(self, workspace: str) -> Activation | None:
        """None: nothing was ever activated."""

    async def before(self, workspace: str) -> Activation | None:
        """What was in force before the present one; None: nothing else."""


SHOWN = 10
"""As many complaints are told in one sentence; `details` hold them all."""


class RuleRefused(InvalidInput, code="RULE_REFUSED"):
    """Nothing was stored; `complaints` say what to change, and where. `reader` is who reads the details."""

    def __init__(self, complaints: Sequence[Complaint], reader: Locale = LOG_LOCALE) -> None:
        said = [complaint.said for complaint in complaints[:SHOWN]]
        if more := len(complaints) - len(said):
            said.append(SAY("rules.and_more", more=more))
        super().__init__(join(said), problems=[complaint.as_details(reader) for complaint in complaints])
        self.complaints = tuple(complaints)


class DuplicateRuleError(Conflict, code="RULE_DUPLICATE"):
    def __init__(self, rule_id: str) -> None:
        super().__init__(SAY("rules.duplicate", rule=rule_id), rule=rule_id)


class NoSuchRule(NotFound, code="RULE_NOT_FOUND"):
    def __init__(self, rule_id: str, known: Iterable[str] = ()) -> None:
        said, near = SAY("rules.no_such_rule", rule=shorten(rule_id, 80)), nearest(rule_id, known)
        super().__init__(SAY("rules.did_you_mean", why=said, nearest=near) if near else said, rule=rule_id)


class NoSuchRuleset(NotFound, code="RULESET_NOT_FOUND"):
    def __init__(self, ruleset: int) -> None:
        super().__init__(SAY("rules.no_such_ruleset", ruleset=ruleset), ruleset=ruleset)
