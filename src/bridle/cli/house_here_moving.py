"""From session to session, with engines of this process.

One session is talked to at a time. One that is left while its turn runs goes on here until it is
done. One that another process holds is attached to and stays where it is. Another model, or another
folder, means another engine; the session is taken up again there.
"""

import asyncio
import os
from pathlib import Path
from typing import Any

from bridle.cli.find import find_session
from bridle.cli.house_here_attached import Attached, attached
from bridle.cli.house_here_desk import Desk
from bridle.cli.house_here_words import overheard, plainly
from bridle.cli.setup import Setup
from bridle.engine.engine import Engine
from bridle.engine.engine_config import Approver
from bridle.engine.session import Session
from bridle.errors import SessionBusy
from bridle.protocols.provider import Provider
from bridle.protocols.session import Conversation
from bridle.protocols.store import SessionSummary
from bridle.runtime.recorded_mode import record_mode
from bridle.stores.session_index import last_run
from bridle.stores.transfer import head_of


class Moving:
    """A conversation in an engine of ours, or in another process, that can become another one.

    With an `approver` questions are put to it; without one they wait for `answer`. `told` gets what
    is worth a line to the person and is no error: where it is None, that goes to standard error.
    """

    session: Conversation

    def __init__(
        self,
        setup: Setup,
        flags: dict[str, Any],
        *,
        face: str = "tui",
        approver: Approver | None = None,
        told: list[str] | None = None,
    ) -> None:
        self.setup = setup
        self.seen = 0  # the newest record of the session as it was entered
        self._flags = flags
        self._face = face
        self._approver = approver
        self._told = told
        self._said: list[str] = []  # where the session works, where that is somewhere else
        self._asked_for = setup.chosen_mode  # by a flag, for every session here; None: its own
        self._engine: Engine | None = None
        self._left: set[Engine] = set()  # of another model or folder, in which a turn still runs
        self._attached: Attached | None = None
        self._desk: Desk | None = None
        self._closing: tuple[Session, ...] = ()  # what is being closed

    @property
    def desk(self) -> Desk:
        """What is asked about all sessions of this user."""
        if self._desk is None:
            self._desk = Desk(self.setup.folder, self.setup.settings, self._flags, self._face)
        return self._desk

    async def enter(self) -> None:
        """Be in the session that was asked for, or in a new one (written at its first prompt)."""
        with plainly(), overheard(self._told):
            earlier = self.setup.earlier
            held = None if earlier is None else await attached(self.desk, earlier.id)
            if held is None:
                await self._settle(self.setup, self.setup.provider())
                self._said += filter(None, [self.setup.worktree_note])
            else:
                self._attach(held)

    async def leave(self) -> None:
        """Let everything go; what runs elsewhere goes on, what runs here is settled and stopped."""
        self._closing = tuple(one for engine in self.engines for one in engine.sessions())
        try:
            await self._detach()
            if self._desk is not None:
                await self._desk.close()
        finally:
            for engine in self.engines:
                await engine.close()

    @property
    def is_settled(self) -> bool:
        """Is the end of everything that ran here in its log, so that leaving can be cut short?"""
        return all(not one.is_busy and one.durable >= one.seq for one in self._closing)

    @property
    def engines(self) -> tuple[Engine, ...]:
        """The one for this session, and those in which a turn was left running."""
        mine = (self._engine,) if self._engine is not None else ()
        return (*mine, *self._left)

    @property
    def engine(self) -> Engine:
        """The one for this session, made when it is needed: to attach to a session it is not."""
        if self._engine is None:
            self._engine = self._made(self.setup, self.setup.provider())
        return self._engine

    def get_open(self, session_id: str) -> Session | None:
        """That session, if it is open in an engine of ours."""
        found = (one.get_open(session_id) for one in self.engines)
        return next((one for one in found if one is not None), None)

    async def renew(self) -> None:
        """A new session, in the mode that the settings say."""
        session = await self.engine.session()
        record_mode(session)
        await self._move(session, 0)

    async def resume(self, start: str) -> None:
        """Another session; one that another process holds is attached to."""
        with plainly(), overheard(self._told):
            found = await asyncio.to_thread(find_session, self.setup.folder, start)
            if found.id == self.session.id:
                return
            seen = (await asyncio.to_thread(head_of, self.setup.folder, found.id)).seq
            if (mine := self.get_open(found.id)) is not None:
                await self._move(mine, seen)
            elif (held := await attached(self.desk, found.id)) is not None:
                await self._move(held.session, seen)
                self._attached = held
            elif self._is_elsewhere(found) or self._has_another_model(found):
                await self._change({"workspace": None, "resume": found.id})
            else:
                session = await self.engine.session(found.id)
                record_mode(session)
                await self._move(session, seen)

    async def change_model(self, name: str) -> None:
        """Another model for the same session. When it cannot be had, nothing changes."""
        await self._switch({"provider": None, "model": name})

    async def change_agent(self, name: str) -> None:
        """Another agent for the same session. When it cannot be had, nothing changes."""
        if self._attached is None and name == self.setup.agent:
            return  # it keeps the model that was chosen for it
        chosen = {"agent": name, "provider": None, "model": None}
        await self._switch(chosen)
        self._flags = {**self._flags, **chosen}

    async def _switch(self, chosen: dict[str, Any]) -> None:
        """Go on with the same session in another engine, in the same mode."""
        if self._attached is not None:
            await self._attached.use(**{key: value for key, value in chosen.items() if value})
            return
        if self.session.is_busy:
            raise SessionBusy(
                "a turn runs, and nothing was changed", hint="Wait until it is over, or stop it."
            )
        begun = self.session.seq > 0
        again = {"resume": self.session.id if begun else None, "workspace": self._where}
        with plainly(), overheard(self._told):
            await self._change({**chosen, **again}, keep=True)

    @property
    def _where(self) -> str:
        return str(self.setup.workspace)

    def _is_elsewhere(self, found: SessionSummary) -> bool:
        """Does that session work in another folder than this one?"""
        there = found.workspace
        if not there or not Path(there).is_dir():
            return False
        return os.path.realpath(there) != os.path.realpath(self._where)

    def _has_another_model(self, found: SessionSummary) -> bool:
        """Does that session have another model than this one, and did no flag name a model?"""
        if self.setup.is_model_named or self.setup.agent != "loop":
            return False
        last = last_run(self.setup.folder.path(found.id))
        here = self.setup.settings.effort
        if last.agent or not last.model:
            return False
        return last.model != self.engine.provider.info.label or last.effort not in ("", here)

    async def _change(self, chosen: dict[str, Any], *, keep: bool = False) -> None:
        """Another engine, and its session. What cannot be had is found out before anything ends."""
        mode, name, before = self.session.mode, self.session.id, self.setup
        name = name if self.session.seq and self._attached is None else ""
        setup = Setup({**self._flags, "go_on": False, "worktree": None, **chosen})
        provider = setup.provider()
        if keep:
            setup.chosen_mode = mode
        await self._detach()
        if self._engine is not None:
            await self._let_go(self._engine)
        try:
            await self._settle(setup, provider)
        except BaseException:  # back to where we were
            self.setup, self._engine = before, None
            session = await self.engine.session(name or None)
            record_mode(session)
            self.session = session
            raise

    async def _let_go(self, engine: Engine) -> None:
        """Close an engine, unless a turn still runs in it: then it is kept until we leave."""
        if any(one.is_busy for one in engine.sessions()):
            self._left.add(engine)
        else:
            self._left.discard(engine)
            await engine.close()

    async def _settle(self, setup: Setup, provider: Provider) -> None:
        self.setup = setup
        self._engine = engine = self._made(setup, provider)
        try:
            self.seen = setup.last_seq
            self.session = await setup.session(engine)
        except BaseException:
            await engine.close()
            raise

    def _made(self, setup: Setup, provider: Provider) -> Engine:
        return setup.engine(provider, self._approver, self._face, on_ask="wait")

    def _attach(self, held: Attached) -> None:
        self._attached, self.session = held, held.session
        self.seen = held.session.seq

    async def _move(self, session: Conversation, seen: int) -> None:
        """On to another session; the one before is let go, unless its turn still runs."""
        await self._detach()
        self.session, self.seen = session, seen
        asked = self._asked_for
        if asked is not None and isinstance(session, Session) and session.mode != asked:
            await session.set_mode(asked)

    async def _detach(self) -> None:
        """Leave the session that is talked to. What runs in it here goes on."""
        session = getattr(self, "session", None)
        if self._attached is not None:
            attached, self._attached = self._attached, None
            await attached.close()
        elif isinstance(session, Session) and session.is_inactive:
            await session.close()
