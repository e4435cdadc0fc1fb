"""The settings, and where each of them came from: default, file, environment, flag; the later wins.

The file is the user's own (`config_file`). A repository's configuration is never read: nothing
that lies in a workspace may choose a model, a key or an address. Knows no provider and no engine.
Names are loaded when they are first used: a list of sessions needs to know one folder, no more.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bridle.config.layers import load_settings as load_settings
    from bridle.config.places import config_file as config_file
    from bridle.config.places import state_folder as state_folder
    from bridle.config.places import state_place as state_place
    from bridle.config.settings import KEY_VARIABLES as KEY_VARIABLES
    from bridle.config.settings import URL_VARIABLES as URL_VARIABLES
    from bridle.config.settings import LimitSettings as LimitSettings
    from bridle.config.settings import Loaded as Loaded
    from bridle.config.settings import Settings as Settings
    from bridle.config.settings import bare_vendor as bare_vendor
    from bridle.config.settings import mask as mask
    from bridle.config.settings import vendor_of as vendor_of

_HOMES = {
    "layers": ("load_settings",),
    "places": ("config_file", "state_folder", "state_place"),
    "settings": (
        "KEY_VARIABLES",
        "URL_VARIABLES",
        "LimitSettings",
        "Loaded",
        "Settings",
        "bare_vendor",
        "mask",
        "vendor_of",
    ),
}
_HOME = {name: module for module, names in _HOMES.items() for name in names}

__all__ = list(_HOME)


def __getattr__(name: str) -> Any:
    if (module := _HOME.get(name)) is None:
        raise AttributeError(f"module 'bridle.config' has no attribute {name!r}")
    return getattr(import_module(f"bridle.config.{module}"), name)
