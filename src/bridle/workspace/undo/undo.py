"""`Undo`: keeps what turns change, and takes it back or forward for a person.

Blocks, except for what `keep` returns. Not covered: what git ignores, `.git`, files over 10 MB,
devices and the like, trees beyond a limit; each is said if it matters. `prune` deletes what was
kept long ago, in all workspaces, only when a person says so.
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
from functools import partial
from pathlib import Path
from typing import Any, Literal, TypeVar

from msgspec import Struct

from bridle.errors import OutsideWorkspace, SessionBusy, SessionError, StoreFailed, ToolError
from bridle.events import FileChange, FilesChanged
from bridle.messages import ToolCall
from bridle.protocols.tool import Tool
from bridle.workspace.handles import open_location
from bridle.workspace.text import one_line
from bridle.workspace.undo.change_detector import ChangeDetector, StartedCall
from bridle.workspace.undo.journal import Change, Journal, Kept, Opened, counting
from bridle.workspace.undo.plan import Outcome, Plan, changes_of, restored
from bridle.workspace.undo.restore import PartlyRestored, Restorer
from bridle.workspace.undo.snapshot import USUAL, Limits
from bridle.workspace.undo.storage import ContentStore, UndoFolder
from bridle.workspace.undo.tree import State, Tree, as_text, decode
from bridle.workspace.workspace import Workspace

# Records what one turn changes, call by call, in threads: the event loop never waits for the
# disk.

log = logging.getLogger(__name__)

_R = TypeVar("_R")
_MOST_FILES = 1_000  # named in one event; undo knows all of them


class WrittenFiles:
    """Which paths a call touches, as far as its tool tells."""

    def __init__(self, root: str, tools: Mapping[str, Tool]) -> None:
        self._root = root
        self._tools = tools

    def paths(self, call: ToolCall) -> tuple[list[str] | None, str]:
        """The paths from the root, with folders that would have to be made; None: any.

        And what lies outside, where it does, in words: a session may have more folders than one.
        """
        tool = self._tools.get(call.name)
        if tool is None or not tool.policy.edits:
            return None, ""
        outside = ""
        found: list[str] = []
        try:
            for one in self._named(tool, call.arguments):
                try:
                    found += self._reached(one)
                except OutsideWorkspace:
                    outside = f"{one_line(one, 120)} lies outside the workspace"
        except (ToolError, OSError, KeyError, TypeError):
            return None, ""
        # What is ignored is about to change: what was not, has to be kept first.
        changes_rules = any(path.rpartition("/")[2] == ".gitignore" for path in found)
        return None if changes_rules else list(dict.fromkeys(found)), outside

    def _named(self, tool: Tool, arguments: dict[str, Any]) -> Iterable[str]:
        touched: Callable[[dict[str, Any]], Iterable[str]] | None = getattr(tool, "touched", None)
        return touched(arguments) if touched is not None else (arguments["path"],)

    def _reached(self, path: str) -> list[str]:
        """Where a path leads, its links followed as the tool will follow them."""
        parts = Workspace(self._root).relative(path).split("/")
        with open_location([(self._root,)], parts) as location:
            real = [*location.names, *filter(None, [location.name]), *location.missing]
            there = len(location.names)
        return ["/".join(real[:length]) for length in range(there + 1, len(real) + 1)]


class TurnRecorder:
    """What is kept for one turn. `begun` are the calls under way, which others may have left."""

    def __init__(
        self,
        detector: ChangeDetector,
        touched: WrittenFiles,
        begun: dict[tuple[str, str], StartedCall],
        session_id: str,
        turn: int,
    ) -> None:
        self._detector = detector
        self._touched = touched
        self._begun = begun
        self._session = session_id
        self._turn = turn
        self._tree: Tree | None = None  # what the turn saw last of the whole workspace
        self._trouble: dict[str, str] = {}
        self._dropped: set[str] = set()  # calls that were cancelled before their effect
        self._alone = threading.Lock()

    async def before(self, call: ToolCall) -> None:
        """Keep what stands there, before this call has its effect."""
        self._dropped.discard(call.id)
        try:
            await in_thread(partial(self._guarded, call, self._begin))
        except asyncio.CancelledError:
            self._drop(call.id)
            raise

    async def after(self, call: ToolCall) -> FilesChanged | None:
        """What the call changed; None where nothing."""
        kept = await in_thread(partial(self._guarded, call, self._end))
        trouble = self._trouble.pop(call.id, "")
        if trouble:
            return FilesChanged(self._turn, call.id, (), (trouble,))
        if kept is None or not (kept.changes or kept.uncovered):
            return None
        return changed(kept)

    def _guarded(self, call: ToolCall, work: "Callable[[ToolCall], Kept | None]") -> Kept | None:
        try:
            with self._alone:
                return work(call)
        except Exception as error:  # undo is a help: its trouble is said, and stops no turn
            log.debug("undo could not keep what a call changes", exc_info=True)
            why = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
            self._trouble[call.id] = f"nothing was kept for undo: {why or type(error).__name__}"
            return None

    def _begin(self, call: ToolCall) -> None:
        self._end_left()
        opened = Opened(os.urandom(10).hex(), 0.0, self._session, self._turn, call=call.id)
        paths, outside = self._touched.paths(call)
        begun = self._detector.begin(opened, paths, self._tree)
        begun.outside = outside
        self._tree = begun.tree or self._tree
        self._begun[self._session, call.id] = begun
        if call.id in self._dropped:
            self._forget(call.id)

    def _end(self, call: ToolCall) -> Kept | None:
        begun = self._begun.pop((self._session, call.id), None)
        if begun is None:
            return None
        kept, tree = self._detector.end(begun)
        self._tree = tree or self._tree
        return kept

    def _end_left(self) -> None:
        """Calls of this session whose end nobody told: they were interrupted."""
        for key in [one for one in self._begun if one[0] == self._session]:
            self._detector.end(self._begun.pop(key), cut=True)

    def _drop(self, call_id: str) -> None:
        """The call has no effect. Whoever is just keeping something for it sees that at the end."""
        self._dropped.add(call_id)
        if self._alone.acquire(blocking=False):
            try:
                self._forget(call_id)
            finally:
                self._alone.release()

    def _forget(self, call_id: str) -> None:
        if (begun := self._begun.pop((self._session, call_id), None)) is not None:
            self._detector.give_up(begun)


def changed(kept: Kept) -> FilesChanged:
    """What a call changed, as an event."""
    named = named_changes(kept.changes)
    files = tuple(FileChange(path, one.how) for path, one in named[:_MOST_FILES])
    more = len(named) - len(files)
    words = (f"{more:,} more files changed than are named here; undo knows them",) if more else ()
    return FilesChanged(kept.turn, kept.call, files, (*kept.uncovered, *words))


def named_changes(changes: Iterable[Change]) -> list[tuple[str, Change]]:
    """Changes with their paths as text; of folders only those in which nothing is named."""
    changes = list(changes)
    holders = {one.path[:at] for one in changes for at, sign in enumerate(one.path) if sign == "/"}
    found = []
    for one in changes:
        folder = all(state.is_folder or not state.mode for state in (one.before, one.after))
        if not folder or one.path not in holders:
            found.append((as_text(one.path) + ("/" if folder else ""), one))
    return found


async def in_thread(work: Callable[[], _R]) -> _R:
    """Run what blocks in a thread of its own, which is no reason for a process not to end."""
    future: Future[_R] = Future()
    future.set_running_or_notify_cancel()

    def run() -> None:
        try:
            future.set_result(work())
        except BaseException as error:  # whatever it is, it belongs to whoever waits for it
            future.set_exception(error)

    threading.Thread(target=run, name="bridle-undo", daemon=True).start()
    return await asyncio.wrap_future(future)


_SHOWN = 5  # paths that are named in an error


class Turn(Struct):
    """A turn that changed something. `at` is when it last did, in seconds; `undone`: all of it."""

    session: str
    turn: int
    at: float
    paths: tuple[str, ...]
    undone: bool


class Way(Struct, frozen=True):
    """How to take something back: only look, past what others changed since, or around it."""

    kind: Literal["undo", "redo"]
    preview: bool
    force: bool
    keep_going: bool


class Undo:
    """Undo for one workspace. Nothing is touched before the first call is to be kept.

    `tools` tell which paths a call touches; for a call of which that is not known, the whole
    workspace is looked at before and after.
    """

    def __init__(
        self,
        root: str | Path,
        state: str | Path,
        *,
        tools: Mapping[str, Tool] | None = None,
        limits: Limits = USUAL,
    ) -> None:
        self._detector = ChangeDetector(root, state, limits)
        self._touched = WrittenFiles(self._detector.root, tools or {})
        self._begun: dict[tuple[str, str], StartedCall] = {}

    @property
    def root(self) -> str:
        """The workspace, by its real path."""
        return self._detector.root

    def record_turn(self, session_id: str, turn: int) -> TurnRecorder:
        """What keeps the changes of one turn."""
        return TurnRecorder(self._detector, self._touched, self._begun, session_id, turn)

    def snapshot(self) -> Tree:
        """Look at all of the workspace, and keep what is new there."""
        with self._locked():
            return self._detector.look()[0]

    def turns(self, session_id: str | None = None) -> list[Turn]:
        """The turns that changed something here, the oldest first: all, or those of a session."""
        found: dict[tuple[str, int], Turn] = {}
        lines = self._lines()
        count = {one.token for one in counting(lines)}
        for one in lines:
            if one.kind != "call" or session_id not in (None, one.session):
                continue
            old = found.pop((one.session, one.turn), None)
            paths = [*(old.paths if old else ()), *(as_text(item.path) for item in one.changes)]
            undone = one.token not in count and (old is None or old.undone)
            found[one.session, one.turn] = Turn(
                one.session, one.turn, one.at, tuple(dict.fromkeys(paths)), undone
            )
        return list(found.values())

    def last_undone(self) -> Turn | None:
        """The turn that was undone last and not redone."""
        undone = [one for one in counting(self._lines()) if one.kind == "undo"]
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
        """Take back what a turn changed (None: the last one that changed something).

        With `preview` nothing is changed. Where a file was changed since, nothing is, either: but
        for `force` (it is put back all the same) or `keep_going` (the others are). Raise
        `SessionError` where there is nothing to take back, `ToolError` where it cannot be done;
        then everything is as it was, or the error says what is not.
        """
        way = Way("undo", preview, force, keep_going)
        return self._take_back(way, session_id, turn)

    def differences(self, session_id: str, turn: int | None = None) -> dict[str, str]:
        """How each file would change that an undo of the turn puts back. Nothing is changed."""
        if not self._detector.folder.exists:
            raise _nothing("undo", turn)
        with self._locked():
            self._detector.recover()
            lines = counting(self._detector.journal.read())
            return Plan(
                self._detector, lines, _chosen(lines, "undo", session_id, turn)
            ).differences()

    def redo(
        self,
        session_id: str,
        turn: int | None = None,
        *,
        preview: bool = False,
        force: bool = False,
        keep_going: bool = False,
    ) -> Outcome:
        """Take back an undo: the last one, or the last one of that turn."""
        way = Way("redo", preview, force, keep_going)
        return self._take_back(way, session_id, turn)

    def _take_back(self, way: Way, session_id: str, turn: int | None) -> Outcome:
        if not self._detector.folder.exists:
            raise _nothing(way.kind, turn)
        with self._locked():
            self._detector.recover()
            lines = counting(self._detector.journal.read())
            chosen = _chosen(lines, way.kind, session_id, turn)
            number = chosen[-1].turn
            self._refuse_running(session_id, number)
            plan = Plan(self._detector, lines, chosen)
            if way.force:
                plan.forced()
            stopped = way.preview or (plan.conflicts and not way.keep_going)
            left, token = ([], "") if stopped else self._apply(way.kind, plan, chosen)
        return Outcome(
            session_id,
            number,
            way.kind,
            not stopped,
            restored(one for one in plan.steps if one.path not in left),
            tuple(plan.conflicts),
            tuple(plan.uncovered),
            tuple(map(as_text, left)),
            token,
        )

    def _apply(
        self, kind: Literal["undo", "redo"], plan: Plan, chosen: Sequence[Kept]
    ) -> tuple[list[str], str]:
        """Do it. What stands there is noted first, so that a crash in the middle loses nothing."""
        of = chosen[-1]
        states = tuple((step.path, step.now) for step in plan.steps)
        token = os.urandom(10).hex()
        opened = Opened(token, time.time(), of.session, of.turn, kind, states=states)
        begun = StartedCall(opened, self._detector.journal.open(opened))
        try:
            left = Restorer(self._detector.root, self._detector.objects).apply(plan.steps)
            changes = changes_of(plan.steps, left)
            takes = tuple(one.token for one in chosen)
            self._detector.journal.add(
                Kept(
                    token,
                    time.time(),
                    of.session,
                    of.turn,
                    kind,
                    changes=changes,
                    takes=takes,
                    named=True,
                )
            )
        except OSError as error:
            os.close(begun.handle)  # whoever looks next finds out what became of it
            raise _failed(kind, error) from error
        self._detector.give_up(begun)
        return left, token

    def _refuse_running(self, session_id: str, turn: int) -> None:
        alive, _ = self._detector.journal.under_way()
        if any((one.session, one.turn) == (session_id, turn) for one in alive):
            raise SessionBusy(
                f"turn {turn} is still at work; nothing was changed",
                hint="Wait until it has ended, or stop it: bridle sessions stop ID.",
            )

    def _lines(self) -> list[Kept]:
        if not self._detector.folder.exists:
            return []
        with self._locked():
            self._detector.recover()
            return self._detector.journal.read()

    @contextmanager
    def _locked(self) -> Iterator[None]:
        try:
            with self._detector.folder.locked():
                yield
        except OSError as error:
            raise StoreFailed(
                f"what undo keeps cannot be used: {error.strerror or error}",
                error,
                hint="Nothing was changed. Check that bridle's state folder can be written.",
            ) from error


def _chosen(
    lines: Sequence[Kept], kind: Literal["undo", "redo"], session_id: str, turn: int | None
) -> list[Kept]:
    """The lines to take back: all of a turn's, or the last undo's."""
    wanted = "call" if kind == "undo" else "undo"
    found = [one for one in lines if one.kind == wanted and one.session == session_id]
    if turn is not None:
        found = [one for one in found if one.turn == turn]
    if not found:
        raise _nothing(kind, turn)
    if kind == "redo":
        return found[-1:]
    return [one for one in found if one.turn == found[-1].turn]


def _failed(kind: str, error: OSError) -> ToolError:
    """What a person is told: what stood in the way, and what that leaves."""
    where = f"`{as_text(error.filename)}`" if isinstance(error.filename, str) else "it"
    said = f"{where} could not be put back ({error.strerror})"
    if not isinstance(error, PartlyRestored):
        hint = "Mend that, and say it again."
        return ToolError(f"{said}; everything is as it was", error, hint=hint)
    paths = ", ".join(as_text(one) for one in error.paths[:_SHOWN])
    more = len(error.paths) - _SHOWN
    paths += f" and {more} more" if more > 0 else ""
    back = "bridle undo --redo" if kind == "undo" else "bridle undo --force"
    return ToolError(
        f"{said}, and this is not as it was any more: {paths}",
        error,
        hint=f"`{back}` brings back what was kept of it; files over 10 MB are not.",
    )


def _nothing(kind: str, turn: int | None) -> SessionError:
    which = f"turn {turn} of this session" if turn is not None else "this session"
    return SessionError(
        f"there is nothing to {kind} in {which}",
        hint="`bridle undo --list` shows the turns that changed something.",
    )


class Pruned(Struct, frozen=True):
    """`calls` can be undone no more, `freed` bytes are free; `busy` workspaces were left alone."""

    calls: int = 0
    freed: int = 0
    busy: tuple[str, ...] = ()


def prune(state: str | Path, before: float, *, preview: bool = False) -> Pruned:
    """Forget what was kept before that time, in seconds. Raise `OSError`."""
    calls = freed = 0
    busy: list[str] = []
    for undo_folder in UndoFolder.all(state):
        with undo_folder.locked():
            journal = Journal(undo_folder)
            lines = journal.read()
            alive, _ = journal.under_way()
            if alive or undo_folder.is_used():
                busy.append(undo_folder.root)
                continue
            kept = [one for one in lines if one.at >= before]
            calls += len(lines) - len(kept)
            if not preview:
                freed += _forget(undo_folder, journal, kept, before)
    return Pruned(calls, freed, tuple(busy))


def _forget(undo_folder: UndoFolder, journal: Journal, kept: list[Kept], before: float) -> int:
    _, dead = journal.under_way()
    for one in dead:
        if one.at < before:
            journal.close(one.token)
    if undo_folder.stamp("index")[1] < before * 1e9:
        undo_folder.remove("index")
    journal.rewrite(kept)
    wanted = {name for one in kept for item in one.changes for name in _names(item.before)}
    wanted |= {name for one in kept for item in one.changes for name in _names(item.after)}
    wanted |= {name for one in dead for _, state in one.states for name in _names(state)}
    for file in ("index", *(f"open/{one.token}.tree" for one in dead)):
        tree = decode(undo_folder.found(file) or b"")
        for folder in tree.folders.values() if tree is not None else ():
            wanted.update(name for one in folder.entries.values() for name in _names(one.state))
    return ContentStore(undo_folder).sweep(wanted)


def _names(state: State) -> tuple[str, ...]:
    return (state.object,) if stat.S_ISREG(state.mode) and not state.why else ()
