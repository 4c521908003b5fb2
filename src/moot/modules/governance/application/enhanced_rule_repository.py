"""The rules of one place, in memory: usable alone, checked as they come in, made ready when somebody asks."""

from collections.abc import Iterable, Mapping, Sequence
from threading import RLock

from moot.modules.governance.application.rule_files import RuleReader
from moot.modules.governance.domain.conditions import Facts
from moot.modules.governance.domain.rules import EnhancedRule, Fired, RuleCategory, RuleSource
from moot.modules.governance.domain.rulesets import (
    Active,
    DuplicateRuleError,
    NoSuchRule,
    RuleRefused,
    as_data,
    digest_of,
)


class EnhancedRuleRepository:
    """Threads may share it. `defaults` are what `load_defaults` adds."""

    def __init__(
        self, rules: Iterable[EnhancedRule] = (), *, reader: RuleReader, defaults: Sequence[EnhancedRule] = ()
    ) -> None:
        self._reader, self._defaults = reader, defaults
        self._rules: Mapping[str, EnhancedRule] = {}
        self._active: Active | None = None
        self._changing = RLock()
        self.load(rules)

    def add(self, rule: EnhancedRule) -> None:
        self.load([rule])

    def load(self, rules: Iterable[EnhancedRule]) -> None:
        """Add all of them, or none when one cannot be used."""
        with self._changing:
            loaded = dict(self._rules)
            for rule in (coming := list(rules)):
                if rule.id in loaded:
                    raise DuplicateRuleError(rule.id)
                loaded[rule.id] = rule
            self._refuse_bad(coming)
            self._rules, self._active = loaded, None

    def load_defaults(self) -> None:
        self.load(self._defaults)

    def update(self, rule: EnhancedRule) -> EnhancedRule:
        """A rule that says something else gets a new version: `id@version` always means the same."""
        with self._changing:
            before = self.get(rule.id)
            if before is None:
                raise NoSuchRule(rule.id)
            if rule != before and rule.version <= before.version:
                rule = rule.model_copy(update={"version": before.version + 1})
            self._refuse_bad([rule])
            self._rules, self._active = {**self._rules, rule.id: rule}, None
        return rule

    def remove(self, rule_id: str) -> bool:
        with self._changing:
            left = {kept: rule for kept, rule in self._rules.items() if kept != rule_id}
            if there := rule_id in self._rules:
                self._rules, self._active = left, None
        return there

    def clear(self) -> None:
        with self._changing:
            self._rules, self._active = {}, None

    def get(self, rule_id: str) -> EnhancedRule | None:
        return self._rules.get(rule_id)

    def list_all(self) -> list[EnhancedRule]:
        return sorted(self._rules.values(), key=lambda rule: (rule.priority, rule.id))

    def by_category(self, category: RuleCategory) -> list[EnhancedRule]:
        return [rule for rule in self.list_all() if rule.category is category]

    def by_source(self, source: RuleSource) -> list[EnhancedRule]:
        return [rule for rule in self.list_all() if rule.source is source]

    def list_enabled(self) -> list[EnhancedRule]:
        return [rule for rule in self.list_all() if rule.enabled]

    def evaluate(self, facts: Facts) -> list[Fired]:
        return self.active.index.find_broken(facts)

    def evaluate_by_category(self, facts: Facts, category: RuleCategory) -> list[Fired]:
        return [fired for fired in self.evaluate(facts) if fired.rule.category is category]

    @property
    def active(self) -> Active:
        """The rules as they are now, ready for use; made anew only after a change."""
        active = self._active
        if active is None:
            with self._changing:
                rules = tuple(self.list_all())
                self._active = active = Active(
                    self._reader.index(rules), digest_of(map(as_data, rules)), rules
                )
        return active

    def _refuse_bad(self, rules: Iterable[EnhancedRule]) -> None:
        found = [complaint for rule in rules for complaint in self._reader.complaints(rule)]
        if found:
            raise RuleRefused(found)
