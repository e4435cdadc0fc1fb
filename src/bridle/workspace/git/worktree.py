"""A git worktree of its own for a session, so that two sessions do not edit the same files.

It lies outside the workspace, in a folder that is handed in, on a new branch `bridle/<name>` from
HEAD. Runs the real git, with a clean environment, no hooks and no questions. Nothing is thrown
away: one with changes that were not committed is not removed, and a branch with commits of its own
stays. Knows nothing of sessions.
"""

import os
import re
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from bridle.errors import ConfigError
from bridle.workspace.git.repository import Repositories
from bridle.workspace.programs import find_program, folders
from bridle.workspace.text import one_line

# What a workspace that is a git worktree needs of the repository that it belongs to.

WORKTREE_FILES = ("commondir", "gitdir", "config.worktree", "modules")  # no command may change them
_LONGEST_LINE = 4096
_SHARED = ("objects", "refs", "logs", "packed-refs", "shallow")


class LinkedRepository(NamedTuple):
    """Folders outside the workspace: what git reads there, and what it has to write.

    `own` is the one that git keeps for this worktree alone. It is written, but for the files in it
    that say which repository it belongs to.
    """

    readable: tuple[str, ...] = ()
    writable: tuple[str, ...] = ()
    own: str = ""


def linked_repository(root: str) -> LinkedRepository:
    """Those of the worktree at this root; none for anything else."""
    mark = Path(root, ".git")
    said = _line(mark).removeprefix("gitdir:").strip()
    own = Path(root, said)
    if not said or mark.is_symlink() or own.parent.name != "worktrees":
        return LinkedRepository()
    if _line(own / "gitdir") != str(mark):
        return LinkedRepository()
    shared = (own / _line(own / "commondir")).resolve()
    if shared != own.parent.parent.resolve():
        return LinkedRepository()
    written = [str(shared / name) for name in _SHARED if (shared / name).exists()]
    return LinkedRepository((str(shared),), (str(own.resolve()), *written), str(own.resolve()))


def _line(path: Path) -> str:
    try:
        if not path.is_file():
            return ""
        with path.open("rb") as file:
            return file.read(_LONGEST_LINE).decode(errors="replace").strip()
    except OSError:
        return ""


_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*(\.[A-Za-z0-9_-]+)*")
_LONGEST = 64
_SECONDS = 300.0
_KEPT = ("PATH", "HOME", "USER", "LOGNAME", "XDG_CONFIG_HOME", "TMPDIR")
_UNCHANGED = "Nothing was changed; see what `git worktree list` says."
_SAFE = ("-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false")


class Worktree(NamedTuple):
    """A session's own copy of a repository's files.

    `root` is the folder to work in: as far below the `path` of the whole as the workspace is below
    its repository.
    """

    name: str
    path: str
    root: str
    branch: str


def add_worktree(
    root: str | Path, name: str, *, folder: str | Path, trusted: bool = False
) -> Worktree:
    """Make one for the repository of `root`, as `folder`/`name`.

    `trusted` is the person's word for a repository whose configuration can run code.
    """
    if not _NAME.fullmatch(name) or len(name) > _LONGEST or name.lower().endswith(".lock"):
        raise ConfigError(
            f"A worktree cannot be called `{one_line(name, 80)}`.",
            hint="Use letters, digits, `-` and `_`.",
        )
    _refuse_wild(root, trusted)
    prefix = _prefix(root)
    _refuse_empty(root)
    there = Path(os.path.realpath(folder), name)
    branch = f"bridle/{name}"
    if there.exists():
        raise ConfigError(
            f"The worktree {name} exists already; it is left as it is.",
            hint="Choose another name, or remove that one first.",
        )
    there.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    _git(root, "worktree", "add", "--quiet", "--no-track", "-b", branch, "--", str(there), "HEAD")
    return checked(Worktree(name, str(there), str(there / prefix), branch))


def list_worktrees(root: str | Path, *, folder: str | Path) -> list[Worktree]:
    """Those of the repository of `root` that lie in `folder`."""
    prefix = _prefix(root)
    above = os.path.realpath(folder)
    found = []
    for entry in _git(root, "worktree", "list", "--porcelain").split("\n\n"):
        lines = dict(line.partition(" ")[::2] for line in entry.split("\n") if line)
        path = Path(lines.get("worktree", "/"))
        if str(path.parent) == above:
            branch = lines.get("branch", "").removeprefix("refs/heads/")
            found.append(Worktree(path.name, str(path), str(path / prefix), branch))
    return sorted(found)


def remove_worktree(root: str | Path, name: str, *, folder: str | Path) -> bool:
    """Remove one that has no changes left. Return whether its branch is gone as well.

    The branch stays where it has commits that no other branch has.
    """
    known = {one.name: one for one in list_worktrees(root, folder=folder)}
    found = known.get(name)
    if found is None:
        raise ConfigError(
            f"There is no worktree called `{one_line(name, 80)}`.",
            hint=f"There are: {', '.join(known) or 'none'}.",
        )
    _refuse_wild(found.path, trusted=False)
    if _git(found.path, "status", "--porcelain", "--ignore-submodules=none"):
        raise ConfigError(
            f"The worktree {found.name} has changes that were not committed; it is kept.",
            hint=f"Commit them, or take them back, in {found.path}.",
        )
    _git(root, "worktree", "remove", "--", found.path)
    return _forget(root, found.branch)


def _forget(root: str | Path, branch: str) -> bool:
    """Delete a branch of ours without commits of its own."""
    if not branch.startswith("bridle/"):
        return False
    holding = _git(root, "for-each-ref", "--contains", branch, "--format=%(refname)").split("\n")
    if not set(filter(None, holding)) - {f"refs/heads/{branch}"}:
        return False
    _git(root, "branch", "--quiet", "-D", "--", branch)
    return True


def checked(made: Worktree) -> Worktree:
    """The workspace's folder has to be there, and be no link that a commit has in its place."""
    if os.path.realpath(made.root) != made.root:
        raise ConfigError(
            f"The worktree {made.name} was made, but in it the workspace's folder is a link.",
            hint=f"Commit the folder itself, or work in {made.path}.",
        )
    if not Path(made.root).is_dir():
        raise ConfigError(
            f"The worktree {made.name} was made, but the workspace's folder is in no commit.",
            hint=f"Commit the folder first, or work in {made.path}.",
        )
    return made


def _refuse_wild(root: str | Path, trusted: bool) -> None:
    why = "" if trusted else Repositories(str(Path.home())).danger_reason(os.path.realpath(root))
    if why:
        raise ConfigError(
            f"Git is not run: the repository could run code of its own ({one_line(why, 200)}).",
            hint="Look at its .git/config; take that setting out if you do not want it.",
        )


def _prefix(root: str | Path) -> str:
    """How far the folder is below the top of its repository. Raise `ConfigError` without one."""
    try:
        return _git(root, "rev-parse", "--show-prefix").strip("\n/")
    except ConfigError as error:
        if error.cause is not None:  # git itself could not be run
            raise
        raise ConfigError(
            f"{one_line(str(root), 200)} is in no git repository that can be used: {error.message}",
            hint="Make one with `git init` and a commit, or work without --worktree.",
        ) from None


def _refuse_empty(root: str | Path) -> None:
    try:
        _git(root, "rev-parse", "--verify", "--quiet", "HEAD^{commit}")
    except ConfigError:
        raise ConfigError(
            "No worktree can be made: the repository has no commit yet.",
            hint="Commit something first: git commit.",
        ) from None


def uncommitted(root: str | Path, paths: Iterable[str]) -> frozenset[str] | None:
    """Which of these files of the workspace git would still have to commit.

    None if git cannot say: no repository, or one whose configuration can run code.
    """
    try:
        _refuse_wild(root, trusted=False)
        words = ("status", "--porcelain", "-z", "--no-renames", "--untracked-files=all", "--")
        said = _git(root, *words, *(f":(literal){path}" for path in paths))
        prefix = _prefix(root)
    except ConfigError:
        return None
    found = (line[3:] for line in said.split("\0") if line)
    start = f"{prefix}/" if prefix else ""
    return frozenset(path.removeprefix(start) for path in found)


def _git(folder: str | Path, *arguments: str) -> str:
    """What git prints. Raise `ConfigError` with its own words where it fails."""
    environment = {name: os.environ[name] for name in _KEPT if name in os.environ}
    roots = (os.path.realpath(folder),)  # a command may have put a `git` into the workspace
    environment["PATH"] = os.pathsep.join(folders(roots))
    environment |= {"LC_ALL": "C.UTF-8", "GIT_TERMINAL_PROMPT": "0", "GIT_OPTIONAL_LOCKS": "0"}
    try:
        done = subprocess.run(
            [find_program("git", roots) or "git", *_SAFE, *arguments],
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
        words = done.stderr.decode(errors="replace").strip() or "it did not say why"
        raise ConfigError(f"git refused: {one_line(words, 300)}", hint=_UNCHANGED)
    return done.stdout.decode("utf-8", "surrogateescape")
