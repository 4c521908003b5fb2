"""Marks such as [1] or 【1，3】 in a text: which sources it cites, and under which numbers."""

import re
from collections.abc import Iterable, Mapping

CITED = re.compile(r"[ \t]*[\[【]\s*(\d{1,3}(?:\s*[,，、;；]\s*\d{1,3})*)\s*[\]】]")


def cited_in(texts: Iterable[str]) -> list[int]:
    """Source numbers in the order in which they are cited, each once."""
    found = [number for text in texts for marks in CITED.findall(text) for number in _numbers(marks)]
    return list(dict.fromkeys(found))


def recited(text: str, numbers: Mapping[int, int]) -> str:
    """The text with each citation under its new number, and without those that have none."""

    def again(found: re.Match[str]) -> str:
        kept = dict.fromkeys(numbers[number] for number in _numbers(found[1]) if number in numbers)
        lead = " " if found[0][0] in " \t" else ""
        return lead + "".join(f"[{number}]" for number in kept) if kept else ""

    return CITED.sub(again, text)


def _numbers(marks: str) -> list[int]:
    return [int(digits) for digits in re.findall(r"\d+", marks)]


def uncited(text: str) -> str:
    """The text without its marks."""
    return CITED.sub("", text)
