"""Engines by workspace, model and agent, and which of them a session needs.

How an engine is assembled is passed in, because settings and rules are read by whoever starts the
service. Engines that are made here are closed here.
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

log = logging.getLogger(__name__)

_IDLE = 600.0  # seconds after which an engine without sessions is closed
_RECENT = 10.0  # seconds in which whoever asked for one may still be about to use it
_MOST = 64  # engines at a time


class EngineSpec(Struct, frozen=True):
    """What a session needs. Empty values are as the service was started."""

    workspace: str
    provider: str = ""
    model: str = ""
    agent: str = ""
    effort: str = ""


EngineFactory = Callable[[EngineSpec, str], Engine]  # and the session to resume, or ""


class EnginePool:
    """The engines that are open."""

    def __init__(self, factory: EngineFactory) -> None:
        self._factory = factory
        self._making: dict[EngineSpec, asyncio.Task[Engine]] = {}
        self._engines: dict[EngineSpec, Engine] = {}
        self._used: dict[EngineSpec, float] = {}  # when it was last asked for
        self._adopted: list[Engine] = []
        self._closed = False
        self.on_made: Callable[[Engine], None] = lambda engine: None

    async def engine(self, spec: EngineSpec, session_id: str = "") -> Engine:
        """Return the engine for this, made when it is first needed. Raise `ConfigError`."""
        if self._closed:
            raise ServerStopping("the server is being stopped")
        self._used[spec] = asyncio.get_running_loop().time()
        if (engine := self._engines.get(spec)) is not None:
            return engine
        if spec not in self._making:
            await self._make_room()
        making = self._making.get(spec)
        if making is None:
            making = self._making[spec] = asyncio.ensure_future(self._make(spec, session_id))
            making.add_done_callback(lambda done: self._made(spec, done))
        return await asyncio.shield(making)  # a caller that gives up does not stop it

    async def _make(self, spec: EngineSpec, session_id: str) -> Engine:
        return await asyncio.to_thread(self._factory, spec, session_id)

    def _made(self, spec: EngineSpec, done: "asyncio.Task[Engine]") -> None:
        self._making.pop(spec, None)
        if done.cancelled() or done.exception() is not None:
            self._used.pop(spec, None)
        if not done.cancelled() and done.exception() is None:
            self._engines[spec] = done.result()
            self.on_made(done.result())

    async def sweep(self, idle: float = _IDLE) -> None:
        """Close engines without sessions that were not asked for in the last `idle` seconds."""
        now = asyncio.get_running_loop().time()
        for spec, engine in list(self._engines.items()):
            if now - self._used.get(spec, now) >= idle and not engine.sessions():
                del self._engines[spec], self._used[spec]
                failed: list[AgentError] = []
                await _close(engine, failed)
                for error in failed:
                    log.warning("an engine could not be closed: %s", error.message)

    async def _make_room(self) -> None:
        """Raise `Unavailable` if the limit is reached and all engines are in use."""
        if len(self._engines) + len(self._making) < _MOST:
            return
        await self.sweep(_RECENT)
        if len(self._engines) + len(self._making) >= _MOST:
            raise Unavailable(
                f"{_MOST} combinations of folder, model and agent are in use, which is the limit",
                hint="Wait until some sessions are idle, or use the same as another session.",
            )

    def has(self, spec: EngineSpec) -> bool:
        """Whether there is an engine for this already."""
        return spec in self._engines

    def open(self) -> tuple[Engine, ...]:
        """Return the engines that are open."""
        return (*self._engines.values(), *self._adopted)

    def adopt(self, engine: Engine) -> None:
        """Include an engine that its owner closes."""
        self._adopted.append(engine)
        self.on_made(engine)

    def release(self, engine: Engine) -> None:
        """No longer include an adopted engine."""
        if engine in self._adopted:
            self._adopted.remove(engine)

    def is_adopted(self, engine: Engine) -> bool:
        """Whether somebody else closes that engine."""
        return engine in self._adopted

    async def close(self) -> None:
        """Close all engines and their sessions, then raise the first error, if there was one."""
        self._closed = True
        if self._making:
            await asyncio.wait(list(self._making.values()))
        failed: list[AgentError] = []
        async with AsyncExitStack() as leaving:  # if one fails, the others are closed, too
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
    """The workspace, model and agent that a session last ran with; `model` as in the log.

    `moved`: its own folder is gone, and it is to work in this one.
    """

    workspace: str
    model: str = ""
    agent: str = ""
    moved: bool = False
    effort: str = ""

    def spec(self, usual: Engine) -> EngineSpec:
        """Return what to ask for, if `usual` is how sessions usually run in that folder."""
        label, agent = usual.provider.info.label, usual.parts.agent
        if self.agent:
            return EngineSpec(self.workspace, agent="" if self.agent == label else self.agent)
        if not self.model or self.model == label:
            effort = "" if self.effort == usual.parts.config.effort else self.effort
            return EngineSpec(self.workspace, effort=effort)
        provider, _, model = self.model.partition("/")
        loop = LOOP if agent is not None else ""
        return EngineSpec(self.workspace, provider, model, loop, self.effort)


def previous_run(scope: WorkspaceScope, session_id: str, path: str = "") -> PreviousRun:
    """Return what a session last ran with. `path` is the folder that it should work in.

    A session whose own folder exists stays there, because what it read, changed and was granted
    belongs to that folder: raise `OtherWorkspace`. A log that was imported names folders and
    programs of another machine, so nothing of that counts. Raise `UnknownSession`,
    `UnknownWorkspace`.
    """
    head = scope.session(session_id)
    wanted = scope.workspace(path) if path else ""
    if scope.catalog.is_imported(session_id):
        if wanted:
            return PreviousRun(wanted, moved=True)
        raise UnknownWorkspace(
            f"session {session_id} was imported, and has no folder on this machine yet",
            hint="Resume it with the workspacePath that it should work in.",
        )
    last = scope.catalog.last_run(session_id)
    own = _existing(scope, last.workspace, head.workspace)
    if not own and not wanted:
        raise UnknownWorkspace(
            f"the folder {head.workspace!r} of session {session_id} does not exist",
            hint="If it was moved, resume the session with its workspacePath.",
        )
    if own and wanted not in ("", own):
        raise OtherWorkspace(f"session {session_id} works in {own!r}, and stays there")
    name = last.agent if is_agent(last.agent) else last.model
    if is_agent(name):
        return PreviousRun(own or wanted, agent=name, moved=not own)
    return PreviousRun(own or wanted, last.model, moved=not own, effort=last.effort)


def _existing(scope: WorkspaceScope, newest: str, first: str) -> str:
    """Return the folder of a session if it exists."""
    folders = (Path(path) for path in (newest if scope.allows(newest) else "", first) if path)
    return next((str(path.resolve()) for path in folders if path.is_dir()), "")
