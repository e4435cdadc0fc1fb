"""What stands around the tools of an engine: the machine they are judged by, and the sandbox.

Both are made when something is first asked of them: judging and confining load much, and many a
session only talks.
"""

import os
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

from bridle.config.paths import config_file, policy_file, state_folder
from bridle.protocols.tool import Files, Tool
from bridle.workspace.workspace import Workspace

if TYPE_CHECKING:
    from bridle.protocols.hooks import UndoStore
    from bridle.protocols.machine import Machine, Place
    from bridle.workspace.sandbox import Sandbox

Folder = str | os.PathLike[str]


def own_places(environ: Mapping[str, str], state: Folder | None = None) -> tuple[str, ...]:
    """Where bridle keeps its own: settings, rules, hooks, sessions. They are nobody else's."""
    config, rules = str(config_file(environ)), str(policy_file(environ).parent)
    return (config, rules, str(state if state is not None else state_folder(environ)))


class Later:
    """Something that is made when it is first asked for anything."""

    def __init__(self, make: Callable[[], Any]) -> None:
        self._make = make

    @cached_property
    def _made(self) -> Any:
        return self._make()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._made, name)


class Surroundings(NamedTuple):
    """A workspace of this machine, what is judged by, and what commands run in; or none of it."""

    workspace: Workspace | None = None
    machine: "Machine | None" = None
    sandbox: "Sandbox | None" = None


def surroundings(files: Files, state: Folder | None, chosen: str) -> Surroundings:
    """What stands around the files of a workspace; nothing where they are not of this machine."""
    workspace = files if isinstance(files, Workspace) else None
    if workspace is None and os.path.isdir(files.root):  # noqa: PTH112 - any text may stand there
        workspace = Workspace(files.root)
    if workspace is None:
        return Surroundings()
    own = own_places(os.environ, state)
    sandbox = sandbox_of(workspace, own, chosen)
    return Surroundings(workspace, LazyMachine(workspace, own, sandbox), sandbox)


def undo_of(workspace: Workspace, state: Folder, tools: Mapping[str, Tool]) -> "UndoStore":
    """Who keeps what turns change there."""

    def make() -> "UndoStore":
        from bridle.workspace.undo import Undo

        return Undo(workspace.root, os.fspath(state), tools=tools)

    found: Any = Later(make)
    return found  # type: ignore[no-any-return]  # it stands for one


def sandbox_of(workspace: Workspace, own: tuple[str, ...], chosen: str = "auto") -> "Sandbox":
    """The sandbox of a workspace's commands; looking for one waits for the first of them."""

    def make() -> "Sandbox":
        from bridle.workspace.sandbox import Sandbox

        level = "" if chosen == "auto" else chosen
        sandbox = Sandbox(workspace.root, roots=workspace.roots[1:], hidden=own, level=level)
        sandbox.state = own[-1]
        return sandbox

    found: Any = Later(make)
    return found  # type: ignore[no-any-return]  # it stands for one


class LazyMachine:
    """The machine of a workspace. Implements `protocols.machine.Machine`.

    The temporary folder of commands is made with their sandbox, so that is asked only about a path
    that leads out.
    """

    def __init__(self, workspace: Workspace, own: tuple[str, ...], sandbox: "Sandbox") -> None:
        self.root = workspace.root
        self._workspace = workspace
        self._own = own
        self._sandbox = sandbox

    @cached_property
    def _real(self) -> "Machine":
        from bridle.workspace.machine import LocalMachine

        return LocalMachine(self._workspace, own=self._own)

    @cached_property
    def _wider(self) -> "Machine":
        from bridle.workspace.machine import LocalMachine

        return LocalMachine(self._workspace, own=self._own, temporary=self._sandbox.temp)

    @property
    def home(self) -> str:
        """The person's home folder."""
        return self._real.home

    def place(self, path: str, cwd: str) -> "Place":
        """Where a path leads."""
        found = self._real.place(path, cwd)
        return found if found.inside or found.temporary else self._wider.place(path, cwd)

    def expand(self, pattern: str, cwd: str) -> tuple[str, ...] | None:
        """The names that a pattern stands for."""
        return self._real.expand(pattern, cwd)

    def sensitive_files(self, folder: str, cwd: str) -> tuple[str, ...] | None:
        """What takes care to read below a folder, and the links there."""
        return self._real.sensitive_files(folder, cwd)

    def is_repository_safe(self, cwd: str) -> bool:
        """Can git read the repository of that folder without its configuration running code?"""
        return self._real.is_repository_safe(cwd)

    def is_local_program(self, name: str) -> bool:
        """Would a program of that name be one that lies in the workspace?"""
        return self._real.is_local_program(name)
