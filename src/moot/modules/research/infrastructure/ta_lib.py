"""TA-Lib, without the libraries of frames it would load along with it."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from inspect import unwrap
from threading import get_ident
from types import SimpleNamespace
from typing import Any

__all__ = ["talib"]


@contextmanager
def hide_modules(*names: str) -> Iterator[None]:
    """For the block, and for this thread alone; what is loaded already stays in sight."""
    here = get_ident()

    def find_spec(name: str, *_: Any) -> None:
        if name in names and get_ident() == here:
            raise ModuleNotFoundError(f"hidden: {name}", name=name)

    hiding: Any = SimpleNamespace(find_spec=find_spec)
    sys.meta_path.insert(0, hiding)
    try:
        yield
    finally:
        sys.meta_path.remove(hiding)


# where they are installed TA-Lib loads both, to take columns; it gets arrays
with hide_modules("pandas", "polars"):
    import talib as ta_lib

FUNCTIONS = [name for name in dir(ta_lib) if name.isupper()]
talib: Any = SimpleNamespace(**{name: unwrap(getattr(ta_lib, name)) for name in FUNCTIONS})
"""Its functions as they are: where frames were loaded before, each call would look for columns first."""
