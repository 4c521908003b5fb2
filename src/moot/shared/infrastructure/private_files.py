"""Files and folders that only their owner can read: what the desk keeps is nobody else's business."""

import os
import stat
import tempfile
from contextlib import suppress
from pathlib import Path

SHARED = 0o077


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
