"""Tables in Markdown."""

from collections.abc import Mapping, Sequence


def as_table(rows: Sequence[Sequence[str]]) -> str:
    """The first row is the heading."""
    head, *rest = rows
    lines = [head, ["---"] * len(head), *rest]
    return "\n".join("| " + " | ".join(map(_cell, line)) + " |" for line in lines)


def side_by_side(columns: Sequence[Mapping[str, str]]) -> str:
    """By the names of what they hold, the first of which heads the table; empty where there are fewer than two.

    What only one of them has is left open for the others.
    """
    compared = [column for column in columns if column]
    if len(compared) < 2:
        return ""
    labels = dict.fromkeys(label for column in compared for label in column)
    return as_table([[label, *(column.get(label, "—") for column in compared)] for label in labels])


def _cell(text: str) -> str:
    """A row is one line, whatever was written into it."""
    return " ".join(text.split()).replace("|", "\\|")
