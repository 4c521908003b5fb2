"""Changes to single rules: each makes the next ruleset out of the one in force, and puts it in force."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from moot.modules.governance.application.enhanced_rule_repository import EnhancedRuleRepository
from moot.modules.governance.application.rulesets import Ruleset, RulesetService, RulesMovedOn
from moot.modules.governance.container import GovernanceContainer
from moot.modules.governance.domain.exceptions import NoSuchRule
from moot.modules.governance.domain.rules import EnhancedRule
from moot.modules.governance.domain.texts import SAY
from moot.modules.governance.presentation.rest.asking import kept
from moot.shared.domain.messages import Message

Change = Callable[[EnhancedRuleRepository], object]
MOST_TRIES = 5


@dataclass(frozen=True, slots=True)
class Edited:
    """`rule` is None where there is none any more."""

    ruleset: int
    digest: str
    rule: EnhancedRule | None = None


class RuleEdits:
    """One of these for a process: whoever changes a rule there waits for whoever is at it."""

    def __init__(self, governance: GovernanceContainer) -> None:
        self._governance, self._turn = governance, asyncio.Lock()

    async def add(self, rule: EnhancedRule, *, by: str, workspace: str) -> Edited:
        return await self._edit(
            rule.id, lambda rules: rules.add(rule), SAY("rest.added", rule=rule.id), by, workspace
        )

    async def replace(self, rule: EnhancedRule, *, by: str, workspace: str) -> Edited:
        """Under a new version, if it says something else."""
        return await self._edit(
            rule.id, lambda rules: rules.update(rule), SAY("rest.changed", rule=rule.id), by, workspace
        )

    async def remove(self, rule_id: str, *, by: str, workspace: str) -> Edited:
        def without(rules: EnhancedRuleRepository) -> None:
            if not rules.remove(rule_id):
                raise NoSuchRule(rule_id)

        return await self._edit(rule_id, without, SAY("rest.removed", rule=rule_id), by, workspace)

    async def _edit(
        self,
        rule_id: str,
        change: Change,
        note: Message,
        by: str,
        workspace: str,
    ) -> Edited:
        rulesets: RulesetService = kept(self._governance.rulesets)
        async with self._turn:
            saved = await self._changed(rulesets, change, note, by, workspace)
        now = {rule.id: rule for rule in rulesets.rules_of(saved)}
        return Edited(saved.number, saved.digest, now.get(rule_id))

    async def _changed(
        self, rulesets: RulesetService, change: Change, note: Message, by: str, workspace: str
    ) -> Ruleset:
        """What another process does to the rules meanwhile is kept: the change is made to that then."""
        for left in reversed(range(MOST_TRIES)):
            before = await rulesets.newest(workspace)
            rules = self._governance.book.repository(before.rules)
            change(rules)
            saved = await rulesets.save(rules.list_all(), note=str(note), by=by, workspace=workspace)
            try:
                await rulesets.supersede(before, saved.number, by=by, workspace=workspace)
                break
            except RulesMovedOn:
                if not left:
                    raise
        return saved
