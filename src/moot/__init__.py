"""Moot: a governed, audited research desk of agents for equities.

`from moot import Moot` is the SDK, `MootSync` the same for code that does not await; their types and errors are here,
too. What they need is loaded on first use, so that `import moot` stays light.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any, overload

if TYPE_CHECKING:
    from moot import desk
    from moot.remote.client import RemoteMoot
    from moot.remote.desk import BlockingDesk
    from moot.remote.types import *  # noqa: F403
    from moot.remote.types import Settings
    from moot.shared.domain.clock import Clock
    from moot.shared.domain.messages import Locale

__version__ = "0.1.0"


@overload
def Moot(settings: "Settings | None" = None, *, clock: "Clock | None" = None) -> "desk.Moot": ...


@overload
def Moot(
    *, base_url: str, api_key: str = "", locale: "Locale | None" = None, timeout: float = 600.0
) -> "RemoteMoot": ...


def Moot(*settings: Any, **more: Any) -> Any:  # noqa: N802  # called like the classes it chooses from
    """A desk of one's own or, with `base_url`, the one that is served there. Either is a `Desk`."""
    if "base_url" in more:
        from moot.remote.client import RemoteMoot  # noqa: PLC0415

        return RemoteMoot(*settings, **more)
    from moot import desk  # noqa: PLC0415

    return desk.Moot(*settings, **more)


@overload
def MootSync(
    settings: "Settings | None" = None, *, clock: "Clock | None" = None
) -> "BlockingDesk[desk.Moot]": ...


@overload
def MootSync(
    *, base_url: str, api_key: str = "", locale: "Locale | None" = None, timeout: float = 600.0
) -> "BlockingDesk[RemoteMoot]": ...


def MootSync(*settings: Any, **more: Any) -> Any:  # noqa: N802  # as `Moot`
    """The same desk for code that does not await: `with MootSync() as desk: desk.research(...)`."""
    from moot.remote.desk import BlockingDesk  # noqa: PLC0415

    return BlockingDesk(Moot(*settings, **more))


def __getattr__(name: str) -> Any:
    if not name.startswith("_") and hasattr(types := import_module("moot.remote.types"), name):
        return getattr(types, name)
    raise AttributeError(f"module 'moot' has no attribute {name!r}")
