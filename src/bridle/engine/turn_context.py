"""What a turn is given: its model, tools, gate, budget and settings, and where it emits events."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from bridle.engine.budget import Budget
from bridle.engine.compaction import ContextWindow
from bridle.engine.redaction import Redactor
from bridle.events import Event
from bridle.messages import ToolCall
from bridle.policy import Mode
from bridle.protocols.provider import Provider, RequestConfig
from bridle.protocols.store import Log
from bridle.protocols.tool import CWD, Tool, ToolContext, ToolSource

if TYPE_CHECKING:
    from bridle.engine.approvals import Approvals
    from bridle.engine.call_middleware import CallMiddleware
    from bridle.engine.gate import Gate
    from bridle.engine.tool_calls import ToolCalls

log = logging.getLogger(__name__)

CLOSE_SECONDS = 5.0  # for all close callbacks of a session together
Emit = Callable[[Event], None]
Closer = Callable[[], Awaitable[None]]


class Parked(Exception):
    """A call needs an approval that nobody can give now: the turn stops, and is resumed later."""


class ToolState(Struct):
    """What the tools of one session keep between calls."""

    log: Log
    mode: Callable[[], Mode]
    memory: dict[str, Any] = {}
    closers: list[Closer] = []  # awaited when the session is closed
    folder: str | None = None  # the session's own, or empty; None: not looked up yet

    @property
    def cwd(self) -> str:
        """The shell's current folder; empty for the workspace's root."""
        cwd = self.memory.get(CWD, "")
        return cwd if isinstance(cwd, str) else ""

    @property
    def is_at_work(self) -> bool:
        """Does something still run that closing the session would end?

        A closer may be the method of an object that has an `is_at_work` of its own.
        """
        owners = (getattr(closer, "__self__", None) for closer in self.closers)
        return any(getattr(owner, "is_at_work", False) for owner in owners)

    async def close(self) -> None:
        """Await all close callbacks at once. Log those that fail, and leave those that hang."""
        closers, self.closers = self.closers, []
        if not closers:
            return
        tasks = [asyncio.ensure_future(_run_closer(closer)) for closer in closers]
        _, late = await asyncio.wait(tasks, timeout=CLOSE_SECONDS)
        for task in late:
            task.cancel()
        if late:
            log.warning(
                "some tools of the session were still running %g seconds after it was closed",
                CLOSE_SECONDS,
            )
            await asyncio.wait(late, timeout=CLOSE_SECONDS)


async def _run_closer(closer: Closer) -> None:
    try:
        await closer()
    except Exception:  # a tool's own code: the session is closed all the same
        log.warning("a tool of the session could not be closed", exc_info=True)


class TurnContext(Struct, kw_only=True):
    """What the loop, the tool calls and foreign agents of one turn work with."""

    window: ContextWindow
    provider: Provider
    tools: Mapping[str, Tool]
    gate: "Gate"
    emit: Emit
    budget: Budget
    settled: Callable[[], Awaitable[None]]  # returns when everything emitted so far is durable
    context: Callable[[ToolCall], ToolContext[Any]]  # what a call is given beside its arguments
    tool_state: ToolState
    mode: Callable[[], Mode]
    approvals: "Approvals"
    config: RequestConfig = RequestConfig()
    system: str = ""
    offered: tuple[Tool, ...] = ()  # the tools as they are sent to the model
    tool_calls: "ToolCalls | None" = None  # made when the loop, or a foreign agent, starts
    redactor: Redactor | None = None
    open_calls: tuple[ToolCall, ...] = ()  # calls with which a parked turn is resumed
    middleware: "CallMiddleware | None" = None  # hooks, policy engine and undo, if there are any
    sources: tuple[ToolSource, ...] = ()  # of tools that come and go
    has_steering: Callable[[], bool] = bool  # was a prompt sent into it that it has not read?
    reported_reply_limit: bool = False  # was it recorded that the limits shorten its replies?
    cut_text: str = ""  # text of a reply that was cut off; the next reply continues it


_TOOL_SETS = "engine.tool_sources"  # the key of a session's `_ToolSet` in its memory


class _ToolSet:
    """The engine's own tools together with those that the sources have now.

    `offered` stays the same object while nothing changes, so that a provider encodes it once. A
    source's tool never replaces one of the engine's own.
    """

    def __init__(self, tools: Mapping[str, Tool], offered: tuple[Tool, ...]) -> None:
        self.own_tools, self.own_offered = tools, offered
        self.tools, self.offered = tools, offered
        self._versions: tuple[int, ...] = ()

    def update(self, sources: tuple[ToolSource, ...]) -> None:
        """Read the tools of the sources again if any of them has a new version."""
        versions = tuple([source.version for source in sources])
        if versions == self._versions:
            return
        self._versions = versions
        tools = dict(self.own_tools)
        added: list[Tool] = []
        for source in sources:
            for tool in source.tools():
                if tool.name not in tools:
                    tools[tool.name] = tool
                    added.append(tool)
        self.tools, self.offered = tools, (*self.own_offered, *added)


def refresh_tools(turn: TurnContext) -> None:
    """Give a turn the tools that the engine and its sources have now. Start no source."""
    memory = turn.tool_state.memory
    tool_set = memory.get(_TOOL_SETS)
    if not isinstance(tool_set, _ToolSet) or (
        turn.offered is not tool_set.own_offered and turn.offered is not tool_set.offered
    ):
        tool_set = memory[_TOOL_SETS] = _ToolSet(turn.tools, turn.offered)
    tool_set.update(turn.sources)
    turn.tools, turn.offered = tool_set.tools, tool_set.offered
    turn.window.offered = tool_set.offered  # they take tokens of every request
