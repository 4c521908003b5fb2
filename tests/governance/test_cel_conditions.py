"""One condition and one decision: what holds, what cannot be told, and why."""

import math
from datetime import timedelta
from enum import IntEnum, StrEnum
from typing import Any

import pytest

from moot.modules.governance.domain.conditions import Facts, Finding, PastCall, ToolProfile
from moot.modules.governance.infrastructure.cel.index import CelConditions
from tests.governance.factories import NOON, facts, rule

VERDICT: dict[str, Any] = {
    "symbol": "600519.SH",
    "action": "BUY",
    "position_percent": 40.0,
    "confidence": 0.4,
    "risk_warnings": ["thin market"],
    "engine": "rules",
}


def tried(condition: Any, decision: Facts, tools: Any = None, **changes: Any) -> Finding | None:
    broken = CelConditions().index([rule(condition, **changes)], tools or {}).find_broken(decision)
    return broken[0].finding if broken else None


def verdict(condition: str, context: Any = None, **changes: Any) -> Finding | None:
    decision = facts(VERDICT | changes, context, "verdict")
    return tried(condition, decision, decision_types=("verdict",))


def call(condition: str, args: Any, tools: Any = None, **changes: Any) -> Finding | None:
    return tried(condition, facts({"tool": "pay", "args": args}, **changes), tools)


def error_of(finding: Finding | None) -> str:
    assert finding is not None
    return str(finding.error)


def test_true_is_a_violation_and_false_is_none():
    assert verdict("payload.position_percent > 30.0") == Finding(
        "payload.position_percent > 30.0", {"payload.position_percent": 40.0}
    )
    assert verdict("payload.position_percent > 50.0") is None


@pytest.mark.parametrize(
    ("condition", "because", "values"),
    [
        (
            "payload.confidence < 0.5 && (payload.action == 'SELL' || payload.action == 'BUY')",
            "payload.confidence < 0.5 && payload.action == 'BUY'",
            {"payload.confidence": 0.4, "payload.action": "BUY"},
        ),
        (
            "payload.confidence < 0.5 && payload.engine != '' || payload.action == 'BUY' || payload.symbol != 'x'",
            "payload.symbol != 'x'",
            {"payload.symbol": "600519.SH"},
        ),
        (
            "payload.symbol == 'x' || payload.confidence < 0.5",
            "payload.confidence < 0.5",
            {"payload.confidence": 0.4},
        ),
        (
            "!(payload.action == 'BUY' && payload.confidence > 0.6)",
            "!(payload.confidence > 0.6)",
            {"payload.confidence": 0.4},
        ),
        (
            "payload.action == 'BUY' // '||' is only said\n && (payload.engine == 'a' || payload.engine != '||')",
            "payload.action == 'BUY' && payload.engine != '||'",
            {"payload.action": "BUY", "payload.engine": "rules"},
        ),
    ],
)
def test_the_smallest_part_that_held_is_named_with_its_values(
    condition: str, because: str, values: dict[str, Any]
):
    assert verdict(condition) == Finding(because, values)


def test_long_values_are_cut():
    finding = verdict("payload.symbol != 'a'", symbol="x" * 5000)
    assert finding is not None
    assert finding.values["payload.symbol"] == "x" * 200 + "…"


@pytest.mark.parametrize(
    ("condition", "changes", "error"),
    [
        ("payload.confidence > 0.9", {"confidence": None}, "payload.confidence is missing"),
        (
            "payload.confidence > 0.9 && payload.action == 'HOLD'",
            {"confidence": None},
            "payload.confidence is missing",
        ),
        ("payload.confidence > 0.9", {"confidence": "0.1"}, "payload.confidence is not a number"),
        ("payload.confidence > 0.9", {"confidence": True}, "payload.confidence is not a number"),
        ("payload.confidence > 0.9", {"confidence": math.nan}, "payload.confidence is not a finite number"),
        ("payload.confidence > 0.9", {"confidence": -math.inf}, "payload.confidence is not a finite number"),
        ("payload.confidence > 0.9", {"confidence": 2**70}, "payload.confidence is too large a number"),
        (
            "payload.action == 'X' && payload.confidence > 0.9",
            {"confidence": "1"},
            "payload.confidence is not a number",
        ),
        ("payload.symbol == 'x'", {"symbol": 5}, "payload.symbol is not text"),
        ("payload.symbol == 'x'", {"symbol": "x\0y"}, "payload.symbol holds characters that no text has"),
        ("payload.symbol == 'x'", {"symbol": "\ud800"}, "payload.symbol holds characters that no text has"),
        ("'a' in payload.risk_warnings", {"risk_warnings": ["b", 1]}, "payload.risk_warnings is not text"),
        (
            "'a' in payload.risk_warnings",
            {"risk_warnings": "abc"},
            "payload.risk_warnings is not a list of texts",
        ),
    ],
)
def test_a_missing_or_wrongly_typed_field_is_a_violation(condition: str, changes: Any, error: str):
    assert error_of(verdict(condition, **changes)) == error


def test_a_whole_number_is_a_number_and_a_number_without_a_fraction_is_whole():
    assert verdict("payload.position_percent > 30.0", position_percent=31) is not None
    assert (
        error_of(verdict("context.token_used > 5", {"token_used": 6.5}))
        == "context.token_used is not a whole number"
    )
    assert verdict("context.token_used > 5", {"token_used": 6.0}) == Finding(
        "context.token_used > 5", {"context.token_used": 6.0}
    )


class Level(IntEnum):
    HIGH = 7


class Word(StrEnum):
    BUY = "BUY"


def test_members_of_an_enum_are_what_they_stand_for_in_typed_fields_only():
    assert verdict("context.token_used == 7", {"token_used": Level.HIGH}) == Finding(
        "context.token_used == 7", {"context.token_used": 7}
    )
    assert verdict("payload.action == 'BUY'", action=Word.BUY) == Finding(
        "payload.action == 'BUY'", {"payload.action": "BUY"}
    )
    assert (
        error_of(call("payload.args.n > 7", {"n": Level.HIGH}))
        == "payload.args holds something that is not plain data"
    )


def test_has_asks_for_a_declared_field_instead_of_reading_it():
    stop = "has(payload.levels.stop) && payload.levels.stop > 10.0"
    assert verdict(stop) is None
    assert verdict(stop, levels={"stop": 11.0}) is not None
    assert verdict(stop, levels={"stop": 9.0}) is None
    assert error_of(verdict(stop, levels={"stop": "9"})) == "payload.levels.stop is not a number"
    assert verdict("has(context.is_demo)", {"is_demo": False}) is not None
    for spelt in (
        "has( payload.levels.stop )",
        "has(payload. levels\n.stop)",
        "has(payload.levels.stop // it\n)",
    ):
        assert verdict(f"!{spelt}") is not None
        assert verdict(spelt, levels={"stop": 0.0}) is not None
        assert verdict(spelt) is None


def test_has_in_a_text_is_only_a_text():
    assert verdict("payload.symbol == 'has(payload.symbol)'", symbol="has(payload.symbol)") is not None


def test_a_field_that_may_be_missing_is_missed_where_nobody_asks():
    assert error_of(verdict("payload.levels.stop > 10.0")) == "payload.levels.stop is missing"


@pytest.mark.parametrize(
    ("condition", "args", "error"),
    [
        ("payload.args.limit > 5", {}, "payload.args.limit is missing"),
        ("payload.args.limit > 5 && payload.tool == 'x'", {}, "payload.args.limit is missing"),
        ("payload.args.limit > 5", {"limit": "9"}, "payload.args.limit is not a number"),
        ("payload.args.limit > 5", {"limit": None}, "payload.args.limit is not a number"),
        ("payload.args.limit == 5", {"limit": True}, "payload.args.limit is not a number"),
        ("payload.args.to in ['a']", {"to": ["a"]}, "payload.args.to is not text"),
        (
            "payload.args.to.startsWith('a') && false == payload.args.ok",
            {"to": 1, "ok": True},
            "payload.args.to is not text",
        ),
        ("payload.args.to.name == 'a'", {"to": "a"}, "payload.args.to is not a map"),
        ("payload.args['to']['name'] == 'a'", {"to": {}}, "payload.args.to.name is missing"),
        (
            "has(payload.args.to) && payload.args.to.name == 'a'",
            {"to": {}},
            "payload.args.to.name is missing",
        ),
        (
            "payload.args.legs.all(leg, leg.size > 5)",
            {"legs": [{"size": 1}, {}]},
            "payload.args.legs[].size is missing",
        ),
        (
            "payload.args.legs.all(leg, leg.size > 5)",
            {"legs": [{"size": "1"}]},
            "payload.args.legs[].size is not a number",
        ),
        ("payload.args.legs[1] == 'a'", {"legs": ["a"]}, "payload.args.legs[1] is missing"),
        ("payload.args.a == 1", {"a": 2, "b": math.nan}, "payload.args is not a finite number"),
        ("payload.args.a == 1", {"a": 2, "b": 2**63}, "payload.args holds too large a number"),
        (
            "payload.args.a == 1",
            {"a": 2, "b": object()},
            "payload.args holds something that is not plain data",
        ),
        ("payload.args.a == 1", {"a": 2, "b\0": 1}, "payload.args holds characters that no text has"),
    ],
)
def test_what_is_below_an_untyped_map_is_guarded_too(condition: str, args: Any, error: str):
    assert error_of(call(condition, args)) == error


def test_data_nested_too_deeply_is_a_violation():
    deep: dict[str, Any] = {}
    for _ in range(100_000):
        deep = {"a": deep}
    decision = Facts("tool_call", "pay", {"payload.args": deep}, {"tool": "pay", "args": deep}, {}, NOON)
    assert error_of(tried("payload.args.limit == 1", decision)) == "payload.args is nested too deeply"


def test_has_and_null_below_an_untyped_map():
    assert call("has(payload.args.to) && payload.args.to == 'x'", {}) is None
    assert call("payload.args.to == null", {"to": None}) is not None
    assert call("payload.args.to == null || payload.args.to == 'a'", {"to": "b"}) is None


def test_an_untyped_rule_sees_the_payload_of_any_decision():
    condition = "has(payload.amount) && payload.amount > 5"
    assert tried(condition, facts({"amount": 6}, decision_type="refund"), decision_types=()) is not None
    assert tried(condition, facts({"other": 6}, decision_type="refund"), decision_types=()) is None


def test_the_payload_says_nothing_about_the_context():
    payload = VERDICT | {"context": {"token_used": 1}, "token_used": 1}
    finding = tried("context.token_used > 100", facts(payload, None, "verdict"), decision_types=("verdict",))
    assert error_of(finding) == "context.token_used is missing"


PAY = {
    "pay": ToolProfile(
        name="pay",
        parameters={
            "properties": {
                "to": {"type": "string"},
                "amount": {"anyOf": [{"type": "number"}, {"type": "null"}]},
                "tags": {"type": "array", "items": {"type": "string"}},
                "extra": {},
            },
            "required": ["to"],
        },
    )
}


def test_a_tools_own_arguments_are_typed_by_its_schema():
    decision = facts({"tool": "pay", "args": {"to": "bob", "amount": 7, "tags": ["x"], "extra": {"a": 1}}})
    given = {"tools": PAY}

    def holds(condition: str) -> bool:
        made = rule(condition, tools=("pay",))
        assert CelConditions().problems(made, **given) == []
        return bool(CelConditions().index([made], **given).find_broken(decision))

    assert holds("payload.args.amount > 6.5")
    assert holds("'x' in payload.args.tags && payload.args.extra.a == 1")
    assert not holds("payload.args.to in ['eve']")
    [problem] = CelConditions().problems(rule("payload.args.amuont > 1.0", tools=("pay",)), **given)
    assert str(problem.advice) == "did you mean payload.args.amount?"


def test_an_argument_of_the_wrong_type_is_a_violation_however_the_rule_goes_on():
    decision = facts({"tool": "pay", "args": {"to": ["bob"], "amount": None}})
    made = rule("payload.args.to == 'eve' && payload.tool == 'x'", tools=("pay",))
    [fired] = CelConditions().index([made], PAY).find_broken(decision)
    assert str(fired.finding.error) == "payload.args.to is not text"
    asked = rule("has(payload.args.amount) && payload.args.amount > 1.0", tools=("pay",))
    assert CelConditions().index([asked], PAY).find_broken(decision) == []


def calls(*ages: float, tool: str = "http") -> list[PastCall]:
    return [PastCall(tool, NOON - timedelta(seconds=age)) for age in ages]


def test_what_happened_before_can_be_asked():
    assert call("after('http') && payload.tool == 'pay'", {}, history=calls(5000)) is not None
    assert call("after('http')", {}, history=calls(1, tool="other")) is None


@pytest.mark.parametrize("window", ["'60s'", "'1m'", "duration('60s')"])
def test_calls_are_counted_within_a_window_before_the_decision(window: str):
    counted = f"count('http', {window}) >= 3"
    assert call(counted, {}, history=calls(0, 30, 59)) is not None
    assert call(counted, {}, history=calls(0, 30, 60)) is None


def test_an_argument_that_no_source_vouches_for_is_tainted():
    assert call("tainted('to')", {}, tainted=lambda name: name == "to") is not None
    assert call("tainted('amount')", {}, tainted=lambda name: name == "to") is None


def test_a_flow_function_that_fails_is_a_violation():
    def unknown(name: str) -> bool:
        raise LookupError(f"nothing is known about {name}")

    assert "nothing is known about to" in str(error_of(call("tainted('to')", {}, tainted=unknown)))


def test_a_loop_without_end_is_a_violation():
    numbers = list(range(200))
    finding = call(
        "payload.args.n.all(a, payload.args.n.all(b, payload.args.n.all(c, a + b + c < 0 || true)))",
        {"n": numbers},
    )
    assert "budget" in str(error_of(finding))


def test_an_empty_list_of_what_is_allowed_allows_nothing():
    assert verdict("!(payload.action in [])") is not None
    assert verdict("payload.action in []") is None
    assert call("!(payload.args.to in [])", {"to": "a"}) is not None


@pytest.mark.parametrize("value", ["buy", "BUY ", " BUY", "BUY\n", "ＢＵＹ"])
def test_case_and_whitespace_count(value: str):
    assert verdict("payload.action == 'BUY'", action=value) is None
    assert verdict("!(payload.action in ['BUY', 'HOLD'])", action=value) is not None


def test_conditions_in_code_are_called():
    def on_fridays(facts: Facts) -> bool:
        return facts.now.weekday() == 4

    def never(_facts: Facts) -> None:
        return None

    def unsure(_facts: Facts) -> bool:
        raise KeyError("calendar")

    decision = facts({"tool": "pay"})
    assert tried(on_fridays, decision) is None
    assert tried(lambda _facts: True, decision) == Finding("<lambda>")
    assert tried(lambda _facts: Finding("mine", suggestion="wait"), decision) == Finding(
        "mine", suggestion="wait"
    )
    assert tried(never, decision) is None
    assert tried(unsure, decision) == Finding("unsure", error="KeyError: 'calendar'")
