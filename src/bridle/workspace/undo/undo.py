"""`Undo`: keeps what turns change, and takes it back or forward for a person.

Blocks, except for what `keep` returns. Not covered: what git ignores, `.git`, files over 10 MB,
devices and the like, trees beyond a limit; each is said if it matters. `prune` deletes what was
kept long ago, in all workspaces, only when a person says so.
"""

import os
import stat
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

from msgspec import Struct

from bridle.errors import SessionBusy, SessionError, StoreFailed, ToolError
from bridle.protocols.tool import Tool
from bridle.workspace.undo.change_detector import ChangeDetector, StartedCall
from bridle.workspace.undo.journal import Journal, Kept, Opened, counting
from bridle.workspace.undo.plan import Outcome, Plan, changes_of, restored
from bridle.workspace.undo.recorder import TurnRecorder, WrittenFiles
from bridle.workspace.undo.restore import PartlyRestored, Restorer
from bridle.workspace.undo.snapshot import USUAL, Limits
from bridle.workspace.undo.storage import ContentStore, UndoFolder
from bridle.workspace.undo.tree import State, Tree, as_text, decode

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

    def keep(self, session_id: str, turn: int) -> TurnRecorder:
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
