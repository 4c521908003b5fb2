"""Why a condition is refused, where, and what would be right, for somebody who does not write programs."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from cel_expr_python import cel

from moot.modules.governance.domain.conditions import ToolProfile
from moot.modules.governance.domain.rules import Complaint, Declared, EnhancedRule, arguments_of, fields_for
from moot.modules.governance.domain.texts import SAY, join
from moot.modules.governance.infrastructure.cel.environment import blank_quotes, environment, seconds
from moot.modules.governance.infrastructure.cel.program import Program, compile_condition
from moot.modules.governance.infrastructure.cel.tree import LOGIC, Node, kinds_of
from moot.shared.domain.messages import Message, nearest


def advise(key: str, **values: Any) -> Message:
    return SAY(f"conditions.advice.{key}", **values)


def write(code: str, other: str | None = None) -> Message:
    return advise("write", code=code) if other is None else advise("either", one=code, other=other)


REPORTED: Final = re.compile(r"ERROR: <input>:(\d+):(\d+): (.*)")
UNKNOWN: Final = re.compile(r"undeclared reference to '([^']*)'")
MISMATCH: Final = re.compile(r"found no matching overload for '([^']*)' applied to '\((.+)\)'")
CLOCK: Final = (
    "getDate", "getDayOfMonth", "getDayOfWeek", "getDayOfYear", "getFullYear", "getHours", "getMilliseconds",
    "getMinutes", "getMonth", "getSeconds",
)  # fmt: skip
"""What a moment says, in UTC or in the zone that is named."""
FUNCTIONS: Final = (
    *CLOCK, "after", "all", "contains", "count", "duration", "endsWith", "exists", "exists_one", "filter", "has",
    "int", "lowerAscii", "map", "matches", "size", "startsWith", "string", "tainted", "timestamp", "trim",
    "upperAscii",
)  # fmt: skip
FLOWS: Final = {"after", "tainted", "count"}
KINDS: Final = {
    "double": "number", "int": "integer", "string": "string", "bool": "boolean", "null_type": "null", "null": "null",
    "list(string)": "strings", "list": "list", "map": "map", "bytes": "bytes", "uint": "unsigned",
    "google.protobuf.timestamp": "time", "timestamp": "time", "google.protobuf.duration": "period",
    "duration": "period",
}  # fmt: skip
"""What CEL calls a type, in small letters; `schema.kind` in the catalogue has the words."""
SYNTAX: Final = (
    (re.compile("recursion limit exceeded"), "too_deep"),
    (re.compile("<EOF>' expecting"), "ends_early"),
    (re.compile("missing '(.*)' at '"), "lacking"),
    (re.compile("(?:mismatched|extraneous) input '(.*)' expecting"), "unexpected"),
    (re.compile("no viable alternative at input '(.*)'"), "unexpected"),
    (re.compile("token recognition error at: '(.*)'"), "unexpected"),
    (re.compile("reserved identifier: (.*)"), "unexpected"),
    (re.compile("cannot be the operand of a select"), "no_fields"),
    (re.compile(r"has\(\) argument must be"), "has_field"),
    (re.compile(r"invalid \w+ literal"), "number_too_large"),
    (re.compile("variable name must be a simple identifier"), "loop_name"),
)
"""How CEL complains, and how we do."""


SIGNS: Final[dict[str, Message]] = {
    r"===|!==": write("==", "!="),
    r"=>|=<|[≥≤]": write(">=", "<="),
    r"(?<![=!<>])=(?![=>])": advise("compare"),
    r"<>|≠": write("!="),
    r"(?<!&)&(?!&)": write("&&"),
    r"(?<!\|)\|(?!\|)": write("||"),
    r"[“”‘’「」]": write("'", '"'),
    r"[（），。；！]": advise("half_width"),
    r"->|\$(?=\w)|\b(?:payload|context)\s*\[": write("payload.field"),
    r"\.(?:lower|toLowerCase)(?=\()": write(".lowerAscii()"),
    r"\.(?:upper|toUpperCase)(?=\()": write(".upperAscii()"),
    r"\.strip(?=\()": write(".trim()"),
    r"\.startswith(?=\()": write(".startsWith()"),
    r"\.endswith(?=\()": write(".endsWith()"),
    r"\.(?:includes|find)(?=\()": write(".contains()"),
    r"\.length(?!\w)|\blen(?=\()": write("size(field)"),
}
WORDS: Final[dict[str, Message]] = {
    r"not\s+in": write("!(field in [..])"),
    "and|AND": write("&&"),
    "or|OR": write("||"),
    "not|NOT": write("!"),
    r"is(?:\s+not)?": write("==", "!="),
    "True|TRUE": write("true"),
    "False|FALSE": write("false"),
    "None|NULL|nil|undefined": write("null", "has(field)"),
}
HABITS: Final = [
    *((re.compile(pattern), "sign", meant) for pattern, meant in SIGNS.items()),
    *((re.compile(rf"(?<![\w.])(?:{pattern})(?!\w)"), "word", meant) for pattern, meant in WORDS.items()),
]
"""What people write who come from another language, and what they meant."""


def find_problems(rule: EnhancedRule, tools: Mapping[str, ToolProfile]) -> list[Complaint]:
    source = rule.condition
    if not isinstance(source, str):
        return []
    fields = fields_for(rule, tools)
    try:
        program = compile_condition(source, fields)
    except RuntimeError as e:
        return find_habits(source) or [_translate(source, fields, found) for found in REPORTED.finditer(str(e))] or [
            _complain(1, 1, _in_our_words(str(e), "unreadable"))
        ]  # fmt: skip
    return list(_review(program, arguments_of(rule, tools)))


def find_habits(source: str) -> list[Complaint]:
    """For a condition that does not compile: what in it is the habit of another language, in order of place."""
    plain = blank_quotes(source)
    found: dict[int, Complaint] = {}
    for pattern, kind, meant in HABITS:
        for match in pattern.finditer(plain):
            if not any(start <= match.start() < start + 3 for start in found):
                message = SAY(f"conditions.habit.{kind}", found=match[0])
                found[match.start()] = _complain(*place(source, match.start()), message, meant)
    return [found[start] for start in sorted(found)]


def _complain(line: int, column: int, why: Message, advice: Message | None = None) -> Complaint:
    return Complaint(why, field="condition", line=line, column=column, advice=advice)


def place(source: str, offset: int) -> tuple[int, int]:
    before = source[:offset]
    return before.count("\n") + 1, offset - (before.rfind("\n") + 1) + 1


def _unknown(what: str, name: str, known: Iterable[str]) -> tuple[Message, Message | None]:
    close = nearest(name, known, cutoff=0.5)
    meant = advise("did_you_mean", nearest=close[0]) if close else None
    return SAY(f"conditions.no_{what}", name=name), meant


def _translate(source: str, fields: Declared, found: re.Match[str]) -> Complaint:
    line, column, message = int(found[1]), int(found[2]), found[3].strip()
    text = source.split("\n")[line - 1]
    if unknown := UNKNOWN.search(message):
        return _explain_unknown(text, line, column, unknown[1], fields)
    if mismatch := MISMATCH.search(message):
        kinds = [kind.strip() for kind in re.findall(r"(?:[^,(]|\([^)]*\))+", mismatch[2])]
        said = {"operator": mismatch[1].strip("_@").replace("_", " ")}
        said |= {"kinds": join(map(_kind, kinds), by="conditions.and")}
        return _complain(line, column, SAY("conditions.mismatch", **said), _advise_types(text, column, kinds))
    return _complain(line, column, _in_our_words(message, "unreadable_here"))


def _in_our_words(message: str, otherwise: str) -> Message:
    for pattern, key in SYNTAX:
        if found := pattern.search(message):
            return SAY(f"conditions.{key}", found="".join(found.groups()))
    return SAY(f"conditions.{otherwise}", why=message)


def _explain_unknown(text: str, line: int, column: int, name: str, fields: Declared) -> Complaint:
    """CEL points at a dot or a bracket; the reader wants the beginning of the name."""
    start = text.rfind(name, 0, column + len(name))
    at = start + 1 if start >= 0 else column
    if re.match(rf"{re.escape(name)}\s*\(", text[at - 1 :]):
        return _complain(line, at, *_unknown("function", name, FUNCTIONS))
    last = name.rsplit(".", 1)[-1]
    elsewhere = [field for field in fields if field.rsplit(".", 1)[-1] == last]
    return _complain(line, at, *_unknown("field", name, elsewhere or fields))


def _kind(name: str) -> Message:
    name = name.lower().replace("<", "(").replace(">", ")")
    kind = KINDS.get(name) or KINDS.get(name.partition("(")[0]) or "any"
    return SAY(f"schema.kind.{kind}")


def _advise_types(text: str, column: int, kinds: list[str]) -> Message | None:
    """`amount > 1` for a number with a point, and the reverse."""
    if sorted(kinds) == ["double", "int"]:
        whole = WHOLE.search(text, column - 1) or WHOLE.search(text)
        return write(f"{whole[0]}.0") if whole else advise("whole")
    return next((said for pair, said in ADVICE.items() if sorted(kinds) == sorted(pair)), None)


WHOLE: Final = re.compile(r"(?<![\w.])-?\d+(?![\w.])")
ADVICE: Final = {
    **{("string", kind): advise("quotes") for kind in ("int", "double", "bool")},
    ("string", "string"): advise("list"),
    ("bool", "int"): advise("two_comparisons"),
    ("bool", "double"): advise("two_comparisons"),
    ("list(string)", "string"): write("'text' in field"),
    ("google.protobuf.Timestamp", "string"): write("timestamp('2026-01-31T09:00:00+08:00')"),
    **{
        (kind, "null_type"): advise("has") for kind in ("string", "double", "int", "bool", "map(string, dyn)")
    },
}


def _review(program: Program, arguments: Declared | None) -> Iterator[Complaint]:
    """What CEL lets pass and nobody can have meant."""
    kind = program.expression.return_type()
    if kind != cel.Type.BOOL and not (kind == cel.Type.DYN and program.roots):
        yield _complain(1, 1, SAY("conditions.not_boolean", kind=_kind(kind.name())))
    if not _looks_at_something(program.root):
        yield _complain(1, 1, SAY("conditions.looks_at_nothing"))
        return
    for node in program.root.walk():
        for message, suggestion in _mistakes(program, node, arguments):
            yield _complain(*place(program.runnable, node.at), message, suggestion)


def _looks_at_something(node: Node) -> bool:
    return any(each.kind in ("ident", "has") or each.name in FLOWS for each in node.walk())


Mistake = tuple[Message, Message | None]
CONSTANTS: Final = {
    "duration": "duration(%s)",
    "timestamp": "timestamp(%s)",
    "matches": "''.matches(%s)",
    **{name: f"timestamp('2026-01-31T09:00:00Z').{name}(%s)" for name in CLOCK},
}
"""What takes a text of its own kind, which can be tried at once."""


def _mistakes(program: Program, node: Node, arguments: Declared | None) -> Iterator[Mistake]:
    match node:
        case Node("call", "count", (_, Node("constant", value=str() as period))):
            try:
                seconds(period)
            except ValueError:
                yield SAY("conditions.no_period", text=period), advise("period")
        case Node("call", "tainted", (Node("constant", value=str() as name),)):
            if arguments is not None and name not in arguments:
                yield _unknown("argument", name, arguments)
        case Node("call", function, (*_, Node("constant", value=str() as text))) if function in CONSTANTS:
            tried = CONSTANTS[function] % json.dumps(text, ensure_ascii=False)
            value = environment(frozenset()).compile(tried).eval()
            if value.type() == cel.Type.ERROR:
                why = str(value.value()).rpartition("expression: ")[2]
                key = "zone" if function in CLOCK else function
                yield SAY(f"conditions.no_{key}", text=text, why=why), None
        case Node("call", "@in", (left, Node("items", args=items))):
            if _never_member(program, left, items):
                yield SAY("conditions.never_member"), advise("one_kind")
        case Node("call", function, args) if function in LOGIC and not all(map(_looks_at_something, args)):
            yield SAY("conditions.looks_at_nothing"), None


def _never_member(program: Program, left: Node, items: Iterable[Node]) -> bool:
    path = program.path(left)
    kinds = {kind for item in items for kind in kinds_of(item)}
    kind = program.fields[str(path[0])] if path is not None and len(path) == 1 else "any"
    return len(kinds) > 1 if kind == "any" else bool(kinds - {"number" if kind == "integer" else kind})
