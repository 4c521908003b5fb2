"""The rules of one place: kept, sorted, checked as they come in, and made ready only when they have changed."""

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from moot.modules.governance.application.enhanced_rule_repository import EnhancedRuleRepository
from moot.modules.governance.domain.conditions import ToolProfile
from moot.modules.governance.domain.rules import EnhancedRule, RuleAction, RuleCategory, RuleIndex, RuleSource
from moot.modules.governance.domain.rulesets import DuplicateRuleError, NoSuchRule, RuleRefused
from moot.modules.governance.infrastructure.cel.index import CelConditions
from tests.governance.factories import ENGINE, facts, reader, rule


class CountingEngine(CelConditions):
    """Counts how often rules are made ready."""

    made = 0

    def index(self, rules: Sequence[EnhancedRule], tools: Mapping[str, ToolProfile]) -> RuleIndex:
        self.made += 1
        return super().index(rules, tools)


def repository(*rules: EnhancedRule, **given: Any) -> EnhancedRuleRepository:
    known = reader(given.pop("tools", {}), engine=given.pop("engine", ENGINE))
    return EnhancedRuleRepository(rules, reader=known, **given)


def ids(rules: Sequence[EnhancedRule]) -> list[str]:
    return [each.id for each in rules]


@pytest.mark.accepts("A3-01")
def test_add_rule_should_store_by_category() -> None:
    kept = repository()
    kept.add(rule(id="t", category="tool"))
    kept.add(rule(id="d", category="data"))
    assert ids(kept.by_category(RuleCategory.TOOL)) == ["t"]
    assert ids(kept.by_category(RuleCategory.DATA)) == ["d"]
    assert kept.by_category(RuleCategory.GOAL) == []


@pytest.mark.accepts("A3-02", "A3-22")
def test_get_rules_by_category_should_return_sorted_by_priority() -> None:
    kept = repository(
        rule(id="late", priority=90), rule(id="b.same", priority=50), rule(id="a.same", priority=50)
    )
    kept.add(rule(id="first", priority=1))
    assert ids(kept.by_category(RuleCategory.TOOL)) == ["first", "a.same", "b.same", "late"]


@pytest.mark.accepts("A3-22")
def test_of_two_broken_rules_the_one_with_the_smaller_priority_comes_first() -> None:
    kept = repository(rule(id="a.late", priority=90), rule(id="z.first", priority=1))
    assert [fired.rule.id for fired in kept.evaluate(facts({"tool": "rm", "args": {}}))] == [
        "z.first",
        "a.late",
    ]


@pytest.mark.accepts("A3-19")
def test_there_are_five_categories_in_the_order_of_checking() -> None:
    assert [category.value for category in RuleCategory] == ["behavior", "tool", "data", "execution", "goal"]


@pytest.mark.accepts("A3-20")
def test_there_are_four_sources() -> None:
    assert {source.value for source in RuleSource} == {"user", "system", "tool", "generated"}


@pytest.mark.accepts("A3-21")
def test_a_rule_has_the_documented_fields_and_its_condition_is_text_or_code() -> None:
    written = EnhancedRule(
        id="r",
        name="R",
        category=RuleCategory.TOOL,
        description="No rm.",
        condition="payload.tool == 'rm'",
        action=RuleAction.REJECT,
        priority=5,
        enabled=True,
        source=RuleSource.SYSTEM,
        metadata={"suggestion": "Use the bin."},
        decision_types=("tool_call",),
    )
    coded = written.model_copy(update={"id": "c", "condition": lambda seen: seen.tool == "rm"})
    broken = repository(written, coded).evaluate(facts({"tool": "rm", "args": {}}))
    assert [fired.rule.id for fired in broken] == ["c", "r"]


@pytest.mark.accepts("A3-23")
def test_a_disabled_rule_is_kept_and_never_evaluated() -> None:
    kept = repository(rule(id="on"), rule(id="off", enabled=False))
    assert [fired.rule.id for fired in kept.evaluate(facts({"tool": "rm", "args": {}}))] == ["on"]
    assert ids(kept.list_enabled()) == ["on"]
    assert ids(kept.list_all()) == ["off", "on"]


def test_rules_are_found_by_source_and_by_id() -> None:
    kept = repository(rule(id="s"), rule(id="u", source="user"))
    assert ids(kept.by_source(RuleSource.USER)) == ["u"]
    assert kept.get("s") == rule(id="s")
    assert kept.get("nobody") is None


def test_what_is_broken_can_be_asked_by_category() -> None:
    kept = repository(rule(id="t", category="tool"), rule(id="d", category="data"))
    broken = kept.evaluate_by_category(facts({"tool": "rm", "args": {}}), RuleCategory.DATA)
    assert [fired.rule.id for fired in broken] == ["d"]


def test_an_id_that_is_taken_is_refused() -> None:
    kept = repository(rule(id="r"))
    with pytest.raises(DuplicateRuleError) as refused:
        kept.add(rule(id="r", name="Another"))
    assert refused.value.details == {"rule": "r"}
    assert kept.get("r") == rule(id="r")


def test_a_condition_that_cannot_be_used_is_refused_with_place_and_suggestion() -> None:
    kept = repository()
    with pytest.raises(RuleRefused) as refused:
        kept.add(rule("payload.tol == 'rm'"))
    (problem,) = refused.value.details["problems"]
    assert (problem["rule"], problem["field"], problem["line"]) == ("a.rule", "condition", 1)
    assert "payload.tool" in problem["suggestion"]
    assert kept.list_all() == []


def test_a_decision_type_nobody_knows_is_refused_with_the_nearest() -> None:
    with pytest.raises(RuleRefused) as refused:
        repository(rule("payload.action == 'BUY'", decision_types=("verdit",)))
    assert refused.value.complaints[0].nearest == "verdict"


def test_a_corrector_that_aims_at_no_field_is_refused_with_the_nearest() -> None:
    aims_wrong = {"kind": "clamp", "path": "payload.position", "at_most": 0.2}
    with pytest.raises(RuleRefused) as refused:
        repository(rule("payload.position_percent > 0.2", decision_types=("verdict",), corrector=aims_wrong))
    assert refused.value.complaints[0].field == "corrector.path"
    assert refused.value.complaints[0].nearest == "payload.position_percent"


def test_a_corrector_may_aim_at_an_argument_of_any_tool() -> None:
    kept = repository(rule(corrector={"kind": "clamp", "path": "payload.args.limit", "at_most": 10}))
    assert ids(kept.list_all()) == ["a.rule"]


def test_loading_is_all_or_nothing() -> None:
    kept = repository(rule(id="there"))
    with pytest.raises(DuplicateRuleError):
        kept.load([rule(id="new"), rule(id="new")])
    with pytest.raises(RuleRefused):
        kept.load([rule(id="good"), rule("payload.tool ==", id="bad")])
    assert ids(kept.list_all()) == ["there"]


def test_the_defaults_are_loaded_on_demand() -> None:
    kept = repository(rule(id="own"), defaults=[rule(id="shipped")])
    assert ids(kept.list_all()) == ["own"]
    kept.load_defaults()
    assert ids(kept.list_all()) == ["own", "shipped"]


def test_a_changed_rule_gets_the_next_version() -> None:
    kept = repository(rule(id="r", version=3))
    assert kept.update(rule(id="r", version=3, priority=7)).version == 4
    assert kept.update(rule(id="r", version=9, priority=8)).version == 9
    assert kept.update(rule(id="r", version=9, priority=8)).version == 9
    assert kept.get("r") == rule(id="r", version=9, priority=8)


def test_a_rule_that_is_not_there_cannot_be_changed() -> None:
    with pytest.raises(NoSuchRule):
        repository().update(rule(id="nobody"))


def test_a_change_that_cannot_be_used_leaves_the_rule_as_it_was() -> None:
    kept = repository(rule(id="r"))
    with pytest.raises(RuleRefused):
        kept.update(rule("payload.tool ==", id="r"))
    assert kept.get("r") == rule(id="r")


def test_removing_tells_whether_there_was_something_to_remove() -> None:
    kept = repository(rule(id="r"), rule(id="s"))
    assert kept.remove("r") is True
    assert kept.remove("r") is False
    kept.clear()
    assert kept.list_all() == []


def test_the_digest_is_of_what_the_rules_say_and_not_of_their_order() -> None:
    one, two = rule(id="one"), rule(id="two")
    assert repository(one, two).active.digest == repository(two, one).active.digest
    assert repository(one, two).active.digest != repository(one).active.digest
    off = two.model_copy(update={"enabled": False})
    assert repository(one, two).active.digest != repository(one, off).active.digest


def test_a_number_with_and_without_a_point_is_the_same_number_to_the_digest() -> None:
    one, other = (repository(rule(metadata={"most": most})).active for most in (1, 1.0))
    assert one.digest == other.digest


def test_rules_are_made_ready_when_somebody_asks_and_again_only_after_a_change() -> None:
    engine = CountingEngine()
    kept = repository(rule(id="one"), rule(id="two"), engine=engine)
    assert engine.made == 0
    assert kept.active is kept.active
    assert engine.made == 1
    kept.remove("one")
    assert ids(kept.active.rules) == ["two"]
    assert engine.made == 2


def test_who_took_the_rules_sees_no_later_change() -> None:
    kept = repository(rule(id="one"))
    taken = kept.active
    kept.load([rule(id="two")])
    kept.remove("one")
    assert [fired.rule.id for fired in taken.index.find_broken(facts({"tool": "rm", "args": {}}))] == ["one"]
    assert kept.active.digest != taken.digest


def test_threads_that_change_and_decide_never_see_half_a_change() -> None:
    pairs = [[rule(id=f"{n}.a"), rule(id=f"{n}.b")] for n in range(20)]
    kept = repository()

    def decide(_: int) -> bool:
        active = kept.active
        broken = [fired.rule.id for fired in active.index.find_broken(facts({"tool": "rm", "args": {}}))]
        return broken == ids(active.rules) and len(broken) % 2 == 0

    with ThreadPoolExecutor(4) as pool:
        loading = [pool.submit(kept.load, pair) for pair in pairs]
        assert all(pool.map(decide, range(200)))
        assert [done.result() for done in loading] == [None] * 20
    assert len(kept.active.rules) == 40
