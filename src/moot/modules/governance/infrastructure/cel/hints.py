"""What people write who come from another language, and what they meant."""

import re
from typing import Any, Final, NamedTuple

from moot.modules.governance.domain.conditions import Problem
from moot.modules.governance.domain.texts import SAY
from moot.modules.governance.infrastructure.cel.environment import blanked
from moot.shared.domain.messages import Message


class Habit(NamedTuple):
    pattern: re.Pattern[str]
    message: str
    suggestion: Message


def advice(key: str, **values: Any) -> Message:
    return SAY(f"conditions.advice.{key}", **values)


def write(code: str, other: str | None = None) -> Message:
    return advice("write", code=code) if other is None else advice("either", one=code, other=other)


def one_of(codes: str) -> Message:
    return advice("one_of", codes=codes.split())


def _habit(pattern: str, message: str, suggestion: Message) -> Habit:
    return Habit(re.compile(pattern), f"conditions.habit.{message}", suggestion)


def _word(word: str, suggestion: Message) -> Habit:
    return _habit(rf"(?<![\w.])(?:{word})(?!\w)", "word", suggestion)


HABITS: Final = (
    _habit(r"===|!==", "operator", write("==", "!=")),
    _habit(r"=>|=<", "operator", write(">=", "<=")),
    _habit(r"(?<![=!<>])=(?![=>])", "equals", advice("compare")),
    _habit(r"<>", "operator", write("!=")),
    _habit(r"(?<!&)&(?!&)", "operator", write("&&")),
    _habit(r"(?<!\|)\|(?!\|)", "operator", write("||")),
    _habit(r"[≥≤≠]", "sign", one_of(">= <= !=")),
    _habit(r"[“”‘’「」]", "quotation", write("'", '"')),
    _habit(r"[（），。；！]", "full_width", advice("half_width")),
    _habit(r"(?<=\d)\s*%(?!\s*[\w(])", "percent", advice("number_alone")),
    _habit(
        r"(?<=\d),(?=\d{3}(?!\d))(?![^\[(]*[\])])", "commas", advice("instead_of", code=1000, wrong="1,000")
    ),
    _habit(r"->", "operator", write("payload.field")),
    _habit(r"\$(?=\w)", "dollar", write("payload.field")),
    _habit(r";", "semicolon", advice("leave_out")),
    _word(r"not\s+in", write("!(field in [..])")),
    _word("(?i:and)", write("&&")),
    _word("(?i:or)", write("||")),
    _word("(?i:not)", write("!")),
    _word("is(?:\\s+not)?", write("==", "!=")),
    _word("IN", write("in")),
    _word("(?i:like|ilike|matches)(?=\\s)", write("field.contains('..')", "field.matches('..')")),
    _word("(?i:between)", write("field >= 1 && field <= 2")),
    _word("(?i:equals|gt|gte|lt|lte|eq|neq?|xor|nand|unless)(?=\\s)", one_of("== != < <= > >= && ||")),
    _word("True|TRUE", write("true")),
    _word("False|FALSE", write("false")),
    _word("None|NULL|nil|undefined", write("null", "has(field)")),
    _word("if|then|else|lambda|function|def|return", advice("no_control_words")),
    _habit(r"\.(?:lower|toLowerCase|to_lower)(?=\()", "no_method", write(".lowerAscii()")),
    _habit(r"\.(?:upper|toUpperCase|to_upper)(?=\()", "no_method", write(".upperAscii()")),
    _habit(r"\.strip(?=\()", "no_method", write(".trim()")),
    _habit(r"\.startswith(?=\()", "no_method", write(".startsWith()")),
    _habit(r"\.endswith(?=\()", "no_method", write(".endsWith()")),
    _habit(r"\.(?:includes|has|find)(?=\()", "nothing_has", advice("contains")),
    _habit(r"\.(?:length|len)(?!\w)", "nothing_has", write("size(field)")),
    _word("len(?=\\()", write("size(field)")),
    _habit(r"\bpayload\s*\[|\bcontext\s*\[", "brackets", write("payload.field")),
)


def hints(source: str) -> list[Problem]:
    """For a condition that does not compile: what in it is the habit of another language, in order of place."""
    plain = blanked(source)
    found: dict[int, Problem] = {}
    for habit in HABITS:
        for match in habit.pattern.finditer(plain):
            taken = any(start <= match.start() < start + 3 for start in found)
            if not taken:
                line, column = place(source, match.start())
                message = SAY(habit.message, found=match[0])
                found[match.start()] = Problem(line, column, message, habit.suggestion)
    return [found[start] for start in sorted(found)]


def place(source: str, offset: int) -> tuple[int, int]:
    before = source[:offset]
    return before.count("\n") + 1, offset - (before.rfind("\n") + 1) + 1
