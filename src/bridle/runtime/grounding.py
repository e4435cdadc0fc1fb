"""What stands around the tools of an engine: the ground they are judged by, the sandbox, undo.

Modules are loaded when they are needed: judging, and probing for a sandbox, are for those who run
commands.
"""

import os
from collections.abc import Iterable, Mapping

from bridle.config.places import config_file, policy_file, state_folder
from bridle.promises.ground import Ground
from bridle.workspace.paths import Workspace


def own_places(environ: Mapping[str, str]) -> tuple[str, ...]:
    """Where bridle keeps its own: settings, rules, hooks, sessions. Nothing writes there."""
    config = config_file(environ)
    return (str(config), str(policy_file(environ).parent), str(state_folder(environ)))


def ground_of(workspace: Workspace, also: Iterable[str | os.PathLike[str]] = ()) -> Ground:
    """What commands and paths in a workspace are judged by."""
    from bridle.workspace.ground import Ground as Real

    return Real(workspace, own=own_places(os.environ), also=tuple(map(str, also)))


def level_of(chosen: str) -> str:
    """The sandbox that is used when this one was chosen; empty where there is none."""
    if chosen == "none":
        return ""
    from bridle.workspace.sandbox import probe

    found = probe() if chosen == "auto" else chosen
    return "" if found == "none" else str(found)
