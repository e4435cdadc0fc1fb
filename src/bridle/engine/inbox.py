"""Carries out what other processes have asked a session to do, in order, each request once.

A message is done when a record that names it is durable; only then it is discarded. One that was
done before a crash is known from the log. How messages are stored is the store's business.
"""

import logging
from collections.abc import Callable
from typing import Protocol

from bridle.engine.history import History
from bridle.errors import AgentError, SessionClosed, StoreFailed
from bridle.events import Event, InboxMessageRefused, When
from bridle.protocols.session import Answer, Prompt
from bridle.protocols.store import InboxMessage, Log

log = logging.getLogger(__name__)


class Verbs(Protocol):
    """As much of a session as a letter can ask for."""

    async def send(self, prompt: Prompt, *, when: When, by: str, letter: str) -> int: ...
    async def answer(
        self, call_id: str, answer: Answer, *, shown: str, by: str, letter: str, at: float
    ) -> None: ...
    async def interrupt(self, *, by: str, letter: str) -> None: ...
    async def revoke(self, grant: str, *, by: str, letter: str) -> None: ...


class Inbox:
    """Takes the letters of one session. `verbs` is the session."""

    def __init__(self, held: Log, history: History, emit: Callable[[Event], None]) -> None:
        self._log = held
        self._history = history
        self._emit = emit
        self._taking = False
        self._again = False

    async def take(self, verbs: Verbs) -> None:
        """Do everything that is there; somebody who rings meanwhile is heard."""
        if self._taking:
            self._again = True
            return
        self._taking = self._again = True
        try:
            while self._again:
                self._again = False
                for letter in self._log.inbox_messages():
                    await self._do(letter, verbs)
        finally:
            self._taking = False

    async def _do(self, letter: InboxMessage, verbs: Verbs) -> None:
        if letter.id not in self._history.letters:
            try:
                await _act(letter, verbs)
            except (SessionClosed, StoreFailed):
                raise  # nobody knows yet what becomes of it: it stays, and is looked at again
            except AgentError as error:
                self._emit(InboxMessageRefused.of(letter.id, letter.verb, letter.by, error.message))
        await self._log.settled()
        self._log.discard(letter)


async def _act(letter: InboxMessage, verbs: Verbs) -> None:
    if letter.verb == "send":
        prompt = letter.parts or letter.content
        await verbs.send(prompt, when=letter.when, by=letter.by, letter=letter.id)
    elif letter.verb == "answer":
        said = Answer(letter.allowed, letter.scope, letter.word, letter.by, letter.rule)
        name, shown, by = letter.call_id, letter.shown, letter.by
        await verbs.answer(name, said, shown=shown, by=by, letter=letter.id, at=letter.at)
    elif letter.verb == "revoke":
        await verbs.revoke(letter.content, by=letter.by, letter=letter.id)
    else:
        await verbs.interrupt(by=letter.by, letter=letter.id)
