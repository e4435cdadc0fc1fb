"""A session that another process holds, as a conversation: its log is followed, verbs are letters.

Takes no lock. Where the holder ends, the desk takes the session up here for the next verb; the log
is followed all the same. What is shown is what the log says, and nothing before it does.
"""

import asyncio
import os
from collections.abc import AsyncGenerator, Callable, Iterable
from contextlib import suppress
from typing import TYPE_CHECKING

from bridle.cli.user_input import user_name
from bridle.client.endings import Endings
from bridle.engine.history import History
from bridle.errors import AgentError, SessionClosed, SessionError
from bridle.events import Event, SessionStarted, When
from bridle.messages import Part, Text
from bridle.policy import Mode
from bridle.protocols.session import Answer, Prompt, TurnResult
from bridle.protocols.store import Record
from bridle.runtime.recorded_mode import is_mode_record, recorded_mode
from bridle.stores.reader import LogReader, SessionFolder, replay
from bridle.stores.session_index import last_run
from bridle.usage import ExecutionMetrics

if TYPE_CHECKING:
    from bridle.service.local_service import LocalService
    from bridle.stores.session_index import SessionEntry

_EVERY = 0.05  # seconds between two looks at a file that grows
_SELDOM = 0.25  # ... and at one that has not grown for a while
_RESTING = 100  # looks, after which that is so
_SEEN = 5.0  # seconds until what was done is seen in the log; then it is believed


class Followed:
    """A conversation that lasts, in another process of this machine."""

    def __init__(self, folder: SessionFolder, head: "SessionEntry", desk: "LocalService") -> None:
        self.id = head.id
        self.workspace = head.workspace
        self._head = head
        self._folder = folder
        self._path = folder.path(head.id)
        self._desk = desk
        self._last_run = last_run(self._path)
        self._told_mode = recorded_mode(self._path)
        self.history = History()
        self._endings = Endings(head.id)
        self.seq = 0
        self._news = asyncio.Event()
        self._following: asyncio.Task[None] | None = None
        self._error: AgentError | None = None
        self.is_closed = False

    async def begin(self) -> None:
        """Read what is there, and follow it from then on. Raise `UnknownSession`."""
        self.seq = await asyncio.to_thread(replay, self._folder, self.id, self._apply)
        reader = await asyncio.to_thread(self._folder.reader, self.id, self.seq)
        self._following = asyncio.create_task(self._follow(reader))

    @property
    def title(self) -> str:
        """The session's title: given, or made from its first prompt."""
        return self.history.title or self._head.title

    @property
    def model(self) -> str:
        """Provider and model, as its log names them."""
        return self._last_run.model or self._head.model

    @property
    def agent(self) -> str:
        """Who carries its turns, as its log names them."""
        return self._last_run.agent or "loop"

    @property
    def mode(self) -> Mode:
        """Its own mode, or else that of who holds it: its log tells of both."""
        return self.history.mode or self._told_mode

    @property
    def is_busy(self) -> bool:
        """Is a turn running, or about to?"""
        return not self.history.parked and bool(self.history.running or self.history.waiting)

    @property
    def is_parked(self) -> bool:
        """Does a turn wait for answers, with nothing running?"""
        return self.history.parked

    @property
    def turn(self) -> int:
        """The number of the turn that runs or is parked; 0: none."""
        return self.history.running

    @property
    def metrics(self) -> ExecutionMetrics:
        """What the session has used so far."""
        return self.history.metrics

    async def send(self, prompt: Prompt, *, when: When = "idle", by: str = "me") -> int:
        """The turn's number, once whoever holds the session has the prompt on disk."""
        from bridle.protocols.session_values import PromptRequest

        parts = _parts(prompt)
        plain = all(isinstance(one, Text) for one in parts)
        text = "".join(one.text for one in parts if isinstance(one, Text)) if plain else ""
        chat = PromptRequest(text, () if plain else parts, when=when)
        turn = (await self._desk.send(self.id, chat, user_name())).turn
        await self._until(lambda: self.history.turn >= turn)
        return turn

    async def answer(self, call_id: str, answer: Answer | bool, *, shown: str, by: str) -> None:
        """Settle a question; the first answer wins. Raise what stands in its way."""
        from bridle.protocols.session_values import ApprovalAnswer

        said = answer if isinstance(answer, Answer) else Answer(answer)
        given = ApprovalAnswer(said.allowed, shown, said.scope, said.word, said.rule)
        await self._desk.answer(self.id, call_id, given, by)
        await self._until(lambda: shown not in self.history.pending)

    async def interrupt(self, *, by: str = "me") -> None:
        """End the running turn, and come back when it has ended."""
        turn = self.turn
        await self._desk.interrupt(self.id, user_name())
        if turn:
            await self._until(lambda: self.turn != turn)

    async def wait(self, turn: int) -> TurnResult:
        """The result of a turn, when it is over. A parked one is not."""
        if not 0 < turn <= self.history.turn:
            raise SessionError(f"session {self.id} has no turn {turn}")
        await self._until(lambda: turn in self._endings.results, None)
        return self._endings.results[turn]

    async def resume(self) -> int:
        """The turn that is under way or waits; it goes on where somebody holds the session."""
        from bridle.protocols.session_values import ResumeOptions

        if self.is_parked and not self.history.pending:
            await self._desk.resume(self.id, ResumeOptions(), user_name())
        waiting = min((one.turn for one in self.history.waiting.values()), default=0)
        if not (turn := self.turn or waiting):
            raise SessionError(f"session {self.id} has nothing to resume", hint="Send it a prompt.")
        return turn

    async def set_mode(self, mode: Mode, *, by: str = "me", reason: str = "") -> None:
        """Have this mode from the next call on. Raise `SessionLocked` while another holds it."""
        await self._change(mode=mode)

    async def rename(self, title: str) -> None:
        """Give it a title. Raise `SessionLocked` while another holds it."""
        await self._change(title=title)

    async def _change(self, **given: str) -> None:
        from bridle.protocols.session_values import SessionUpdate

        seen = await self._desk.change(self.id, SessionUpdate(**given), user_name())  # type: ignore[arg-type]
        await self._until(lambda: self.seq >= seen.seq)

    async def rewind(self, to: int, *, by: str = "me") -> None:
        """Make the conversation again what it was at record `to`. Raise `SessionLocked`."""
        from bridle.protocols.session_values import RewindRequest

        seen = await self._desk.rewind(self.id, RewindRequest(to), user_name())
        await self._until(lambda: self.seq >= seen.seq)

    async def compact(self, *, by: str = "me") -> bool:
        """Shorten the conversation now. Raise `SessionLocked` while another holds it."""
        before = len(self.history.transcript)
        seen = await self._desk.compact(self.id, user_name())
        await self._until(lambda: self.seq >= seen.seq)
        return len(self.history.transcript) < before

    async def withdraw(self, prompt: int, *, by: str = "me") -> None:
        """Take back a prompt that waits. Raise `SessionLocked` while another holds it."""
        await self._desk.withdraw(self.id, prompt, user_name())
        await self._until(lambda: prompt not in self.history.waiting)

    async def subscribe(self, after: int = 0) -> AsyncGenerator[Record, None]:
        """Every record after that number: what was written, then live; no gap, no repeat."""
        last = after
        reader = await asyncio.to_thread(self._folder.reader, self.id, after)
        try:
            while not self.is_closed:
                news = self._news
                while last < self.seq and (found := await asyncio.to_thread(reader.read_new)):
                    for record in found:
                        await self._until(lambda seq=record.seq: self.seq >= seq, None)  # type: ignore[misc]
                        last = record.seq
                        yield record
                if self._error is not None:
                    raise self._error
                await news.wait()
        except SessionClosed:
            return  # it is watched no more, which is no error to who watched it
        finally:
            reader.close()

    async def close(self) -> None:
        """Follow it no longer; it goes on where it is held."""
        self.is_closed = True
        if self._following is not None:
            self._following.cancel()
            with suppress(asyncio.CancelledError):
                await self._following
        self._wake()

    async def _follow(self, reader: LogReader) -> None:
        size, quiet = -1, 0
        try:
            while True:
                now = _size(self._path)
                if now != size:
                    size, quiet = now, 0
                    while found := await asyncio.to_thread(reader.read_new):
                        for record in found:
                            self._apply(record)
                        if any(_is_taken_up(one.event) for one in found):
                            self._last_run = await asyncio.to_thread(last_run, self._path)
                            self._told_mode = await asyncio.to_thread(recorded_mode, self._path)
                        self._wake()
                quiet += 1
                await asyncio.sleep(_SELDOM if quiet > _RESTING else _EVERY)
        except AgentError as error:  # it is gone, or cannot be read any more
            self._error = error
            self._wake()
        finally:
            reader.close()

    def _apply(self, record: Record) -> None:
        self.history.apply(record)
        self._endings.take(record, self.history)
        self.seq = record.seq

    async def _until(self, there: Callable[[], bool], seconds: float | None = _SEEN) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while not there():
                    if self._error is not None:
                        raise self._error
                    if self.is_closed:
                        raise SessionClosed(f"session {self.id} is not watched any more")
                    await self._news.wait()

    def _wake(self) -> None:
        news, self._news = self._news, asyncio.Event()
        news.set()


def _parts(prompt: Prompt) -> tuple[Part, ...]:
    given: Iterable[str | Part] = [prompt] if isinstance(prompt, str) else prompt
    return tuple(Text(one) if isinstance(one, str) else one for one in given)


def _is_taken_up(event: Event) -> bool:
    """Does it say that somebody holds the session from here on, or how?"""
    return isinstance(event, SessionStarted) or is_mode_record(event)


def _size(path: os.PathLike[str]) -> int:
    try:
        return os.stat(path).st_size  # noqa: PTH116 - looked at twenty times a second
    except OSError:
        return -1
