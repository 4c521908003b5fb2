"""Statements compiled once for all databases of a process: each would take as long over them as over running them."""

from typing import Any

from moot.shared.infrastructure.database import OPTIONS


class _Compiled(dict[tuple[Any, ...], Any]):
    """By the kind of database: SQLAlchemy asks by the engine it is for, and each test has engines of its own."""

    def get(self, key: tuple[Any, ...], default: Any = None) -> Any:
        return super().get((type(key[0]), *key[1:]), default)

    def __setitem__(self, key: tuple[Any, ...], compiled: Any) -> None:
        super().__setitem__((type(key[0]), *key[1:]), compiled)


def share_statements() -> None:
    OPTIONS["execution_options"] = {"compiled_cache": _Compiled()}
