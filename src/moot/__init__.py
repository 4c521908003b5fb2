"""Moot: a governed, audited research desk of agents for equities.

`from moot import Moot` is the SDK; it is loaded on first use, so that `import moot` stays light.
"""

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"
__all__ = ["Moot", "__version__"]

if TYPE_CHECKING:
    from moot.desk import Moot


def __getattr__(name: str) -> Any:
    if name == "Moot":
        from moot.desk import Moot  # noqa: PLC0415

        return Moot
    raise AttributeError(f"module 'moot' has no attribute {name!r}")
