"""What an agent with a conversation of its own is told of a session that went on without it. Pure.

Its conversation may begin in the middle of the session (it was lost, or another agent carried the
session before), or stand still while others went on. Up to where it knows the session is kept with
the session (`mark`); what came after that is told once (`missed`), from the log, and bounded.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from zlib import crc32

from bridle.messages import Message, Text, ToolCall, Transcript
from bridle.workspace.text import one_line, shorten

KNOWN = "known"  # in the session's state: up to where the agent's conversation knows the session
_MOST = 40_000  # characters of the past
_MOST_CALL = 200  # characters of one call in it
_BEFORE = (
    "This session began before this conversation. Its log says what was said and done until now; "
    "take it as what has happened, not as something to do again."
)
_MEANWHILE = (
    "Others have gone on with this session since this conversation was last heard. The log says "
    "what was said and done; take it as what has happened, not as something to do again."
)
_WHO = {"user": "The person", "assistant": "You, or who worked before you"}


def past_of(session: Any) -> str:
    """What the session's log has of the time before this turn; empty where that is nothing."""
    transcript = _transcript(session)
    return _written(transcript[: transcript.turn])


def with_past(prompt: str, past: str) -> str:
    """The prompt, behind the past where there is one."""
    return _behind(_BEFORE, past, prompt)


def with_missed(prompt: str, missed: str) -> str:
    """The prompt, behind what the agent has missed, if it has."""
    return _behind(_MEANWHILE, missed, prompt)


def mark(session: Any) -> dict[str, Any] | None:
    """Up to where an agent that has just worked knows the session; None where that has no log."""
    transcript = _transcript(session)
    if not transcript:
        return None
    turn = transcript.turn
    return {"messages": len(transcript), "turn": turn, "prompt": _sum(transcript[turn])}


def missed(session: Any, known: Any) -> str:
    """What the log has of the turns since that mark, in which others worked.

    Where the mark fits no longer (what was there was summed up), it is everything.
    """
    transcript = _transcript(session)
    if not isinstance(known, Mapping) or not transcript:
        return ""
    count, turn = int(known.get("messages") or 0), int(known.get("turn") or 0)
    if turn >= len(transcript) or _sum(transcript[turn]) != known.get("prompt"):
        return past_of(session)
    since = transcript[count : transcript.turn]
    own = next((at for at, one in enumerate(since) if one.role == "user"), len(since))
    return _written(since[own:])  # what stands before the next prompt are its own last words


def _transcript(session: Any) -> Transcript:
    messages = getattr(session, "messages", None)
    return Transcript.of(messages if isinstance(messages, Sequence) else ())


def _sum(message: Message) -> int:
    return crc32(message.content.encode("utf-8", "replace"))


def _behind(words: str, past: str, prompt: str) -> str:
    return f"<session_log>\n{words}\n\n{past}\n</session_log>\n\n{prompt}" if past else prompt


def _written(messages: Iterable[Message]) -> str:
    return shorten("\n\n".join(_lines(messages)), _MOST)


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
