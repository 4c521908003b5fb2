"""Keeps a library from loading others that it only would take things from."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.abc import MetaPathFinder
from threading import get_ident
from typing import Any


class _Hiding(MetaPathFinder):
    def __init__(self, names: tuple[str, ...]) -> None:
        self._names, self._thread = names, get_ident()

    def find_spec(self, name: str, *_: Any) -> None:
        if name in self._names and get_ident() == self._thread:
            raise ModuleNotFoundError(f"hidden: {name}", name=name)


@contextmanager
def hide_modules(*names: str) -> Iterator[None]:
    """For the block, and for this thread alone; what is loaded already stays in sight."""
    hiding = _Hiding(names)
    sys.meta_path.insert(0, hiding)
    try:
        yield
    finally:
        sys.meta_path.remove(hiding)
