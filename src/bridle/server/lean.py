"""Litestar with as little of it as the server needs, and what its routes say of themselves."""

import re
from collections.abc import Callable
from typing import Any

from litestar import Litestar
from litestar.config.app import AppConfig
from litestar.plugins import PluginProtocol
from litestar.plugins.core import MsgspecDIPlugin

from bridle.server.routes.declared import declared, handlers

_KIND = re.compile(r":\w+\}")  # of what stands in a path


class Lean(Litestar):
    """Litestar with nothing but msgspec: the other plugins cost a third of a second to import."""

    @staticmethod
    def _get_default_plugins(plugins: list[PluginProtocol]) -> list[PluginProtocol]:
        return [*plugins, MsgspecDIPlugin()]

    @staticmethod
    def _patch_opentelemetry_middleware(config: AppConfig) -> AppConfig:
        return config


def free_paths(app: Litestar) -> Callable[[str], bool]:
    """Which paths need no token: exactly those of routes that say so, or below a free folder."""
    paths = {path for path, _, handler in handlers(app) if declared(handler).role is None}
    folders = tuple(path.partition("{")[0] for path in paths if "{" in path)
    exact = frozenset(path for path in paths if "{" not in path)
    return lambda path: path in exact or path.startswith(folders)


def methods_of(scope: Any) -> str:
    """What can be done at this address, beside asking that."""
    known = handlers(scope["litestar_app"])
    here = _KIND.sub("}", scope["path_template"])
    found = {method for path, method, _ in known if _KIND.sub("}", path) == here}
    return ", ".join(sorted(found))
