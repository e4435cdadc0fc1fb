"""What a workspace that is a git worktree needs of the repository that it belongs to.

The `.git` of a worktree is a file which names a folder elsewhere. That word is believed only where
the folder elsewhere says the same of the workspace: nobody inside could have written that.
"""

from pathlib import Path
from typing import NamedTuple

OF_WORKTREE = ("commondir", "gitdir", "config.worktree", "modules")  # no command may change them
_LONGEST = 4096
_SHARED = ("objects", "refs", "logs", "packed-refs", "shallow")


class Elsewhere(NamedTuple):
    """Folders outside the workspace: what git reads there, and what it has to write.

    `own` is the one that git keeps for this worktree alone. It is written, but for the files in it
    that say which repository it belongs to.
    """

    readable: tuple[str, ...] = ()
    writable: tuple[str, ...] = ()
    own: str = ""


def elsewhere(root: str) -> Elsewhere:
    """Those of the worktree at this root; none for anything else."""
    mark = Path(root, ".git")
    said = _line(mark).removeprefix("gitdir:").strip()
    own = Path(root, said)
    if not said or mark.is_symlink() or own.parent.name != "worktrees":
        return Elsewhere()
    if _line(own / "gitdir") != str(mark):
        return Elsewhere()
    shared = (own / _line(own / "commondir")).resolve()
    if shared != own.parent.parent.resolve():
        return Elsewhere()
    written = [str(shared / name) for name in _SHARED if (shared / name).exists()]
    return Elsewhere((str(shared),), (str(own.resolve()), *written), str(own.resolve()))


def _line(path: Path) -> str:
    try:
        if not path.is_file():
            return ""
        with path.open("rb") as file:
            return file.read(_LONGEST).decode(errors="replace").strip()
    except OSError:
        return ""
