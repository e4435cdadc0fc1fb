"""Where a REPL's conversation happens: one session, and the watch on it. Reads no lines.

What is the same for a session that lives here and for one on a server; the rest is in
`room_here.py` and `room_there.py`.
"""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path

from bridle.cli.asking import Asker
from bridle.cli.ending import tell_ending, tell_unasked, tell_use
from bridle.cli.render import one_line
from bridle.cli.screen import Screen
from bridle.cli.turn import Watch
from bridle.cli.words import person
from bridle.policy import Mode
from bridle.promises.session import Conversation, TurnResult
from bridle.promises.store import Record

_SOON = 1.0  # seconds


class Room(ABC):
    """A conversation that can change its session and its model."""

    session: Conversation
    _watch: Watch

    def __init__(self, screen: Screen, asker: Asker) -> None:
        self.screen = screen
        self.on_end: Callable[[], None] | None = None  # a turn is over, whoever began it
        self._asker = asker

    @abstractmethod
    async def enter(self) -> None:
        """Be in the session that was asked for."""

    @abstractmethod
    async def leave(self) -> None:
        """Let everything go."""

    @property
    @abstractmethod
    def model(self) -> str:
        """The model's name, with its provider's; or the agent's, with the model it was told."""

    @property
    @abstractmethod
    def agent(self) -> str:
        """Who carries the turns."""

    @property
    @abstractmethod
    def place(self) -> str:
        """The folder that is worked on, and where that is."""

    @property
    @abstractmethod
    def is_begun(self) -> bool:
        """Is there a log of this session yet?"""

    @abstractmethod
    async def renew(self) -> None:
        """A new session."""

    @abstractmethod
    async def resume(self, start: str) -> None:
        """Another session, by the beginning of its id."""

    @abstractmethod
    async def fork(self, at: int | None) -> None:
        """On in a copy of this session; this one stays as it is."""

    @abstractmethod
    async def rewind(self, turns: int) -> int:
        """So many turns back; the record that it went back to."""

    @abstractmethod
    async def change_model(self, name: str) -> None:
        """Another model for the same session. When it cannot be had, nothing changes."""

    @abstractmethod
    async def change_agent(self, name: str) -> None:
        """Another agent for the same session. When it cannot be had, nothing changes."""

    @abstractmethod
    async def listed(self) -> Iterable[str]:
        """The newest sessions, a line each."""

    @abstractmethod
    async def searched(self, words: str) -> Iterable[str]:
        """Where that was said, in all sessions, a line each."""

    @abstractmethod
    async def export(self, path: Path, form: str) -> int:
        """Write this session to a file that is private; how many bytes it has."""

    @property
    def mode(self) -> Mode:
        """What may run without asking, in the session that is talked to."""
        return self.session.mode

    async def change_mode(self, mode: Mode) -> None:
        """What may run without asking, from now on."""
        await self.session.set_mode(mode, by=person())

    @property
    def summary(self) -> str:
        """Model, mode and folder."""
        return one_line(f"{self.model} · mode {self.mode} · {self.place}")

    async def play(self, text: str) -> None:
        """One turn; what a parked one asks comes first."""
        await self.carry_on()
        self._tell(await self._watch.play(text))

    async def carry_on(self) -> None:
        """What was left behind in this session, if anything was: its questions come up here."""
        session = self.session
        if session.is_parked or session.is_busy:
            said = (
                "a turn goes on that waits for answers" if session.is_parked else "a turn goes on"
            )
            self.screen.line(self.screen.paint.dim(said))
            self._asker.expect_nothing(session.history.pending.values())
            self._tell(await self._watch.go_on())

    async def settle(self) -> None:
        """Wait a little until what was done has come back and stands on the screen."""
        with suppress(TimeoutError):
            async with asyncio.timeout(_SOON):
                await self._watch.reached(self.session.seq)

    def _tell(self, result: TurnResult) -> None:
        tell_ending(result, self._watch, self.screen, "Say how to go on.")
        tell_unasked(result, self.mode)
        tell_use(result, self._watch, self.screen)

    def _show(self, record: Record) -> None:
        self.screen.feed(record)

    async def _move(self, session: Conversation, seen: int) -> None:
        """On to another session; the one before is let go, so that others can take it up."""
        before = self.session
        await self._leave()
        await self._enter(session, seen)
        if before is not session:
            await before.close()

    async def _enter(self, session: Conversation, seen: int) -> None:
        self.session = self._asker.session = session
        self._watch = await Watch(session, self._show, seen).__aenter__()
        self._watch.on_end = self.on_end

    async def _leave(self) -> None:
        await self._watch.__aexit__(None, None, None)
