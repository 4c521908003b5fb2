"""Words of strangers in Markdown of ours: every sign of them reads as itself, and nothing in them does anything."""

import re
import unicodedata
from collections.abc import Iterable

UNSEEN = frozenset({"Cc", "Cf", "Co", "Cs"})
"""Control characters, those that turn the direction of text or take no room, and private ones."""
MARKUP = re.compile(r"[\\`*\[\]|~]|(?<![^\W_])_|_(?![^\W_])")
BLOCK = re.compile(r"^(?=[>=]|--|(?:[-+]|#{1,6})(?:\s|$))|^(\d{1,9})(?=[.)](?:\s|$))")
"""At the start of a line: a quote, a rule, a heading or a list."""
ENTITY = re.compile(r"&(?=#|[A-Za-z][A-Za-z0-9]*;)")


def drop_unseen(text: str) -> str:
    """Only what a reader sees, and line breaks: a terminal or a page obeys the rest."""
    lines = "\n".join(text.replace("\t", " ").splitlines())
    return "".join(sign for sign in lines if sign == "\n" or unicodedata.category(sign) not in UNSEEN)


def escape(words: str) -> str:
    """Words of strangers on one line, every sign of which reads as itself."""
    line = ENTITY.sub("&amp;", " ".join(drop_unseen(words).split()))
    escaped = MARKUP.sub(lambda found: f"\\{found[0]}", line)
    return BLOCK.sub(r"\1\\", escaped).replace("<", "&lt;")


def escape_lines(text: str) -> str:
    """The same for several lines, which stay lines."""
    return "\n".join(map(escape, text.splitlines()))


def list_lines(lines: Iterable[str]) -> str:
    """As a list, a point each."""
    return "\n".join(f"- {line}" for line in lines)
