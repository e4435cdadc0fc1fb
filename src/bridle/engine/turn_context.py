"""What a turn is given: its model, tools, gate, budget and settings, and where it emits events."""

from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from bridle.engine.budget import Budget
from bridle.engine.compaction import ContextWindow
from bridle.engine.redaction import Redactor
from bridle.engine.tool_state import ToolState
from bridle.events import Event
from bridle.messages import ToolCall
from bridle.policy import Mode
from bridle.protocols.provider import Provider, RequestConfig
from bridle.protocols.tool import Tool, ToolContext, ToolSource

if TYPE_CHECKING:
    from bridle.engine.approvals import Approvals
    from bridle.engine.gate import Gate
    from bridle.engine.hooks import CallMiddleware
    from bridle.engine.tool_calls import ToolCalls

Emit = Callable[[Event], None]


class Parked(Exception):
    """A call needs an approval that nobody here can give: the turn stops, and is resumed later."""


class TurnContext(Struct, kw_only=True):
    """One turn's. The loop, the tool calls and foreign agents work on it."""

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
    offered: tuple[Tool, ...] = ()  # the tools as the model is told of them, encoded once
    tool_calls: "ToolCalls | None" = (
        None  # runs the calls of this turn; made with the first of them
    )
    redactor: Redactor | None = None
    open_calls: tuple[ToolCall, ...] = ()  # calls with which a parked turn is resumed
    middleware: "CallMiddleware | None" = None  # hooks, policy engine and undo, if there are any
    sources: tuple[ToolSource, ...] = ()  # whose tools come and go
    has_steering: Callable[[], bool] = bool  # was a prompt sent into it that it has not read?
    said_reply_limit: bool = False  # was it said that replies are cut to what the limits leave?
    cut_text: str = ""  # text of a reply that was cut off; the next reply continues it


# Refreshes the tools of a turn: the engine's own, and those that sources (MCP) have right now.
#
# The tuple that the model is offered stays the same object while nothing changes, so that a
# provider encodes it once. A source's tool never replaces one of the engine's own.

_STOCK = "engine.tool_sources"  # in a session's memory: what was put together last


class _Stock:
    """What the engine has itself, and that with the tools of sources, as of their versions."""

    def __init__(self, tools: Mapping[str, Tool], offered: tuple[Tool, ...]) -> None:
        self.own_tools, self.own = tools, offered
        self.tools, self.offered = tools, offered
        self._versions: tuple[int, ...] = ()

    def is_of(self, offered: tuple[Tool, ...]) -> bool:
        """Was it put together from these, or is it these?"""
        return offered is self.own or offered is self.offered

    def look(self, sources: tuple[ToolSource, ...]) -> None:
        """Put it together anew where a source has others by now."""
        versions = tuple([source.version for source in sources])
        if versions == self._versions:
            return
        self._versions = versions
        found = dict(self.own_tools)
        more: list[Tool] = []
        for source in sources:
            for tool in source.tools():
                if tool.name not in found:
                    found[tool.name] = tool
                    more.append(tool)
        self.tools, self.offered = found, (*self.own, *more)


def refresh_tools(turn: "TurnContext") -> None:
    """Have a turn know, and offer, what its sources have now. Starts nothing."""
    memory = turn.tool_state.memory
    stock = memory.get(_STOCK)
    if not isinstance(stock, _Stock) or not stock.is_of(turn.offered):
        stock = memory[_STOCK] = _Stock(turn.tools, turn.offered)
    stock.look(turn.sources)
    turn.tools, turn.offered = stock.tools, stock.offered
    turn.window.offered = stock.offered  # they take their room of every request
