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
