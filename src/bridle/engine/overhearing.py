"""What a parent hears of its child: lines of what it does, and what it uses, as it happens.

Follows the child's records to their end. Everything that it says is data of the child's: it goes
into the output of the call, one line at a time, and never into the conversation.
"""

import asyncio
from contextlib import aclosing
from typing import TYPE_CHECKING

from msgspec.structs import replace

from bridle.engine.turn import Emit
from bridle.events import (
    ApprovalAsked,
    CallIntended,
    Event,
    ResponseCompleted,
    ToolOutputDelta,
    UsageReported,
)
from bridle.messages import Message, ToolCall
from bridle.workspace.text import one_line

if TYPE_CHECKING:
    from bridle.engine.session import Session

_SUBJECTS = ("command", "path", "pattern", "query", "url", "description", "prompt", "question")
_LINE = 120  # characters


class Overhearing:
    """Follows one child, and says what its parent is to know."""

    def __init__(self, child: "Session", call_id: str, say: Emit) -> None:
        self._child = child
        self._call_id = call_id
        self._say = say
        self.said = ""  # the newest text
        self._calls: dict[str, ToolCall] = {}  # of the newest reply
        self._records = child.subscribe(0)
        self._listening: asyncio.Task[None] | None = None

    def begin(self) -> None:
        """Listen from here on."""
        self._listening = asyncio.create_task(self._listen(), name="bridle-child")

    async def end(self) -> None:
        """The child is closed: hear the rest of it."""
        if self._listening is None:
            await self._records.aclose()
        else:
            await self._listening

    async def _listen(self) -> None:
        async with aclosing(self._records) as records:
            async for record in records:
                self._take(record.event)

    def _take(self, event: Event) -> None:
        match event:
            case UsageReported():
                self._say(replace(event, purpose="task", priced=True))
            case ResponseCompleted(message=Message() as message):
                self._calls = {call.id: call for call in message.tool_calls}
                if text := message.content.strip():
                    self.said = text
                    self._tell(one_line(text.rpartition("\n")[2], _LINE))
            case CallIntended(call_id=call_id, name=name):
                self._tell(f"▸ {name} {_subject(self._calls.get(call_id))}".rstrip())
            case ApprovalAsked(call=call, reason=reason):
                words = f"? {call.name} waits for an answer: {reason}"
                self._tell(f"{one_line(words, _LINE)} (session {self._child.id})")

    def _tell(self, line: str) -> None:
        self._say(ToolOutputDelta(self._call_id, line + "\n"))


def _subject(call: ToolCall | None) -> str:
    """What a call is about, in a few words."""
    given = call.arguments if call is not None else {}
    found = (given.get(name) for name in _SUBJECTS)
    return next((one_line(one, _LINE) for one in found if isinstance(one, str) and one), "")
