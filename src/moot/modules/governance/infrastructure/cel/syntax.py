"""The text of a condition: its literals put aside, `has()` made to work, its `&&`, `||` and `!` taken apart."""

import re
from collections.abc import Container
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, Literal

LITERALS: Final = re.compile(
    r"""//[^\n]*
    | [bB]?[rR][bB]?(?:\"{3}.*?\"{3}|'{3}.*?'{3}|"[^"\n]*"|'[^'\n]*')
    | [bB]?(?:\"{3}(?:\\.|[^\\])*?\"{3}|'{3}(?:\\.|[^\\])*?'{3}|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*')""",
    re.VERBOSE | re.DOTALL,
)
"""Comments and texts, raw ones first: in those a backslash escapes nothing."""
HAS: Final = re.compile(r"(?<![\w.])has\s*\(\s*([\w.]+)\s*\)")
ANY_HAS: Final = re.compile(r"(?<![\w.])has\s*\(([^()]*)\)?")


def blanked(source: str) -> str:
    """The same length and lines, with nothing in it that is only quoted."""
    return LITERALS.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), source)


def uncommented(source: str) -> str:
    return LITERALS.sub(lambda found: " " * len(found[0]) if found[0].startswith("//") else found[0], source)


def asking(name: str) -> str:
    """The variable that says whether a declared field is there: as long as `has(name)` without its last bracket."""
    return f"_has.{name}"


def with_has(source: str, declared: Container[str]) -> str:
    """CEL's own `has()` reads a declared field instead of asking for it; columns stay where they were."""
    pieces, end = [], 0
    for found in HAS.finditer(blanked(source)):
        if found[1] in declared:
            pieces += [source[end : found.start()], asking(found[1]).ljust(len(found[0]))]
            end = found.end()
    return "".join([*pieces, source[end:]])


@dataclass(frozen=True, slots=True)
class Part:
    """A piece of a condition. `op` None: a leaf, or something that only CEL can take apart."""

    text: str
    op: Literal["&&", "||", "!"] | None = None
    parts: tuple["Part", ...] = ()


@lru_cache(maxsize=4096)
def parted(source: str) -> Part:
    """By CEL's precedence: `?:` binds least, then `||`, `&&`, `!`."""
    text = source.strip()
    plain = blanked(text)
    if "?" in _outside(plain):
        return Part(text)
    for op in ("||", "&&"):
        places = [place.start() for place in re.finditer(re.escape(op), _outside(plain))]
        if places:
            return Part(text, op, tuple(parted(piece) for piece in _cut(text, places)))
    if plain.startswith("!") and _wraps(plain[1:].lstrip()):
        return Part(text, "!", (parted(text[1:]),))
    if _wraps(plain):
        return parted(text[1 : plain.rindex(")")])
    return Part(text)


def _cut(text: str, places: list[int]) -> list[str]:
    starts = [0, *(place + 2 for place in places)]
    return [text[start:end] for start, end in zip(starts, [*places, len(text)], strict=True)]


def _outside(plain: str) -> str:
    """What is in no bracket; the rest is blank."""
    depth, kept = 0, []
    for letter in plain:
        depth += letter in "([{"
        kept.append(" " if depth else letter)
        depth -= letter in ")]}"
    return "".join(kept)


def _wraps(plain: str) -> bool:
    """One pair of brackets around everything."""
    return plain.startswith("(") and not _outside(plain).strip()
