"""What an agent with a conversation of its own has to know about the session.

Pure. Such a conversation may begin in the middle of the session (it was lost, or another agent ran
the earlier turns), or miss turns that others ran later. How far it knows the session is stored with
the session (`history_position`). What the log has after that is added to the next prompt, up to a
maximum length (`missed_history`).
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from zlib import crc32

from bridle.messages import Message, Text, ToolCall, Transcript
from bridle.workspace.text import one_line, shorten

POSITION = "known"  # the key in the session's state under which the position is stored
_MOST = 40_000  # characters of the history
_MOST_CALL = 200  # characters of one call in it
_EARLIER = (
    "This session began before this conversation. Its log says what was said and done until now; "
    "take it as what has happened, not as something to do again."
)
_MISSED = (
    "Others have continued this session since this conversation's last turn. The log says what was "
    "said and done; take it as what has happened, not as something to do again."
)
_SPEAKERS = {"user": "The person", "assistant": "You, or whoever worked before you"}


def earlier_history(session: Any) -> str:
    """Return what the session's log has of the time before this turn; empty if that is nothing."""
    transcript = _transcript(session)
    return _render(transcript[: transcript.turn])


def with_earlier_history(prompt: str, history: str) -> str:
    """Return the prompt, after the history if there is any."""
    return _after(_EARLIER, history, prompt)


def with_missed_history(prompt: str, history: str) -> str:
    """Return the prompt, after what the agent has missed, if there is any."""
    return _after(_MISSED, history, prompt)


def history_position(session: Any) -> dict[str, Any] | None:
    """Return how far an agent that has just run a turn knows the session; None if it has no log."""
    transcript = _transcript(session)
    if not transcript:
        return None
    turn = transcript.turn
    return {"messages": len(transcript), "turn": turn, "prompt": _checksum(transcript[turn])}


def missed_history(session: Any, position: Any) -> str:
    """Return what the log has of the turns since that position, which others ran.

    If the position no longer fits (what was there has been summarised), it is everything.
    """
    transcript = _transcript(session)
    if not isinstance(position, Mapping) or not transcript:
        return ""
    count, turn = int(position.get("messages") or 0), int(position.get("turn") or 0)
    if turn >= len(transcript) or _checksum(transcript[turn]) != position.get("prompt"):
        return earlier_history(session)
    since = transcript[count : transcript.turn]
    next_prompt = next(
        (index for index, message in enumerate(since) if message.role == "user"), len(since)
    )
    return _render(since[next_prompt:])  # what comes before the next prompt is its own reply


def _transcript(session: Any) -> Transcript:
    messages = getattr(session, "messages", None)
    return Transcript.of(messages if isinstance(messages, Sequence) else ())


def _checksum(message: Message) -> int:
    return crc32(message.content.encode("utf-8", "replace"))


def _after(introduction: str, history: str, prompt: str) -> str:
    if not history:
        return prompt
    return f"<session_log>\n{introduction}\n\n{history}\n</session_log>\n\n{prompt}"


def _render(messages: Iterable[Message]) -> str:
    return shorten("\n\n".join(_paragraphs(messages)), _MOST)


def _paragraphs(messages: Iterable[Message]) -> Iterable[str]:
    for message in messages:
        if message.role not in _SPEAKERS:
            continue
        lines = [part.text for part in message.parts if isinstance(part, Text)]
        lines += [_call_line(part) for part in message.parts if isinstance(part, ToolCall)]
        if text := "\n".join(lines).strip():
            yield f"{_SPEAKERS[message.role]}:\n{text}"


def _call_line(call: ToolCall) -> str:
    arguments = ", ".join(f"{name}={value!r}" for name, value in call.arguments.items())
    return one_line(f"[used {call.name}: {arguments}]", _MOST_CALL)
