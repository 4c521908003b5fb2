"""What holds for any rules and any decision: the order of rules, rules that only tighten, and corrected payloads.

MOOT_TEST_PAIRS says how many pairs of rules and a decision (1,000 unless told), MOOT_TEST_SEED where they begin.
"""

import os
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from random import Random
from typing import Any, NamedTuple

from moot.modules.governance.application.facts import facts_of
from moot.modules.governance.container import RuleBook
from moot.modules.governance.domain.conditions import Facts
from moot.modules.governance.domain.decisions import DecisionRequest, ValidationResult, ValidationStatus
from moot.modules.governance.domain.rules import EnhancedRule
from tests.governance import reference
from tests.governance.factories import NOON
from tests.governance.generated_rules import TOOLS, pairs

PAIRS = int(os.environ.get("MOOT_TEST_PAIRS", "1000"))
FIRST = int(os.environ.get("MOOT_TEST_SEED", "0"))
DECISIONS = 10
APPROVED, MODIFIED = ValidationStatus.APPROVED, ValidationStatus.MODIFIED
ESCALATED, REJECTED = ValidationStatus.ESCALATED, ValidationStatus.REJECTED

BOOK = RuleBook(TOOLS)
ARGUMENTS = {"limit": [0, 1, 3, 10], "amount": [-1.5, 0.5, 2.0], "text": ["a", "abc", ""]}


Decide = Callable[[DecisionRequest], ValidationResult]


def by(rules: list[EnhancedRule]) -> Decide:
    return BOOK.validator(BOOK.repository(rules)).validate


def with_consequences(random: Random, rule: EnhancedRule) -> EnhancedRule:
    """The rule with some action, source and mode, and often a corrector."""
    changes: dict[str, Any] = {
        "action": random.choice(["log_warning", "suggest", "suggest", "reject", "terminate"]),
        "source": random.choice(["system", "tool", "user", "generated"]),
        "mode": random.choice(["enforce", "enforce", "enforce", "shadow"]),
        "requires_human": random.random() < 0.25,
    }
    if rule.for_types == ("tool_call",) and random.random() < 0.7:
        changes["corrector"] = corrector(random)
    return EnhancedRule.model_validate(rule.model_dump() | changes)


def corrector(random: Random) -> dict[str, Any]:
    name = random.choice(list(ARGUMENTS))
    path = f"payload.args.{name}"
    if name != "text" and random.random() < 0.5:
        bound = random.choice(ARGUMENTS[name])
        return {"kind": "clamp", "path": path, random.choice(["at_most", "at_least"]): bound}
    return random.choice(
        [
            {"kind": "set", "path": path, "value": random.choice(ARGUMENTS[name])},
            {"kind": "drop", "fields": [name, "a"]},
            {"kind": "mask", "fields": ["x", "a"]},
        ]
    )


def about_limits(random: Random, n: int) -> EnhancedRule:
    """A rule about an argument that correctors write to, so that they meet; mostly with one that mends it."""
    name, sign = random.choice(["limit", "amount"]), random.choice([">", ">", "<", "==", "!="])
    value = random.choice(ARGUMENTS[name])
    made = with_consequences(
        random,
        EnhancedRule(
            id=f"limits.{n}",
            name="About limits",
            category=random.choice(["tool", "data"]),
            condition=f"has(payload.args.{name}) && payload.args.{name} {sign} {value}"
            if name == "amount"
            else f"payload.args.{name} {sign} {value}",
            action="reject",
            priority=random.randrange(5),
            tools=("typed",),
        ),
    )
    if random.random() < 0.3:
        return made
    mends = {"kind": "clamp", "path": f"payload.args.{name}", "at_least" if sign == "<" else "at_most": value}
    if sign in ("==", "!="):
        mends = {"kind": "set", "path": f"payload.args.{name}", "value": random.choice(ARGUMENTS[name])}
    return EnhancedRule.model_validate(made.model_dump() | {"corrector": mends})


class Case(NamedTuple):
    """The same rules in several ways: as they are, in another order, without correctors, and one more of a user's."""

    rules: list[EnhancedRule]
    decide: Decide
    shuffled: Decide
    bare: list[EnhancedRule]
    decide_bare: Decide
    tighter: EnhancedRule
    decide_tighter: Decide


def case(random: Random, made: list[EnhancedRule]) -> Case:
    others = random.choice([0, 0, 0, 2, 4])
    rules = [with_consequences(random, rule) for rule in made[:others]]
    rules += [about_limits(random, n) for n in range(random.randrange(1, 5))]
    bare = [rule.model_copy(update={"corrector": None}) for rule in rules]
    source = random.choice(["user", "generated"])
    tighter = EnhancedRule.model_validate(about_limits(random, 99).model_dump() | {"source": source})
    shuffled = random.sample(rules, len(rules))
    return Case(rules, by(rules), by(shuffled), bare, by(bare), tighter, by([*rules, tighter]))


def cases() -> Iterator[tuple[Case, DecisionRequest]]:
    """Half of the decisions are such that correctors have something to do."""
    for seed in range(FIRST, FIRST + PAIRS // DECISIONS):
        random = Random(seed)
        made, decisions = pairs(seed, DECISIONS // 2)
        same = case(random, made)
        for facts in decisions:
            yield same, as_request(facts)
        for _ in range(DECISIONS - len(decisions)):
            args = {name: random.choice(values) for name, values in ARGUMENTS.items()}
            payload = {"tool": "typed", "args": args}
            yield same, DecisionRequest("d", "tool_call", payload, {}, "agent", NOON)


def as_request(facts: Facts) -> DecisionRequest:
    context = dict(facts.context) | {"history": list(facts.history)}
    return DecisionRequest("d", facts.decision_type, facts.payload, context, "agent", facts.now)


def plainly(rules: list[EnhancedRule], asked: DecisionRequest) -> ValidationStatus:
    """The verdict, where no rule has a corrector: the worst that any broken rule asks for."""
    facts = facts_of(asked, asked.payload, BOOK.tools)
    by_id = {rule.id: rule for rule in rules}
    broken = [by_id[rule_id] for rule_id, _ in reference.fired(rules, facts, TOOLS)]
    binding = [rule for rule in broken if rule.mode == "enforce" and rule.action != "log_warning"]
    asked_for = [
        ESCALATED if rule.requires_human and rule.action != "terminate" else REJECTED for rule in binding
    ]
    return max(asked_for, key=lambda status: status.severity, default=APPROVED)


def test_what_holds_for_all_rules_and_decisions():
    seen: Counter[str] = Counter()
    for case, asked in cases():
        result = case.decide(asked)
        seen[result.status.value] += 1
        told = (repr(asked.payload), [rule.model_dump() for rule in case.rules])

        again = case.shuffled(asked)
        assert (again.status, repr(again.modified_payload)) == (
            result.status,
            repr(result.modified_payload),
        ), told
        assert again.violations == result.violations, told

        assert (result.modified_payload is not None) == (result.status is MODIFIED), told
        if result.modified_payload is not None:
            assert result.modified_payload != asked.payload, told
            assert case.decide(replace(asked, payload=result.modified_payload)).status is APPROVED, told

        tighter = case.decide_tighter(asked).status
        assert tighter.severity >= result.status.severity, (told, case.tighter)
        assert case.decide_bare(asked).status is plainly(case.bare, asked), told
    assert all(seen[status.value] > PAIRS / 100 for status in ValidationStatus), seen
