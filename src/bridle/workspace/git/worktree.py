"""A git worktree of its own for a session, so that two sessions do not edit the same files.

It lies outside the workspace, in a given folder, on a new branch `bridle/<name>` from HEAD. Runs
the real git, with a clean environment, no hooks and no prompts. Nothing is lost: a worktree with
uncommitted changes is not removed, and a branch with commits of its own stays. Knows nothing of
sessions.
"""

import os
import re
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from bridle.errors import ConfigError
from bridle.workspace.git.repository import Repositories
from bridle.workspace.programs import find_program, path_folders
from bridle.workspace.text import one_line

# What a workspace that is a linked git worktree needs of its repository.

WORKTREE_FILES = ("commondir", "gitdir", "config.worktree", "modules")  # no command may change them
_MAX_LINE = 4096
_SHARED = ("objects", "refs", "logs", "packed-refs", "shallow")


class LinkedRepository(NamedTuple):
    """Folders outside the workspace that git reads and has to write.

    `own` is the one that git keeps for this worktree alone. It is writable, except the files in it
    that say which repository it belongs to (`WORKTREE_FILES`).
    """

    readable: tuple[str, ...] = ()
    writable: tuple[str, ...] = ()
    own: str = ""


def linked_repository(root: str) -> LinkedRepository:
    """Return those of the worktree at a root; none if it is not a linked worktree."""
    pointer = Path(root, ".git")
    target = _read_line(pointer).removeprefix("gitdir:").strip()
    own = Path(root, target)
    if not target or pointer.is_symlink() or own.parent.name != "worktrees":
        return LinkedRepository()
    if _read_line(own / "gitdir") != str(pointer):
        return LinkedRepository()
    shared = (own / _read_line(own / "commondir")).resolve()
    if shared != own.parent.parent.resolve():
        return LinkedRepository()
    written = [str(shared / name) for name in _SHARED if (shared / name).exists()]
    return LinkedRepository((str(shared),), (str(own.resolve()), *written), str(own.resolve()))


def _read_line(path: Path) -> str:
    try:
        if not path.is_file():
            return ""
        with path.open("rb") as file:
            return file.read(_MAX_LINE).decode(errors="replace").strip()
    except OSError:
        return ""


_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*(\.[A-Za-z0-9_-]+)*")
_MAX_NAME = 64
_SECONDS = 300.0
_INHERITED = ("PATH", "HOME", "USER", "LOGNAME", "XDG_CONFIG_HOME", "TMPDIR")
_UNCHANGED = "Nothing was changed; see what `git worktree list` says."
_OPTIONS = ("-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false")


class Worktree(NamedTuple):
    """A session's own copy of a repository's files.

    `path` is its top folder, `root` the folder to work in: the one that corresponds to the
    workspace.
    """

    name: str
    path: str
    root: str
    branch: str


def add_worktree(
    root: str | Path, name: str, *, folder: str | Path, trusted: bool = False
) -> Worktree:
    """Create a worktree of the repository of `root` at `folder`/`name`.

    `trusted` means that the person trusts the repository, whose configuration may run code.
    """
    if not _NAME.fullmatch(name) or len(name) > _MAX_NAME or name.lower().endswith(".lock"):
        raise ConfigError(
            f"A worktree cannot be called `{one_line(name, 80)}`.",
            hint="Use letters, digits, `-` and `_`.",
        )
    _check_safe(root, trusted=trusted)
    prefix = _prefix(root)
    _check_has_commit(root)
    path = Path(os.path.realpath(folder), name)
    branch = f"bridle/{name}"
    if path.exists():
        raise ConfigError(
            f"The worktree {name} exists already; it is left as it is.",
            hint="Choose another name, or remove that one first.",
        )
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    _git(root, "worktree", "add", "--quiet", "--no-track", "-b", branch, "--", str(path), "HEAD")
    return check_worktree(Worktree(name, str(path), str(path / prefix), branch))


def list_worktrees(root: str | Path, *, folder: str | Path) -> list[Worktree]:
    """Return the worktrees of the repository of `root` that lie in `folder`."""
    prefix = _prefix(root)
    parent = os.path.realpath(folder)
    worktrees = []
    for entry in _git(root, "worktree", "list", "--porcelain").split("\n\n"):
        lines = dict(line.partition(" ")[::2] for line in entry.split("\n") if line)
        path = Path(lines.get("worktree", "/"))
        if str(path.parent) == parent:
            branch = lines.get("branch", "").removeprefix("refs/heads/")
            worktrees.append(Worktree(path.name, str(path), str(path / prefix), branch))
    return sorted(worktrees)


def remove_worktree(root: str | Path, name: str, *, folder: str | Path) -> bool:
    """Remove a worktree without uncommitted changes. Return whether its branch is deleted, too.

    The branch stays if it has commits that no other branch has.
    """
    known = {worktree.name: worktree for worktree in list_worktrees(root, folder=folder)}
    worktree = known.get(name)
    if worktree is None:
        raise ConfigError(
            f"There is no worktree called `{one_line(name, 80)}`.",
            hint=f"There are: {', '.join(known) or 'none'}.",
        )
    _check_safe(worktree.path, trusted=False)
    if _git(worktree.path, "status", "--porcelain", "--ignore-submodules=none"):
        raise ConfigError(
            f"The worktree {worktree.name} has changes that were not committed; it is kept.",
            hint=f"Commit them, or take them back, in {worktree.path}.",
        )
    _git(root, "worktree", "remove", "--", worktree.path)
    return _delete_branch(root, worktree.branch)


def _delete_branch(root: str | Path, branch: str) -> bool:
    """Delete a branch of ours without commits of its own. Return whether it was deleted."""
    if not branch.startswith("bridle/"):
        return False
    refs = _git(root, "for-each-ref", "--contains", branch, "--format=%(refname)").split("\n")
    if not set(filter(None, refs)) - {f"refs/heads/{branch}"}:
        return False
    _git(root, "branch", "--quiet", "-D", "--", branch)
    return True


def check_worktree(worktree: Worktree) -> Worktree:
    """Raise `ConfigError` if the folder to work in is missing, or if a commit has a link there."""
    if os.path.realpath(worktree.root) != worktree.root:
        raise ConfigError(
            f"The worktree {worktree.name} was made, but in it the workspace's folder is a link.",
            hint=f"Commit the folder itself, or work in {worktree.path}.",
        )
    if not Path(worktree.root).is_dir():
        raise ConfigError(
            f"The worktree {worktree.name} was made, but the workspace's folder is in no commit.",
            hint=f"Commit the folder first, or work in {worktree.path}.",
        )
    return worktree


def _check_safe(root: str | Path, *, trusted: bool) -> None:
    why = "" if trusted else Repositories(str(Path.home())).danger_reason(os.path.realpath(root))
    if why:
        raise ConfigError(
            f"Git is not run: the repository could run code of its own ({one_line(why, 200)}).",
            hint="Look at its .git/config; take that setting out if you do not want it.",
        )


def _prefix(root: str | Path) -> str:
    """Return the path of a folder in its repository. Raise `ConfigError` if there is none."""
    try:
        return _git(root, "rev-parse", "--show-prefix").strip("\n/")
    except ConfigError as error:
        if error.cause is not None:  # git itself could not be run
            raise
        raise ConfigError(
            f"{one_line(str(root), 200)} is in no git repository that can be used: {error.message}",
            hint="Make one with `git init` and a commit, or work without --worktree.",
        ) from None


def _check_has_commit(root: str | Path) -> None:
    try:
        _git(root, "rev-parse", "--verify", "--quiet", "HEAD^{commit}")
    except ConfigError:
        raise ConfigError(
            "No worktree can be made: the repository has no commit yet.",
            hint="Commit something first: git commit.",
        ) from None


def uncommitted_files(root: str | Path, paths: Iterable[str]) -> frozenset[str] | None:
    """Return which of these files of the workspace have uncommitted changes.

    None if git cannot say: there is no repository, or its configuration can run code.
    """
    try:
        _check_safe(root, trusted=False)
        words = ("status", "--porcelain", "-z", "--no-renames", "--untracked-files=all", "--")
        output = _git(root, *words, *(f":(literal){path}" for path in paths))
        prefix = _prefix(root)
    except ConfigError:
        return None
    changed = (line[3:] for line in output.split("\0") if line)
    start = f"{prefix}/" if prefix else ""
    return frozenset(path.removeprefix(start) for path in changed)


def _git(folder: str | Path, *arguments: str) -> str:
    """Run git and return what it prints. If it fails, raise `ConfigError` with its message."""
    environment = {name: os.environ[name] for name in _INHERITED if name in os.environ}
    roots = (os.path.realpath(folder),)  # a command may have put a `git` into the workspace
    environment["PATH"] = os.pathsep.join(path_folders(roots))
    environment |= {"LC_ALL": "C.UTF-8", "GIT_TERMINAL_PROMPT": "0", "GIT_OPTIONAL_LOCKS": "0"}
    try:
        done = subprocess.run(
            [find_program("git", roots) or "git", *_OPTIONS, *arguments],
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_SECONDS,
            check=False,
        )
    except FileNotFoundError as error:
        hint = "Install git, or work without --worktree."
        raise ConfigError("git is not installed; a worktree needs it.", error, hint=hint) from error
    except subprocess.TimeoutExpired as error:
        hint = "Try again; a very large repository may take long."
        raise ConfigError("git did not end in time; it was stopped.", error, hint=hint) from error
    if done.returncode:
        message = done.stderr.decode(errors="replace").strip() or "it did not say why"
        raise ConfigError(f"git failed: {one_line(message, 300)}", hint=_UNCHANGED)
    return done.stdout.decode("utf-8", "surrogateescape")
