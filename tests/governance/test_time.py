"""Time is a fact: conditions read the moment of a decision, which is on the record and so the same in a replay."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from moot.modules.governance.application.decision_log import make_record
from moot.modules.governance.container import RuleBook
from moot.modules.governance.domain.decisions import DecisionRequest, ValidationStatus
from moot.modules.governance.domain.rulesets import RuleRefused
from tests.governance.factories import request, rule

HOURS = """
rules:
  - id: fund.trading_hours
    name: In trading hours
    category: execution
    decision_types: [tool_call]
    condition: context.now.getHours('Asia/Shanghai') < 9 || context.now.getHours('Asia/Shanghai') >= 15
    action: reject
    examples:
      - {violates: true, payload: {tool: order}, context: {now: '2026-03-02T15:00:00+08:00'}}
      - {violates: false, payload: {tool: order}, context: {now: '2026-03-02T06:59:59Z'}}
"""
MORNING, NIGHT = datetime(2026, 3, 2, 2, tzinfo=UTC), datetime(2026, 3, 2, 14, tzinfo=UTC)
BOOK = RuleBook()
APPROVED, REJECTED = ValidationStatus.APPROVED, ValidationStatus.REJECTED
CALL = request({"tool": "order", "args": {}}, goal="Order")


def decided(asked: DecisionRequest, condition: str | None = None) -> Any:
    rules = BOOK.read(HOURS) if condition is None else [rule(condition)]
    return BOOK.validator(BOOK.repository(rules)).validate(asked)


@pytest.mark.parametrize(("at", "status"), [(MORNING, APPROVED), (NIGHT, REJECTED)])
def test_a_rule_may_ask_what_time_it_is(at, status):
    assert decided(replace(CALL, timestamp=at)).status is status


def test_a_framework_may_name_the_moment_itself():
    early = request({"tool": "order", "args": {}}, goal="Order", now="2026-03-02T10:00:00+08:00")
    assert decided(replace(early, timestamp=NIGHT)).status is APPROVED


@pytest.mark.parametrize("now", ["10 o'clock", "2026-03-02T10:00:00", 1_772_000_000, None])
def test_what_is_no_moment_breaks_the_rule_that_reads_it(now):
    result = decided(request({"tool": "order", "args": {}}, goal="Order", now=now))
    assert result.status is REJECTED
    assert result.violations[0].error


@pytest.mark.parametrize("at", [MORNING, NIGHT])
def test_a_decision_made_again_from_the_record_ends_as_it_did(at):
    first = decided(replace(CALL, timestamp=at))
    record = make_record(first.original_request, first, session_id=None, workspace="default")
    assert decided(record.request).status is first.status


def test_what_is_counted_backwards_is_counted_from_the_same_moment():
    history = [{"tool": "order", "at": "2026-03-02T09:59:30+08:00"}]
    asked = request({"tool": "order", "args": {}}, history=history, now="2026-03-02T10:00:00+08:00")
    assert decided(asked, "count('order', '1m') > 0").status is REJECTED


def test_the_moment_is_told_as_people_write_it():
    [violation] = decided(CALL, "context.now > timestamp('2026-01-01T00:00:00Z')").violations
    assert violation.values == {"context.now": "2026-03-02T12:00:00+00:00"}


@pytest.mark.parametrize(
    ("condition", "why", "advice"),
    [
        ("context.now.getHours('Asia/Shangai') > 9", "is no time zone", None),
        ("context.now > '2026-01-01'", "'>' does not go with", "timestamp('2026-01-31T09:00:00+08:00')"),
        ("context.now.getHour() > 9", "there is no function 'getHour'", "did you mean getHours?"),
        ("context.nwo > timestamp('2026-01-01T00:00:00Z')", "no field 'context.nwo'", "context.now?"),
    ],
)
def test_mistakes_about_time_are_refused(condition, why, advice):
    with pytest.raises(RuleRefused, match=why) as refused:
        BOOK.repository([rule(condition)])
    assert advice is None or advice in str(refused.value)
