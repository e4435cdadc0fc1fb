"""An engine for those who want one object and callbacks: send, cancel, clear, and so on.

Thin: every prompt goes through `Session.send`, and what is called back is read from the session's
stream. What is set here holds for all sessions that are sent prompts here, from the next one on.
"""

import asyncio
from collections.abc import AsyncGenerator, Iterable
from typing import Any
from weakref import WeakKeyDictionary

from msgspec import Struct
from msgspec.structs import replace

from bridle.engine.callbacks import StreamCallbacks, play
from bridle.engine.engine import Engine
from bridle.engine.prompt import checked
from bridle.engine.session import Session
from bridle.engine.session_store import SessionStore
from bridle.errors import AgentError, SessionError, StoreFailed, UnknownSession
from bridle.messages import Message
from bridle.promises.provider import Provider
from bridle.promises.session import Prompt, TurnResult
from bridle.promises.store import Record
from bridle.promises.tool import Tool

MAX_TOKENS = 8192


class SendOptions(Struct, frozen=True):
    """For one prompt: which session (empty: the current one), and how the reply is sampled.

    `temperature` None is the engine's setting; `max_tokens` 0 is the default. They hold from the
    session's next turn on.
    """

    session_id: str = ""
    temperature: float | None = None
    max_tokens: int = MAX_TOKENS

    def __post_init__(self) -> None:
        if self.max_tokens < 0:
            raise SessionError(
                f"a reply cannot have {self.max_tokens} tokens", hint="Set max_tokens above 0."
            )
        if self.temperature is not None and not 0 <= self.temperature <= 2:
            raise SessionError(
                f"a temperature of {self.temperature} is none", hint="It goes from 0 to 2."
            )


_PLAIN = SendOptions()
_SILENT = StreamCallbacks()


class Assistant:
    """Sends prompts to the sessions of an engine, which it does not own and does not close."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._sessions = SessionStore(engine)
        self._chosen: dict[str, Any] = {}
        self._told: WeakKeyDictionary[Session, dict[str, Any]] = WeakKeyDictionary()

    @property
    def sessions(self) -> SessionStore:
        """The sessions, and which one is the current one."""
        return self._sessions

    def set_system_prompt(self, prompt: str) -> None:
        """What the model is told of its work, from the next prompt on."""
        self._chosen["system"] = prompt

    def set_tools(self, tools: Iterable[Tool]) -> None:
        """The tools that the model may ask for, from the next prompt on."""
        self._chosen["tools"] = tuple(tools)

    def set_model(self, provider: Provider) -> None:
        """Who answers, from the next prompt on. The caller closes it."""
        self._chosen["provider"] = provider

    async def send(
        self,
        prompt: Prompt,
        options: SendOptions = _PLAIN,
        callbacks: StreamCallbacks = _SILENT,
        *,
        queue: bool = False,
    ) -> TurnResult:
        """One prompt, one turn; callbacks while it runs, and its result when it is over.

        Raise `EmptyPrompt`, `SessionBusy` and `UnknownSession` before anything is sent. A turn
        that fails, or reaches a limit, is told to `on_error` and raised. One that somebody
        cancelled is told to `on_error` and returned. With `queue` a prompt waits for the turn that
        runs. Cancelling this call interrupts its turn; a prompt that still waits stays in line.
        """
        checked(prompt)
        session = await self._session(options.session_id)
        if not queue:
            session.check_idle()
        self._set(session, options)
        records = session.subscribe(session.seq)
        try:
            result = await self._send(session, prompt, records, callbacks, queue=queue)
        finally:
            await records.aclose()
        error = await callbacks.end(result)
        if error is not None and result.reason != "interrupted":
            raise error
        return result

    async def history(self, session_id: str = "") -> list[Message]:
        """The conversation, as a list of the caller's own."""
        wanted = session_id or self._sessions.current_id
        return await self._sessions.get_messages(wanted) if wanted else []

    async def clear(self, session_id: str = "") -> None:
        """Begin with an empty conversation; the log keeps the old one. Raise `SessionBusy`."""
        if wanted := session_id or self._sessions.current_id:
            await self._sessions.clear_messages(wanted)

    async def cancel(self, session_id: str = "") -> None:
        """End the turn that runs there, if one does. The session is usable right after."""
        session = self._engine.opened(session_id or self._sessions.current_id)
        if session is not None:
            await session.interrupt()

    def is_busy(self, session_id: str = "") -> bool:
        """Does a turn run there?"""
        session = self._engine.opened(session_id or self._sessions.current_id)
        return session is not None and session.is_busy

    async def _session(self, session_id: str) -> Session:
        if not session_id:
            return await self._sessions.current()
        session = await self._sessions.get(session_id)
        if session is None:
            raise UnknownSession(f"there is no session {session_id}")
        return session

    def _set(self, session: Session, options: SendOptions) -> None:
        """Tell the session what it has not been told yet."""
        before = self._told.get(session, {"config": self._engine.config})
        heat = options.temperature
        config = replace(self._engine.config, max_tokens=options.max_tokens or MAX_TOKENS)
        wanted = {
            **self._chosen,
            "config": config if heat is None else replace(config, temperature=heat),
        }
        changed = {name: one for name, one in wanted.items() if before.get(name) != one}
        if changed:
            session.use(**changed)
        self._told[session] = wanted

    async def _send(
        self,
        session: Session,
        prompt: Prompt,
        records: AsyncGenerator[Record, None],
        callbacks: StreamCallbacks,
        *,
        queue: bool,
    ) -> TurnResult:
        turn = 0
        try:
            turn = await session.send(prompt, when="queue" if queue else "idle")
            return await _played(session, turn, records, callbacks)
        except asyncio.CancelledError:
            if not _waits(session, turn) and (turn or not queue):
                await session.interrupt(turn=turn)
            raise
        except SessionError:
            raise
        except AgentError as error:  # the prompt could not be stored
            await callbacks.fail(error)
            raise


async def _played(
    session: Session, turn: int, records: AsyncGenerator[Record, None], callbacks: StreamCallbacks
) -> TurnResult:
    """The turn's result, once everything before it was called back."""
    playing = asyncio.create_task(play(turn, records, callbacks))
    try:
        result = await session.wait(turn)
        if not isinstance(result.error, StoreFailed):  # then its end was never written
            await playing
        return result
    finally:
        playing.cancel()
        await asyncio.wait([playing])


def _waits(session: Session, turn: int) -> bool:
    """Is the prompt of this turn still in line?"""
    return any(prompt.turn == turn for prompt in session.history.waiting.values())
