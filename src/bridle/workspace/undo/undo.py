"""`Undo`: keeps what turns change, and undoes or redoes it for a person.

Everything blocks but `TurnRecorder`. Not covered: what git ignores, `.git`, files over 10 MB,
devices and the like, trees beyond a limit; a person is told if it matters. `prune` deletes what was
kept long ago, in all workspaces, if a person asks for it.
"""

import asyncio
import logging
import os
import stat
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Literal, TypeVar

from msgspec import Struct

from bridle.errors import OutsideWorkspace, SessionBusy, SessionError, StoreFailed, ToolError
from bridle.events import FileChange, FilesChanged
from bridle.messages import ToolCall
from bridle.protocols.tool import Tool
from bridle.workspace.safe_open import open_location
from bridle.workspace.text import one_line
from bridle.workspace.undo.change_detector import ChangeDetector, StartedCall
from bridle.workspace.undo.journal import (
    Change,
    Journal,
    JournalEntry,
    PendingEntry,
    effective_entries,
)
from bridle.workspace.undo.plan import Outcome, Plan, changes_of, parents_of, to_restored
from bridle.workspace.undo.restore import PartlyRestored, Restorer
from bridle.workspace.undo.snapshot import DEFAULT_LIMITS, Limits
from bridle.workspace.undo.storage import ContentStore, UndoFolder
from bridle.workspace.undo.tree import Tree, as_text, decode
from bridle.workspace.workspace import Workspace

log = logging.getLogger(__name__)

_R = TypeVar("_R")
_MAX_FILES = 1_000  # named in one event; undo knows all of them
_SHOWN = 5  # paths that are named in an error

# Records what one turn changes, call by call, in threads: the event loop never waits for the disk.


class _TouchedPaths:
    """Which paths a call touches, as far as its tool says."""

    def __init__(self, root: str, tools: Mapping[str, Tool]) -> None:
        self._root = root
        self._tools = tools

    def of_call(self, call: ToolCall) -> tuple[list[str] | None, str]:
        """Return the paths from the root, with folders that have to be created, or None for any.

        Return also which path lies outside, in words: a session may have more than one folder.
        """
        tool = self._tools.get(call.name)
        if tool is None or not tool.policy.edits:
            return None, ""
        outside = ""
        paths: list[str] = []
        touched: Callable[[dict[str, Any]], Iterable[str]] | None = getattr(tool, "touched", None)
        try:
            for path in touched(call.arguments) if touched else (call.arguments["path"],):
                try:
                    paths += self._real_paths(path)
                except OutsideWorkspace:
                    outside = f"{one_line(path, 120)} lies outside the workspace"
        except (ToolError, OSError, KeyError, TypeError):
            return None, ""
        # What is ignored is about to change: what was not ignored has to be kept first.
        changes_rules = any(path.rpartition("/")[2] == ".gitignore" for path in paths)
        return None if changes_rules else list(dict.fromkeys(paths)), outside

    def _real_paths(self, path: str) -> list[str]:
        """Return where a path leads, following links as the tool will, with missing folders."""
        parts = Workspace(self._root).relative(path).split("/")
        with open_location([(self._root,)], parts) as location:
            real = [*location.names, *filter(None, [location.name]), *location.missing]
            there = len(location.names)
        return ["/".join(real[:length]) for length in range(there + 1, len(real) + 1)]


class TurnRecorder:
    """Keeps what one turn changes. `started` are calls that have begun, by session and id."""

    def __init__(
        self,
        detector: ChangeDetector,
        touched: _TouchedPaths,
        started: dict[tuple[str, str], StartedCall],
        session_id: str,
        turn: int,
    ) -> None:
        self._detector = detector
        self._touched = touched
        self._started = started
        self._session = session_id
        self._turn = turn
        self._tree: Tree | None = None  # the last scan of the whole workspace in this turn
        self._problems: dict[str, str] = {}
        self._cancelled: set[str] = set()  # calls that were cancelled before their effect
        self._lock = threading.Lock()

    async def before(self, call: ToolCall) -> None:
        """Keep what is there, before this call has its effect."""
        self._cancelled.discard(call.id)
        try:
            await in_thread(partial(self._run_locked, call, self._begin))
        except asyncio.CancelledError:
            self._cancel(call.id)
            raise

    async def after(self, call: ToolCall) -> FilesChanged | None:
        """Return what the call changed, or None if it changed nothing."""
        entry = await in_thread(partial(self._run_locked, call, self._end))
        problem = self._problems.pop(call.id, "")
        if problem:
            return FilesChanged(self._turn, call.id, (), (problem,))
        if entry is None or not (entry.changes or entry.uncovered):
            return None
        return to_event(entry)

    def _run_locked(
        self, call: ToolCall, work: "Callable[[ToolCall], JournalEntry | None]"
    ) -> JournalEntry | None:
        try:
            with self._lock:
                return work(call)
        except Exception as error:  # a problem of undo is reported, and stops no turn
            log.debug("undo could not keep what a call changes", exc_info=True)
            why = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
            self._problems[call.id] = f"nothing was kept for undo: {why or type(error).__name__}"
            return None

    def _begin(self, call: ToolCall) -> None:
        self._end_interrupted()
        token = os.urandom(10).hex()
        pending = PendingEntry(token, 0.0, self._session, self._turn, call=call.id)
        paths, outside = self._touched.of_call(call)
        started = self._detector.begin(pending, paths, self._tree)
        started.outside = outside
        self._tree = started.tree or self._tree
        self._started[self._session, call.id] = started
        if call.id in self._cancelled:
            self._forget(call.id)

    def _end(self, call: ToolCall) -> JournalEntry | None:
        started = self._started.pop((self._session, call.id), None)
        if started is None:
            return None
        entry, tree = self._detector.end(started)
        self._tree = tree or self._tree
        return entry

    def _end_interrupted(self) -> None:
        """End the calls of this session that were interrupted, so that `after` was not called."""
        for key in [key for key in self._started if key[0] == self._session]:
            self._detector.end(self._started.pop(key), cut=True)

    def _cancel(self, call_id: str) -> None:
        """Note that a call has no effect. A thread that is in `_begin` for it sees that there."""
        self._cancelled.add(call_id)
        if self._lock.acquire(blocking=False):
            try:
                self._forget(call_id)
            finally:
                self._lock.release()

    def _forget(self, call_id: str) -> None:
        if (started := self._started.pop((self._session, call_id), None)) is not None:
            self._detector.abandon(started)


def to_event(entry: JournalEntry) -> FilesChanged:
    """Return what a call changed, as an event."""
    changes = changes_to_show(entry.changes)
    files = tuple(FileChange(path, change.how) for path, change in changes[:_MAX_FILES])
    more = len(changes) - len(files)
    note = (f"{more:,} more files changed than are named here; undo knows them",) if more else ()
    return FilesChanged(entry.turn, entry.call, files, (*entry.uncovered, *note))


def changes_to_show(changes: Sequence[Change]) -> list[tuple[str, Change]]:
    """Return changes with their paths as text; folders only if nothing in them is named."""
    parents = {parent for change in changes for parent in parents_of(change.path)}
    shown = []
    for change in changes:
        is_folder = all(
            state.is_folder or not state.mode for state in (change.before, change.after)
        )
        if not is_folder or change.path not in parents:
            shown.append((as_text(change.path) + ("/" if is_folder else ""), change))
    return shown


async def in_thread(work: Callable[[], _R]) -> _R:
    """Run blocking work in a daemon thread, for which the process does not wait when it ends."""
    future: Future[_R] = Future()
    future.set_running_or_notify_cancel()

    def run() -> None:
        try:
            future.set_result(work())
        except BaseException as error:  # it is raised where the result is awaited
            future.set_exception(error)

    threading.Thread(target=run, name="bridle-undo", daemon=True).start()
    return await asyncio.wrap_future(future)


class Turn(Struct):
    """A turn that changed something: when it last did, in seconds, and whether all is undone."""

    session: str
    turn: int
    at: float
    paths: tuple[str, ...]
    undone: bool


class Undo:
    """Undo for one workspace. Nothing is read or written before the first call is kept.

    `tools` say which paths a call touches; for other calls the whole workspace is scanned before
    and after. Implements `protocols.hooks.UndoStore`.
    """

    def __init__(
        self,
        root: str | Path,
        state: str | Path,
        *,
        tools: Mapping[str, Tool] | None = None,
        limits: Limits = DEFAULT_LIMITS,
    ) -> None:
        self._root, self._state, self._limits = root, state, limits
        self._tools = tools or {}
        self._started: dict[tuple[str, str], StartedCall] = {}

    @cached_property
    def _detector(self) -> ChangeDetector:
        return ChangeDetector(self._root, self._state, self._limits)

    @property
    def root(self) -> str:
        """The real path of the workspace."""
        return self._detector.root

    def record_turn(self, session_id: str, turn: int) -> TurnRecorder:
        """Return what keeps the changes of one turn."""
        touched = _TouchedPaths(self._detector.root, self._tools)
        return TurnRecorder(self._detector, touched, self._started, session_id, turn)

    def snapshot(self) -> Tree:
        """Scan all of the workspace, and keep what is new there."""
        with self._lock_folder():
            return self._detector.scan()[0]

    def turns(self, session_id: str | None = None) -> list[Turn]:
        """Return the turns that changed something, oldest first: all, or those of a session."""
        turns: dict[tuple[str, int], Turn] = {}
        entries = self._entries()
        effective = {entry.token for entry in effective_entries(entries)}
        for entry in entries:
            if entry.kind != "call" or session_id not in (None, entry.session):
                continue
            key = (entry.session, entry.turn)
            old = turns.pop(key, None)
            paths = [*(old.paths if old else ()), *(as_text(item.path) for item in entry.changes)]
            undone = entry.token not in effective and (old is None or old.undone)
            turns[key] = Turn(*key, entry.at, tuple(dict.fromkeys(paths)), undone)
        return list(turns.values())

    def last_undone(self) -> Turn | None:
        """Return the turn that was undone last and not redone."""
        undone = [entry for entry in effective_entries(self._entries()) if entry.kind == "undo"]
        if not undone:
            return None
        last = undone[-1]
        return Turn(last.session, last.turn, last.at, (), True)

    def undo(
        self,
        session_id: str,
        turn: int | None = None,
        *,
        preview: bool = False,
        force: bool = False,
        keep_going: bool = False,
    ) -> Outcome:
        """Undo what a turn changed; by default, the last one that changed something.

        With `preview` nothing is changed. If a file was changed since, nothing is changed either,
        unless with `force` (it is restored as well) or `keep_going` (the others are restored).
        Raise `SessionError` if there is nothing to undo, and `ToolError` if it cannot be done; then
        everything is as it was, or the error names what is not.
        """
        return self._take_back(
            "undo", session_id, turn, preview=preview, force=force, keep_going=keep_going
        )

    def differences(self, session_id: str, turn: int | None = None) -> dict[str, str]:
        """Return a diff for each file that an undo of the turn would restore. Change nothing."""
        if not self._detector.folder.exists:
            raise _nothing_to_do("undo", turn)
        with self._lock_folder():
            self._detector.recover()
            entries = effective_entries(self._detector.journal.read())
            chosen = _choose(entries, "undo", session_id, turn)
            return Plan(self._detector, entries, chosen).differences()

    def redo(
        self,
        session_id: str,
        turn: int | None = None,
        *,
        preview: bool = False,
        force: bool = False,
        keep_going: bool = False,
    ) -> Outcome:
        """Redo what was undone: by the last undo, or by the last one of that turn."""
        return self._take_back(
            "redo", session_id, turn, preview=preview, force=force, keep_going=keep_going
        )

    def _take_back(
        self,
        kind: Literal["undo", "redo"],
        session_id: str,
        turn: int | None,
        *,
        preview: bool,
        force: bool,
        keep_going: bool,
    ) -> Outcome:
        if not self._detector.folder.exists:
            raise _nothing_to_do(kind, turn)
        with self._lock_folder():
            self._detector.recover()
            entries = effective_entries(self._detector.journal.read())
            chosen = _choose(entries, kind, session_id, turn)
            number = chosen[-1].turn
            self._refuse_running(session_id, number)
            plan = Plan(self._detector, entries, chosen)
            if force:
                plan.force()
            stopped = preview or (plan.conflicts and not keep_going)
            left, token = ([], "") if stopped else self._apply(kind, plan, chosen)
        return Outcome(
            session_id,
            number,
            kind,
            not stopped,
            to_restored(step for step in plan.steps if step.path not in left),
            tuple(plan.conflicts),
            tuple(plan.uncovered),
            tuple(map(as_text, left)),
            token,
        )

    def _apply(
        self, kind: Literal["undo", "redo"], plan: Plan, chosen: Sequence[JournalEntry]
    ) -> tuple[list[str], str]:
        """Do it. What is there is recorded first, so that a crash in between loses nothing."""
        last = chosen[-1]
        states = tuple((step.path, step.now) for step in plan.steps)
        token = os.urandom(10).hex()
        pending = PendingEntry(token, time.time(), last.session, last.turn, kind, states=states)
        started = StartedCall(pending, self._detector.journal.open(pending))
        try:
            left = Restorer(self._detector.root, self._detector.objects).apply(plan.steps)
            changes = changes_of(plan.steps, left)
            takes = tuple(entry.token for entry in chosen)
            self._detector.journal.add(
                JournalEntry(
                    token,
                    time.time(),
                    last.session,
                    last.turn,
                    kind,
                    changes=changes,
                    takes=takes,
                    named=True,
                )
            )
        except OSError as error:
            os.close(started.handle)  # the next one who scans finds out what it has changed
            raise _failure(kind, error) from error
        self._detector.abandon(started)
        return left, token

    def _refuse_running(self, session_id: str, turn: int) -> None:
        alive, _ = self._detector.journal.pending()
        if any((entry.session, entry.turn) == (session_id, turn) for entry in alive):
            raise SessionBusy(
                f"turn {turn} is still running; nothing was changed",
                hint="Wait until it has ended, or stop it: bridle sessions stop ID.",
            )

    def _entries(self) -> list[JournalEntry]:
        if not self._detector.folder.exists:
            return []
        with self._lock_folder():
            self._detector.recover()
            return self._detector.journal.read()

    @contextmanager
    def _lock_folder(self) -> Iterator[None]:
        try:
            with self._detector.folder.lock():
                yield
        except OSError as error:
            raise StoreFailed(
                f"what undo keeps cannot be used: {error.strerror or error}",
                error,
                hint="Nothing was changed. Check that bridle's state folder can be written.",
            ) from error


def _choose(
    entries: Sequence[JournalEntry],
    kind: Literal["undo", "redo"],
    session_id: str,
    turn: int | None,
) -> list[JournalEntry]:
    """Return the entries to undo: all of a turn, or that of the last undo."""
    wanted = "call" if kind == "undo" else "undo"
    chosen = [entry for entry in entries if (entry.kind, entry.session) == (wanted, session_id)]
    if turn is not None:
        chosen = [entry for entry in chosen if entry.turn == turn]
    if not chosen:
        raise _nothing_to_do(kind, turn)
    if kind == "redo":
        return chosen[-1:]
    return [entry for entry in chosen if entry.turn == chosen[-1].turn]


def _failure(kind: str, error: OSError) -> ToolError:
    """Return the error that a person is shown: what failed, and what is not as it was."""
    where = f"`{as_text(error.filename)}`" if isinstance(error.filename, str) else "it"
    failure = f"{where} could not be put back ({error.strerror})"
    if not isinstance(error, PartlyRestored):
        hint = "Fix that, and try again."
        return ToolError(f"{failure}; everything is as it was", error, hint=hint)
    paths = ", ".join(map(as_text, error.paths[:_SHOWN]))
    more = len(error.paths) - _SHOWN
    paths += f" and {more} more" if more > 0 else ""
    back = "bridle undo --redo" if kind == "undo" else "bridle undo --force"
    return ToolError(
        f"{failure}, and this is not as it was any more: {paths}",
        error,
        hint=f"`{back}` brings back what was kept of it; files over 10 MB are not.",
    )


def _nothing_to_do(kind: str, turn: int | None) -> SessionError:
    which = f"turn {turn} of this session" if turn is not None else "this session"
    return SessionError(
        f"there is nothing to {kind} in {which}",
        hint="`bridle undo --list` shows the turns that changed something.",
    )


class PruneResult(Struct, frozen=True):
    """How many calls can no longer be undone and how many bytes are free. `busy` are workspaces in
    use, in which nothing was deleted.
    """

    calls: int = 0
    freed: int = 0
    busy: tuple[str, ...] = ()


def prune(state: str | Path, before: float, *, preview: bool = False) -> PruneResult:
    """Delete what was kept before that time, in seconds. Raise `OSError`."""
    calls = freed = 0
    busy: list[str] = []
    for undo_folder in UndoFolder.list_all(state):
        with undo_folder.lock():
            journal = Journal(undo_folder)
            entries = journal.read()
            alive, _ = journal.pending()
            if alive or undo_folder.is_used():
                busy.append(undo_folder.root)
                continue
            remaining = [entry for entry in entries if entry.at >= before]
            calls += len(entries) - len(remaining)
            if not preview:
                freed += _prune(undo_folder, journal, remaining, before)
    return PruneResult(calls, freed, tuple(busy))


def _prune(
    undo_folder: UndoFolder, journal: Journal, remaining: list[JournalEntry], before: float
) -> int:
    """Keep only these entries and the contents that they need. Return how many bytes are free."""
    _, dead = journal.pending()
    for pending in dead:
        if pending.at < before:
            journal.close(pending.token)
    if undo_folder.stamp("index")[1] < before * 1e9:
        undo_folder.remove("index")
    journal.rewrite(remaining)
    changes = [change for entry in remaining for change in entry.changes]
    states = [state for change in changes for state in (change.before, change.after)]
    states += [state for pending in dead for _, state in pending.states]
    for file in ("index", *(f"open/{pending.token}.tree" for pending in dead)):
        tree = decode(undo_folder.read(file) or b"")
        for folder in tree.folders.values() if tree is not None else ():
            states += [entry.state for entry in folder.entries.values()]
    wanted = {state.object for state in states if stat.S_ISREG(state.mode) and not state.why}
    return ContentStore(undo_folder).sweep(wanted)
