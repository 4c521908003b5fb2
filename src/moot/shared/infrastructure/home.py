"""What Moot keeps in its home: files and folders that only their owner can read, and `settings.toml` among them.

Some keys of it can be changed; the rest stays as it was, comments included.
"""

import json
import os
import re
import stat
import tempfile
import tomllib
from collections.abc import Mapping
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any

SHARED = 0o077
SETTINGS_FILE = "settings.toml"
TABLE = re.compile(r"\s*\[")


def make_private_folder(folder: Path) -> None:
    """What is there already is closed to others; one that is everybody's by design, as /tmp, stays as it is."""
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    _close_to_others(folder, 0o700)


def make_private_database(file: Path) -> None:
    """Before SQLite makes it, for all to read; the files beside it are made as open as it is.

    One that is there is not opened: to close it again would drop every lock this process has on it, and with them
    what SQLite knows of others.
    """
    with suppress(OSError):  # it is there, or whoever opens it tells what is wrong with the place
        os.close(os.open(file, os.O_CREAT | os.O_EXCL, 0o600))
    for end in ("", "-wal", "-shm"):
        _close_to_others(Path(f"{file}{end}"), 0o600)


def _close_to_others(path: Path, mode: int) -> None:
    with suppress(OSError):  # not there, or not ours to close
        now = path.stat().st_mode
        if now & SHARED and not now & stat.S_ISVTX:
            path.chmod(mode)


def write_private(file: Path, content: str | bytes, *, unless_there: bool = False) -> None:
    """The file appears under its name once it is whole, and only its owner can read it.

    `unless_there`: of several that try at once, the first one's stays.
    """
    descriptor, name = tempfile.mkstemp(dir=file.parent, prefix=f".{file.name}.")  # O_EXCL, 0600
    try:
        with os.fdopen(descriptor, "wb") as out:
            out.write(content.encode() if isinstance(content, str) else content)
            out.flush()
            os.fsync(out.fileno())
        if not unless_there:
            Path(name).replace(file)
            return
        with suppress(FileExistsError):
            file.hardlink_to(name)
    finally:
        Path(name).unlink(missing_ok=True)


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
