"""One text in many scripts: full and half width, traditional and simplified characters."""

import tomllib
import unicodedata
from collections.abc import Mapping
from functools import cache
from pathlib import Path


def half_width(text: str) -> str:
    return unicodedata.normalize("NFKC", text)


def simplify(text: str) -> str:
    """Each character in its simplified form, where it stood."""
    return text.translate(_forms())


@cache
def _forms() -> Mapping[int, int]:
    table = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
    pairs = "".join(table["pairs"].split())
    return str.maketrans(pairs[::2], pairs[1::2])
