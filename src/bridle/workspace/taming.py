"""A repository that was tame before a command is tame after it.

A command can make a repository inside another and name it in that one's index: from then on the
person's own `git status` goes into it, and runs what its configuration says. What makes a
repository wild is set aside, under a name that git does not look for; nothing is lost. Where that
cannot be done it is told. A repository that was wild already is the person's own affair.
"""

from contextlib import suppress

from bridle.workspace.placing import Parent, set_aside
from bridle.workspace.repository import Repositories, Wild
from bridle.workspace.watched import Mended

_MOST = 200  # that are set aside after one command


class Tamed:
    """The repository of one workspace, and those inside it."""

    def __init__(self, root: str, home: str) -> None:
        self._root = root
        self._repositories = Repositories(home)
        self._was_tame = False

    def look(self) -> None:
        """Note whether it is tame."""
        self._was_tame = self._repositories.is_tame(self._root)

    def mend(self) -> Mended:
        """Set aside what has made it wild since."""
        done: list[str] = []
        for _ in range(_MOST if self._was_tame else 0):
            found = self._repositories.wild(self._root)
            if found is None:
                break
            moved = self._tame(found)
            if not moved:
                self._was_tame = False  # it is told once
                return Mended(tuple(done), (self._said(found, found.file or found.entry),))
            done.append(self._said(found, moved))
        return Mended(tuple(done))

    def _said(self, found: Wild, path: str) -> str:
        name = path.removeprefix(f"{self._root}/")
        return f"{name} (git would run code: {found.why})"

    def _tame(self, found: Wild) -> str:
        """Move the file, or else the whole repository, out of git's sight: which it was."""
        own = f"{self._root}/.git"
        for path in (found.file, found.entry):
            is_inside = path.startswith(f"{self._root}/")
            if not is_inside or path in (own, f"{own}/index"):
                continue
            with suppress(OSError), Parent(self._root, path[len(self._root) + 1 :]) as place:
                if set_aside(*place):
                    return path
        return ""
