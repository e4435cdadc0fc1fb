"""What Claude Code is told at the beginning of a run: the prompt, its pictures, and the past. Pure.

A conversation of its own that begins in the middle of a session (it was lost, the session was taken
back to an earlier place, or another agent carried it before) is told what the log has.
"""

from collections.abc import Iterable, Sequence
from typing import Any

from bridle.messages import File, Image, Message, Text, ToolCall, Transcript
from bridle.workspace.text import one_line, shorten

_MOST = 40_000  # characters of the past
_MOST_CALL = 200  # characters of one call in it
_BEFORE = (
    "This session began before this conversation. Its log says what was said and done until now; "
    "take it as what has happened, not as something to do again."
)
_WHO = {"user": "The person", "assistant": "You, or who worked before you"}


def past_of(session: Any) -> str:
    """What the session's log has of the time before this turn; empty where that is nothing."""
    messages = getattr(session, "messages", None)
    if not isinstance(messages, Sequence) or not messages:
        return ""
    transcript = Transcript.of(messages)
    lines = list(_lines(transcript[: transcript.turn]))
    return shorten("\n\n".join(lines), _MOST)


def _lines(messages: Iterable[Message]) -> Iterable[str]:
    for message in messages:
        if message.role not in _WHO:
            continue
        said = [part.text for part in message.parts if isinstance(part, Text)]
        said += [_called(part) for part in message.parts if isinstance(part, ToolCall)]
        if text := "\n".join(said).strip():
            yield f"{_WHO[message.role]}:\n{text}"


def _called(call: ToolCall) -> str:
    given = ", ".join(f"{name}={value!r}" for name, value in call.arguments.items())
    return one_line(f"[used {call.name}: {given}]", _MOST_CALL)


def with_past(prompt: str, past: str) -> str:
    """The prompt, behind the past where there is one."""
    if not past:
        return prompt
    return f"<session_log>\n{_BEFORE}\n\n{past}\n</session_log>\n\n{prompt}"


def blocks_of(prompt: str, parts: Iterable[Any]) -> list[dict[str, Any]]:
    """The prompt with the pictures and documents that were sent with it; empty: words alone."""
    media = [_block(part) for part in parts if isinstance(part, Image | File)]
    return [*media, {"type": "text", "text": prompt}] if media else []


def _block(part: Image | File) -> dict[str, Any]:
    kind = "image" if isinstance(part, Image) else "document"
    if isinstance(part, Image) and part.url:
        return {"type": kind, "source": {"type": "url", "url": part.url}}
    source = {"type": "base64", "media_type": part.media_type, "data": part.data}
    return {"type": kind, "source": source}
