"""What a vendor would stream, as bytes that are made once: three protocols, one story.

A reply is a little text, some tool calls, or both. Knows the shapes of the wire; knows nothing of
sockets, scenarios or clients.
"""

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

MODEL = "bench-model"
Event = dict[str, Any]


@dataclass(frozen=True)
class Call:
    """One tool call of a reply."""

    id: str
    name: str
    arguments: str

    def pieces(self) -> Iterator[str]:
        """The arguments as they grow: three pieces, as a vendor would cut them."""
        third = max(1, len(self.arguments) // 3)
        yield self.arguments[:third]
        yield self.arguments[third : 2 * third]
        yield self.arguments[2 * third :]


@dataclass(frozen=True)
class Reply:
    """A whole reply: the text in its deltas, then the calls. `read` are the tokens that went in."""

    deltas: tuple[str, ...] = ()
    calls: tuple[Call, ...] = field(default=())
    read: int = 100


def anthropic(reply: Reply) -> Iterator[bytes]:
    """The events of a Messages stream."""
    for event in _anthropic(reply):
        yield b"event: %s\ndata: %s\n\n" % (event["type"].encode(), _dump(event))


def _anthropic(reply: Reply) -> Iterator[Event]:
    usage = {"input_tokens": reply.read, "output_tokens": 1}
    message: Event = {"id": "msg_1", "type": "message", "role": "assistant", "model": MODEL}
    message |= {"content": [], "stop_reason": None, "stop_sequence": None, "usage": usage}
    yield {"type": "message_start", "message": message}
    index = 0
    if reply.deltas:
        start: Event = {"type": "text", "text": ""}
        deltas = ({"type": "text_delta", "text": text} for text in reply.deltas)
        yield from _block(index, start, deltas)
        index += 1
    for call in reply.calls:
        start = {"type": "tool_use", "id": call.id, "name": call.name, "input": {}}
        parts = ({"type": "input_json_delta", "partial_json": p} for p in call.pieces())
        yield from _block(index, start, parts)
        index += 1
    end = {"stop_reason": "tool_use" if reply.calls else "end_turn", "stop_sequence": None}
    yield {"type": "message_delta", "delta": end, "usage": {"output_tokens": 20}}
    yield {"type": "message_stop"}


def _block(index: int, start: Event, deltas: Iterable[Event]) -> Iterator[Event]:
    yield {"type": "content_block_start", "index": index, "content_block": start}
    for delta in deltas:
        yield {"type": "content_block_delta", "index": index, "delta": delta}
    yield {"type": "content_block_stop", "index": index}


def chat(reply: Reply) -> Iterator[bytes]:
    """The chunks of a Chat Completions stream."""
    for chunk in _chat(reply):
        yield b"data: %s\n\n" % _dump(chunk)
    yield b"data: [DONE]\n\n"


def _chat(reply: Reply) -> Iterator[Event]:
    yield _chunk({"role": "assistant", "content": ""})
    for text in reply.deltas:
        yield _chunk({"content": text})
    for index, call in enumerate(reply.calls):
        opening = {"index": index, "id": call.id, "type": "function"}
        opening |= {"function": {"name": call.name, "arguments": ""}}
        yield _chunk({"tool_calls": [opening]})
        for piece in call.pieces():
            yield _chunk({"tool_calls": [{"index": index, "function": {"arguments": piece}}]})
    yield _chunk({}, "tool_calls" if reply.calls else "stop")
    usage = {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120}
    yield _chunk({}) | {"choices": [], "usage": usage}


def _chunk(delta: Event, finish: str | None = None) -> Event:
    choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
    head = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1_790_000_000}
    return head | {"model": MODEL, "choices": [choice], "usage": None}


def responses(reply: Reply) -> Iterator[bytes]:
    """The events of a Responses stream."""
    for number, event in enumerate(_responses(reply)):
        data = _dump(event | {"sequence_number": number})
        yield b"event: %s\ndata: %s\n\n" % (event["type"].encode(), data)


def _responses(reply: Reply) -> Iterator[Event]:
    yield {"type": "response.created", "response": _response("in_progress", [])}
    yield {"type": "response.in_progress", "response": _response("in_progress", [])}
    items: list[Event] = []
    if reply.deltas:
        yield from _said(reply.deltas, items)
    for call in reply.calls:
        yield from _called(call, items)
    yield {"type": "response.completed", "response": _response("completed", items)}


def _said(deltas: tuple[str, ...], items: list[Event]) -> Iterator[Event]:
    index, text = len(items), "".join(deltas)
    item: Event = {"id": f"msg_{index}", "type": "message", "role": "assistant"}
    at = {"item_id": item["id"], "output_index": index, "content_index": 0}
    empty = {"type": "output_text", "text": "", "annotations": [], "logprobs": []}
    started = item | {"status": "in_progress", "content": []}
    yield {"type": "response.output_item.added", "output_index": index, "item": started}
    yield {"type": "response.content_part.added", "part": empty} | at
    for delta in deltas:
        yield {"type": "response.output_text.delta", "delta": delta, "logprobs": []} | at
    whole = empty | {"text": text}
    yield {"type": "response.output_text.done", "text": text, "logprobs": []} | at
    yield {"type": "response.content_part.done", "part": whole} | at
    items.append(item | {"status": "completed", "content": [whole]})
    yield {"type": "response.output_item.done", "output_index": index, "item": items[-1]}


def _called(call: Call, items: list[Event]) -> Iterator[Event]:
    index = len(items)
    item: Event = {
        "id": f"fc_{call.id}",
        "type": "function_call",
        "call_id": call.id,
        "name": call.name,
    }
    at = {"item_id": item["id"], "output_index": index}
    started = item | {"arguments": "", "status": "in_progress"}
    yield {"type": "response.output_item.added", "output_index": index, "item": started}
    for piece in call.pieces():
        yield {"type": "response.function_call_arguments.delta", "delta": piece} | at
    done = {"name": call.name, "arguments": call.arguments}
    yield {"type": "response.function_call_arguments.done"} | done | at
    items.append(item | {"arguments": call.arguments, "status": "completed"})
    yield {"type": "response.output_item.done", "output_index": index, "item": items[-1]}


def _response(status: str, output: list[Event]) -> Event:
    usage = {"input_tokens": 100, "input_tokens_details": {"cached_tokens": 0}}
    usage |= {"output_tokens": 20, "output_tokens_details": {"reasoning_tokens": 0}}
    return {
        "id": "resp_1",
        "object": "response",
        "created_at": 1_790_000_000,
        "status": status,
        "model": MODEL,
        "output": output,
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "error": None,
        "incomplete_details": None,
        "usage": usage | {"total_tokens": 120} if status == "completed" else None,
    }


def _dump(value: Event) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


PROTOCOLS: dict[str, Callable[[Reply], Iterator[bytes]]] = {
    "anthropic": anthropic,
    "chat": chat,
    "responses": responses,
}
"""Each protocol by the name that the contenders' table uses."""
