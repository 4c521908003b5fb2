"""Single rules that two processes change at once: nobody's change gets lost."""

import asyncio

import pytest

from moot.modules.governance.application.rulesets import RulesMovedOn
from moot.modules.governance.container import PROFILES, GovernanceContainer
from moot.modules.governance.domain.rules import EnhancedRule
from moot.modules.governance.domain.rulesets import DuplicateRuleError, Ruleset
from moot.shared.infrastructure.audit_trail import AuditTrail
from moot.shared.infrastructure.database import Database
from tests.fakes.clock import HandClock
from tests.governance.factories import NOON, rule

BOTH = (
    {"violates": True, "payload": {"tool": "rm", "args": {}}},
    {"violates": False, "payload": {"tool": "ls", "args": {}}},
)


def proven(rule_id: str) -> EnhancedRule:
    return rule(id=rule_id, examples=BOTH)


class Process:
    """One whose clock stands still, so that it never looks by itself what others have put in force."""

    def __init__(self, database: Database) -> None:
        self.governance = GovernanceContainer(trail=AuditTrail(database), clock=HandClock(NOON))

    async def add(self, rule_id: str) -> Ruleset:
        assert self.governance.rulesets is not None
        return await self.governance.rulesets.edit(
            rule_id, lambda rules: rules.add(proven(rule_id)), note="added", by="ann", workspace="default"
        )

    async def own_rules(self) -> set[str]:
        assert self.governance.rulesets is not None
        shipped = {each.id for each in self.governance.book.read_shipped()}
        return {each.id for each in (await self.governance.rulesets.newest("default")).rules} - shipped


@pytest.fixture
def processes(database: Database, monkeypatch: pytest.MonkeyPatch) -> list[Process]:
    monkeypatch.setitem(PROFILES, "default", ("presets",))  # a few: every edit tries them all
    return [Process(database), Process(database)]


async def test_what_another_process_has_put_in_force_is_what_is_changed(processes: list[Process]) -> None:
    one, other = processes
    assert await other.own_rules() == set(), "and that is what it knows from now on"
    await one.add("first")
    await other.add("second")
    assert await one.own_rules() == {"first", "second"}


async def test_rules_that_processes_add_at_the_same_moment_all_stay(processes: list[Process]) -> None:
    names = [f"r{n}" for n in range(6)]
    await asyncio.gather(*(processes[n % 2].add(name) for n, name in enumerate(names)))
    assert [await process.own_rules() for process in processes] == [set(names), set(names)]


async def test_of_two_who_add_the_same_rule_one_is_told_that_it_is_there(processes: list[Process]) -> None:
    done = await asyncio.gather(*(process.add("mine") for process in processes), return_exceptions=True)
    assert sorted(type(each) for each in done if not isinstance(each, Ruleset)) == [DuplicateRuleError]
    assert await processes[0].own_rules() == {"mine"}


async def test_who_is_overtaken_time_and_again_is_told(
    processes: list[Process], monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other = processes
    rulesets = one.governance.rulesets
    assert rulesets is not None
    save, turn = rulesets.save, iter(range(100))

    async def overtaken(*args, **given):
        await other.add(f"theirs{next(turn)}")
        return await save(*args, **given)

    monkeypatch.setattr(rulesets, "save", overtaken)
    with pytest.raises(RulesMovedOn) as told:
        await one.add("mine")
    assert told.value.code == "RULES_MOVED_ON"
    assert await one.own_rules() == {f"theirs{n}" for n in range(5)}
