"""What other processes ask of a session: the process that owns it reads its inbox and obeys.

Sending is `bridle.runtime.inbox_sender`, and the files of an inbox are `bridle.stores.inbox_files`.
"""

from typing import TYPE_CHECKING

from bridle.errors import AgentError, SessionClosed, StoreFailed
from bridle.events import InboxMessageRefused
from bridle.protocols.session import Answer
from bridle.protocols.store import InboxMessage, Log

if TYPE_CHECKING:
    from bridle.engine.session import Session


class Inbox:
    """Does what other processes have asked of a session, in order, each request once.

    A message is discarded once a record that names it is durable. So if the process ends before,
    the next owner of the session knows from the log what has been done.
    """

    def __init__(self, session: "Session", log: Log) -> None:
        self._session = session
        self._log = log
        self._is_reading = False
        self._read_again = False

    async def handle_messages(self) -> None:
        """Handle all messages, including those that arrive meanwhile."""
        self._read_again = True
        if self._is_reading:
            return
        self._is_reading = True
        try:
            while self._read_again:
                self._read_again = False
                for message in self._log.inbox_messages():
                    await self._handle(message)
        finally:
            self._is_reading = False

    async def _handle(self, message: InboxMessage) -> None:
        session = self._session
        if message.id not in session.history.inbox_ids:
            try:
                await self._execute(message)
            except (SessionClosed, StoreFailed):
                raise  # it stays in the inbox, and is handled again
            except AgentError as error:
                refused = InboxMessageRefused.of(
                    message.id, message.verb, message.by, error.message
                )
                session.emit(refused)
        await self._log.settled()
        self._log.discard(message)

    async def _execute(self, message: InboxMessage) -> None:
        session, by, letter = self._session, message.by, message.id
        match message.verb:
            case "send":
                prompt = message.parts or message.content
                await session.send(prompt, when=message.when, by=by, letter=letter)
            case "answer":
                answer = Answer(message.allowed, message.scope, message.word, by, message.rule)
                call_id, shown, at = message.call_id, message.shown, message.at
                await session.answer(call_id, answer, shown=shown, by=by, letter=letter, at=at)
            case "revoke":
                await session.revoke(message.content, by=by, letter=letter)
            case "interrupt":
                await session.interrupt(by=by, letter=letter)
