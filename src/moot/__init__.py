"""Moot: a governed, audited research desk of agents for equities.

`from moot import Moot` is the SDK; what it needs is loaded on first use, so that `import moot` stays light.
"""

from typing import TYPE_CHECKING, Any, overload

if TYPE_CHECKING:
    from moot import desk
    from moot.remote.client import RemoteMoot
    from moot.remote.desk import Desk
    from moot.shared.domain.clock import Clock
    from moot.shared.domain.messages import Locale
    from moot.shared.infrastructure.settings import Settings

__version__ = "0.1.0"
__all__ = ["Desk", "Moot", "__version__"]


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


def __getattr__(name: str) -> Any:
    if name == "Desk":
        from moot.remote.desk import Desk  # noqa: PLC0415

        return Desk
    raise AttributeError(f"module 'moot' has no attribute {name!r}")
