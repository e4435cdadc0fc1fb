"""What files add to a session: hooks, MCP servers, and instructions for the model.

Most folders have none of these, and then nothing is imported to find that out. The person is told
once about files that have no effect because they are not trusted yet.
"""

import os
from pathlib import Path
from typing import TYPE_CHECKING

from bridle.cli.failure import complain
from bridle.config.paths import hooks_file, skills_folder
from bridle.runtime.prompts import FILES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bridle.config.diagnostics import Check
    from bridle.config.hooks import CommandLine
    from bridle.config.mcp import ServerSettings
    from bridle.config.skills import Skill
    from bridle.protocols.tool import ToolSource

_HOOKS = ".bridle/hooks.yaml"  # trust's own, without its imports
_DIAGNOSTICS = ".bridle/diagnostics.yaml"
_SKILLS = (".bridle/skills", ".claude/skills")


def servers(workspace: Path, more: "Sequence[ServerSettings]" = ()) -> "tuple[ToolSource, ...]":
    """The MCP servers that count there, as a source of tools; none is started for it.

    `more` are those of an editor; a name that the person has given to a server of theirs is theirs.
    """
    from bridle.runtime.mcp import are_there_any, sources_of

    if not are_there_any(workspace, os.environ):
        return sources_of(more, workspace)
    from bridle.config.folder import load_servers  # it reads YAML, and most people have no servers

    config = load_servers(workspace)
    for note in config.notes:
        complain(*note)
    mine = {one.name for one in config.items}
    return sources_of((*config.items, *(one for one in more if one.name not in mine)), workspace)


def hooks(workspace: Path, *, quiet: bool = False) -> "tuple[CommandLine, ...]":
    """The hooks of the files that count there. Raise `ConfigError`."""
    if not any(map(os.path.lexists, (hooks_file(os.environ), workspace / _HOOKS))):
        return ()
    from bridle.config.folder import load_hooks  # it reads YAML, and most people have no hooks

    config = load_hooks(workspace)
    for note in () if quiet else config.notes:
        complain(*note)
    return config.items


def diagnostics(workspace: Path, mine: "Sequence[str]") -> "tuple[Check, ...]":
    """The commands that look at changed files there. Raise `ConfigError`."""
    if not mine and not os.path.lexists(workspace / _DIAGNOSTICS):
        return ()
    from bridle.config.folder import load_diagnostics

    config = load_diagnostics(workspace, mine)
    for note in config.notes:
        complain(*note)
    return config.items


def skills(workspace: Path) -> "tuple[Skill, ...]":
    """The skills that count there. Raise `ConfigError`."""
    places = (skills_folder(os.environ), *(workspace / one for one in _SKILLS))
    if not any(map(os.path.lexists, places)):
        return ()
    from bridle.config.folder import load_skills

    config = load_skills(workspace)
    for note in config.notes:
        complain(*note)
    return config.items


def instructions(workspace: Path) -> str:
    """What the folder tells the model, where it is trusted. Raise `ConfigError`."""
    if not any(os.path.lexists(workspace / name) for name in FILES):
        return ""
    from bridle.runtime.prompts import project_instructions

    found = project_instructions(workspace)
    if found.unread:
        names = " and ".join(found.unread)
        are = "is" if len(found.unread) == 1 else "are"
        complain(f"{names} {are} not read until the folder is trusted: bridle trust")
    return found.instructions
