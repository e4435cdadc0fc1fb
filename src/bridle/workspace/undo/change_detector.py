"""Detects what a call changes in a workspace, and keeps what was there before.

`begin` before the effect, `end` after it; the difference goes into the journal. The call of a
process that died is found by the next one that looks, and ended with what it has changed. Blocks;
raises `OSError`. Knows nothing of tools, events or threads.
"""

import os
import stat
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path

from msgspec import Struct

from bridle.workspace.text import is_cache, one_line
from bridle.workspace.undo.journal import Change, Journal, Kept, Opened
from bridle.workspace.undo.snapshot import Limits, Scan, scan
from bridle.workspace.undo.storage import ContentStore, UndoFolder
from bridle.workspace.undo.tree import IGNORED, WORDS, State, Tree, decode, differing, encode

_INDEX = "index"
_LEFT_OUT = (IGNORED, "git", "state")
_MOST_WORDS = 20  # things that are not covered, told of one by one
_SHOWN = 3
_MOST_LOOKED = 2_000  # files that git ignores, of which it is seen whether they changed
_GRANULE = 0.02  # seconds by which the time of a file may be behind the clock
_GIT = (".git/HEAD", ".git/index", ".git/logs/HEAD")
_OTHERS = "another session was at work here at the same time: its changes may be counted in"
_OF_GIT = "commits, branches and what is staged (.git) are not kept"
_CUT = "the call was cut off: what changed until now is counted as its doing"


class StartedCall(Struct):
    """A call that is under way: what is on disk of it, and what need not be."""

    opened: Opened
    handle: int
    tree: Tree | None = None
    git: tuple[tuple[int, int], ...] = ()
    outside: str = ""  # what it touches that is not looked at, in words


class ChangeDetector:
    """Looks at one workspace, and at what is kept of it."""

    def __init__(self, root: str | Path, state: str | Path, limits: Limits) -> None:
        self.root = os.path.realpath(root)
        self.folder = UndoFolder(state, self.root)
        self.objects = ContentStore(self.folder)
        self.journal = Journal(self.folder)
        self._limits = limits
        self._hidden = _inside(self.root, os.path.realpath(state))
        self._latest = Tree()
        self._stamp = (-1, -1, -1)
        self._used = False

    def look(self, known: Tree | None = None) -> tuple[Tree, Scan]:
        """All of the workspace, and what was left out of it.

        `known` is what a turn saw before: what was covered then still is. The index on disk is the
        tree that is returned.
        """
        pinned = known is not None
        base = known if known is not None else self._load()
        look = Scan(self.objects, self._limits, base, pinned=pinned, hidden=self._hidden)
        tree = look.at(self.root)
        if not look.changed:
            tree = base
        self._store(tree)
        return tree, look

    def _load(self) -> Tree:
        stamp = self.folder.stamp(_INDEX)
        if stamp != self._stamp:
            self._latest = decode(self.folder.found(_INDEX) or b"") or Tree()
            self._stamp = stamp
        return self._latest

    def _store(self, tree: Tree) -> None:
        if tree is self._latest and self.folder.stamp(_INDEX) == self._stamp:
            return
        self.folder.place(_INDEX, encode(tree))
        self._latest, self._stamp = tree, self.folder.stamp(_INDEX)

    def state(self, path: str) -> State:
        """What stands at one path now; its content is kept."""
        return scan(self.objects, self._limits, self.root, path)[0].state

    def begin(self, opened: Opened, paths: Iterable[str] | None, known: Tree | None) -> StartedCall:
        """Keep what stands there: at these paths, or everywhere."""
        tree = None
        if not self._used:
            self.folder.use()
            self._used = True
        with self.folder.locked():
            self.recover()
            if paths is None:
                tree, _ = self.look(known)
            states = tuple((path, self.state(path)) for path in paths or ())
            opened = Opened(
                opened.token,
                time.time(),
                opened.session,
                opened.turn,
                call=opened.call,
                whole=paths is None,
                states=states,
                offset=self.journal.size,
            )
            return StartedCall(opened, self.journal.open(opened), tree, self._git())

    def end(self, begun: StartedCall, *, cut: bool = False) -> tuple[Kept, Tree | None]:
        """What has changed since; it is in the journal, if it is anything."""
        with self.folder.locked():
            try:
                kept, tree = self._ended(begun, cut)
                self.journal.close(begun.opened.token)
            finally:
                os.close(begun.handle)  # where it failed, the next one who looks tries again
        return kept, tree

    def give_up(self, begun: StartedCall) -> None:
        """Forget a call that is under way."""
        self.journal.close(begun.opened.token)
        os.close(begun.handle)

    def _ended(self, begun: StartedCall, cut: bool) -> tuple[Kept, Tree | None]:
        opened = begun.opened
        tree, look = (None, None) if begun.tree is None else self.look(begun.tree)
        changes, uncovered = self._compared(opened, begun.tree, tree)
        uncovered += _missed(look)
        if begun.outside:
            uncovered.append(begun.outside)
        if begun.git != self._git():
            uncovered.append(_OF_GIT)
        if look is not None and look.ignored and (changes or uncovered):
            touched = [one for one in look.ignored if self._was_touched(one, opened.at)]
            if touched:
                uncovered.append(f"what git ignores is not kept: {_some(touched)}")
        if any(one.token != opened.token for one in self.journal.under_way()[0]) and changes:
            uncovered.append(_OTHERS)
        return self._note(opened, changes, [*([_CUT] if cut else []), *uncovered], cut), tree

    def _was_touched(self, path: str, since: float) -> bool:
        """Did something change there since then? Caches do not count: they are made again.

        What is too large to look at may have changed.
        """
        if is_cache(path.rstrip("/")):
            return False
        left, waiting = _MOST_LOOKED, [f"{self.root}/{path}".rstrip("/")]
        while waiting:
            place = waiting.pop()
            try:
                status = os.lstat(place)
                if status.st_ctime >= since - _GRANULE:
                    return True
                if stat.S_ISDIR(status.st_mode):
                    waiting += [entry.path for entry in os.scandir(place)]
            except OSError:
                return True
            left -= 1
            if left < len(waiting):
                return True
        return False

    def recover(self) -> None:
        """End the calls whose makers have died: what they changed is what differs by now."""
        _, dead = self.journal.under_way()
        if not dead:
            return
        ended = {one.token for one in self.journal.read()}
        for opened in sorted(dead, key=lambda one: one.at):
            if opened.token not in ended:
                self._end_dead(opened)
            self.journal.close(opened.token)

    def _end_dead(self, opened: Opened) -> None:
        before = self.journal.tree(opened.token) if opened.whole else None
        if opened.whole and before is None:
            return  # what it kept is damaged
        tree = self.look(before)[0] if before is not None else None
        changes, uncovered = self._compared(opened, before, tree)
        self._note(opened, changes, [_CUT, *uncovered], True)

    def _note(self, opened: Opened, changes: list[Change], uncovered: list[str], cut: bool) -> Kept:
        kept = Kept(
            opened.token,
            time.time(),
            opened.session,
            opened.turn,
            opened.kind,
            opened.call,
            tuple(changes),
            tuple(uncovered),
            cut=cut,
            named=not opened.whole,
        )
        if changes:
            self.journal.add(kept)
        return kept

    def _compared(
        self, opened: Opened, before: Tree | None, after: Tree | None
    ) -> tuple[list[Change], list[str]]:
        """What changed and, in words, what of it is not covered."""
        if before is not None and after is not None:
            was, now = self._others(opened, before.state), after.state
            paths = set(differing(before, after))
        else:
            states = dict(opened.states)
            was, now = self._others(opened, states.__getitem__), self.state
            paths = set(states)
        changes: list[Change] = []
        uncovered: list[str] = []
        for path in sorted(paths):
            change, word = self._judged(path, was(path), now(path))
            if change is not None:
                changes.append(change)
            if word:
                uncovered.append(word)
        more = len(uncovered) - _MOST_WORDS
        return changes, uncovered[:_MOST_WORDS] + ([f"… and {more} more"] if more > 0 else [])

    def _judged(self, path: str, was: State, now: State) -> tuple[Change | None, str]:
        if now.is_unknown and now.why not in _LEFT_OUT:
            now = self.state(path)  # the look did not get there
        if was == now or (not was.mode and now.is_unknown):
            return None, ""
        shown = one_line(path, 120)
        if was.is_unknown or now.is_unknown:
            return None, f"{shown} {WORDS.get(was.why or now.why, 'is not covered')}"
        why = was.why or now.why
        return Change(path, was, now), f"{shown} {WORDS[why]}" if why else ""

    def _others(self, opened: Opened, was: Callable[[str], State]) -> Callable[[str], State]:
        """What stood there, with what others have changed there in the meantime for certain."""
        later: dict[str, State] = {}
        for one in self.journal.read(opened.offset):
            if one.named:
                later.update((change.path, change.after) for change in one.changes)
        return lambda path: later[path] if path in later else was(path)

    def _git(self) -> tuple[tuple[int, int], ...]:
        """What tells whether somebody worked on the repository itself."""
        found = []
        for name in _GIT:
            with suppress(OSError):
                status = Path(self.root, name).lstat()
                found.append((status.st_ino, status.st_mtime_ns))
        return tuple(found)


def _missed(look: Scan | None) -> list[str]:
    """What was not looked at, so that nobody knows whether it changed."""
    whys: dict[str, list[str]] = {}
    for path, why in look.missed if look is not None else ():
        whys.setdefault(why, []).append(path)
    return [f"{_some(paths)} {WORDS[why]}" for why, paths in whys.items()]


def _some(paths: list[str]) -> str:
    more = f" and {len(paths) - _SHOWN} more" if len(paths) > _SHOWN else ""
    return ", ".join(one_line(path, 120) for path in paths[:_SHOWN]) + more


def _inside(root: str, state: str) -> tuple[str, ...]:
    """Where bridle's state lies in the workspace, if it does."""
    prefix = root.rstrip("/") + "/"
    return (state[len(prefix) :],) if state.startswith(prefix) else ()
