"""Undo what a turn changed in files: exactly what was previewed, or nothing."""

import asyncio
from hashlib import blake2b
from pathlib import Path
from typing import Literal

import msgspec

from bridle.engine.session import Session
from bridle.errors import SessionBusy, SessionError
from bridle.events import Undone
from bridle.protocols.session_errors import ApprovalChanged, NotFound, UndoClash
from bridle.protocols.session_values import (
    ChangedFile,
    UndoConflict,
    UndoPreview,
    UndoRequest,
    UndoResult,
)
from bridle.service.workspace_scope import WorkspaceScope
from bridle.workspace.undo.plan import Outcome
from bridle.workspace.undo.undo import Undo as UndoStore

_HOW: dict[str, Literal["added", "changed", "deleted"]] = {
    "comes back": "added",
    "changes back": "changed",
    "goes": "deleted",
}


class SessionUndo:
    """Previews what undoing a turn would do, and does exactly that."""

    def __init__(self, scope: WorkspaceScope, state_folder: Path) -> None:
        self._scope = scope
        self._state_folder = state_folder

    async def preview(self, session_id: str, turn: int) -> UndoPreview:
        """Return what it would do. Raise `NotFound` if there is nothing to undo."""
        seen = await asyncio.to_thread(self._look, session_id, turn)
        told = await asyncio.to_thread(self._differences, session_id, seen.turn)
        return _view(seen, told)

    async def undo(self, session: Session, undo: UndoRequest, by: str) -> UndoResult:
        """Undo a turn and record it in the session's log.

        Raise `ApprovalChanged`, `UndoClash` or `SessionBusy`; then nothing was changed.
        """
        session.check_idle()
        seen = await asyncio.to_thread(self._look, session.id, undo.turn)
        if undo.token and undo.token != _token(seen):
            raise ApprovalChanged(
                "the undo has changed since it was shown; nothing was undone",
                hint="Look at the preview again.",
            )
        if seen.conflicts and undo.clashes == "refuse":
            raise _clash(seen)
        if undo.clashes == "skip" and not seen.files:  # the turn stays one that can be undone
            return UndoResult(turn=seen.turn, skipped=tuple(one.path for one in seen.conflicts))
        done = await asyncio.to_thread(self._do, session.id, seen.turn, undo.clashes)
        if not done.done:  # a file changed while this was going on
            raise _clash(done)
        files = tuple(one.path for one in done.files)
        await session.record(Undone(done.turn, by, files, done.undo))
        skipped = tuple(one.path for one in done.conflicts) + done.left
        return UndoResult(turn=done.turn, files=files, skipped=skipped, undo=done.undo)

    def _keeper(self, session_id: str) -> UndoStore:
        root = self._scope.workspace(self._scope.session(session_id).workspace)
        return UndoStore(root, self._state_folder)

    def _look(self, session_id: str, turn: int) -> Outcome:
        keeper = self._keeper(session_id)
        try:
            return keeper.undo(session_id, turn or None, preview=True)
        except SessionBusy:
            raise
        except SessionError as error:
            raise NotFound(error.message) from None

    def _differences(self, session_id: str, turn: int) -> dict[str, str]:
        return self._keeper(session_id).differences(session_id, turn)

    def _do(self, session_id: str, turn: int, clashes: str) -> Outcome:
        return self._keeper(session_id).undo(
            session_id, turn, force=clashes == "overwrite", keep_going=clashes == "skip"
        )


def _clash(seen: Outcome) -> UndoClash:
    files = ", ".join(one.path for one in seen.conflicts[:3])
    more = len(seen.conflicts) - 3
    return UndoClash(
        f"nothing was undone: {files}{f' and {more} more' if more > 0 else ''} changed since then",
        hint="Skip those files, overwrite them, or undo the later turns first.",
    )


def _token(seen: Outcome) -> str:
    return blake2b(msgspec.json.encode(seen), digest_size=12).hexdigest()


def _view(seen: Outcome, told: dict[str, str]) -> UndoPreview:
    files = tuple(
        ChangedFile(one.path, _HOW[one.how], told.get(one.path, "")) for one in seen.files
    )
    clashes = tuple(
        UndoConflict(
            path=one.path, why=one.why, diff=one.diff, turn=one.turn, session_id=one.session
        )
        for one in seen.conflicts
    )
    return UndoPreview(
        turn=seen.turn, files=files, uncovered=seen.uncovered, clashes=clashes, token=_token(seen)
    )
