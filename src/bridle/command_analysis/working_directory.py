"""In which folders a command may run: `cd` followed through `&&`, `||`, `;`, subshells and pipes.

A `cd` can fail, so there may be several; every one of them is judged. UNKNOWN among them means that
it cannot be said. Paths are joined here by their words; where they lead is asked of the ground.
"""

from posixpath import join, normpath

from bridle.command_analysis.syntax import Simple
from bridle.protocols.machine import Ground

Folders = tuple[str, ...]
UNKNOWN = ""
_MOST = 4  # folders that are worth following


class _State:
    """A shell's folders: if the last command succeeded, if it failed, in which it ran, and ever."""

    __slots__ = ("bad", "ever", "good", "ran")

    def __init__(self, folders: Folders) -> None:
        self.good = self.bad = self.ran = self.ever = folders


class Whereabouts:
    """The folders of every (sub)shell of one command line."""

    def __init__(self, ground: Ground, folders: Folders) -> None:
        self._ground = ground
        self._states: dict[tuple[int, ...], _State] = {(): _State(folders)}

    def before(self, simple: Simple) -> Folders:
        """In which folders that command may run."""
        state = self._states.get(simple.scope)
        if state is not None:
            return _ran(state, simple.follows)
        folders = _ran(self._parent(simple.scope), simple.follows)
        self._states[simple.scope] = _State(folders)
        return folders

    def moved(self, simple: Simple, targets: Folders | None) -> None:
        """That command changed the folder: to these, or, with None, nobody knows where."""
        state = self._states[simple.scope]
        if targets is None:
            state.good = state.bad = state.ran = state.ever = (UNKNOWN,)
            return
        stays = simple.piped or simple.follows == "||"
        state.good = _both(targets, state.good) if stays else targets
        state.ever = _both(state.ever, targets)

    def last(self) -> Folders:
        """Where the shell itself stands in the end, if nothing failed."""
        return self._states[()].good

    def to(self, folder: str, path: str) -> Folders:
        """Where a `cd` leads from a folder: by its words, and with links followed."""
        worded = normpath(join(folder, path))
        place = self._ground.place(path, folder)
        real = join(self._ground.root, place.path) if place.inside else place.path
        return _both((normpath(real),), (worded,))

    def _parent(self, scope: tuple[int, ...]) -> _State:
        while scope not in self._states:
            scope = scope[:-1]
        return self._states[scope]


def _ran(state: _State, follows: str) -> Folders:
    """Where the next command runs, and what that leaves open about those after it."""
    folders = _choose(state, follows)
    if follows == "|":  # its pipe has been counted
        return folders
    skipped = state.bad if follows == "&&" else state.good if follows == "||" else folders
    state.ran = folders
    state.good = folders if follows == "&&" else _both(folders, skipped)
    state.bad = folders if follows == "||" else _both(folders, skipped)
    return folders


def _choose(state: _State, follows: str) -> Folders:
    if follows == "&&":
        return state.good
    if follows == "||":
        return state.bad
    if follows == "|":
        return state.ran
    if follows == "&":
        return state.ever
    return _both(state.good, state.bad)


def _both(one: Folders, other: Folders) -> Folders:
    """The folders of both; UNKNOWN where there are too many to follow."""
    if one == other:
        return one
    found = tuple(dict.fromkeys(one + other))
    return found if len(found) <= _MOST else (UNKNOWN,)
