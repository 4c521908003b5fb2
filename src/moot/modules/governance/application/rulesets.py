"""Stored rulesets, and which one decides: saved, put in force, taken back; seen by every process within a second."""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from functools import cached_property
from typing import Literal, NamedTuple

import structlog

from moot.modules.governance.application.enhanced_rule_repository import EnhancedRuleRepository
from moot.modules.governance.application.rule_files import Reading, RuleReader
from moot.modules.governance.domain.rules import Complaint, EnhancedRule
from moot.modules.governance.domain.rulesets import (
    SHIPPED,
    Activation,
    Active,
    NoSuchRule,
    NoSuchRuleset,
    RuleChanges,
    RuleData,
    RuleRefused,
    Ruleset,
    RulesetStore,
    RulesetUnusable,
    RulesMovedOn,
    as_data,
    digest_of,
)
from moot.modules.governance.domain.texts import SAY
from moot.shared.domain.clock import Clock
from moot.shared.domain.errors import Unavailable

__all__ = ["Activation", "Active", "RuleChanges", "RulesMovedOn", "Ruleset", "RulesetService"]

logger = structlog.get_logger(__name__)

FRESH = timedelta(seconds=1)
"""As long, at most, another process's activation goes unseen."""
MOST_TRIES = 5
"""So often a change is made anew to rules that another process has changed meanwhile."""
KEPT_READY = 8
"""Rulesets that stay compiled: going back and forth between two costs nothing."""


Change = Callable[[EnhancedRuleRepository], object]
"""False: there is no such rule."""
Edited = Literal["added", "changed", "removed"]


class _Known(NamedTuple):
    """What was in force in a workspace when somebody last looked."""

    looked_at: datetime
    sequence: int
    active: Active


class RulesetService:
    """`shipped` are the rules in force until others are: number 0, stored with the first decision they make."""

    def __init__(
        self,
        store: RulesetStore,
        reader: RuleReader,
        *,
        clock: Clock,
        shipped: Callable[[], Sequence[EnhancedRule]],
    ) -> None:
        self._store, self._reader, self._clock = store, reader, clock
        self._read_shipped = shipped
        self._turn = asyncio.Lock()
        self._known: dict[str, _Known] = {}
        self._ready: dict[str, Active] = {}

    async def active(self, workspace: str) -> Active:
        """What decides there. Take it once for each decision."""
        known = self._known.get(workspace)
        if known is not None:
            is_fresh = abs(self._clock.now() - known.looked_at) < FRESH
            return known.active if is_fresh else await self._look(workspace, known)
        async with self._turn:  # those who come together look once
            known = self._known.get(workspace)
            return known.active if known else await self._look(workspace, None)

    async def newest(self, workspace: str) -> Active:
        """What decides there at this moment, in whichever process it was put in force."""
        return await self._look(workspace, self._known.get(workspace))

    async def save(self, rules: Iterable[EnhancedRule], *, note: str, by: str, workspace: str) -> Ruleset:
        """Keep them under the next number; the same rules are kept once. Drafts are switched off."""
        kept = await asyncio.to_thread(self.check, rules)
        told = [as_data(rule) for rule in kept]
        return await self._store.save(
            Ruleset(workspace, SHIPPED, digest_of(told), told, note, by, self._clock.now())
        )

    async def activate(
        self, number: int, instead_of: int | None = None, /, *, by: str, workspace: str
    ) -> Activation:
        """From the next decision on it decides, in this process at once. 0: the rules of this package.

        `RulesMovedOn` unless `instead_of`, where given, is in force.
        """
        wanted = await (self._store_shipped(workspace) if number == SHIPPED else self.get(number, workspace))
        return await self._put_in_force(wanted, by, instead_of)

    async def edit(
        self, rule_id: str, change: Change, /, *, note: Edited, by: str, workspace: str
    ) -> Ruleset:
        """Make the next ruleset out of the one in force, and put it in force; `change` is done to that.

        What another process does to the rules meanwhile is kept: the change is made to that then.
        """
        said = str(SAY(f"rest.{note}", rule=rule_id))
        async with self._turn:
            for left in reversed(range(MOST_TRIES)):
                before = await self.newest(workspace)
                rules = EnhancedRuleRepository(before.rules, reader=self._reader)
                if change(rules) is False:
                    raise NoSuchRule(rule_id)
                saved = await self.save(rules.list_all(), note=said, by=by, workspace=workspace)
                try:
                    await self.activate(saved.number, before.number, by=by, workspace=workspace)
                    break
                except RulesMovedOn:
                    if not left:
                        raise
        return saved

    async def rollback(self, *, by: str, workspace: str) -> Activation:
        """Back to what was in force before; before everything were the shipped rules. Raises `RulesMovedOn`."""
        now = await self.number_in_force(workspace)
        return await self._put_in_force(await self.before(workspace), by, now)

    async def _put_in_force(self, wanted: Ruleset, by: str, instead_of: int | None = None) -> Activation:
        await self._make_ready(wanted)  # what cannot decide is not put in force
        at, workspace = self._clock.now(), wanted.workspace_id
        done = await self._store.activate(workspace, wanted.number, by, at, instead_of)
        await self.newest(workspace)
        return done

    async def number_in_force(self, workspace: str) -> int:
        """Whether or not it can decide."""
        activation = await self._store.active(workspace)
        return activation.number if activation else (await self._store_shipped(workspace)).number

    async def before(self, workspace: str) -> Ruleset:
        """What a rollback would put in force."""
        return await self._get_activated(await self._store.before(workspace), workspace)

    async def compare(self, coming: Iterable[RuleData], workspace: str) -> RuleChanges:
        """What would go and what would come if these were put in force."""
        now = await self.get(await self.number_in_force(workspace), workspace)
        return RuleChanges.between(now.rules if now.intact else (), coming)

    async def list(self, workspace: str) -> Sequence[Ruleset]:
        """The newest first, then those that came with the package."""
        await self._store_shipped(workspace)
        return await self._store.list(workspace)

    async def get(self, number: int, workspace: str) -> Ruleset:
        found = await self._store.get(workspace, number)
        if found is None and number != SHIPPED:
            raise NoSuchRuleset(number)
        return found or await self._store_shipped(workspace)

    async def _get_activated(self, activation: Activation | None, workspace: str) -> Ruleset:
        return await (
            self.get(activation.number, workspace) if activation else self._store_shipped(workspace)
        )

    def rules_of(self, ruleset: Ruleset) -> Sequence[EnhancedRule]:
        """`RuleRefused` when they are not what was stored, or this version of Moot cannot use them any more."""
        _require_intact(ruleset)
        reading = Reading(self._reader, tried=True)
        reading.add_entries(ruleset.rules)
        return reading.accept()

    @cached_property
    def _shipped(self) -> tuple[EnhancedRule, ...]:
        return tuple(self._read_shipped())

    async def _store_shipped(self, workspace: str) -> Ruleset:
        """Decisions name its digest, and want to find it when the package has long moved on."""
        shipped = self._as_shipped._replace(workspace_id=workspace, created_at=self._clock.now())
        return await self._store.save(shipped, shipped=True)

    @cached_property
    def _as_shipped(self) -> Ruleset:
        """Of no workspace yet."""
        told = [as_data(rule) for rule in self._shipped]
        note = str(SAY("rules.shipped_note"))
        return Ruleset("", SHIPPED, digest_of(told), told, note, "moot", self._clock.now())

    async def _look(self, workspace: str, known: _Known | None) -> Active:
        if known is not None:  # the others go on with what is known meanwhile
            self._known[workspace] = known._replace(looked_at=self._clock.now())
        try:
            found = await self._in_force(workspace, known)
        except RulesetUnusable as e:  # nobody decides by what was known before, either
            self._known.pop(workspace, None)
            logger.error("no decisions", workspace=workspace, error=str(e))
            raise
        except Unavailable:
            logger.warning("rulesets cannot be read; those known last stay in force", workspace=workspace)
            return known.active if known else await self._make_ready(self._as_shipped)
        newest = self._known.get(workspace)
        if newest is None or found.sequence >= newest.sequence:
            self._known[workspace] = newest = found
        return newest.active

    async def _in_force(self, workspace: str, known: _Known | None) -> _Known:
        now = self._clock.now()
        activation = await self._store.active(workspace)
        sequence = activation.sequence if activation else 0
        if known is not None and known.sequence == sequence:
            return _Known(now, sequence, known.active)
        stored = await self._get_activated(activation, workspace)
        try:
            return _Known(now, sequence, await self._make_ready(stored))
        except RuleRefused as e:
            raise RulesetUnusable(stored.number, e.message) from e

    async def _make_ready(self, ruleset: Ruleset) -> Active:
        """Compiling thousands of rules takes a moment in which others go on deciding."""
        await asyncio.to_thread(_require_intact, ruleset)
        active = self._ready.pop(ruleset.digest, None)
        if active is None:
            active = await asyncio.to_thread(self._compile, ruleset)
        self._ready[ruleset.digest] = active
        if len(self._ready) > KEPT_READY:
            del self._ready[next(iter(self._ready))]
        return replace(active, number=ruleset.number)

    def _compile(self, ruleset: Ruleset) -> Active:
        known = self._shipped if ruleset.digest == self._as_shipped.digest else self.rules_of(ruleset)
        rules = tuple(EnhancedRuleRepository(known, reader=self._reader).list_all())
        return Active(self._reader.index(rules), ruleset.digest, rules)

    def check(self, rules: Iterable[EnhancedRule]) -> Sequence[EnhancedRule]:
        """As they would be kept. `RuleRefused`, `DuplicateRuleError`: they could not decide together."""
        kept = [rule.model_copy(update={"enabled": False}) if rule.is_draft else rule for rule in rules]
        EnhancedRuleRepository(kept, reader=self._reader)
        if wrong := [complaint for rule in kept for complaint in self._reader.try_examples(rule)]:
            raise RuleRefused(wrong)
        return kept


def _require_intact(ruleset: Ruleset) -> None:
    if not ruleset.intact:
        raise RuleRefused([Complaint(SAY("rulesets.altered", number=ruleset.number))])
