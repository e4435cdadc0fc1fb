"""A summary of the old part of a conversation, written by a model that reads it as data.

What it reads is bounded to its window. It fails like any other request: then there is no summary,
and whoever asked does without. Its use is told either way, as far as it is known.
"""

from collections.abc import Sequence
from functools import cache
from pathlib import Path

import msgspec

from bridle.engine.pricing import Heard, overheard
from bridle.errors import AgentError
from bridle.messages import File, Image, Message, Part, Text, ToolCall, ToolOutput, user
from bridle.promises.provider import Provider, ProviderInfo, Request, RequestConfig, drain
from bridle.workspace.text import shorten

MOST_TOKENS = 2_000  # of the summary; some models think before they write, within the same limit
_MUTE = frozenset({"offline", "scripted"})  # these say what they were told to, not what they read
_UNKNOWN_WINDOW = 16_000
_LONGEST_OUTPUT = 1_500  # characters of one output that are read
_LONGEST_TEXT = 8_000
_encode = msgspec.json.Encoder(enc_hook=str).encode


class Written:
    """What came of it: a summary or none, what was heard of its use, and why there is none."""

    __slots__ = ("heard", "text", "trouble")

    def __init__(self) -> None:
        self.text = ""
        self.heard = Heard()
        self.trouble = ""


def can_write(provider: Provider) -> bool:
    """Is there a model behind it?"""
    return provider.info.name not in _MUTE


def asking_for(old: Sequence[Message], info: ProviderInfo) -> Request:
    """The request: the old part as one text between two marks."""
    most = min(2 * MOST_TOKENS, info.max_output or 2 * MOST_TOKENS)
    window = info.context_window or _UNKNOWN_WINDOW
    room = max(1_000, (window - most) * 2 - len(_prompt()))  # characters; rather too few
    record = shorten("\n\n".join(filter(None, map(_told, old))), room)
    record = record.replace("</record", "<\\/record")  # the end is where we say it is
    said = f"<record>\n{record}\n</record>"
    config = RequestConfig(max_tokens=most)
    return Request((user(said),), config=config, system=_prompt())


async def write_summary(provider: Provider, request: Request, written: Written) -> None:
    """Fill in `written`, also when it is interrupted."""
    try:
        reply = await drain(overheard(provider.stream(request), written.heard))
    except AgentError as error:
        written.trouble = error.message
    except Exception as broken:  # somebody's provider raised what it should not
        written.trouble = repr(broken)
    else:
        if reply.stop_reason in ("refusal", "error", "interrupted") or not reply.content.strip():
            written.trouble = f"the reply ended with {reply.stop_reason} and says nothing"
        else:
            written.text = reply.content.strip()


@cache
def _prompt() -> str:
    return Path(__file__).with_name("summary.md").read_text(encoding="utf-8").strip()


def _told(message: Message) -> str:
    """A message as text. Thinking is left out: what came of it stands beside it."""
    lines = filter(None, map(_line, message.parts))
    who = {"user": "The person:", "assistant": "The assistant:", "system": "The system:"}
    said = "\n".join(lines)
    return "\n".join(filter(None, [who.get(message.role, ""), said])) if said else ""


def _line(part: Part) -> str:
    if isinstance(part, Text):
        return shorten(part.text, _LONGEST_TEXT)
    if isinstance(part, ToolCall):
        said = _encode(part.arguments).decode()
        return f"It calls {part.name} with {shorten(said, _LONGEST_OUTPUT)}"
    if isinstance(part, ToolOutput):
        what = "failed" if part.is_error else "came back"
        return f"{part.name or 'The tool'} {what}: {shorten(part.text, _LONGEST_OUTPUT)}"
    if isinstance(part, Image | File):
        return f"[{'a picture' if isinstance(part, Image) else f'a file: {part.name}'}]"
    return ""
