"""What applies in a workspace: the person's own rules, hooks, servers, skills and diagnostics, and
those of the workspace that they trust.

Each function returns the items and notes for the person. Raise `ConfigError` for a file that cannot
be understood.
"""

import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Generic, TypeVar

from msgspec import Struct

from bridle.config.diagnostics import Check, parse_check, parse_diagnostics
from bridle.config.hooks import CommandLine, parse_hooks
from bridle.config.mcp import ServerSettings, own_servers, parse_servers
from bridle.config.paths import (
    config_file,
    hooks_file,
    policy_file,
    skills_folder,
    state_folder,
)
from bridle.config.policy import parse_rules, read_rules
from bridle.config.skills import Note, Skill, own_skills, workspace_skills
from bridle.config.trust import DIAGNOSTICS, HOOKS, POLICY, SERVERS, FolderFile, Trust
from bridle.config.yaml_file import decode, read_text, refuse_dangling_link
from bridle.policy import Rule

Environ = Mapping[str, str] | None  # by default that of this process
T = TypeVar("T")
_HINT = "`bridle trust` shows them and lets you accept them."


class FolderConfig(Struct, Generic[T], frozen=True):
    """What applies in a workspace, and notes for the person, each with a hint."""

    items: tuple[T, ...] = ()
    notes: tuple[Note, ...] = ()


def load_rules(root: str | Path, environ: Environ = None) -> FolderConfig[Rule]:
    """Return the person's rules, then those of the workspace if it is trusted."""
    environ = os.environ if environ is None else environ
    rules = read_rules(policy_file(environ), root=root).rules

    def parse(text: str, path: Path) -> tuple[Rule, ...]:
        return parse_rules(text, path, root=root).rules

    more = trusted_file(root, POLICY, parse, environ, "rules, which do not count")
    if more.notes and os.path.realpath(root) in Trust(state_folder(environ)).folders():
        refuse_dangling_link(Path(root, POLICY), "rules")  # the person relies on its rules
    return FolderConfig(rules + more.items, more.notes)


def load_hooks(root: str | Path, environ: Environ = None) -> FolderConfig[CommandLine]:
    """Return the person's hooks, then those of the workspace if it is trusted."""
    environ = os.environ if environ is None else environ
    own = hooks_file(environ)
    hooks = parse_hooks(read_text(own, "hooks") or "", own)
    more = trusted_file(root, HOOKS, parse_hooks, environ, "hooks, which do not run")
    return FolderConfig(hooks + more.items, more.notes)


def load_servers(root: str | Path, environ: Environ = None) -> FolderConfig[ServerSettings]:
    """Return the person's MCP servers, then those of the workspace if it is trusted.

    A server of the workspace does not replace one of the person's of the same name.
    """
    environ = os.environ if environ is None else environ
    servers = own_servers(config_file(environ))
    more = trusted_file(root, SERVERS, parse_servers, environ, "MCP servers, which are not used")
    names = {server.name for server in servers}
    notes = [
        (f"the folder's MCP server {server.name} is not used: you have one of that name", "")
        for server in more.items
        if server.name in names
    ]
    added = tuple(server for server in more.items if server.name not in names)
    return FolderConfig(servers + added, (*more.notes, *notes))


def load_diagnostics(
    root: str | Path, own: Iterable[str], environ: Environ = None
) -> FolderConfig[Check]:
    """Return the person's `own` commands, then those of the workspace if it is trusted."""
    environ = os.environ if environ is None else environ
    checks = tuple(parse_check(line, "the setting `diagnostics`") for line in own)
    more = trusted_file(
        root, DIAGNOSTICS, parse_diagnostics, environ, "diagnostics, which do not run"
    )
    return FolderConfig(checks + more.items, more.notes)


def load_skills(root: str | Path, environ: Environ = None) -> FolderConfig[Skill]:
    """The person's skills, then the trusted ones of the workspace; the first of a name counts."""
    environ = os.environ if environ is None else environ
    own = own_skills(str(skills_folder(environ)))
    more = workspace_skills(os.path.realpath(root), str(state_folder(environ)))
    skills: dict[str, Skill] = {}
    notes: list[Note] = []
    for skill in (*own, *more):
        if not isinstance(skill, Skill):
            notes.append(skill)
        elif skill.name in skills:
            notes.append((f"{skill.file}: there is a skill {skill.name} before it", ""))
        else:
            skills[skill.name] = skill
    return FolderConfig(tuple(skills.values()), tuple(notes))


def trusted_file(
    root: str | Path,
    name: str,
    parse: Callable[[str, Path], tuple[T, ...]],
    environ: Mapping[str, str],
    untrusted: str,
) -> FolderConfig[T]:
    """Parse a file of the workspace if there is one and the person trusts it.

    `untrusted` ends the note about one that is not trusted: "this folder has its own …".
    """
    path = Path(root, name)
    if not os.path.lexists(path):
        return FolderConfig()
    data = Trust(state_folder(environ)).read(root, name)
    if data is None:
        return FolderConfig((), ((f"this folder has its own {untrusted}", _HINT),))
    return FolderConfig(parse(decode(data, path, untrusted.partition(",")[0]), path))


def check_files(files: Iterable[FolderFile], root: Path) -> None:
    """Check files that are about to be trusted: raise `ConfigError` for one that would keep bridle
    from starting."""
    for file in files:
        if file.problem:
            continue
        path = root / file.name
        if file.name == POLICY:
            parse_rules(decode(file.data, path, "rules"), path)
        elif file.name == HOOKS:
            parse_hooks(decode(file.data, path, "hooks"), path)
        elif file.name == SERVERS:
            parse_servers(decode(file.data, path, "servers"), path)
        elif file.name == DIAGNOSTICS:
            parse_diagnostics(decode(file.data, path, "diagnostics"), path)
