"""What people write who come from another language, and what they meant."""

import re
from typing import Final, NamedTuple

from moot.modules.governance.domain.conditions import Problem
from moot.modules.governance.infrastructure.cel.syntax import blanked


class Habit(NamedTuple):
    pattern: re.Pattern[str]
    message: str
    suggestion: str


def _habit(pattern: str, message: str, suggestion: str) -> Habit:
    return Habit(re.compile(pattern), message, suggestion)


def _word(word: str, suggestion: str) -> Habit:
    return _habit(rf"(?<![\w.])(?:{word})(?!\w)", "the word '{0}' means nothing here", suggestion)


HABITS: Final = (
    _habit(r"===|!==", "'{0}' is not an operator", "write == or !="),
    _habit(r"=>|=<", "'{0}' is not an operator", "write >= or <="),
    _habit(r"(?<![=!<>])=(?![=>])", "a single = compares nothing", "write == to compare"),
    _habit(r"<>", "'<>' is not an operator", "write !="),
    _habit(r"(?<!&)&(?!&)", "a single & is not an operator", "write &&"),
    _habit(r"(?<!\|)\|(?!\|)", "a single | is not an operator", "write ||"),
    _habit(r"[≥≤≠]", "'{0}' cannot be typed here", "write >=, <= or !="),
    _habit(r"[“”‘’「」]", "'{0}' is not a quotation mark that can be used here", "write ' or \""),
    _habit(r"[（），。；！]", "'{0}' is a full-width character", "write it in half width"),
    _habit(r"(?<=\d)\s*%(?!\s*[\w(])", "a percent sign does not follow a number", "write the number alone"),
    _habit(r"(?<=\d),(?=\d{3}(?!\d))(?![^\[(]*[\])])", "a number has no commas", "write 1000, not 1,000"),
    _habit(r"->", "'->' is not an operator", "write a dot: payload.field"),
    _habit(r"\$(?=\w)", "names begin with no $", "write payload.field"),
    _habit(r";", "a condition ends without ;", "leave it out"),
    _habit(r"(?<![\w.])not\s+in(?!\w)", "'{0}' means nothing here", "write !(field in [..])"),
    _word("(?i:and)", "write &&"),
    _word("(?i:or)", "write ||"),
    _word("(?i:not)", "write !"),
    _word("is(?:\\s+not)?", "write == or !="),
    _word("IN", "write in"),
    _word("(?i:like|ilike|matches)(?=\\s)", "write field.contains('..') or field.matches('..')"),
    _word("(?i:between)", "write field >= 1 && field <= 2"),
    _word("(?i:equals|gt|gte|lt|lte|eq|neq?|xor|nand|unless)(?=\\s)", "write ==, !=, <, <=, >, >=, && or ||"),
    _word("True|TRUE", "write true"),
    _word("False|FALSE", "write false"),
    _word("None|NULL|nil|undefined", "write null, or ask has(field)"),
    _word("if|then|else|lambda|function|def|return", "write only what must not be, without control words"),
    _habit(r"\.(?:lower|toLowerCase|to_lower)(?=\()", "texts have no {0}()", "write .lowerAscii()"),
    _habit(r"\.(?:upper|toUpperCase|to_upper)(?=\()", "texts have no {0}()", "write .upperAscii()"),
    _habit(r"\.strip(?=\()", "texts have no .strip()", "write .trim()"),
    _habit(r"\.startswith(?=\()", "texts have no .startswith()", "write .startsWith()"),
    _habit(r"\.endswith(?=\()", "texts have no .endswith()", "write .endsWith()"),
    _habit(
        r"\.(?:includes|has|find)(?=\()",
        "nothing has {0}()",
        "write .contains() of a text, `x in list` of a list",
    ),
    _habit(r"\.(?:length|len)(?!\w)", "nothing has {0}", "write size(field)"),
    _word("len(?=\\()", "write size(field)"),
    _habit(r"\bpayload\s*\[|\bcontext\s*\[", "fields are named with a dot", "write payload.field"),
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
                message = habit.message.format(match[0])
                found[match.start()] = Problem(line, column, message, habit.suggestion)
    return [found[start] for start in sorted(found)]


def place(source: str, offset: int) -> tuple[int, int]:
    before = source[:offset]
    return before.count("\n") + 1, offset - (before.rfind("\n") + 1) + 1
