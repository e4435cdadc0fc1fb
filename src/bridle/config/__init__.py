"""Settings, and the files that a person or a workspace brings: rules, hooks, servers, skills.

`settings` has the values and their names, `loader` merges defaults, file, environment and flags.
`policy`, `hooks`, `mcp`, `skills` and `diagnostics` parse one kind of file each (`yaml_file` reads
them), `trust` knows which folders the person trusts, and `folder` says what applies in a workspace.
`paths` has the places of the user's own files. A repository cannot choose a model, a key or an
address. Knows no provider and no engine.

Names are imported when they are first used, because a list of sessions needs only one of them.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bridle.config.loader import load_settings as load_settings
    from bridle.config.paths import config_file as config_file
    from bridle.config.paths import state_folder as state_folder
    from bridle.config.paths import state_folder_str as state_folder_str
    from bridle.config.settings import KEY_VARIABLES as KEY_VARIABLES
    from bridle.config.settings import URL_VARIABLES as URL_VARIABLES
    from bridle.config.settings import LimitSettings as LimitSettings
    from bridle.config.settings import LoadedSettings as LoadedSettings
    from bridle.config.settings import Settings as Settings
    from bridle.config.settings import bare_vendor as bare_vendor
    from bridle.config.settings import mask as mask
    from bridle.config.settings import vendor_of as vendor_of

_NAMES = {
    "loader": ("load_settings",),
    "paths": ("config_file", "state_folder", "state_folder_str"),
    "settings": (
        "KEY_VARIABLES",
        "URL_VARIABLES",
        "LimitSettings",
        "LoadedSettings",
        "Settings",
        "bare_vendor",
        "mask",
        "vendor_of",
    ),
}
_MODULE_OF = {name: module for module, names in _NAMES.items() for name in names}

__all__ = list(_MODULE_OF)


def __getattr__(name: str) -> Any:
    if (module := _MODULE_OF.get(name)) is None:
        raise AttributeError(f"module 'bridle.config' has no attribute {name!r}")
    return getattr(import_module(f"bridle.config.{module}"), name)
