"""Engines for the server's sessions: one for each workspace, model and agent that is wanted.

How an engine is put together is not known here: that is handed in, because settings and rules are
read by whoever starts the server. What is made here is closed here.
"""

import asyncio
import logging
from collections.abc import Callable
from contextlib import AsyncExitStack
from pathlib import Path

from msgspec import Struct

from bridle.engine.engine import Engine
from bridle.errors import AgentError
from bridle.protocols.session_errors import (
    OtherWorkspace,
    ServerStopping,
    Unavailable,
    UnknownWorkspace,
)
from bridle.runtime.agents import LOOP, is_agent
from bridle.service.workspace_scope import WorkspaceScope
from bridle.stores.session_index import last_run
from bridle.stores.transfer import is_imported

log = logging.getLogger(__name__)

_IDLE = 600.0  # seconds after which an engine without sessions is closed
_RECENT = 10.0  # seconds in which whoever asked for one may still be about to use it
_MOST = 64  # engines at a time


class EngineSpec(Struct, frozen=True):
    """What a session is to have. What is empty is as the server was started."""

    workspace: str
    provider: str = ""
    model: str = ""
    agent: str = ""
    effort: str = ""


EngineFactory = Callable[[EngineSpec, str], Engine]  # and the session to resume, or ""


class EnginePool:
    """The engines that are open, by what was wanted of them."""

    def __init__(self, opening: EngineFactory) -> None:
        self._opening = opening
        self._making: dict[EngineSpec, asyncio.Task[Engine]] = {}
        self._engines: dict[EngineSpec, Engine] = {}
        self._used: dict[EngineSpec, float] = {}  # when it was last asked for
        self._closed = False
        self.on_made: Callable[[Engine], None] = lambda engine: None

    async def engine(self, wanted: EngineSpec, session_id: str = "") -> Engine:
        """The engine for that, made when it is first needed. Raise `ConfigError`."""
        if self._closed:
            raise ServerStopping("the server is being stopped")
        self._used[wanted] = asyncio.get_running_loop().time()
        if (found := self._engines.get(wanted)) is not None:
            return found
        if wanted not in self._making:
            await self._make_room()
        making = self._making.get(wanted)
        if making is None:
            making = self._making[wanted] = asyncio.ensure_future(self._make(wanted, session_id))
            making.add_done_callback(lambda done: self._made(wanted, done))
        return await asyncio.shield(making)  # whoever gives up waiting, it is made all the same

    async def _make(self, wanted: EngineSpec, session_id: str) -> Engine:
        return await asyncio.to_thread(self._opening, wanted, session_id)

    def _made(self, wanted: EngineSpec, done: "asyncio.Task[Engine]") -> None:
        self._making.pop(wanted, None)
        if done.cancelled() or done.exception() is not None:
            self._used.pop(wanted, None)
        if not done.cancelled() and done.exception() is None:
            self._engines[wanted] = done.result()
            self.on_made(done.result())

    async def sweep(self, idle: float = _IDLE) -> None:
        """Close those that nobody has asked for so long, and that have no session."""
        now = asyncio.get_running_loop().time()
        for wanted, engine in list(self._engines.items()):
            if now - self._used.get(wanted, now) >= idle and not engine.sessions():
                del self._engines[wanted], self._used[wanted]
                failed: list[AgentError] = []
                await _close(engine, failed)
                for error in failed:
                    log.warning("an engine could not be closed: %s", error.message)

    async def _make_room(self) -> None:
        """Raise `Unavailable` where there are as many as may be, and all are in use."""
        if len(self._engines) + len(self._making) < _MOST:
            return
        await self.sweep(_RECENT)
        if len(self._engines) + len(self._making) >= _MOST:
            raise Unavailable(
                f"{_MOST} choices of folder, model and agent are in use, and there may be no more",
                hint="Wait until some sessions rest, or choose as another session has.",
            )

    def has(self, wanted: EngineSpec) -> bool:
        """Is there one for that already?"""
        return wanted in self._engines

    def open(self) -> tuple[Engine, ...]:
        """Those that there are."""
        return tuple(self._engines.values())

    async def close(self) -> None:
        """Close all of them, and their sessions. Raise what the first that failed has raised."""
        self._closed = True
        if self._making:
            await asyncio.wait(list(self._making.values()))
        failed: list[AgentError] = []
        async with AsyncExitStack() as leaving:  # whatever fails, the rest is closed, too
            for engine in self._engines.values():
                leaving.push_async_callback(_close, engine, failed)
        self._engines.clear()
        if failed:
            raise failed[0]


async def _close(engine: Engine, failed: list[AgentError]) -> None:
    try:
        await engine.close()
    except AgentError as error:
        failed.append(error)


class PreviousRun(Struct, frozen=True):
    """Where a session works, and who carried it; `model` is as the log has it.

    `moved`: it is to have this folder because its own is not here.
    """

    workspace: str
    model: str = ""
    agent: str = ""
    moved: bool = False
    effort: str = ""

    @property
    def who(self) -> str:
        """Who carried it, in words."""
        return self.agent or self.model

    def wanted(self, usual: Engine) -> EngineSpec:
        """What to ask for, where this is how sessions usually go on there."""
        label, agent = usual.provider.info.label, usual.parts.agent
        if self.agent:
            return EngineSpec(self.workspace, agent="" if self.agent == label else self.agent)
        if not self.model or self.model == label:
            told = usual.parts.config.effort
            return EngineSpec(self.workspace, effort="" if self.effort == told else self.effort)
        provider, _, model = self.model.partition("/")
        loop = LOOP if agent is not None else ""
        return EngineSpec(self.workspace, provider, model, loop, self.effort)


def previous_run(ground: WorkspaceScope, session_id: str, path: str = "") -> PreviousRun:
    """How that session was carried last. Raise `UnknownSession`, `UnknownWorkspace`.

    A `path` is the folder that it is to work in. One whose own folder is there stays in it, because
    what it read, changed and was allowed is of that folder: raise `OtherWorkspace`.
    """
    _, head = ground.known(session_id)
    wanted = ground.workspace(path) if path else ""
    if is_imported(ground.folder, session_id):
        if wanted:
            return PreviousRun(wanted, moved=True)
        raise UnknownWorkspace(
            f"session {session_id} was brought in from elsewhere, and has no folder here yet",
            hint="Resume it with the workspacePath that it is to work in.",
        )
    found = last_run(ground.folder.path(session_id))
    own = _own(ground, found.workspace, head.workspace)
    if not own and not wanted:
        raise UnknownWorkspace(
            f"the folder {head.workspace!r} of session {session_id} is not there",
            hint="If it was moved, resume the session with its workspacePath.",
        )
    if own and wanted not in ("", own):
        raise OtherWorkspace(f"session {session_id} works in {own!r}, and stays there")
    named = found.agent if is_agent(found.agent) else found.model
    agent = named if is_agent(named) else ""
    model, effort = ("", "") if agent else (found.model, found.effort)
    return PreviousRun(own or wanted, model, agent, not own, effort)


def _own(ground: WorkspaceScope, newest: str, first: str) -> str:
    """The folder of a session, where it is there."""
    allowed = newest if ground.allows(newest) else ""
    places = (Path(one) for one in (allowed, first) if one)
    return next((str(one.resolve()) for one in places if one.is_dir()), "")
