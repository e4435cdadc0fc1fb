"""Undo over HTTP: what taking back a turn would do, and doing exactly that. Knows no files itself.

What was shown has a name, and an undo that names it does that or nothing.
"""

import asyncio
from hashlib import blake2b
from typing import Literal

import msgspec

from bridle.engine.session import Session
from bridle.errors import SessionBusy, SessionError
from bridle.events import Undone
from bridle.server.ground import Ground
from bridle.server.holding import Holding
from bridle.server.refusals import ApprovalChanged, NotFound
from bridle.server.views import ChangedFile, Undo, UndoOutcome, UndoPreview
from bridle.workspace.undo import Outcome
from bridle.workspace.undo import Undo as Keeper

_HOW: dict[str, Literal["added", "changed", "deleted"]] = {
    "comes back": "added",
    "changes back": "changed",
    "goes": "deleted",
}


class Undoing:
    """Previews an undo, and does it."""

    def __init__(self, ground: Ground, holding: Holding) -> None:
        self._ground = ground
        self._holding = holding

    async def preview(self, session_id: str, turn: int) -> UndoPreview:
        """What it would do. Raise `NotFound` where there is nothing to take back."""
        seen = await asyncio.to_thread(self._look, session_id, turn)
        told = await asyncio.to_thread(self._differences, session_id, seen.turn)
        return _view(seen, told)

    async def undo(self, session_id: str, undo: Undo, by: str) -> UndoOutcome:
        """Do it, and say so in the session's log. Raise `ApprovalChanged`, `SessionBusy`."""
        self._holding.check_taking()
        async with self._holding.use(session_id) as session:
            return await self.undo_in(session, undo, by)

    async def undo_in(self, session: Session, undo: Undo, by: str) -> UndoOutcome:
        """The same in a session that whoever asks has open."""
        session.check_idle()
        seen = await asyncio.to_thread(self._look, session.id, undo.turn)
        if undo.token and undo.token != _token(seen):
            raise ApprovalChanged(
                "what an undo would do has changed since it was shown; nothing was changed",
                hint="Look at the preview again.",
            )
        if seen.conflicts:
            raise SessionBusy(
                f"nothing was changed: {_some(seen)} changed since",
                hint="Undo the later turns first, or put those files back by hand.",
            )
        done = await asyncio.to_thread(self._do, session.id, seen.turn)
        files = tuple(one.path for one in done.files)
        await session.note(Undone(done.turn, by, files, done.undo))
        skipped = tuple(one.path for one in done.conflicts) + done.left
        return UndoOutcome(turn=done.turn, files=files, skipped=skipped, undo=done.undo)

    def _keeper(self, session_id: str) -> Keeper:
        _, head = self._ground.known(session_id)
        root = self._ground.workspace(head.workspace)
        return Keeper(root, self._ground.folder.folder)

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

    def _do(self, session_id: str, turn: int) -> Outcome:
        return self._keeper(session_id).undo(session_id, turn)


def _some(seen: Outcome) -> str:
    files = ", ".join(one.path for one in seen.conflicts[:3])
    more = len(seen.conflicts) - 3
    return f"{files} and {more} more" if more > 0 else files


def _token(seen: Outcome) -> str:
    return blake2b(msgspec.json.encode(seen), digest_size=12).hexdigest()


def _view(seen: Outcome, told: dict[str, str]) -> UndoPreview:
    files = tuple(
        ChangedFile(one.path, _HOW[one.how], told.get(one.path, "")) for one in seen.files
    )
    clashes = tuple(one.path for one in seen.conflicts)
    return UndoPreview(
        turn=seen.turn, files=files, uncovered=seen.uncovered, clashes=clashes, token=_token(seen)
    )
