"""What another agent calls its tools, in the words of ours, so that the gate judges what it knows.

The dictionary is handed in (`Parts.translate`); a name that is in neither stays as it is, and is
nobody's here. Pure.
"""

from collections.abc import Callable, Container
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from bridle.engine.engine_config import Back, Translate
from bridle.events import ResponseCompleted
from bridle.messages import ToolCall


class Spoken(Struct, frozen=True):
    """A call in our words, and the way back for its arguments."""

    name: str
    arguments: dict[str, Any]
    back: Back


class Words:
    """The words of one agent. `known` are the names of tools that are ours."""

    def __init__(
        self, translate: Translate | None, root: str, known: Callable[[], Container[str]]
    ) -> None:
        self._translate = translate
        self._root = root
        self._known = known

    def ours(self, name: str, arguments: Any) -> Spoken:
        """The call as ours. Raise `TypeError` … where its arguments are no arguments."""
        if (
            self._translate is not None
            and isinstance(arguments, dict)
            and name not in self._known()
        ):
            found = self._translate(name, arguments, self._root)
            if found is not None:
                return Spoken(*found)
        return Spoken(name, arguments, _same)

    def reply(self, reply: ResponseCompleted) -> ResponseCompleted:
        """A whole reply, its calls as ours."""
        if self._translate is None or reply.message is None or not reply.message.tool_calls:
            return reply
        parts = [
            self._call(one) if isinstance(one, ToolCall) else one for one in reply.message.parts
        ]
        return replace(reply, message=replace(reply.message, parts=tuple(parts)))

    def _call(self, call: ToolCall) -> ToolCall:
        try:
            found = self.ours(call.name, call.arguments)
        except (TypeError, ValueError, AttributeError, RecursionError):
            return call  # the gate will say so, should it be asked
        return ToolCall(call.id, found.name, found.arguments) if found.back is not _same else call


def _same(arguments: dict[str, Any]) -> dict[str, Any]:
    return arguments
