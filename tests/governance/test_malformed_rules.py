"""Rules that nobody can have meant: each is refused when it is saved, most with the place where it goes wrong."""

import json
from typing import Any

import pytest
from pydantic import ValidationError

from moot.modules.governance.container import RuleBook
from moot.modules.governance.domain.conditions import DECISION_TYPES, Kind, ToolProfile
from moot.modules.governance.domain.rules import Complaint
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


def problems(condition: str, **changes: Any) -> list[Complaint]:
    return CelConditions().problems(rule(condition, decision_types=("verdict",), **changes), {})


@pytest.mark.parametrize(("kind", "condition"), CONDITIONS)
def test_a_malformed_condition_is_refused(kind: str, condition: str):
    found = problems(condition)
    assert found, f"{kind}: {condition}"
    lines = condition.split("\n")
    for problem in found:
        assert 1 <= problem.line <= len(lines)
        assert 1 <= problem.column <= len(lines[problem.line - 1]) + 1
        assert all(problem.why.in_locale(locale) for locale in LOCALES)
        assert all(problem.advice.in_locale(locale) for locale in LOCALES if problem.advice)


def test_the_corpus_is_as_large_as_it_says():
    assert len({condition for _, condition in CONDITIONS}) >= 200


@pytest.mark.parametrize("field", ALL)
@pytest.mark.parametrize("before", ["", "payload.symbol == 'abc' && ", "payload.symbol == '工具' ||\n  "])
def test_a_misspelt_field_is_pointed_at_and_its_nearest_name_is_told(field: str, before: str):
    [problem] = problems(f"{before}{field}x == {field}")
    last = before.rsplit("\n", maxsplit=1)[-1]
    assert (problem.line, problem.column) == (before.count("\n") + 1, len(last) + 1)
    assert str(problem.why) == f"there is no field '{field}x'"
    assert str(problem.advice) == f"did you mean {field}?"


@pytest.mark.parametrize("field", NUMBERS)
@pytest.mark.parametrize("operator", ORDERS)
def test_a_number_is_written_with_a_point(field: str, operator: str):
    [problem] = problems(f"{field} {operator} 25")
    assert (problem.line, problem.column) == (1, len(field) + 2)
    assert str(problem.advice) == "write 25.0"


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
    assert suggestion is None or str(problem.advice) == suggestion


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
    [complaint] = BOOK.complaints(rule("payload.x == 1", decision_types=("verdct",)))
    assert str(complaint.why).startswith("there is no decision type verdct. Allowed: research_request")
    assert complaint.nearest == "verdict"


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


PAY = ToolProfile(
    name="pay",
    parameters={
        "properties": {
            "to": {"type": "string"},
            "amount": {"type": "number"},
            "times": {"type": "integer"},
            "urgent": {"type": "boolean"},
            "notes": {"type": "array", "items": {"type": "string"}},
            "more": {"type": "object"},
        }
    },
)
BOOK = RuleBook({"pay": PAY})
SHAPES: dict[str, dict[str, Kind]] = {name: dict(kind.payload) for name, kind in DECISION_TYPES.items()}
SHAPES["pay"] = {
    "args.to": "string",
    "args.amount": "number",
    "args.times": "integer",
    "args.urgent": "boolean",
    "args.notes": "strings",
    "args.more": "map",
}
PLACES = [(kind, name, field) for kind, fields in SHAPES.items() for name, field in fields.items()]
"""Every field of every decision, and of a tool that says what its arguments are."""
VALUES: dict[str, Any] = {
    "string": "a",
    "number": 0.5,
    "integer": 3,
    "boolean": True,
    "strings": ["a"],
    "list": [{"a": 1}],
    "map": {"a": 1},
}
FITS = {"number": {"integer"}, "list": {"strings"}, "strings": set(), "integer": set()}
"""What besides values of its own kind a field takes."""
Rule = dict[str, Any]


def given(where: str, corrector: Any = None, **changes: Any) -> Rule:
    """A rule that is right but for what is tried: broken by the cost, and so mended by no corrector."""
    told: Rule = {"id": "a.rule", "name": "A rule", "category": "behavior", "action": "suggest"}
    told |= {"condition": "has(context.cost) && context.cost > 1.0"}
    told |= {"tools": [where]} if where == "pay" else {"decision_types": [where]}
    payload = {"tool": "pay", "args": {}} if where == "pay" else {}
    told["examples"] = [
        {"violates": cost > 1, "payload": payload, "context": {"cost": cost}} for cost in (2.0, 0.5)
    ]
    return told | ({} if corrector is None else {"corrector": corrector}) | changes


def at(where: str, field: str, **corrector: Any) -> Rule:
    return given(where, {"path": f"payload.{field}", **corrector})


def fits(kind: str, other: str) -> bool:
    return kind == other or other in FITS.get(kind, set())


def holding(where: str, name: str, value: Any) -> dict[str, Any]:
    """A payload with this value at that place."""
    payload: dict[str, Any] = {"tool": "pay"} if where == "pay" else {}
    holder = payload
    *way, last = name.split(".")
    for step in way:
        holder = holder.setdefault(step, {})
    holder[last] = value
    return payload


DISTURBED: dict[str, list[tuple[Rule, str]]] = {
    "clamp on what is no number": [
        (at(where, name, kind="clamp", at_most=1), "corrector.path")
        for where, name, kind in PLACES
        if kind not in ("number", "integer")
    ],
    "clamp upside down": [
        (at(where, name, kind="clamp", at_least=3, at_most=2), "corrector")
        for where, name, kind in PLACES
        if kind in ("number", "integer")
    ],
    "half a whole number": [
        (at(where, name, kind="clamp", **{bound: 1.5}), f"corrector.{bound}")
        for where, name, kind in PLACES
        if kind == "integer"
        for bound in ("at_least", "at_most")
    ],
    "bounds that are none": [
        (at("verdict", "confidence", kind="clamp", **{name: bound}), "corrector")
        for name in ("at_least", "at_most")
        for bound in ("0.5", "nan", "inf", ".nan", "1e999", True, [1], {"a": 1}, None, "")
    ],
    "a value of another kind": [
        (at(where, name, kind="set", value=value), "corrector")
        for where, name, kind in PLACES
        for other, value in VALUES.items()
        if not fits(kind, other)
    ],
    "null where something has to be": [
        (at(where, name, kind="set", value=None), "corrector")
        for where, name, kind in PLACES
        if where != "pay" and name not in DECISION_TYPES[where].optional
    ],
    "masked what is no text": [
        (given(where, {"kind": "mask", "fields": [name.rsplit(".", 1)[-1]]}), "corrector.fields")
        for where, name, kind in PLACES
        if kind != "string"
    ],
    "left out what has to be there": [
        (given(where, {"kind": "drop", "fields": [name]}), "corrector.fields")
        for where, name, kind in PLACES
        if where != "pay" and name not in DECISION_TYPES[where].optional
    ],
    "changed what it is about": [
        (corrected, f"corrector.{'fields' if 'fields' in corrected['corrector'] else 'path'}")
        for where, known in DECISION_TYPES.items()
        for name in known.fixed
        for corrected in (
            at(where, name, kind="set", value="b"),
            given(where, {"kind": "mask", "fields": [name]}),
        )
    ],
    "names that nothing has": [
        (given("verdict", {"kind": kind, **more, "fields": ["phone"]}), "corrector.fields")
        for kind in ("mask", "drop")
        for more in ({}, {"path": "payload.levels"})
        if kind == "mask" or more
    ],
    "names below a single value": [
        (at(where, name, kind=kind, fields=["phone"]), "corrector.path")
        for where, name, shape in PLACES
        if shape in ("string", "number", "integer", "boolean")
        for kind in ("mask", "drop")
    ],
    "SQL where no statement is": [
        (at(where, name, kind="sql", limit=1), "corrector.path")
        for where, name, kind in PLACES
        if not (name.startswith("args.") and kind == "string")
    ],
    "SQL that cannot be rewritten so": [
        (given("tool_call", {"kind": "sql", "path": "payload.args.sql", **more}), "corrector")
        for more in (
            {"limit": 0},
            {"limit": -1},
            {"limit": 1.5},
            {"limit": "ten"},
            {"limit": True},
            {"mask": [""]},
            {"drop": [""]},
            {"mask": "phone"},
            {"time_column": "day"},
            {"time_column": "", "since": "2026-01-01"},
            {"since": "2026-01-01"},
            {"until": "2026-01-01"},
            {"time_column": "day", "since": "yesterday"},
            {"time_column": "day", "until": "2026-13-01"},
            {"time_column": "day", "since": "2026-02-01", "until": "2026-01-01"},
            {"time_column": "day", "since": "2026-02-01", "until": "2026-02-01"},
            {"columns": ["day"]},
        )
    ],
    "a path that leads nowhere": [
        (given(where, {"path": path, **corrector}), "corrector")
        for where in SHAPES
        for path in ("payload.nothing", "payload.tol", "payload.symbols.first", "context.cost", "payload", "")
        for corrector in (
            {"kind": "clamp", "at_most": 1},
            {"kind": "set", "value": 1},
            {"kind": "sql", "limit": 1},
            {"kind": "mask", "fields": ["phone"]},
            {"kind": "drop", "fields": ["phone"]},
        )
    ],
    "a path into a list by name": [
        (at("plan", "steps.title", kind="set", value="a"), "corrector.path"),
        (at("research_request", "experts.first", kind="set", value="a"), "corrector.path"),
        (at("research_request", "experts.0.name", kind="set", value="a"), "corrector.path"),
    ],
    "an argument the tool has not": [
        (at("pay", "args.sum", **corrector), "corrector.path")
        for corrector in ({"kind": "clamp", "at_most": 1}, {"kind": "set", "value": 1})
    ],
    "no corrector at all": [
        (given("tool_call", corrector), "corrector")
        for corrector in (
            {},
            "clamp",
            [],
            {"kind": "clip", "path": "payload.args.n"},
            {"kind": "clamp", "path": "payload.args.n"},
            {"kind": "clamp", "path": "payload.args.n", "max": 3},
            {"kind": "set", "path": "payload.args.n"},
            {"kind": "mask", "fields": []},
            {"kind": "drop", "fields": [""]},
            {"kind": "mask", "fields": "phone"},
        )
    ],
    "a corrector that is never asked": [
        (given(where, {"kind": "drop", "fields": ["x"]}, **changes), "corrector")
        for where in ("tool_call", "node", "plan")
        for changes in ({"action": "terminate"}, {"action": "log_warning"}, {"requires_human": True})
    ],
    "a person who is never asked": [
        (given(where, action=action, requires_human=True), "requires_human")
        for where in SHAPES
        for action in ("terminate", "log_warning")
    ],
    "a corrector that mends nothing": [
        (at("verdict", "confidence", kind="clamp", at_most=1), "corrector"),
        (at("verdict", "action", kind="set", value="HOLD"), "corrector"),
        (given("tool_call", {"kind": "drop", "fields": ["phone"]}), "corrector"),
        *(
            (
                at("verdict", "confidence", kind="clamp", **bounds)
                | {"condition": "payload.confidence > 0.5"}
                | {"examples": [{"violates": c > 0.5, "payload": {"confidence": c}} for c in (0.9, 0.1)]},
                "corrector",
            )
            for bounds in ({"at_most": 0.8}, {"at_least": 0.2}, {"at_least": 0.95, "at_most": 1})
        ),
    ],
    "a rule that stands in for none": [
        (given("verdict", source=source, metadata={"replaces": replaced}), "metadata.replaces")
        for source, replaced in (
            ("system", "risk.positon_cap"),
            ("system", "a.rule"),
            ("system", ""),
            ("system", 7),
            ("system", ["risk.position_cap"]),
            ("system", {"id": "risk.position_cap"}),
            ("tool", "risk.nothing"),
            ("user", "risk.position_cap"),
            ("generated", "risk.position_cap"),
        )
    ],
    "metadata nobody reads": [
        (given("verdict", metadata={name: "a"}), f"metadata.{name}")
        for name in ("sugestion", "suggestions", "replace", "replacs", "descripton", "nam")
    ],
    "texts that are none": [
        (given("verdict", metadata={name: text}), f"metadata.{name}")
        for name in ("name", "description", "suggestion")
        for text in (1, ["a"], {}, {"de-DE": "a"}, {"en-US": 1}, True)
    ],
    "a tool nobody knows": [
        (given("pay", tools=tools), "tools")
        for tools in (["pay", "pya"], ["send_money", "pay"], ["pay", " "], ["pay", ""], "pay", ["pay", 1])
    ],
    "an example of no decision": [
        (
            given("verdict", decision_types=[])
            | {"examples": [{"violates": True, "decision_type": name, "context": {"cost": 2.0}}]},
            "examples.0",
        )
        for name in ("create_node", "verdct", "")
    ],
}
RULES = [(kind, rule, field) for kind, rules in DISTURBED.items() for rule, field in rules]


@pytest.mark.parametrize("kind", DISTURBED)
def test_a_rule_that_cannot_work_is_refused_with_file_line_and_field(kind: str):
    for told, field in DISTURBED[kind]:
        text = json.dumps({"rules": [told]}, indent=1)
        found = [
            each for each in BOOK.inspect_files({"mine.yaml": text}).complaints if each.severity == "error"
        ]
        assert found, f"{kind}: accepted\n{text}"
        named = [each for each in found if (each.field or "").startswith(field)]
        assert named, f"{kind}: {[(each.field, str(each.said)) for each in found]}\n{text}"
        for complaint in named:
            assert (complaint.file, complaint.rule) == ("mine.yaml", "a.rule")
            assert complaint.line is not None and 2 <= complaint.line <= text.count("\n")
            assert all(complaint.said.in_locale(locale) for locale in LOCALES)
            idle = "none of the examples" in str(complaint.said)
            assert idle == (kind == "a corrector that mends nothing"), f"{kind}\n{text}"


def test_many_rules_that_cannot_work_were_tried():
    assert len({json.dumps(rule) for _, rule, _ in RULES}) >= 400


MENDS: list[Rule] = [
    *(
        at(where, name, kind="clamp", **{bound: 2})
        | {
            "condition": f"has(payload.{name}) && payload.{name} {sign} {'2.0' if kind == 'number' else '2'}",
            "examples": [
                {"violates": violates, "payload": holding(where, name, value)}
                for violates, value in ((True, 2 + step), (False, 2))
            ],
        }
        for where, name, kind in PLACES
        if kind in ("number", "integer")
        for bound, sign, step in (("at_most", ">", 1), ("at_least", "<", -1))
    ),
    *(
        at(where, name, kind="set", value=VALUES[kind])
        | {
            "condition": f"payload.{name} != {VALUES[kind]!r}",
            "examples": [
                {"violates": violates, "payload": holding(where, name, value)}
                for violates, value in ((True, "other"), (False, VALUES[kind]))
            ],
        }
        for where, name, kind in PLACES
        if kind == "string" and name != "tool" and (where == "pay" or name not in DECISION_TYPES[where].fixed)
    ),
]


@pytest.mark.parametrize(
    "told", MENDS, ids=lambda told: f"{told['corrector']['kind']} {told['corrector']['path']}"
)
def test_a_corrector_that_fits_its_field_is_let_through(told: Rule):
    assert BOOK.inspect_files({"": json.dumps({"rules": [told]})}).complaints == []


@pytest.mark.parametrize(
    ("corrector", "changes"),
    [
        ({"kind": "clamp", "path": "payload.position_percent", "at_most": 0.1}, {}),
        ({"kind": "clamp", "path": "payload.title", "at_most": 0.1}, {"refused": "a number"}),
        ({"kind": "set", "path": "payload.nothing", "value": 1}, {"refused": "no field"}),
    ],
)
def test_a_rule_for_all_decisions_may_correct_what_one_of_them_has(corrector, changes):
    told = given("verdict", corrector, decision_types=[]) | {
        "condition": "has(payload.position_percent) && payload.position_percent > 0.1",
        "examples": [
            {"violates": p > 0.1, "decision_type": "verdict", "payload": {"position_percent": p}}
            for p in (0.2, 0.1)
        ],
    }
    found = BOOK.inspect_files({"": json.dumps({"rules": [told]})}).complaints
    assert bool(found) is bool(changes)
    assert all(changes["refused"] in str(complaint.said) for complaint in found)
