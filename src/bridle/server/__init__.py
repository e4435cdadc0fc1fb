"""Faces that are reached over a wire: the HTTP service, whose parts lie here side by side, and
`mcp`, `acp` and `agui`, each a package of its own that knows the other two not at all.

For programs: `serve(engine)` serves an engine until it is cancelled, `open_server(engine)` inside a
`with` block.
"""

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bridle.server.engine_server import EngineServer as EngineServer
    from bridle.server.engine_server import open_server as open_server
    from bridle.server.engine_server import serve as serve

__all__ = ["EngineServer", "open_server", "serve"]
NEEDED = ("starlette", "uvicorn", "httptools")


def check_installed() -> None:
    """Raise `MissingExtra` if a package is missing that serves over HTTP."""
    if missing := [name for name in NEEDED if find_spec(name) is None]:
        from bridle.distribution import install_hint
        from bridle.errors import MissingExtra

        raise MissingExtra(
            f"what serves over HTTP is not installed: {', '.join(missing)}",
            hint=install_hint("server"),
        )


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'bridle.server' has no attribute {name!r}")
    check_installed()
    value = getattr(import_module("bridle.server.engine_server"), name)
    globals()[name] = value
    return value
