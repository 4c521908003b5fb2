"""Pinyin initials of a Chinese name, for sources that do not tell them: 贵州茅台 is gzmt.

The common characters of GB 2312 stand in the order of their pinyin, so a character's place gives its letter.
"""

import tomllib
from bisect import bisect_right
from functools import cache
from pathlib import Path

_LETTERS = "abcdefghjklmnopqrstwxyz"
_FIRSTS = (
    *(0xB0A1, 0xB0C5, 0xB2C1, 0xB4EE, 0xB6EA, 0xB7A2, 0xB8C1, 0xB9FE, 0xBBF7, 0xBFA6, 0xC0AC, 0xC2E8),
    *(0xC4C3, 0xC5B6, 0xC5BE, 0xC6DA, 0xC8BB, 0xC8F6, 0xCBFA, 0xCDDA, 0xCEF4, 0xD1B9, 0xD4D1),
)
_LAST = 0xD7F9


def initials(name: str) -> str:
    """The letters in small print; empty if a character's reading is not known."""
    words, _ = _exceptions()
    for word, letters in words.items():
        name = name.replace(word, letters)
    known = [_initial(character) for character in name if character.isalnum()]
    return "".join(letter for letter in known if letter) if all(known) else ""


def _initial(character: str) -> str | None:
    if character.isascii():
        return character.lower()
    _, rare = _exceptions()
    if character in rare:
        return rare[character]
    try:
        place = int.from_bytes(character.encode("gb2312"), "big")
    except UnicodeEncodeError:
        return None
    return _LETTERS[bisect_right(_FIRSTS, place) - 1] if _FIRSTS[0] <= place <= _LAST else None


@cache
def _exceptions() -> tuple[dict[str, str], dict[str, str]]:
    table = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
    rare = {character: letter for letter, row in table["characters"].items() for character in row}
    return table["words"], rare
