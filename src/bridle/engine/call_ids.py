"""Call ids that are each there once in a conversation, as two of the vendors demand.

Local servers count from zero in every reply, and a session may go on with another model. In the
log a call keeps the id it came with; in the conversation a repeated one is told apart by its reply.
"""

from collections.abc import Iterable

from msgspec.structs import replace

from bridle.messages import Message, Part, ToolCall, ToolOutput


class CallIds:
    """The ids that the calls of one conversation have."""

    __slots__ = ("_taken",)

    def __init__(self, messages: Iterable[Message] = ()) -> None:
        self._taken = {call.id for message in messages for call in message.tool_calls}

    def take(self, reply: Message) -> None:
        """These calls are part of the conversation now."""
        self._taken.update([call.id for call in reply.tool_calls])

    def apart(
        self, reply: Message, outputs: tuple[ToolOutput, ...]
    ) -> tuple[Message, tuple[ToolOutput, ...]]:
        """A reply and the answers to its calls, in their order, with ids that are new here."""
        ids = [call.id for call in reply.tool_calls]
        if self._taken.isdisjoint(ids) and len(set(ids)) == len(ids):
            return reply, outputs
        new = self._renamed(ids, reply.id)
        names = iter(new)
        parts: tuple[Part, ...] = tuple(
            replace(part, id=next(names)) if isinstance(part, ToolCall) else part
            for part in reply.parts
        )
        pairs = zip(outputs, new, strict=True)
        return replace(reply, parts=parts), tuple(replace(one, call_id=name) for one, name in pairs)

    def _renamed(self, ids: list[str], reply: str) -> list[str]:
        new: list[str] = []
        for name in ids:
            while name in self._taken or name in new:
                name = f"{name}-{reply or len(new)}"
            new.append(name)
        return new
