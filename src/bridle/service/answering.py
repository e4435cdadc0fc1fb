"""Answers to questions, and taking back what was allowed: here, or through who holds the session.

The first answer wins, and everybody else is told whose it was. What is told is what the log says.
"""

import asyncio

from bridle.engine.approvals import EXPIRED
from bridle.engine.session import Session
from bridle.errors import SessionClosed, SessionError, SessionLocked, UnknownApproval
from bridle.events import ApprovalAnswered, ApprovalAsked, GrantRevoked
from bridle.protocols.session import Answer
from bridle.protocols.session_errors import (
    ApprovalChanged,
    ApprovalExpired,
    ApprovalTaken,
    NotFound,
)
from bridle.protocols.session_values import ApprovalAnswer, ApprovalOutcome
from bridle.protocols.store import InboxMessage, Record
from bridle.runtime.inbox_sender import new_message_id
from bridle.service.inbox_client import InboxClient, MessageRefused
from bridle.service.open_sessions import OpenSessions
from bridle.service.workspace_scope import WorkspaceScope
from bridle.stores.reader import find_records

_APPROVAL = b'"data":{"type":"approval_'
_EXPIRY = "expiry"


class Answering:
    """Takes answers."""

    def __init__(self, ground: WorkspaceScope, holding: OpenSessions, posting: InboxClient) -> None:
        self._ground = ground
        self._holding = holding
        self._posting = posting

    async def answer(
        self, session_id: str, call_id: str, answer: ApprovalAnswer, by: str
    ) -> ApprovalOutcome:
        """The answer that counts, which is this one. Raise what stands in its way."""
        self._holding.check_taking()
        if not await self._posting.elsewhere(session_id):
            await asyncio.to_thread(self._check_asked, session_id, call_id)
            said = Answer(answer.allowed, answer.scope, answer.word, by, answer.rule)
            try:
                async with self._holding.use(session_id) as session:
                    return await self._here(session, call_id, said, answer.shown)
            except SessionLocked:
                pass  # somebody was faster
        return await self._there(session_id, call_id, answer, by)

    async def _here(
        self, session: Session, call_id: str, said: Answer, shown: str
    ) -> ApprovalOutcome:
        try:
            await session.answer(call_id, said, shown=shown, by=said.by)
        except (UnknownApproval, SessionClosed):
            self._holding.check_taking()
            await asyncio.to_thread(self._refuse, session.id, call_id, shown)
        return await asyncio.to_thread(self._counts, session.id, call_id, shown)

    async def _there(
        self, session_id: str, call_id: str, answer: ApprovalAnswer, by: str
    ) -> ApprovalOutcome:
        """Send it to who holds the session, as a letter, where the question stands."""
        shown = answer.shown
        await asyncio.to_thread(self._refuse, session_id, call_id, shown, standing=True)
        letter = InboxMessage(
            new_message_id(),
            "answer",
            by,
            call_id=call_id,
            shown=shown,
            allowed=answer.allowed,
            scope=answer.scope,
            word=answer.word,
            rule=answer.rule,
        )

        def told(record: Record) -> ApprovalAnswered | None:
            event = record.event
            mine = isinstance(event, ApprovalAnswered) and event.shown == shown
            return event if mine and isinstance(event, ApprovalAnswered) else None

        try:
            counts = await self._posting.post(session_id, letter, told)
        except MessageRefused as refused:
            await asyncio.to_thread(self._refuse, session_id, call_id, shown)
            raise UnknownApproval(refused.message) from None
        if counts.letter != letter.id:
            raise _taken(counts)
        return _outcome(counts)

    async def revoke(self, session_id: str, grant: str, by: str) -> None:
        """Take a grant back; none: all of them. Raise `NotFound`."""
        self._holding.check_taking()
        try:
            if not await self._posting.elsewhere(session_id):
                try:
                    async with self._holding.use(session_id) as session:
                        return await _revoke(session, grant, by)
                except SessionLocked:
                    pass  # somebody was faster
            letter = InboxMessage(new_message_id(), "revoke", by, grant)

            def done(record: Record) -> bool | None:
                event = record.event
                return (isinstance(event, GrantRevoked) and event.letter == letter.id) or None

            await self._posting.post(session_id, letter, done)
        except MessageRefused as refused:
            raise NotFound(refused.message) from None

    async def question(self, session_id: str, call_id: str, shown: str) -> ApprovalAsked | None:
        """What was asked there, if it was."""
        await asyncio.to_thread(self._ground.known, session_id)
        asked, _ = await asyncio.to_thread(self._answers, session_id, call_id)
        return asked.get(shown)

    def _answers(
        self, session_id: str, call_id: str
    ) -> tuple[dict[str, ApprovalAsked], dict[str, ApprovalAnswered]]:
        """In a thread: what was asked about a call and what was said, by what was shown."""
        asked: dict[str, ApprovalAsked] = {}
        said: dict[str, ApprovalAnswered] = {}
        for record in find_records(self._ground.folder, session_id, _APPROVAL):
            event = record.event
            if isinstance(event, ApprovalAsked) and event.call.id == call_id:
                asked.setdefault(event.shown, event)
            elif isinstance(event, ApprovalAnswered) and event.call_id == call_id:
                said.setdefault(event.shown, event)
        return asked, said

    def _check_asked(self, session_id: str, call_id: str) -> None:
        """Raise `UnknownApproval` before a session is taken up for nothing."""
        if not self._answers(session_id, call_id)[0]:
            raise UnknownApproval(
                f"nothing was asked about call {call_id[:60]!r} in session {session_id}",
                hint="GET /api/approvals lists the questions that wait.",
            )

    def _counts(self, session_id: str, call_id: str, shown: str) -> ApprovalOutcome:
        _, said = self._answers(session_id, call_id)
        return _outcome(said[shown])

    def _refuse(self, session_id: str, call_id: str, shown: str, *, standing: bool = False) -> None:
        """Say why an answer does not count; with `standing`, only where that is certain."""
        self._check_asked(session_id, call_id)
        asked, said = self._answers(session_id, call_id)
        if shown in said:
            raise _taken(said[shown])
        if shown not in asked or next(iter(asked)) != shown:
            raise ApprovalChanged(f"what call {call_id} would do is not what was shown")
        if not standing:
            raise ApprovalExpired(f"the turn that asked about call {call_id} is over")


async def _revoke(session: Session, grant: str, by: str) -> None:
    try:
        await session.revoke(grant, by=by)
    except SessionClosed:
        raise
    except SessionError as error:
        raise NotFound(error.message, hint=error.hint) from None


def _taken(said: ApprovalAnswered) -> ApprovalTaken | ApprovalExpired:
    if said.by == _EXPIRY and not said.allowed and said.word == EXPIRED.word:
        return ApprovalExpired(
            f"the question about call {said.call_id} has expired, which counts as a no"
        )
    words = "yes" if said.allowed else "no"
    return ApprovalTaken(
        f"{said.by} has answered {words} already, and the first answer counts",
        more={"by": said.by, "allowed": said.allowed},
    )


def _outcome(said: ApprovalAnswered) -> ApprovalOutcome:
    return ApprovalOutcome(said.call_id, said.allowed, said.by, said.scope, said.word, said.rule)
