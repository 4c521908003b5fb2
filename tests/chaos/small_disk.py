"""A disk of a few megabytes, which can be filled to the last byte and emptied again."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

BALLAST = "ballast"


class SmallDisk:
    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def fill(self) -> None:
        block = b"\0" * 4096
        with suppress(OSError), (self.folder / BALLAST).open("ab", buffering=0) as ballast:
            while ballast.write(block):
                pass

    def empty(self) -> None:
        (self.folder / BALLAST).unlink(missing_ok=True)


@contextmanager
def small_disk(folder: Path, megabytes: int) -> Iterator[SmallDisk]:
    """Needs the right to mount; the test is skipped where there is none."""
    folder.mkdir()
    size = f"size={megabytes}m"
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", size, "tmpfs", folder], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip(f"no small disk here: {mounted.stderr.decode().strip()}")
    try:
        yield SmallDisk(folder)
    finally:
        subprocess.run(["umount", "--lazy", folder], check=True)
