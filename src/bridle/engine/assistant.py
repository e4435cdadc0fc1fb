"""The engine as one object with callbacks: `Assistant`, its `SessionStore` and `StreamCallbacks`.

Every prompt goes through `Session.send`, and callbacks are called for what the session's stream
says. A callback is a plain function or a coroutine function; one that raises is logged, and ends
neither the turn nor the other callbacks.
"""

import asyncio
import inspect
import logging
from collections.abc import AsyncGenerator, Callable, Iterable
from contextlib import aclosing
from typing import Any
from weakref import WeakKeyDictionary

from msgspec import Struct
from msgspec.structs import replace

from bridle.engine.engine import Engine
from bridle.engine.history import fold
from bridle.engine.session import Session, validate_prompt
from bridle.errors import AgentError, BudgetReached, SessionError, StoreFailed, UnknownSession
from bridle.events import (
    Event,
    MessageAdded,
    ReplyDiscarded,
    Rewound,
    TextDelta,
    ToolCallReady,
    ToolResultEvent,
    TurnEnded,
    TurnParked,
)
from bridle.messages import Message, ToolCall, ToolOutput
from bridle.protocols.provider import Provider
from bridle.protocols.session import Prompt, TurnResult
from bridle.protocols.store import Record, SessionSummary
from bridle.protocols.tool import Tool

log = logging.getLogger(__name__)


class StreamCallbacks(Struct, frozen=True):
    """Functions to call for each piece of text, each call and each result, and once at the end.

    `on_complete` is called at the end of a turn that is done, `on_error` for any other end.
    `on_reply_discarded`: a reply broke off; what has arrived since the last result is discarded,
    and the model is asked again. An awaitable that a callback returns is awaited.
    """

    on_text_delta: Callable[[str], Any] | None = None
    on_tool_call: Callable[[ToolCall], Any] | None = None
    on_tool_result: Callable[[ToolOutput], Any] | None = None
    on_complete: Callable[[], Any] | None = None
    on_error: Callable[[AgentError], Any] | None = None
    on_reply_discarded: Callable[[], Any] | None = None

    async def stream(self, event: Any) -> None:
        """Call back for an event of a running turn."""
        kind = type(event)
        if kind is TextDelta:
            await _call(self.on_text_delta, event.text)
        elif kind is ToolCallReady:
            await _call(self.on_tool_call, event.call)
        elif kind is ToolResultEvent:
            await _call(self.on_tool_result, event.output)
        elif kind is ReplyDiscarded:
            await _call(self.on_reply_discarded)

    async def end(self, result: TurnResult) -> AgentError | None:
        """Call back for the end of a turn; return its error, if any. A parked turn is not over."""
        if result.reason == "parked":
            return None
        if result.reason == "done":
            await _call(self.on_complete)
            return None
        error = to_error(result)
        await _call(self.on_error, error)
        return error

    async def fail(self, error: AgentError) -> None:
        """Call back for a prompt that got no turn."""
        await _call(self.on_error, error)


async def play(
    turn: int, records: AsyncGenerator[Record, None], callbacks: StreamCallbacks
) -> None:
    """Call back for the records of a turn, until it ends or is parked."""
    has_started = False
    async with aclosing(records):
        async for record in records:
            event = record.event
            has_started = has_started or (isinstance(event, MessageAdded) and event.turn == turn)
            if has_started:
                await callbacks.stream(event)
            if isinstance(event, TurnEnded | TurnParked) and event.turn == turn:
                return


def to_error(result: TurnResult) -> AgentError:
    """Return why a turn did not complete, as an error also if a limit or a person ended it."""
    if result.error is not None:
        return result.error
    message = result.detail or f"the turn ended: {result.reason}"
    if result.reason == "budget":
        return BudgetReached(message)
    return AgentError("agent", message)


async def _call(callback: Callable[..., Any] | None, *values: Any) -> None:
    if callback is None:
        return
    try:
        returned = callback(*values)
        if inspect.isawaitable(returned):
            await returned
    except Exception:  # somebody else's code must not end the turn
        log.warning("the callback %r failed", callback, exc_info=True)


Messages = list[Message]  # its own name, since the class below has a method `list`


class SessionStore:
    """Creates, finds, lists and deletes sessions. Any number of tasks may use it at once."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._current = ""
        self._current_lock = asyncio.Lock()  # concurrent calls of `current` get the same session

    @property
    def current_id(self) -> str:
        """The id of the current session; empty if there is none yet."""
        return self._current

    async def create(self, title: str = "") -> Session:
        """Create a session and make it the current one."""
        session = await self._engine.session()
        if title.strip():
            await session.rename(title)
        self._current = session.id
        return session

    async def get(self, session_id: str) -> Session | None:
        """Return a session, resumed if it is not open, or None. Raise `SessionLocked`."""
        try:
            return await self._engine.session(session_id)
        except UnknownSession:
            return None

    async def current(self) -> Session:
        """Return the current session; create one if there is none."""
        async with self._current_lock:
            session = await self.get(self._current) if self._current else None
            return session or await self.create()

    async def set_current(self, session_id: str) -> bool:
        """Make a session the current one. Return False if there is no such session."""
        if not await self._exists(session_id):
            return False
        self._current = session_id
        return True

    async def list(self) -> list[SessionSummary]:
        """Return all sessions: open ones without records first, then the newest first."""
        stored = await asyncio.to_thread(self._engine.store.sessions)
        ids = {summary.id for summary in stored}
        new = [live for live in self._engine.summaries() if live.id not in ids]
        return [*(SessionSummary(live.id, title=live.title) for live in new), *stored]

    async def delete(self, session_id: str) -> bool:
        """Close the session and remove its log for good. Raise `SessionLocked`."""
        session = self._engine.get_open(session_id)
        if session is not None:
            await session.close()
        if self._current == session_id:
            self._current = ""
        try:
            await asyncio.to_thread(self._engine.store.delete, session_id)
        except UnknownSession:  # also an open session without records
            return session is not None
        return True

    async def add_message(self, session_id: str, message: Message) -> bool:
        """Add a message to the end of the conversation. Raise `SessionBusy` if a turn runs."""
        return await self._record(session_id, MessageAdded(message))

    async def get_messages(self, session_id: str) -> Messages:
        """Return a copy of the conversation."""
        if (session := self._engine.get_open(session_id)) is not None:
            return list(session.history.transcript)
        return await asyncio.to_thread(self._read, session_id)

    async def clear_messages(self, session_id: str) -> bool:
        """Start with an empty conversation; the log keeps the old one. Raise `SessionBusy`."""
        return await self._record(session_id, Rewound(0))

    async def update_title(self, session_id: str, title: str) -> bool:
        """Give the session a title."""
        if (session := await self.get(session_id)) is None:
            return False
        await session.rename(title)
        return True

    async def _record(self, session_id: str, event: Event) -> bool:
        """Record an event, unless a turn runs or is parked."""
        if (session := await self.get(session_id)) is None:
            return False
        session.check_idle()
        await session.record(event)
        return True

    async def _exists(self, session_id: str) -> bool:
        if self._engine.get_open(session_id) is not None:
            return True
        try:
            await asyncio.to_thread(_first, self._engine.store.read, session_id)
        except UnknownSession:
            return False
        return True

    def _read(self, session_id: str) -> Messages:
        """Read the log of a session that is not open here, without its lock."""
        try:
            return list(fold(self._engine.store.read(session_id)).transcript)
        except UnknownSession:
            return []


def _first(read: Callable[[str], Any], session_id: str) -> None:
    """Read the first record of a session, to see whether it exists."""
    for _ in read(session_id):
        return


MAX_TOKENS = 8192


class SendOptions(Struct, frozen=True):
    """Options of one prompt: the session (empty: the current one), and how replies are sampled.

    `temperature` None is the engine's setting; `max_tokens` 0 is the default. They apply from the
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
                f"{self.temperature} is not a temperature", hint="Choose one from 0 to 2."
            )


_PLAIN = SendOptions()
_SILENT = StreamCallbacks()


class Assistant:
    """Sends prompts to the sessions of an engine, which its caller closes."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._sessions = SessionStore(engine)
        self._settings: dict[str, Any] = {}
        self._applied: WeakKeyDictionary[Session, dict[str, Any]] = WeakKeyDictionary()

    @property
    def sessions(self) -> SessionStore:
        """The sessions, and which one is the current one."""
        return self._sessions

    def set_system_prompt(self, prompt: str) -> None:
        """Set the system prompt from the next prompt on."""
        self._settings["system"] = prompt

    def set_tools(self, tools: Iterable[Tool]) -> None:
        """Set the tools that the model may call from the next prompt on."""
        self._settings["tools"] = tuple(tools)

    def set_model(self, provider: Provider) -> None:
        """Set the model's provider from the next prompt on. The caller closes it."""
        self._settings["provider"] = provider

    async def send(
        self,
        prompt: Prompt,
        options: SendOptions = _PLAIN,
        callbacks: StreamCallbacks = _SILENT,
        *,
        queue: bool = False,
    ) -> TurnResult:
        """Run one prompt in one turn, with callbacks while it runs, and return its result.

        Raise `EmptyPrompt`, `SessionBusy` and `UnknownSession` before anything is sent. If a turn
        fails or reaches a limit, pass the error to `on_error` and raise it; if somebody cancelled
        it, pass the error to `on_error` and return the result. With `queue`, a prompt waits for the
        running turn. Cancelling this call interrupts its turn; a prompt that still waits stays
        queued.
        """
        validate_prompt(prompt)
        session = await self._session(options.session_id)
        if not queue:
            session.check_idle()
        self._configure(session, options)
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
        """Return a copy of the conversation."""
        wanted = session_id or self._sessions.current_id
        return await self._sessions.get_messages(wanted) if wanted else []

    async def clear(self, session_id: str = "") -> None:
        """Start with an empty conversation; the log keeps the old one. Raise `SessionBusy`."""
        if wanted := session_id or self._sessions.current_id:
            await self._sessions.clear_messages(wanted)

    async def cancel(self, session_id: str = "") -> None:
        """End the session's running turn, if there is one. The session can be used right away."""
        session = self._engine.get_open(session_id or self._sessions.current_id)
        if session is not None:
            await session.interrupt()

    def is_busy(self, session_id: str = "") -> bool:
        """Return whether a turn of the session runs."""
        session = self._engine.get_open(session_id or self._sessions.current_id)
        return session is not None and session.is_busy

    async def _session(self, session_id: str) -> Session:
        if not session_id:
            return await self._sessions.current()
        session = await self._sessions.get(session_id)
        if session is None:
            raise UnknownSession(f"there is no session {session_id}")
        return session

    def _configure(self, session: Session, options: SendOptions) -> None:
        """Configure the session with what has changed since the last prompt."""
        before = self._applied.get(session, {"config": self._engine.config})
        temperature = options.temperature
        config = replace(self._engine.config, max_tokens=options.max_tokens or MAX_TOKENS)
        wanted = {
            **self._settings,
            "config": config if temperature is None else replace(config, temperature=temperature),
        }
        changed = {name: value for name, value in wanted.items() if before.get(name) != value}
        if changed:
            session.configure(**changed)
        self._applied[session] = wanted

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
            return await _wait_with_callbacks(session, turn, records, callbacks)
        except asyncio.CancelledError:
            if not _is_waiting(session, turn) and (turn or not queue):
                await session.interrupt(turn=turn)
            raise
        except SessionError:
            raise
        except AgentError as error:  # the prompt could not be stored
            await callbacks.fail(error)
            raise


async def _wait_with_callbacks(
    session: Session, turn: int, records: AsyncGenerator[Record, None], callbacks: StreamCallbacks
) -> TurnResult:
    """Return the turn's result, once the callbacks for everything before it were called."""
    playing = asyncio.create_task(play(turn, records, callbacks))
    try:
        result = await session.wait(turn)
        if not isinstance(result.error, StoreFailed):  # then its end was never written
            await playing
        return result
    finally:
        playing.cancel()
        await asyncio.wait([playing])


def _is_waiting(session: Session, turn: int) -> bool:
    """Return whether the prompt of this turn still waits."""
    return any(prompt.turn == turn for prompt in session.history.waiting.values())
