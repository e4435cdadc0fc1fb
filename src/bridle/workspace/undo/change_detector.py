"""Detects what a call changes in a workspace, and keeps what was there before.

Call `begin` before the effect and `end` after it; the difference goes into the journal. If a
process dies during a call, the next one that scans ends the call with what it has changed. Blocks.
Raises `OSError`. Knows nothing of tools, events or threads.
"""

import os
import stat
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path

from msgspec import Struct

from bridle.workspace.text import is_cache, one_line
from bridle.workspace.undo.journal import Change, Journal, JournalEntry, PendingEntry
from bridle.workspace.undo.snapshot import Limits, Scan, read_path
from bridle.workspace.undo.storage import ContentStore, UndoFolder
from bridle.workspace.undo.tree import IGNORED, WORDS, State, Tree, changed_paths, decode, encode

_INDEX = "index"
_EXCLUDED = (IGNORED, "git", "state")
_MAX_UNCOVERED = 20  # things that are not covered, named one by one
_SHOWN = 3
_MAX_LOOKS = 2_000  # files that git ignores, looked at to see whether they changed
_CLOCK_STEP = 0.02  # seconds by which the time of a file may be behind the clock
_GIT = (".git/HEAD", ".git/index", ".git/logs/HEAD")
_OTHER_SESSION = "another session was at work here at the same time: its changes may be counted in"
_GIT_NOT_KEPT = "commits, branches and what is staged (.git) are not kept"
_CUT_OFF = "the call was cut off: what changed until now is counted as its doing"


class StartedCall(Struct):
    """A call between `begin` and `end`. `outside` names what it touches that is not kept."""

    pending: PendingEntry
    handle: int
    tree: Tree | None = None
    git: tuple[tuple[int, int], ...] = ()
    outside: str = ""


class ChangeDetector:
    """Scans one workspace, and compares it with what is kept of it."""

    def __init__(self, root: str | Path, state: str | Path, limits: Limits) -> None:
        self.root = os.path.realpath(root)
        self.folder = UndoFolder(state, self.root)
        self.objects = ContentStore(self.folder)
        self.journal = Journal(self.folder)
        self._limits = limits
        prefix = self.root.rstrip("/") + "/"  # the state folder may lie in the workspace
        own = os.path.realpath(state)
        self._hidden = (own[len(prefix) :],) if own.startswith(prefix) else ()
        self._latest = Tree()
        self._stamp = (-1, -1, -1)
        self._is_registered = False

    def scan(self, known: Tree | None = None) -> tuple[Tree, Scan]:
        """Scan all of the workspace, and make the result the index on disk.

        `known` is what a turn saw before: what was covered then still is.
        """
        base = known if known is not None else self._load()
        scan = Scan(self.objects, self._limits, base, pinned=known is not None, hidden=self._hidden)
        tree = scan.run(self.root)
        if not scan.changed:
            tree = base
        self._store(tree)
        return tree, scan

    def _load(self) -> Tree:
        stamp = self.folder.stamp(_INDEX)
        if stamp != self._stamp:
            self._latest = decode(self.folder.read(_INDEX) or b"") or Tree()
            self._stamp = stamp
        return self._latest

    def _store(self, tree: Tree) -> None:
        if tree is self._latest and self.folder.stamp(_INDEX) == self._stamp:
            return
        self.folder.write(_INDEX, encode(tree))
        self._latest, self._stamp = tree, self.folder.stamp(_INDEX)

    def state(self, path: str) -> State:
        """Return what is at one path now, and keep its content."""
        return read_path(self.objects, self._limits, self.root, path)[0].state

    def begin(
        self, pending: PendingEntry, paths: Iterable[str] | None, known: Tree | None
    ) -> StartedCall:
        """Keep what is there before a call: at these paths, or everywhere."""
        tree = None
        if not self._is_registered:
            self.folder.register_use()
            self._is_registered = True
        with self.folder.lock():
            self.recover()
            if paths is None:
                tree, _ = self.scan(known)
            states = tuple((path, self.state(path)) for path in paths or ())
            pending = PendingEntry(
                pending.token,
                time.time(),
                pending.session,
                pending.turn,
                call=pending.call,
                whole=paths is None,
                states=states,
                offset=self.journal.size,
            )
            return StartedCall(pending, self.journal.open(pending), tree, self._git_stamps())

    def end(self, call: StartedCall, *, cut: bool = False) -> tuple[JournalEntry, Tree | None]:
        """Add what has changed since `begin` to the journal, and return it."""
        with self.folder.lock():
            try:
                entry, tree = self._end(call, cut)
                self.journal.close(call.pending.token)
            finally:
                os.close(call.handle)  # if it failed, the next one who scans tries again
        return entry, tree

    def abandon(self, call: StartedCall) -> None:
        """Forget a call that has begun."""
        self.journal.close(call.pending.token)
        os.close(call.handle)

    def _end(self, call: StartedCall, cut: bool) -> tuple[JournalEntry, Tree | None]:
        pending = call.pending
        tree, scan = (None, None) if call.tree is None else self.scan(call.tree)
        changes, uncovered = self._compare(pending, call.tree, tree)
        whys: dict[str, list[str]] = {}
        for path, why in scan.missed if scan is not None else ():
            whys.setdefault(why, []).append(path)
        uncovered += [f"{_first_paths(paths)} {WORDS[why]}" for why, paths in whys.items()]
        if call.outside:
            uncovered.append(call.outside)
        if call.git != self._git_stamps():
            uncovered.append(_GIT_NOT_KEPT)
        if scan is not None and scan.ignored and (changes or uncovered):
            touched = [path for path in scan.ignored if self._was_touched(path, pending.at)]
            if touched:
                uncovered.append(f"what git ignores is not kept: {_first_paths(touched)}")
        alive, _ = self.journal.pending()
        if changes and any(other.token != pending.token for other in alive):
            uncovered.append(_OTHER_SESSION)
        uncovered = [_CUT_OFF, *uncovered] if cut else uncovered
        return self._record(pending, changes, uncovered, cut=cut), tree

    def _was_touched(self, path: str, since: float) -> bool:
        """Did something change there since that time? Caches do not count.

        If there is too much to look at, say yes.
        """
        if is_cache(path.rstrip("/")):
            return False
        left, waiting = _MAX_LOOKS, [f"{self.root}/{path}".rstrip("/")]
        while waiting:
            place = waiting.pop()
            try:
                status = os.lstat(place)
                if status.st_ctime >= since - _CLOCK_STEP:
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
        """End the calls of processes that died: they changed what is different now."""
        _, dead = self.journal.pending()
        if not dead:
            return
        ended = {entry.token for entry in self.journal.read()}
        for pending in sorted(dead, key=lambda entry: entry.at):
            if pending.token not in ended:
                self._end_dead(pending)
            self.journal.close(pending.token)

    def _end_dead(self, pending: PendingEntry) -> None:
        before = self.journal.tree(pending.token) if pending.whole else None
        if pending.whole and before is None:
            return  # what it kept is damaged
        tree = self.scan(before)[0] if before is not None else None
        changes, uncovered = self._compare(pending, before, tree)
        self._record(pending, changes, [_CUT_OFF, *uncovered], cut=True)

    def _record(
        self, pending: PendingEntry, changes: list[Change], uncovered: list[str], *, cut: bool
    ) -> JournalEntry:
        entry = JournalEntry(
            pending.token,
            time.time(),
            pending.session,
            pending.turn,
            pending.kind,
            pending.call,
            tuple(changes),
            tuple(uncovered),
            cut=cut,
            named=not pending.whole,
        )
        if changes:
            self.journal.add(entry)
        return entry

    def _compare(
        self, pending: PendingEntry, before: Tree | None, after: Tree | None
    ) -> tuple[list[Change], list[str]]:
        """Return what changed and, in words, what of it is not covered."""
        if before is not None and after is not None:
            was, now = self._with_others(pending, before.state), after.state
            paths = set(changed_paths(before, after))
        else:
            states = dict(pending.states)
            was, now = self._with_others(pending, states.__getitem__), self.state
            paths = set(states)
        changes: list[Change] = []
        uncovered: list[str] = []
        for path in sorted(paths):
            change, problem = self._change(path, was(path), now(path))
            if change is not None:
                changes.append(change)
            if problem:
                uncovered.append(problem)
        more = len(uncovered) - _MAX_UNCOVERED
        return changes, uncovered[:_MAX_UNCOVERED] + ([f"… and {more} more"] if more > 0 else [])

    def _change(self, path: str, was: State, now: State) -> tuple[Change | None, str]:
        if now.is_unknown and now.why not in _EXCLUDED:
            now = self.state(path)  # the scan did not get there
        if was == now or (not was.mode and now.is_unknown):
            return None, ""
        shown = one_line(path, 120)
        if was.is_unknown or now.is_unknown:
            return None, f"{shown} {WORDS.get(was.why or now.why, 'is not covered')}"
        why = was.why or now.why
        return Change(path, was, now), f"{shown} {WORDS[why]}" if why else ""

    def _with_others(
        self, pending: PendingEntry, was: Callable[[str], State]
    ) -> Callable[[str], State]:
        """Return what was there, with what others have certainly changed there meanwhile."""
        later: dict[str, State] = {}
        for entry in self.journal.read(pending.offset):
            if entry.named:
                later.update((change.path, change.after) for change in entry.changes)
        return lambda path: later[path] if path in later else was(path)

    def _git_stamps(self) -> tuple[tuple[int, int], ...]:
        """Return what changes if somebody works on the repository itself."""
        stamps = []
        for name in _GIT:
            with suppress(OSError):
                status = Path(self.root, name).lstat()
                stamps.append((status.st_ino, status.st_mtime_ns))
        return tuple(stamps)


def _first_paths(paths: list[str]) -> str:
    more = f" and {len(paths) - _SHOWN} more" if len(paths) > _SHOWN else ""
    return ", ".join(one_line(path, 120) for path in paths[:_SHOWN]) + more
