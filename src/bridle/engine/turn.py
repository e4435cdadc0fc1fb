"""Everything that a turn is handed. A value that is put together elsewhere."""

from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from bridle.engine.belongings import Belongings
from bridle.engine.budget import Budget
from bridle.engine.compact import Window
from bridle.engine.redact import Redactor
from bridle.events import Event
from bridle.messages import ToolCall
from bridle.policy import Mode
from bridle.promises.provider import Provider, RequestConfig
from bridle.promises.tool import Tool, ToolContext, ToolSource

if TYPE_CHECKING:
    from bridle.engine.approvals import Approvals
    from bridle.engine.around import Around
    from bridle.engine.calls import Caller
    from bridle.engine.gate import Gate

Emit = Callable[[Event], None]


class Parked(Exception):
    """A question was put and nobody is here to answer it: the turn stops, and goes on later."""


class Turn(Struct):
    """Where a turn reads, whom it asks, what it runs, and where it says what happened."""

    window: Window
    provider: Provider
    tools: Mapping[str, Tool]
    gate: "Callable[[], Gate]"  # made with the first call
    emit: Emit
    budget: Budget
    settled: Callable[[], Awaitable[None]]
    context: Callable[[ToolCall], ToolContext[Any]]
    belongings: Belongings
    mode: Callable[[], Mode]
    approvals: "Callable[[], Approvals]"  # made with the first question
    config: RequestConfig = RequestConfig()
    system: str = ""
    offered: tuple[Tool, ...] = ()  # the tools as the model is told of them: encoded once
    caller: "Caller | None" = None  # who runs its calls, once there are any
    redactor: Redactor | None = None
    left: tuple[ToolCall, ...] = ()  # calls with which a turn goes on that was parked
    around: "Around | None" = None  # hooks and the like, where there are any
    sources: tuple[ToolSource, ...] = ()  # whose tools come and go
    is_steered: Callable[[], bool] = bool  # was a prompt sent into it that it has not read?
    is_short: bool = False  # has it been said that replies are cut to what the limits leave?
    said: str = ""  # text of a reply that was cut off; the next reply goes on with it
