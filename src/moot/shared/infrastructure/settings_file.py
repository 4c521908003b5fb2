"""`settings.toml`: what it says, and changes to some of its keys that leave the rest as it was, comments included."""

import json
import re
import tomllib
from collections.abc import Mapping
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any

from moot.shared.infrastructure.private_files import make_private_folder, write_private

SETTINGS_FILE = "settings.toml"
TABLE = re.compile(r"\s*\[")


class NotSimple(ValueError):
    """The file sets one of the keys in a way that only its author can change."""


def read_settings(file: Path) -> dict[str, Any]:
    """What the file says, nothing where there is none; it is read again only when it has changed."""
    if not file.is_file():
        return {}
    stat = file.stat()
    return _read(file, stat.st_mtime_ns, stat.st_size)


@lru_cache(maxsize=1)
def _read(file: Path, _changed_at: int, _size: int) -> dict[str, Any]:
    return tomllib.loads(file.read_text(encoding="utf-8"))


def change_settings(file: Path, changes: Mapping[str, str | None]) -> None:
    """Set keys, or remove those that are None. Whole or not at all; after it, only its owner can read the file."""
    target = file.resolve()  # a link stays a link
    before = target.read_text(encoding="utf-8") if target.exists() else ""
    wanted = {
        name: value for name, value in {**tomllib.loads(before), **changes}.items() if value is not None
    }
    after = _change(before, changes)
    with suppress(tomllib.TOMLDecodeError):
        if tomllib.loads(after) == wanted:
            make_private_folder(target.parent)
            return write_private(target, after)
    raise NotSimple(file)


def _change(text: str, changes: Mapping[str, str | None]) -> str:
    """Line by line, above the first table; a key that is not there yet is added below the others."""
    lines = text.splitlines()
    top = next((at for at, line in enumerate(lines) if TABLE.match(line)), len(lines))
    own: list[str] = []
    left = dict(changes)
    for line in lines[:top]:
        name = line.partition("=")[0].strip()
        own += _assign(name, left.pop(name)) if name in left else [line]
    new = [line for name, value in left.items() for line in _assign(name, value)]
    return "\n".join([*own, *new, *lines[top:], ""])


def _assign(name: str, value: str | None) -> list[str]:
    return [] if value is None else [f"{name} = {json.dumps(value, ensure_ascii=False)}"]
