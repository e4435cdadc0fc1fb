"""How a fake Chat Completions stream speaks: chunks of one choice, then `[DONE]`.

Thinking comes as `reasoning_content`, the field that local servers use. Knows no rules.
"""

from collections.abc import Iterable, Iterator
from typing import Any

from bridle.providers.scripted import pieces
from bridle.testing.script import (
    Block,
    CallBlock,
    Names,
    TextBlock,
    ThinkingBlock,
    WireFault,
    WireReply,
    to_blocks,
)
from bridle.testing.server import Frame
from bridle.usage import Usage

_STOPS = {
    "complete": "stop",
    "tool_use": "tool_calls",
    "max_tokens": "length",
    "refusal": "content_filter",
}


class Speaking:
    """One completion, told in chunks."""

    def __init__(self, reply: WireReply, body: dict[str, Any], names: Names) -> None:
        self._reply = reply
        self._names = names
        self._with_usage = bool((body.get("stream_options") or {}).get("include_usage"))
        self._head = {
            "id": names.new("chatcmpl"),
            "object": "chat.completion.chunk",
            "created": 1_700_000_000,
            "model": str(body.get("model", "")),
        }
        self._calls = 0

    def blocks(self) -> Iterable[Block]:
        """What is to be said."""
        return to_blocks(self._reply, self._names, "call")

    def open(self) -> Iterator[Frame]:
        """The role comes first, alone."""
        yield self._chunk({"role": "assistant", "content": "", "refusal": None})

    def say(self, block: Block) -> Iterator[Frame]:
        """Deltas of one block; this API has no word for tools that the vendor ran."""
        chunk = self._reply.chunk
        if isinstance(block, ThinkingBlock):
            yield from (self._chunk({"reasoning_content": p}) for p in pieces(block.text, chunk))
        elif isinstance(block, TextBlock):
            field = "refusal" if self._refuses else "content"
            yield from (self._chunk({field: p}) for p in pieces(block.text, chunk))
        elif isinstance(block, CallBlock):
            yield from self._call(block)

    def ping(self) -> str:
        """A comment: this API has no event for it."""
        return ": keep-alive\n\n"

    def fail(self, fault: WireFault) -> Iterator[Frame]:
        """An error in the place of a chunk."""
        kind = fault.type or "server_error"
        code = fault.code or fault.status
        yield Frame("", {"error": {"message": fault.message, "type": kind, "code": code}})

    def close(self) -> Iterator[Frame]:
        """The finish reason, the usage where it was asked for, and the last line."""
        reason = self._reply.stop_reason or ("tool_use" if self._calls else "complete")
        stop = "stop" if self._refuses else _STOPS.get(reason, "stop")
        yield self._chunk({}, self._reply.wire_stop or stop)
        if self._with_usage:
            yield Frame("", {**self._head, "choices": [], "usage": _usage(self._reply.usage)})
        yield Frame("", "[DONE]")

    @property
    def _refuses(self) -> bool:
        """With text, a refusal is said; without, the filter stops the reply."""
        return self._reply.stop_reason == "refusal" and bool(self._reply.text)

    def _call(self, block: CallBlock) -> Iterator[Frame]:
        function = {"name": block.name, "arguments": ""}
        start = {"index": self._calls, "id": block.id, "type": "function", "function": function}
        yield self._chunk({"tool_calls": [start]})
        for piece in pieces(block.arguments, self._reply.chunk or 16):
            delta = {"index": self._calls, "function": {"arguments": piece}}
            yield self._chunk({"tool_calls": [delta]})
        self._calls += 1

    def _chunk(self, delta: dict[str, Any], stop: str | None = None) -> Frame:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": stop}
        usage = {"usage": None} if self._with_usage else {}
        return Frame("", {**self._head, "choices": [choice], **usage})


def _usage(usage: Usage) -> dict[str, Any]:
    details = {
        "cached_tokens": usage.cache_read_tokens,
        "cache_write_tokens": usage.cache_write_tokens,
    }
    return {
        "prompt_tokens": usage.context_tokens,
        "completion_tokens": usage.output_tokens,
        "total_tokens": usage.total_tokens,
        "prompt_tokens_details": details,
        "completion_tokens_details": {"reasoning_tokens": usage.thinking_tokens},
    }
