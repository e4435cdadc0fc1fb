"""Questions and conversations as other processes and servers tell them, read with care. Pure.

What does not fit is left out: a question whose parts contradict each other is no question.
"""

from collections.abc import Iterable
from typing import Any, Protocol

from msgspec import MsgspecError, json

from bridle.events import ApprovalAsked
from bridle.messages import Message
from bridle.protocols.codec import decode_data
from bridle.tui.house import Asked


class Told(Protocol):
    """A question that waits, as a server tells it."""

    @property
    def session_id(self) -> str: ...
    @property
    def session_title(self) -> str: ...
    @property
    def call_id(self) -> str: ...
    @property
    def shown(self) -> str: ...
    @property
    def asked(self) -> dict[str, Any]: ...
    @property
    def diff(self) -> str: ...


def asked_of(told: Told) -> Asked | None:
    """The question; None where what is told of it does not fit together."""
    try:
        asked = decode_data(json.encode({**told.asked, "type": "approval_asked"}))
    except (MsgspecError, UnicodeEncodeError, TypeError, ValueError):
        return None
    if not isinstance(asked, ApprovalAsked):
        return None
    if asked.call.id != told.call_id or asked.shown != told.shown or not told.session_id:
        return None
    title, diff = told.session_title, told.diff
    return Asked(session_id=told.session_id, title=title, asked=asked, diff=diff)


def ending(messages: Iterable[Message], lines: int) -> str:
    """The last lines of a conversation, with who said each."""
    told: list[str] = []
    for message in messages:
        if message.role in ("user", "assistant") and message.content.strip():
            mark = "> " if message.role == "user" else ""
            told += [mark + line for line in message.content.strip().splitlines()] + [""]
        told += [f"[{call.name}]" for call in message.tool_calls]
    return "\n".join(told[-lines:]).strip("\n")
