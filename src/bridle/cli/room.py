"""Where a REPL's conversation happens: one engine, one session, and the watch on it.

Another model means another engine; the session is taken up again there. Reads no lines.
"""

import asyncio
from collections.abc import Callable
from types import TracebackType
from typing import Any

import click

from bridle.cli.asking import Asker
from bridle.cli.changing import back
from bridle.cli.ending import tell_ending, tell_unasked, tell_use
from bridle.cli.find import find_session
from bridle.cli.render import one_line
from bridle.cli.screen import Screen
from bridle.cli.setup import Setup
from bridle.cli.taking import fork_session
from bridle.cli.turn import Watch
from bridle.cli.words import person
from bridle.engine.engine import Engine
from bridle.engine.session import Session
from bridle.policy import Mode
from bridle.promises.provider import Provider
from bridle.promises.session import TurnResult
from bridle.promises.store import SessionSummary
from bridle.stores.copying import head_of


class Room:
    """A conversation that can change its session and its model."""

    engine: Engine
    session: Session
    _watch: Watch

    def __init__(self, setup: Setup, flags: dict[str, Any], screen: Screen, asker: Asker) -> None:
        self.setup = setup
        self.screen = screen
        self._chosen = setup.chosen_mode  # for every session here; None: each has its own
        self.on_end: Callable[[], None] | None = None  # a turn is over, whoever began it
        self._flags = flags
        self._asker = asker

    async def __aenter__(self) -> "Room":
        await self._settle(self.setup, self.setup.provider())
        if apart := self.setup.apart:
            self.screen.line(self.screen.paint.dim(one_line(apart)))
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._leave()
        await self.engine.close()

    @property
    def model(self) -> str:
        """The model's name, with its provider's; or the agent's, with the model it was told."""
        chosen = self.setup.agent_model
        return f"{self.engine.provider.info.label}{f' ({chosen})' if chosen else ''}"

    @property
    def mode(self) -> Mode:
        """What may run without asking, in the session that is talked to."""
        return self.session.mode

    @property
    def summary(self) -> str:
        """Model, mode and folder."""
        return one_line(f"{self.model} · mode {self.mode} · {self.setup.workspace}")

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

    def _tell(self, result: TurnResult) -> None:
        if self._chosen is not None:
            self._chosen = self.mode  # a plan that was agreed to has ended plan mode
        tell_ending(result, self._watch, self.screen, "Say how to go on.")
        tell_unasked(result, self.mode)
        tell_use(result, self._watch, self.screen)

    async def renew(self) -> None:
        """A new session."""
        await self._move(await self.engine.session(), 0)

    async def resume(self, start: str) -> None:
        """Another session, by the beginning of its id."""
        found = find_session(self.setup.folder, start)
        if found.id != self.session.id:
            seen = head_of(self.setup.folder, found.id).seq
            await self._move(await self.engine.session(found.id), seen)

    async def fork(self, at: int | None) -> None:
        """On in a copy of this session; this one stays as it is."""
        self._check_begun()
        name = await asyncio.to_thread(fork_session, self.setup.folder, self.session.id, at)
        await self.resume(name)

    async def rewind(self, turns: int) -> int:
        """So many turns back; the record that it went back to."""
        self._check_begun()
        place = back(self.setup.folder.read(self.session.id), turns)
        await self.session.rewind(place, by=person())
        return place

    async def change_model(self, name: str) -> None:
        """Another model for the same session. When it cannot be had, nothing changes."""
        await self._change({"provider": None, "model": name})

    async def change_agent(self, name: str) -> None:
        """Another agent for the same session. When it cannot be had, nothing changes."""
        chosen = {"agent": name, "provider": None, "model": None}
        await self._change(chosen)
        self._flags = {**self._flags, **chosen}

    async def _change(self, chosen: dict[str, Any]) -> None:
        """Go on with the same session in another engine."""
        again = {"go_on": False, "resume": self.session.id if self.is_begun else None}
        again |= {"worktree": None, "workspace": str(self.setup.workspace)}
        setup = Setup({**self._flags, **chosen, **again})
        provider = setup.provider()
        setup.chosen_mode = self._chosen = self.mode
        await self._leave()
        await self.engine.close()
        await self._settle(setup, provider)

    def change_mode(self, mode: Mode) -> None:
        """What may run without asking, from now on."""
        self._chosen = self.session.mode = mode

    @property
    def is_begun(self) -> bool:
        """Is there a log of this session yet?"""
        return any(one.id == self.session.id for one in self.setup.folder.sessions())

    @property
    def found(self) -> SessionSummary:
        """This session, as a list shows it."""
        self._check_begun()
        return find_session(self.setup.folder, self.session.id)

    def _check_begun(self) -> None:
        if not self.is_begun:
            raise click.UsageError("nothing was said in this session yet")

    async def _settle(self, setup: Setup, provider: Provider) -> None:
        self.setup = setup
        self.engine = setup.engine(provider, self._asker, "repl")
        try:
            seen = setup.seen
            await self._enter(await setup.session(self.engine), seen)
        except BaseException:
            await self.engine.close()
            raise

    async def _move(self, session: Session, seen: int) -> None:
        """On to another session; the one before is let go, so that others can take it up."""
        before = self.session
        await self._leave()
        await self._enter(session, seen)
        if before is not session:
            await before.close()

    async def _enter(self, session: Session, seen: int) -> None:
        if self._chosen is not None:
            session.mode = self._chosen
        self.session = self._asker.session = session
        self._watch = await Watch(session, self.screen.feed, seen).__aenter__()
        self._watch.on_end = self.on_end

    async def _leave(self) -> None:
        await self._watch.__aexit__(None, None, None)
