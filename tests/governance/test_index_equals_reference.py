"""The index against the naive reference, on rules and decisions by chance.

MOOT_TEST_PAIRS says how many pairs of rules and a decision (2,000 unless told), MOOT_TEST_SEED where they begin.
"""

import os
from collections import Counter
from itertools import pairwise

from moot.modules.governance.infrastructure.cel.index import CelConditions
from tests.governance import reference
from tests.governance.generated_rules import TOOLS, pairs

PAIRS = int(os.environ.get("MOOT_TEST_PAIRS", "2000"))
FIRST = int(os.environ.get("MOOT_TEST_SEED", "0"))
DECISIONS = 20
SEEDS = range(FIRST, FIRST + PAIRS // DECISIONS)


def test_the_index_answers_as_one_by_one_evaluation_does():
    seen: Counter[str] = Counter()
    for seed in SEEDS:
        rules, decisions = pairs(seed, DECISIONS)
        index = CelConditions().index(rules, TOOLS)
        for facts in decisions:
            expected = reference.fired(rules, facts, TOOLS)
            said = [(each.rule.id, each.finding.error is not None) for each in index.find_broken(facts)]
            assert said == expected, (
                seed,
                [(r.id, r.condition, r.tools) for r in rules],
                facts.payload,
                facts.context,
            )
            seen.update("error" if errored else "broken" for _, errored in expected)
            seen["kept"] += sum(reference.applies(rule, facts) for rule in rules) - len(expected)
    assert all(seen[each] > PAIRS / 20 for each in ("error", "broken", "kept")), seen


def test_generated_rules_are_all_accepted():
    for seed in SEEDS[:300]:
        rules, _ = pairs(seed, 0)
        for rule in rules:
            assert CelConditions().problems(rule, TOOLS) == []


def test_what_fires_is_in_the_order_in_which_rules_are_checked():
    for seed in SEEDS[:100]:
        rules, decisions = pairs(seed, DECISIONS, size=12)
        index = CelConditions().index(rules, TOOLS)
        for facts in decisions:
            orders = [each.rule.order for each in index.find_broken(facts)]
            assert all(first < second for first, second in pairwise(orders))
