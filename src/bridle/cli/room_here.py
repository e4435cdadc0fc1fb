"""A room for a session that lives in this process: its engine is here, and so is its log.

Another model means another engine; the session is taken up again there.
"""

import asyncio
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import click

from bridle.cli.asking import Asker
from bridle.cli.changing import back
from bridle.cli.find import find_session
from bridle.cli.render import one_line
from bridle.cli.room import Room
from bridle.cli.screen import Screen
from bridle.cli.seeking import found_lines
from bridle.cli.sessions import listed
from bridle.cli.setup import Setup
from bridle.cli.state import doing
from bridle.cli.taking import fork_session, pieces_of, write_private
from bridle.cli.words import person
from bridle.engine.engine import Engine
from bridle.policy import Mode
from bridle.promises.provider import Provider
from bridle.promises.session import Conversation, TurnResult
from bridle.promises.store import SessionSummary
from bridle.stores.copying import head_of
from bridle.stores.glance import glance


class OwnRoom(Room):
    """A conversation in an engine of ours."""

    engine: Engine

    def __init__(self, setup: Setup, flags: dict[str, Any], screen: Screen, asker: Asker) -> None:
        super().__init__(screen, asker)
        self.setup = setup
        self._chosen = setup.chosen_mode  # for every session here; None: each has its own
        self._flags = flags

    async def enter(self) -> None:
        """Take up the session that the flags name, or begin one."""
        await self._settle(self.setup, self.setup.provider())
        if apart := self.setup.apart:
            self.screen.line(self.screen.paint.dim(one_line(apart)))

    async def leave(self) -> None:
        """Close the engine, and its session."""
        await self._leave()
        await self.engine.close()

    @property
    def model(self) -> str:
        """The model's name, with its provider's; or the agent's, with the model it was told."""
        chosen = self.setup.agent_model
        return f"{self.engine.provider.info.label}{f' ({chosen})' if chosen else ''}"

    @property
    def agent(self) -> str:
        """Who carries the turns."""
        return self.setup.agent

    @property
    def place(self) -> str:
        """The folder that is worked on."""
        return str(self.setup.workspace)

    def _tell(self, result: TurnResult) -> None:
        if self._chosen is not None:
            self._chosen = self.mode  # a plan that was agreed to has ended plan mode
        super()._tell(result)

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

    async def change_mode(self, mode: Mode) -> None:
        """What may run without asking, from now on."""
        await super().change_mode(mode)
        self._chosen = mode

    async def listed(self) -> Iterable[str]:
        """The newest sessions, a line each."""
        found = glance(self.setup.folder.folder, 10)
        if not found:
            return ["There are no sessions yet."]
        return listed(found, self.screen.paint, self.screen.width, doing(found))

    async def searched(self, words: str) -> Iterable[str]:
        """Where that was said, in all sessions, a line each."""
        return found_lines(self.setup.folder, words, self.screen.paint, self.screen.width)

    async def export(self, path: Path, form: str) -> int:
        """Write this session to a file that is private; how many bytes it has."""
        self._check_begun()
        found: SessionSummary = find_session(self.setup.folder, self.session.id)
        return write_private(path, pieces_of(self.setup.folder, found, form))

    @property
    def is_begun(self) -> bool:
        """Is there a log of this session yet?"""
        return any(one.id == self.session.id for one in self.setup.folder.sessions())

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

    async def _enter(self, session: Conversation, seen: int) -> None:
        if self._chosen is not None and session.mode != self._chosen:
            await session.set_mode(self._chosen)
        await super()._enter(session, seen)
