"""Refreshes the tools of a turn: the engine's own, and those that sources (MCP) have right now.

The tuple that the model is offered stays the same object while nothing changes, so that a provider
encodes it once. A source's tool never replaces one of the engine's own.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from bridle.protocols.tool import Tool, ToolSource

if TYPE_CHECKING:
    from bridle.engine.turn_context import TurnContext

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
