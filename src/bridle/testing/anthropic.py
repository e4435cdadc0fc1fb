"""A fake of Anthropic's Messages API: its events, its errors, and (in `anthropic_rules`) the order
that it insists on.

Speaks the wire as the vendor does; knows nothing of the provider that listens.
"""

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from bridle.providers.scripted import pieces
from bridle.testing.anthropic_rules import Rules
from bridle.testing.script import (
    Block,
    CallBlock,
    Names,
    RedactedBlock,
    ServerBlock,
    TextBlock,
    ThinkingBlock,
    WireFault,
    WireReply,
    to_blocks,
)
from bridle.testing.server import Api, FakeServer, Frame, Received
from bridle.usage import Usage

_STOPS = {
    "complete": "end_turn",
    "tool_use": "tool_use",
    "max_tokens": "max_tokens",
    "refusal": "refusal",
}
_TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    504: "timeout_error",
    529: "overloaded_error",
}
_STATUSES = {"rate_limit": 429, "invalid": 400, "tool": 400}


class FakeAnthropic(FakeServer):
    """The Messages API on loopback: `POST /v1/messages`, streamed, and its count of tokens."""

    def apis(self) -> tuple[Api, ...]:
        """One API."""
        return (Messages(),)

    def counted(self, path: str, body: dict[str, Any]) -> dict[str, Any] | None:
        """`POST /v1/messages/count_tokens`: about four characters make one."""
        if path != "/messages/count_tokens":
            return None
        return {"input_tokens": len(msgspec.json.encode(body)) // 4}


class Messages:
    """`/v1/messages`, and what it remembers of the thinking that it has issued."""

    path = "/messages"
    request_id_header = "request-id"

    def __init__(self) -> None:
        self._rules = Rules()

    def refuse(self, received: Received) -> WireFault | None:
        """The error that a request which breaks a rule gets."""
        if not {"x-api-key", "authorization"} & received.headers.keys():
            return WireFault("invalid", "x-api-key header is required", status=401)
        if "anthropic-version" not in received.headers:
            return WireFault("invalid", "anthropic-version: header is required", status=400)
        problem = self._rules.broken_by(received.body)
        return WireFault("invalid", problem, status=400) if problem else None

    def failure(self, fault: WireFault, request_id: str) -> tuple[int, dict[str, Any]]:
        """The vendor's error body and its status."""
        status = fault.status or _STATUSES.get(fault.kind, 500)
        return status, {**_error(fault, status), "request_id": request_id}

    def speaker(self, reply: WireReply, body: dict[str, Any], names: Names) -> "Speaking":
        """One stream."""
        return Speaking(reply, str(body.get("model", "")), names, self._rules)


class Speaking:
    """One message, told in events."""

    def __init__(self, reply: WireReply, model: str, names: Names, rules: Rules) -> None:
        self._reply = reply
        self._model = model
        self._names = names
        self._rules = rules
        self._content: list[dict[str, Any]] = []

    def blocks(self) -> Iterable[Block]:
        """What is to be said."""
        return to_blocks(self._reply, self._names, "toolu")

    def open(self) -> Iterator[Frame]:
        """The message begins."""
        message: dict[str, Any] = {
            "id": self._names.new("msg"),
            "type": "message",
            "role": "assistant",
            "model": self._model,
            "content": [],
            "stop_reason": None,
            "stop_sequence": None,
            "usage": {**_usage(self._reply.usage), "output_tokens": 1},
        }
        yield Frame("message_start", {"type": "message_start", "message": message})

    def say(self, block: Block) -> Iterator[Frame]:
        """A content block from start to stop; a tool run by the vendor is two of them."""
        for start, deltas, whole in _spoken(block, self._reply.chunk):
            index = len(self._content)
            self._content.append(whole)
            at = {"index": index}
            event = {"type": "content_block_start", **at, "content_block": start}
            yield Frame("content_block_start", event)
            for delta in deltas:
                event = {"type": "content_block_delta", **at, "delta": delta}
                yield Frame("content_block_delta", event)
            yield Frame("content_block_stop", {"type": "content_block_stop", **at})

    def ping(self) -> Frame:
        """A sign of life."""
        return Frame("ping", {"type": "ping"})

    def fail(self, fault: WireFault) -> Iterator[Frame]:
        """An error in the middle of a stream; the status was 200 long ago."""
        yield Frame("error", _error(fault, fault.status or _STATUSES.get(fault.kind, 500)))

    def close(self) -> Iterator[Frame]:
        """The message ends; what it held is remembered, for it has to come back unmodified."""
        self._rules.remember(self._content)
        calls = any(block["type"] == "tool_use" for block in self._content)
        reason = self._reply.stop_reason or ("tool_use" if calls else "complete")
        stop = self._reply.wire_stop or _STOPS.get(reason, "end_turn")
        delta: dict[str, Any] = {"stop_reason": stop, "stop_sequence": None}
        if stop == "refusal":
            detail = self._reply.stop_detail or None
            delta["stop_details"] = {"type": "refusal", "category": None, "explanation": detail}
        usage = _usage(self._reply.usage)
        yield Frame("message_delta", {"type": "message_delta", "delta": delta, "usage": usage})
        yield Frame("message_stop", {"type": "message_stop"})


Spoken = tuple[dict[str, Any], list[dict[str, Any]], dict[str, Any]]


def _spoken(block: Block, chunk: int) -> Iterator[Spoken]:
    """How a block begins, how it grows, and what it is in the end."""
    if isinstance(block, ThinkingBlock):
        deltas = [{"type": "thinking_delta", "thinking": p} for p in pieces(block.text, chunk)]
        deltas.append({"type": "signature_delta", "signature": block.signature})
        whole = {"type": "thinking", "thinking": block.text, "signature": block.signature}
        yield {"type": "thinking", "thinking": "", "signature": ""}, deltas, whole
    elif isinstance(block, RedactedBlock):
        redacted = {"type": "redacted_thinking", "data": block.data}
        yield redacted, [], redacted
    elif isinstance(block, TextBlock):
        deltas = [{"type": "text_delta", "text": piece} for piece in pieces(block.text, chunk)]
        yield {"type": "text", "text": ""}, deltas, {"type": "text", "text": block.text}
    elif isinstance(block, CallBlock):
        start = {"type": "tool_use", "id": block.id, "name": block.name, "input": {}}
        yield start, _json_deltas(block.arguments, chunk), start
    else:
        yield from _server_tool(block, chunk)


def _server_tool(block: ServerBlock, chunk: int) -> Iterator[Spoken]:
    tool = block.tool
    start = {"type": "server_tool_use", "id": block.id, "name": tool.name, "input": {}}
    yield start, _json_deltas(msgspec.json.encode(tool.input).decode(), chunk), start
    result = {
        "type": f"{tool.name}_tool_result",
        "tool_use_id": block.id,
        "content": list(tool.result),
    }
    yield result, [], result


def _json_deltas(text: str, chunk: int) -> list[dict[str, Any]]:
    parts = ["", *pieces(text, chunk or 16)]  # the vendor's first fragment is empty
    return [{"type": "input_json_delta", "partial_json": part} for part in parts]


def _usage(usage: Usage) -> dict[str, Any]:
    return {
        "input_tokens": usage.fresh_tokens,
        "cache_creation_input_tokens": usage.cache_write_tokens,
        "cache_read_input_tokens": usage.cache_read_tokens,
        "output_tokens": usage.output_tokens,
        **(
            {"output_tokens_details": {"thinking_tokens": usage.thinking_tokens}}
            if usage.thinking_tokens
            else {}
        ),
    }


def _error(fault: WireFault, status: int) -> dict[str, Any]:
    kind = fault.type or _TYPES.get(status, "api_error")
    return {"type": "error", "error": {"type": kind, "message": fault.message}}
