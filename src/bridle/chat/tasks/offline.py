"""A responder for tasks that needs no key: rules over what the user wrote, and the tools.

It keeps the provider's promise as a model does: it asks for tools, reads what they give back, and
says a sentence. It is no language model. It remembers nothing: what «the second one» or «it» means
is found in the conversation that it is handed, and looked up again in the user's own list.
"""

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from typing import Any

import msgspec

from bridle.chat.profile import Telling
from bridle.chat.replies import standard
from bridle.chat.tasks.offline_plan import Step, Turn, plan
from bridle.chat.tasks.telling import otherwise, tell
from bridle.chat.values import ToolCallRecord
from bridle.events import ModelEvent
from bridle.messages import Message, Part, Text, ToolCall
from bridle.promises.provider import ProviderInfo, Request
from bridle.providers.scripted import Reply, play
from bridle.usage import Price

_decode = msgspec.json.Decoder().decode


class TaskResponder:
    """Keeps the provider's promise with rules. It costs nothing, so its price is known: zero."""

    def __init__(self) -> None:
        self.info = ProviderInfo("responder", "tasks", price=Price(0, 0), local=True)

    async def stream(self, request: Request) -> AsyncGenerator[ModelEvent, None]:
        """Ask for the tools that the answer needs, or give it."""
        number = len(request.messages)
        parts = _answer(request.messages)
        async with aclosing(
            play(Reply(chunk=4_000), parts, self.info, f"responder_{number}")
        ) as events:
            async for event in events:
                yield event

    async def close(self) -> None:
        """There is nothing to let go of."""


def _answer(messages: Sequence[Message]) -> tuple[Part, ...]:
    turn = read_turn(messages)
    step = plan(turn)
    if isinstance(step, str):
        return (Text(step or _say(turn)),)
    calls: Sequence[Step] = step
    return tuple(
        ToolCall(f"responder_{len(messages)}_{number}", one.tool, dict(one.arguments))
        for number, one in enumerate(calls)
    )


def _say(turn: Turn) -> str:
    telling = Telling(turn.message, turn.records, standard(), titles=turn.titles)
    return tell(telling) or otherwise(telling)


def read_turn(messages: Sequence[Message]) -> Turn:
    """The newest prompt, what was called since, and what was said before."""
    place = len(messages) - 1
    while place > 0 and not (messages[place].role == "user" and messages[place].content):
        place -= 1
    records: list[ToolCallRecord] = []
    calls: dict[str, ToolCall] = {}
    for message in messages[place + 1 :]:
        calls |= {call.id: call for call in message.tool_calls}
        for output in message.tool_results:
            if (call := calls.get(output.call_id)) is not None:
                records.append(ToolCallRecord(call.name, call.arguments, _result(output.text)))
    before = [(one.role, one.content) for one in messages[:place] if one.content]
    return Turn(messages[place].content if messages else "", tuple(records), tuple(before))


def _result(text: str) -> dict[str, Any]:
    """What a tool gave back; words that are none are those of whoever refused the call."""
    try:
        found = _decode(text)
    except msgspec.DecodeError:
        found = None
    if isinstance(found, dict):
        return found
    return {"success": False, "error": {"code": "invalid_input", "message": text[:200]}}
