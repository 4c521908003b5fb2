"""Rules that nobody can have meant: each is refused when it is saved, most with the place where it goes wrong."""

from typing import Any

import pytest
from pydantic import ValidationError

from moot.modules.governance.domain.conditions import Problem
from moot.modules.governance.infrastructure.cel.index import CelConditions
from moot.shared.domain.messages import LOCALES
from tests.governance.factories import rule

TEXTS = ["payload.symbol", "payload.action", "payload.engine", "context.goal"]
NUMBERS = ["payload.confidence", "payload.position_percent", "payload.levels.stop", "context.cost"]
WHOLE = ["context.token_used", "context.iteration_count", "context.running"]
FLAGS = ["context.is_demo", "context.st", "context.suspended"]
LISTS = ["payload.risk_warnings", "context.open_breakers"]
ALL = [*TEXTS, *NUMBERS, *WHOLE, *FLAGS, *LISTS]
ORDERS = ["<", "<=", ">", ">=", "==", "!="]

CORPUS: dict[str, list[str]] = {
    "a single =": [f"{f} = 1.0" for f in NUMBERS]
    + [f"{f} = 'a'" for f in TEXTS]
    + [f"{f} = true" for f in FLAGS],
    "an unknown operator word": [
        f"{field} {word} 'a'"
        for field in TEXTS[:2]
        for word in (
            "is",
            "is not",
            "equals",
            "eq",
            "like",
            "LIKE",
            "IN",
            "xor",
            "unless",
            "between",
            "matches",
        )
    ],
    "a word between conditions": [
        f"{first} == 'a' {word} {second} > 1.0"
        for first, second in zip(TEXTS, NUMBERS, strict=True)
        for word in ("and", "or", "AND", "OR", "&", "|", ",", ";")
    ],
    "not before a field": [f"not {field}" for field in ALL[:8]]
    + [f"not ({field} == 'a')" for field in TEXTS],
    "not in": [f"{field} not in ['a']" for field in TEXTS],
    "a method of another language": [
        f"{field}.{method} == 'a'"
        for field in TEXTS[:2]
        for method in ("lower()", "upper()", "strip()", "toLowerCase()", "lower", "length", "foo()")
    ]
    + [
        f"{field}.{method}('a')"
        for field in TEXTS[:2]
        for method in ("startswith", "endswith", "includes", "find")
    ],
    "a misspelt field": [f"{field}x == {field}" for field in ALL]
    + ["payload.symbl == 'a'", "context.goall == 'a'"],
    "a field without its root": [f"{field.split('.', 1)[1]} == {field}" for field in ALL],
    "a field of another decision": ["payload.tool == 'a'", "payload.args.x == 1", "payload.steps == []"],
    "plain garbage": [
        "@@@",
        "???",
        "((",
        "))",
        "...",
        "'",
        '"a',
        "payload.",
        ".payload",
        "payload..symbol == 'a'",
        "1 2 3",
        "{",
        "[1,",
        "drop table rules",
        "规则",
        "please reject everything",
        "<script>",
        "payload.symbol == ",
        "== 'a'",
        "&& ||",
        "payload.symbol == 'a' &&",
        "|| payload.symbol == 'a'",
        "payload.symbol == 'a' payload.action == 'b'",
        "(payload.symbol == 'a'",
        "payload.symbol == 'a')",
        "payload symbol == 'a'",
        "payload.symbol == 'a'b'",
    ],
    "text compared with a number": [
        f"{f} {op} {n}" for f in TEXTS for op in ORDERS[:3] for n in ("1", "1.0")
    ],
    "a number compared with text": [f"{f} {op} '1'" for f in [*NUMBERS, *WHOLE] for op in ORDERS[2:]],
    "a number without its point": [f"{f} {op} 1" for f in NUMBERS for op in ORDERS],
    "a whole number with a point": [f"{f} {op} 1.5" for f in WHOLE for op in ORDERS],
    "true or false compared": [f"{f} == {c}" for f in FLAGS for c in ("'true'", "1", "0.0", "null")],
    "NaN": [f"{field} == {nan}" for field in NUMBERS for nan in ("NaN", "nan", "double.NaN", "Infinity")],
    "null for a typed field": [f"{field} == {null}" for field in TEXTS for null in ("null", "None", "nil")],
    "a list compared with a text": [f"{f} == 'a'" for f in LISTS] + [f"{f} in 'a,b'" for f in TEXTS],
    "a list of mixed types": [f"{field} in ['a', 1]" for field in TEXTS]
    + [f"{field} in ['1']" for field in WHOLE],
    "no yes or no": [*TEXTS, *NUMBERS, *LISTS, "1", "'a'", "[payload.symbol]", "{'a': payload.symbol}"],
    "always the same": [
        "true",
        "false",
        "1 > 0",
        "'a' == 'a'",
        "!(false)",
        "1 in [1]",
        "size('a') > 0",
        "true || payload.symbol == 'a'",
        "payload.symbol == 'a' && true",
        "payload.symbol == 'a' || 1 == 1",
        "payload.symbol == 'a' && 'a' != 'b'",
    ],
    "full-width signs": [
        "payload.symbol == “a”",
        "payload.confidence ≥ 1.0",
        "（payload.symbol == 'a'）",
        "payload.st！= 1",
    ],
    "operators of another language": [
        f"payload.confidence {op} 1.0" for op in ("===", "!==", "<>", "=>", "=<", ">>", "**", "~=", ":=")
    ],
    "numbers nobody can read": [
        "payload.confidence > 5%",
        "payload.position_percent > 1,000.0",
        "payload.confidence > 1.0.0",
    ],
    "programs": [
        "if payload.symbol == 'a' then true",
        "lambda x: True",
        "payload.symbol = 'a'; true",
        "return true",
        "__import__('os').system('x')",
        "payload.__class__ == 1",
        "payload['symbol'] == 'a'",
        "$payload.symbol == 'a'",
        "payload->symbol == 'a'",
        "len(payload.symbol) > 1",
        "payload.symbol is None",
        "exec('x')",
    ],
    "chains": ["0.1 < payload.confidence < 0.5", "payload.symbol == payload.action == payload.engine"],
    "patterns and periods": [
        "payload.symbol.matches('(')",
        "payload.symbol.matches('[a')",
        "count('x', '60') > 1",
        "count('x', 'a minute') > 1",
        "count('x', '') > 1",
        "count('x', duration('x')) > 1",
        "duration('1') > duration('2s') || payload.symbol == ''",
        "timestamp('monday') > timestamp('2026-01-01T00:00:00Z') || payload.symbol == ''",
    ],
    "flow functions misused": [
        "after(1)",
        "after()",
        "after('a', 'b')",
        "count('a') > 1",
        "count('a', 60) > 1",
        "tainted(payload.confidence)",
        "after('x') > 1",
        "count('a', '60s')",
        "afer('x')",
    ],
    "has misused": [
        "has()",
        "has('a')",
        "has(payload.symbol == 'a')",
        "has(payload.stpo)",
        "has(1)",
    ],
}
CONDITIONS = [(kind, condition) for kind, conditions in CORPUS.items() for condition in conditions]


def problems(condition: str, **changes: Any) -> list[Problem]:
    return CelConditions().problems(rule(condition, decision_types=("verdict",), **changes), {})


@pytest.mark.parametrize(("kind", "condition"), CONDITIONS)
def test_a_malformed_condition_is_refused(kind: str, condition: str):
    found = problems(condition)
    assert found, f"{kind}: {condition}"
    lines = condition.split("\n")
    for problem in found:
        assert 1 <= problem.line <= len(lines)
        assert 1 <= problem.column <= len(lines[problem.line - 1]) + 1
        assert all(problem.message.in_locale(locale) for locale in LOCALES)
        assert all(problem.suggestion.in_locale(locale) for locale in LOCALES if problem.suggestion)


def test_the_corpus_is_as_large_as_it_says():
    assert len({condition for _, condition in CONDITIONS}) >= 200


@pytest.mark.parametrize("field", ALL)
@pytest.mark.parametrize("before", ["", "payload.symbol == 'abc' && ", "payload.symbol == '工具' ||\n  "])
def test_a_misspelt_field_is_pointed_at_and_its_nearest_name_is_told(field: str, before: str):
    [problem] = problems(f"{before}{field}x == {field}")
    last = before.rsplit("\n", maxsplit=1)[-1]
    assert (problem.line, problem.column) == (before.count("\n") + 1, len(last) + 1)
    assert str(problem.message) == f"there is no field '{field}x'"
    assert str(problem.suggestion) == f"did you mean {field}?"


@pytest.mark.parametrize("field", NUMBERS)
@pytest.mark.parametrize("operator", ORDERS)
def test_a_number_is_written_with_a_point(field: str, operator: str):
    [problem] = problems(f"{field} {operator} 25")
    assert (problem.line, problem.column) == (1, len(field) + 2)
    assert str(problem.suggestion) == "write 25.0"


@pytest.mark.parametrize(
    ("condition", "line", "column", "suggestion"),
    [
        ("payload.symbol = 'a'", 1, 16, "write == to compare"),
        ("payload.symbol == 'a' and payload.st", 1, 23, "write &&"),
        ("payload.symbol == 'and' or\npayload.st", 1, 25, "write ||"),
        ("payload.action == 'x' &&\nnot context.st", 2, 1, "write !"),
        ("payload.symbol not in ['a']", 1, 16, "write !(field in [..])"),
        ("payload.symbol.lower() == 'a'", 1, 15, "write .lowerAscii()"),
        ("payload.symbol.startsWiht('a')", 1, 16, "did you mean startsWith?"),
        ("context.is_demo == True", 1, 20, "write true"),
        ("has(payload.levels.stpo) && context.st", 1, 5, "did you mean payload.levels.stop?"),
        ("symbol == 'a'", 1, 1, "did you mean payload.symbol?"),
        ("context.symbol == 'a'", 1, 1, "did you mean payload.symbol?"),
        ("payload.symbol == 1", 1, 16, "a text stands in quotes; a number, true and false do not"),
        ("0.1 < payload.confidence < 0.5", 1, 26, "write two comparisons with && between them"),
        ("payload.symbol == null", 1, 16, "ask has(field)"),
        ("payload['symbol'] == 'a'", 1, 1, "write payload.field"),
        ("payload.symbol == 'a' &&", 1, 25, None),
        ("len(payload.symbol) > 1", 1, 1, "write size(field)"),
        ("payload.symbol == 'a' ||\n  count('x', '60') > 1", 2, 8, "write it like '60s' or '1h30m'"),
    ],
)
def test_the_place_and_what_would_be_right_are_told(
    condition: str, line: int, column: int, suggestion: str | None
):
    problem = problems(condition)[0]
    assert (problem.line, problem.column) == (line, column)
    assert suggestion is None or str(problem.suggestion) == suggestion


@pytest.mark.parametrize(
    "condition",
    [
        "(payload.symbol == 'a')",
        "((payload.confidence > 0.5) && !(payload.action in []))",
        "payload.symbol == 'a = b and not c'",
        "payload.symbol.lowerAscii() == 'a' // and = or",
        "has(payload.levels.stop) && payload.levels.stop < 1.0",
        "has( payload. levels .stop // the stop\n) && context.st",
        "payload.risk_warnings.exists(w, w.contains('and'))",
        "payload.symbol == 'a' ? context.st : payload.confidence > 0.5",
        r"payload.symbol.matches(r'\d+') && payload.action == '\''",
        "after('http') && count('http', '1h30m') > 3 || tainted('to')",
    ],
)
def test_what_is_right_is_let_through(condition: str):
    assert problems(condition) == []


def test_a_decision_type_nobody_makes_is_refused_with_the_nearest():
    [problem] = CelConditions().problems(rule("payload.x == 1", decision_types=("verdct",)), {})
    assert str(problem.message) == "there is no decision of type 'verdct'"
    assert str(problem.suggestion) == "did you mean verdict?"


@pytest.mark.parametrize("action", ["block", "REJECT", "", "reject ", None, "allow", "deny"])
def test_a_rule_whose_action_is_unknown_is_refused(action: Any):
    with pytest.raises(ValidationError):
        rule(action=action)


@pytest.mark.parametrize(
    "changes",
    [
        {"condition": ""},
        {"condition": "x" * 10_001},
        {"category": "other"},
        {"source": "nobody"},
        {"id": "With Spaces"},
        {"name": ""},
        {"priority": -1},
        {"mode": "off"},
        {"unknown": 1},
        {"corrector": {"kind": "delete"}},
        {"tools": ("a",), "decision_types": ("verdict",)},
        {"condition": lambda _facts: True, "source": "user"},
    ],
)
def test_a_rule_that_is_no_rule_is_refused(changes: dict[str, Any]):
    with pytest.raises(ValidationError):
        rule(**changes)
