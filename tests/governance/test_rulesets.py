"""Rulesets: kept under numbers, put in force and taken back, and never mixed in one decision."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest
from sqlalchemy import update

from moot.modules.governance.application.decision_validator import DecisionValidator
from moot.modules.governance.application.rulesets import Active, RulesetService
from moot.modules.governance.domain.decisions import ValidationResult
from moot.modules.governance.domain.rules import EnhancedRule, NamedCondition
from moot.modules.governance.domain.rulesets import (
    Activation,
    DuplicateRuleError,
    NoSuchRuleset,
    Registered,
    RuleRefused,
    Ruleset,
    RulesetUnusable,
    RulesMovedOn,
    as_data,
    digest_of,
)
from moot.modules.governance.infrastructure.persistence.ruleset_store import SqlRulesetStore
from moot.modules.governance.infrastructure.persistence.tables import RulesetRow
from moot.shared.domain.clock import SystemClock
from moot.shared.domain.errors import Conflict, Unavailable
from moot.shared.infrastructure.database import Database
from tests.fakes.clock import HandClock
from tests.governance.factories import CORRECTIONS, NOON, reader, request, rule

BOTH = (
    {"violates": True, "payload": {"tool": "rm", "args": {}}},
    {"violates": False, "payload": {"tool": "ls", "args": {}}},
)


def proven(rule_id: str, **changes: Any) -> EnhancedRule:
    return rule(id=rule_id, examples=BOTH, **changes)


SHIPPED_RULES = [proven("shipped")]


def removes(facts: Any) -> bool:
    return bool(facts.tool == "rm")


class Desk:
    """A process of its own: the service on a database others may use too."""

    def __init__(self, database: Database, **given: Any) -> None:
        self.clock = HandClock(NOON)
        self.store = given.pop("store", SqlRulesetStore(database))
        conditions: dict[str, NamedCondition] = given.pop("conditions", {"removes@1": removes})
        self.service = RulesetService(
            self.store,
            reader(conditions=conditions),
            clock=self.clock,
            shipped=lambda: given.get("shipped", SHIPPED_RULES),
        )

    async def save(self, *rules: EnhancedRule, workspace: str = "default") -> Ruleset:
        return await self.service.save(rules, note="because", by="ann", workspace=workspace)

    async def activate(self, number: int, workspace: str = "default") -> Activation:
        return await self.service.activate(number, by="ann", workspace=workspace)

    async def roll_back(self) -> Activation:
        return await self.service.rollback(by="bob", workspace="default")

    async def active(self, workspace: str = "default") -> Active:
        return await self.service.active(workspace)

    async def in_force(self, workspace: str = "default") -> list[str]:
        return [each.id for each in (await self.active(workspace)).rules]


@pytest.fixture
def desk(database: Database) -> Desk:
    return Desk(database)


class TestSaving:
    async def test_numbers_count_up_from_one(self, desk: Desk) -> None:
        first, second = await desk.save(proven("a")), await desk.save(proven("b"))
        assert [first.number, second.number] == [1, 2]
        assert first == (await desk.service.get(1, "default"))
        assert (first.note, first.created_by, first.created_at) == ("because", "ann", NOON)
        assert first.digest == digest_of([as_data(proven("a"))])

    async def test_the_same_rules_are_kept_once(self, desk: Desk) -> None:
        first = await desk.save(proven("a"), proven("b"))
        assert await desk.save(proven("b"), proven("a")) == first
        assert [each.number for each in await desk.service.list("default")] == [1, 0]

    async def test_rules_come_back_as_they_were(self, desk: Desk) -> None:
        coded = rule(Registered("removes@1", removes), id="coded")
        words = proven(
            "words", metadata={"most": 1.5, "none": None}, version=2, mode="shadow", requires_human=True
        )
        clamps = proven("clamps", corrector={"kind": "clamp", "path": "payload.args.n", "at_most": 3})
        saved = await desk.save(coded, words, clamps)
        back = desk.service.rules_of(await desk.service.get(saved.number, "default"))
        assert list(back) == [coded, words, clamps]
        assert digest_of(map(as_data, back)) == saved.digest

    async def test_workspaces_count_for_themselves(self, desk: Desk) -> None:
        here, there = await desk.save(proven("a")), await desk.save(proven("a"), workspace="other")
        assert (here.number, there.number) == (1, 1)
        assert [each.number for each in await desk.service.list("third")] == [0]
        with pytest.raises(NoSuchRuleset):
            await desk.service.get(2, "other")

    async def test_saves_at_the_same_moment_get_numbers_of_their_own(self, database: Database) -> None:
        desks = [Desk(database) for _ in range(4)]
        saved = await asyncio.gather(*(desks[n % 4].save(proven(f"r{n}")) for n in range(12)))
        assert sorted(each.number for each in saved) == list(range(1, 13))

    async def test_a_draft_is_kept_switched_off(self, desk: Desk) -> None:
        saved = await desk.save(rule(id="unproven"), proven("proven"))
        assert [each.enabled for each in desk.service.rules_of(saved)] == [False, True]

    @pytest.mark.parametrize(
        ("rules", "error"),
        [
            ([proven("a"), proven("a")], DuplicateRuleError),
            ([rule("payload.tol == 'rm'")], RuleRefused),
            ([rule("payload.tool == 'cp'", examples=BOTH)], RuleRefused),
        ],
    )
    async def test_what_cannot_be_used_is_not_kept(
        self, desk: Desk, rules: list[EnhancedRule], error: type[Exception]
    ) -> None:
        with pytest.raises(error):
            await desk.save(*rules)
        assert [each.number for each in await desk.service.list("default")] == [0]


class TestActivation:
    async def test_before_anything_was_activated_the_shipped_rules_decide(self, desk: Desk) -> None:
        await desk.save(proven("a"))
        active = await desk.active()
        assert (active.number, [each.id for each in active.rules]) == (0, ["shipped"])
        assert active.digest == digest_of(map(as_data, SHIPPED_RULES))

    async def test_the_activated_ruleset_decides_at_once(self, desk: Desk) -> None:
        saved = await desk.save(proven("a"))
        assert await desk.in_force() == ["shipped"]
        done = await desk.activate(saved.number)
        assert done == Activation(1, 1, "ann", NOON)
        assert ((await desk.active()).digest, (await desk.active()).number) == (saved.digest, 1)

    async def test_activating_what_is_in_force_changes_nothing(self, desk: Desk) -> None:
        await desk.save(proven("a"))
        assert await desk.activate(1) == await desk.activate(1)

    async def test_a_number_nobody_has_is_refused(self, desk: Desk) -> None:
        with pytest.raises(NoSuchRuleset):
            await desk.activate(7)

    async def test_rolling_back_brings_back_the_one_before(self, desk: Desk) -> None:
        await desk.save(proven("a"))
        await desk.save(proven("b"))
        await desk.activate(1)
        await desk.activate(2)
        assert await desk.roll_back() == Activation(3, 1, "bob", NOON)
        assert await desk.in_force() == ["a"]

    async def test_what_is_put_in_force_while_somebody_rolls_back_stays(
        self, desk: Desk, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        for name in ("a", "b", "c"):
            await desk.save(proven(name))
        await desk.activate(1)
        await desk.activate(2)
        look = desk.service.before

        async def overtaken(workspace: str) -> Ruleset:
            before = await look(workspace)
            await desk.activate(3)
            return before

        monkeypatch.setattr(desk.service, "before", overtaken)
        with pytest.raises(RulesMovedOn):
            await desk.roll_back()
        assert await desk.in_force() == ["c"]

    async def test_before_the_first_were_the_shipped_rules(self, desk: Desk) -> None:
        await desk.save(proven("a"))
        await desk.activate(1)
        assert (await desk.roll_back()).number == 0
        assert await desk.in_force() == ["shipped"]
        assert (await desk.roll_back()).number == 1

    async def test_the_shipped_rules_can_be_put_in_force_by_their_number(self, desk: Desk) -> None:
        await desk.save(proven("a"))
        await desk.activate(1)
        await desk.activate(0)
        assert await desk.in_force() == ["shipped"]

    async def test_activations_at_the_same_moment_all_count(self, database: Database) -> None:
        desks = [Desk(database) for _ in range(4)]
        for name in "abcd":
            await desks[0].save(proven(name))
        done = await asyncio.gather(*(each.activate(n + 1) for n, each in enumerate(desks)))
        assert sorted(each.sequence for each in done) == [1, 2, 3, 4]
        last = max(done, key=lambda each: each.sequence)
        assert await desks[0].store.active("default") == last

    async def test_a_workspace_is_not_touched_by_another(self, desk: Desk) -> None:
        await desk.save(proven("a"))
        await desk.activate(1)
        assert await desk.in_force("other") == ["shipped"]


class TestOtherProcesses:
    async def test_an_activation_elsewhere_is_seen_within_a_second(self, database: Database) -> None:
        here, elsewhere = Desk(database), Desk(database)
        assert await here.in_force() == ["shipped"]
        await elsewhere.save(proven("a"))
        await elsewhere.activate(1)
        here.clock.move(0.9)
        assert await here.in_force() == ["shipped"]
        here.clock.move(0.1)
        assert await here.in_force() == ["a"]

    async def test_decisions_find_the_rules_of_a_package_that_has_moved_on(self, database: Database) -> None:
        before = await Desk(database).active()
        newer = Desk(database, shipped=[proven("newer")])
        assert await newer.in_force() == ["newer"]
        found, _ = stored = await newer.service.list("default")
        assert [each.number for each in stored] == [0, -1]
        assert (found.digest, [each.id for each in newer.service.rules_of(found)]) == (
            before.digest,
            ["shipped"],
        )

    async def test_a_ruleset_whose_code_is_gone_is_not_put_in_force(self, database: Database) -> None:
        await Desk(database).save(rule(Registered("removes@1", removes), id="coded"))
        newer = Desk(database, conditions={})
        with pytest.raises(RuleRefused, match="removes@1"):
            await newer.activate(1)
        assert await newer.in_force() == ["shipped"]


class TestSuperseding:
    """What was made out of one ruleset takes the place of that one, and of no other."""

    async def activate(self, desk: Desk, number: int, instead_of: int) -> Activation:
        return await desk.service.activate(number, instead_of, by="ann", workspace="default")

    async def test_the_second_of_two_is_told_and_changes_nothing(self, database: Database) -> None:
        one, other = Desk(database), Desk(database)
        await one.save(proven("a"))
        await one.save(proven("b"))
        await self.activate(one, 1, instead_of=0)
        with pytest.raises(RulesMovedOn) as told:
            await self.activate(other, 2, instead_of=0)
        assert (told.value.details, isinstance(told.value, Conflict)) == ({"expected": 0, "ruleset": 1}, True)
        assert "Ruleset 1 was put in force meanwhile" in told.value.in_locale("en-US")
        assert (await other.service.newest("default")).number == 1
        await self.activate(other, 2, instead_of=1)
        assert (await one.service.newest("default")).number == 2

    async def test_of_many_at_the_same_moment_exactly_one_gets_through(self, database: Database) -> None:
        desks = [Desk(database) for _ in range(4)]
        for n in range(4):
            await desks[0].save(proven(f"r{n}"))
        done = await asyncio.gather(
            *(self.activate(desk, n, instead_of=0) for n, desk in enumerate(desks, 1)), return_exceptions=True
        )
        through = [each for each in done if isinstance(each, Activation)]
        assert [each.sequence for each in through] == [1]
        assert {type(each) for each in done} == {Activation, RulesMovedOn}
        assert (await desks[0].service.newest("default")).number == through[0].number

    async def test_the_same_rules_in_force_by_another_hand_are_another_change_too(self, desk: Desk) -> None:
        await desk.save(proven("a"))
        await desk.activate(1)
        with pytest.raises(RulesMovedOn):
            await self.activate(desk, 1, instead_of=0)

    async def test_a_ruleset_that_came_back_is_the_same_one(self, desk: Desk) -> None:
        for name in "abc":
            await desk.save(proven(name))
        for number in (1, 2, 1):
            await desk.activate(number)
        assert (await self.activate(desk, 3, instead_of=1)).number == 3

    async def test_the_shipped_rules_count_whatever_number_their_version_has(
        self, database: Database
    ) -> None:
        await Desk(database).active()
        newer = Desk(database, shipped=[proven("newer")])
        assert (await newer.active()).number == -1
        await newer.save(proven("a"))
        assert (await self.activate(newer, 1, instead_of=-1)).number == 1


class FailingStore(SqlRulesetStore):
    down = False

    async def active(self, workspace: str) -> Activation | None:
        if self.down:
            raise Unavailable("no database")
        return await super().active(workspace)


class TestWithoutTheDatabase:
    async def test_the_rules_known_last_stay_in_force(self, sqlite_database: Database) -> None:
        store = FailingStore(sqlite_database)
        desk = Desk(sqlite_database, store=store)
        await desk.save(proven("a"))
        await desk.activate(1)
        store.down = True
        desk.clock.move(5)
        assert await desk.in_force() == ["a"]

    async def test_where_no_rules_are_known_the_shipped_ones_decide(self, sqlite_database: Database) -> None:
        store = FailingStore(sqlite_database)
        desk = Desk(sqlite_database, store=store)
        await desk.save(proven("a"))
        await desk.activate(1)
        store.down = True
        late = Desk(sqlite_database, store=store)
        assert await late.in_force() == ["shipped"]
        store.down = False
        assert await late.in_force() == ["a"], "as soon as they can be read"


async def test_no_decision_mixes_two_rulesets_however_often_they_are_swapped(database: Database) -> None:
    deciding, swapping = Desk(database), Desk(database)
    sets = [[proven(f"{name}{n}") for n in range(5)] for name in "abc"]
    saved = [await swapping.save(*rules) for rules in sets]
    expected = {one.digest: {each.id for each in rules} for one, rules in zip(saved, sets, strict=True)}
    await swapping.activate(1)
    swapped = asyncio.Event()

    async def swap() -> None:
        for turn in range(12):
            await swapping.activate(turn % 3 + 1)
            deciding.clock.move(1)
            if turn % 4 == 3:
                await deciding.activate((turn + 1) % 3 + 1)
        swapped.set()

    async def decide() -> list[ValidationResult]:
        results = []
        while not swapped.is_set():
            active = await deciding.active()
            await asyncio.sleep(0)
            validator = DecisionValidator(SimpleNamespace(active=active), {}, CORRECTIONS, SystemClock())
            results.append(await asyncio.to_thread(validator.validate, request({"tool": "rm", "args": {}})))
        return results

    _, *decided = await asyncio.gather(swap(), *(decide() for _ in range(4)))
    results = [result for some in decided for result in some]
    assert {result.ruleset for result in results} == set(expected)
    assert all({v.rule_id for v in result.violations} == expected[result.ruleset] for result in results)


async def alter(database: Database, number: int, rules: Any) -> None:
    """As somebody with a database client would."""
    changed = update(RulesetRow).where(RulesetRow.number == number).values(rules=rules)
    async with database.session() as db:
        await db.execute(changed)
        await db.commit()


class TestRulesThatWereAltered:
    """Hashed again whenever they are loaded: what is not what was stored decides nothing, and says so."""

    @pytest.fixture
    async def altered(self, database: Database, desk: Desk) -> Desk:
        """A desk that comes upon a ruleset which was in force and is another now."""
        saved = await desk.save(proven("a"))
        await desk.activate(saved.number)
        await alter(database, saved.number, [{**dict(saved.rules[0]), "enabled": False}])
        return Desk(database)

    async def test_decide_nothing_and_say_what_to_do(self, altered: Desk) -> None:
        for _ in range(2):
            with pytest.raises(RulesetUnusable, match="Ruleset 1 is in force and cannot decide") as refused:
                await altered.active()
            assert "not those that were stored" in str(refused.value)
        assert "moot rules activate 0" in str(refused.value)
        assert "一律不作决策" in refused.value.in_locale("zh-CN")

    async def test_are_listed_as_what_they_are(self, altered: Desk) -> None:
        assert [(each.number, each.intact) for each in await altered.service.list("default")] == [
            (1, False),
            (0, True),
        ]
        assert await altered.service.number_in_force("default") == 1

    async def test_are_not_put_in_force_again(self, altered: Desk, desk: Desk) -> None:
        for each in (altered, desk):  # also where they were ready before
            with pytest.raises(RuleRefused, match="has another digest now"):
                await each.activate(1)

    async def test_give_way_to_a_good_ruleset(self, altered: Desk) -> None:
        again = await altered.save(proven("a"))
        assert again.number == 2
        await altered.activate(again.number)
        assert await altered.in_force() == ["a"]

    async def test_give_way_to_the_shipped_rules(self, altered: Desk) -> None:
        await altered.activate(0)
        assert await altered.in_force() == ["shipped"]

    async def test_stop_a_desk_that_had_decided_by_others(self, altered: Desk, database: Database) -> None:
        await altered.activate(0)
        good = await altered.save(proven("b"))
        await Desk(database).activate(good.number)
        await alter(database, good.number, [])
        altered.clock.move(2)
        for _ in range(2):
            with pytest.raises(RulesetUnusable):
                await altered.active()

    @pytest.mark.parametrize("rules", [[], [{}], ["x"], [{"id": "a"}], {}, [{"id": 1, "category": "x"}]])
    async def test_may_be_anything(self, altered: Desk, database: Database, rules: Any) -> None:
        await alter(database, 1, rules)
        with pytest.raises(RulesetUnusable):
            await altered.active()

    async def test_that_came_with_the_package_are_stored_anew(self, database: Database, desk: Desk) -> None:
        await desk.activate(0)
        await alter(database, 0, [])
        other = Desk(database)
        with pytest.raises(RulesetUnusable):
            await other.active()
        assert (await other.activate(0)).number == -1
        assert await other.in_force() == ["shipped"]
