"""Records what one turn changes, call by call, in threads: the event loop never waits for the disk.

What cannot be recorded is named in the `uncovered` of a change, and never fails a turn.
"""

import asyncio
import logging
import os
import threading
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future
from functools import partial
from typing import Any, TypeVar

from bridle.errors import OutsideWorkspace, ToolError
from bridle.events import FileChange, FilesChanged
from bridle.messages import ToolCall
from bridle.protocols.tool import Tool
from bridle.workspace.handles import walked
from bridle.workspace.paths import Workspace
from bridle.workspace.text import one_line
from bridle.workspace.undo.change_detector import ChangeDetector, StartedCall
from bridle.workspace.undo.journal import Change, Kept, Opened
from bridle.workspace.undo.tree import Tree, as_text

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
        with walked((self._root,), parts) as spot:
            real = [*spot.names, *filter(None, [spot.name]), *spot.missing]
            there = len(spot.names)
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
