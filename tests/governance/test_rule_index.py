"""Many rules at once: which of them a decision meets, and in which order."""

from dataclasses import replace
from typing import Any

import pytest

from moot.modules.governance.domain.rules import EnhancedRule
from moot.modules.governance.infrastructure.cel.index import CelConditions
from moot.modules.governance.infrastructure.cel.program import Program
from tests.governance.factories import facts, rule


def fired(rules: list[EnhancedRule], decision: Any) -> list[str]:
    return [each.rule.id for each in CelConditions().index(rules, {}).find_broken(decision)]


def thresholds(condition: str, constants: list[Any], **changes: Any) -> list[EnhancedRule]:
    return [rule(condition.format(c), id=f"r{number}", **changes) for number, c in enumerate(constants)]


@pytest.mark.parametrize(
    ("operator", "expected"),
    [
        (">", ["r0", "r1"]),
        (">=", ["r0", "r1", "r2"]),
        ("<", ["r3"]),
        ("<=", ["r2", "r3"]),
        ("==", ["r2"]),
        ("!=", ["r0", "r1", "r3"]),
    ],
)
def test_each_operator_is_exact_at_its_bound(operator: str, expected: list[str]):
    rules = thresholds(f"payload.args.n {operator} {{}}", [1, 2, 3, 4])
    assert fired(rules, facts({"tool": "t", "args": {"n": 3}})) == expected
    assert fired(rules, facts({"tool": "t", "args": {"n": 3.0}})) == expected


@pytest.mark.parametrize(
    ("condition", "value"),
    [("payload.args.n >= 9007199254740993", 2.0**53), ("payload.args.n == 9007199254740992.0", 2**53 + 1)],
)
def test_numbers_too_large_to_be_told_apart_are_compared_as_cel_does(condition: str, value: float):
    assert fired([rule(condition)], facts({"tool": "t", "args": {"n": value}})) == ["a.rule"]


@pytest.mark.parametrize("value", [["a"], {"a": 1}, "a", 1, True])
def test_nothing_is_in_an_empty_list_whatever_it_is(value: Any):
    rules = [rule("!(payload.args.v in [])", id="out"), rule("payload.args.v in []", id="in")]
    assert fired(rules, facts({"tool": "t", "args": {"v": value}})) == ["out"]


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("payload.args.s.startsWith('{}')", ["r0", "r3"]),
        ("!payload.args.s.startsWith('{}')", ["r1", "r2"]),
        ("payload.args.s.endsWith('{}')", ["r2", "r3"]),
        ("payload.args.s.contains('{}')", ["r0", "r2", "r3"]),
        ("!(payload.args.s in ['{}', 'other'])", ["r0", "r1", "r2", "r3"]),
    ],
)
def test_texts_are_looked_up_exactly(condition: str, expected: list[str]):
    rules = thresholds(condition, ["ab", "x", "bc", ""])
    assert fired(rules, facts({"tool": "t", "args": {"s": "abc"}})) == expected


def test_many_texts_are_found_within_one():
    rules = thresholds("payload.args.q.contains('{}')", [f"word{n} " for n in range(100)])
    assert fired(rules, facts({"tool": "t", "args": {"q": "say word7 and word42 please"}})) == ["r42", "r7"]
    assert fired(rules, facts({"tool": "t", "args": {"q": "w"}})) == []


def test_a_rule_is_met_by_its_own_decisions_only():
    rules = [
        rule("payload.tool != ''", id="all-tools"),
        rule("payload.tool != ''", id="one-tool", tools=("pay",)),
        rule("payload.symbol != ''", id="verdicts", decision_types=("verdict",)),
        rule("!has(payload.nothing)", id="everything", decision_types=()),
        rule("payload.tool != ''", id="off", enabled=False),
        rule("payload.tool != ''", id="watching", mode="shadow"),
    ]
    assert fired(rules, facts({"tool": "pay", "args": {}})) == [
        "all-tools",
        "everything",
        "one-tool",
        "watching",
    ]
    assert fired(rules, facts({"tool": "Pay", "args": {}})) == ["all-tools", "everything", "watching"]
    assert fired(rules, facts({"symbol": "a"}, decision_type="verdict")) == ["everything", "verdicts"]
    assert fired(rules, facts({"tool": "pay"}, decision_type="unheard-of")) == ["everything"]


def test_rules_for_several_types_see_the_fields_they_share():
    shared = rule("payload.symbol == 'a'", id="shared", decision_types=("verdict", "node"))
    assert fired([shared], facts({"symbol": "a"}, decision_type="node")) == ["shared"]
    assert CelConditions().problems(shared, {}) == []
    [problem] = CelConditions().problems(shared.model_copy(update={"condition": "payload.node == 'x'"}), {})
    assert str(problem.why) == "there is no field 'payload.node'"


def test_rules_are_checked_by_category_then_priority_then_id():
    rules = [
        rule(id="c", category="data", priority=1),
        rule(id="b", category="behavior", priority=9),
        rule(id="a2", category="tool", priority=5),
        rule(id="a1", category="tool", priority=5),
        rule(lambda _facts: True, id="code", category="goal", priority=0),
    ]
    assert fired(rules, facts({"tool": "rm", "args": {}})) == ["b", "a1", "a2", "c", "code"]


def test_one_missing_field_leaves_the_rules_that_do_not_need_it_alone():
    rules = [
        rule("payload.args.a > 5", id="needs-a"),
        rule("payload.args.b > 5", id="needs-b"),
        rule("has(payload.args.a) && payload.args.a > 5", id="asks-a"),
        rule("payload.args.b > 5 || has(payload.args.a)", id="either"),
    ]
    assert fired(rules, facts({"tool": "t", "args": {"b": 1}})) == ["needs-a"]
    assert fired(rules, facts({"tool": "t", "args": {"b": 6}})) == ["either", "needs-a", "needs-b"]
    assert fired(rules, facts({"tool": "t", "args": {"b": 1, "a": 1}})) == ["either"]


@pytest.mark.parametrize("to", ["eve", 5, True, ["eve"]])
def test_what_is_asked_for_below_something_that_has_nothing_below_it_cannot_be_decided(to: Any):
    asked = rule("has(payload.args.to.name) && payload.args.to.name == 'eve'")
    both = rule("has(payload.args.to) && has(payload.args.to.name) && payload.args.to.name == 'eve'", id="b")
    assert fired([asked, both], facts({"tool": "t", "args": {"to": to}})) == ["a.rule", "b"]


def test_conditions_only_cel_can_tell_are_asked_and_told_apart():
    rules = thresholds("size(payload.args.s) > {} || payload.args.s.matches('^z')", list(range(40)))
    assert fired(rules, facts({"tool": "t", "args": {"s": "abc"}})) == ["r0", "r1", "r2"]
    assert len(fired(rules, facts({"tool": "t", "args": {"s": "z"}}))) == 40
    assert fired(rules, facts({"tool": "t", "args": {"s": ""}})) == []


def test_a_condition_that_names_no_field_is_asked_too():
    rules = [rule("count('t', duration('60s')) == 0", id="first-call")]
    assert fired(rules, facts({"tool": "t", "args": {}})) == ["first-call"]


def test_very_long_conditions_are_asked_one_by_one():
    listed = " || ".join(f"payload.args.s.matches('^word{number}$')" for number in range(200))
    rules = [rule(listed, id=f"r{number}") for number in range(3)]
    assert len(fired(rules, facts({"tool": "t", "args": {"s": "word7"}}))) == 3


def test_nothing_is_asked_of_rules_that_a_look_rules_out(monkeypatch: pytest.MonkeyPatch):
    asked: list[str] = []
    answer = Program.holds

    def counting(self: Program, activation: Any) -> bool:
        asked.append(self.source)
        return answer(self, activation)

    rules = thresholds("payload.args.n > {} && payload.args.s != 'x'", list(range(100, 1100)))
    index = CelConditions().index(rules, {})
    monkeypatch.setattr(Program, "holds", counting)
    decision = facts({"tool": "t", "args": {"n": 5, "s": "a"}})
    assert index.find_broken(decision) == []
    assert asked == []
    assert (
        len(
            index.find_broken(
                replace(decision, values=decision.values | {"payload.args": {"n": 102.5, "s": "a"}})
            )
        )
        == 3
    )
    assert len(asked) == 3
