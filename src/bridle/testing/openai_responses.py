"""How a fake Responses stream speaks: items that are added, grow and are done.

Knows the events of the API; what may be sent to it, `openai_rules` knows.
"""

from collections.abc import Iterable, Iterator
from typing import Any

from bridle.providers.scripted import pieces
from bridle.testing.openai_rules import ResponsesRules
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
from bridle.testing.server import Frame
from bridle.usage import Usage

Json = dict[str, Any]


class Speaking:
    """One response, told in events with running numbers."""

    def __init__(self, reply: WireReply, body: Json, names: Names, rules: ResponsesRules) -> None:
        self._reply = reply
        self._names = names
        self._rules = rules
        self._number = -1
        self._output: list[Json] = []
        self._response: Json = {
            "id": names.new("resp"),
            "object": "response",
            "created_at": 1_700_000_000,
            "status": "in_progress",
            "error": None,
            "incomplete_details": None,
            "instructions": None,
            "metadata": {},
            "model": str(body.get("model", "")),
            "output": [],
            "parallel_tool_calls": True,
            "temperature": 1.0,
            "tool_choice": "auto",
            "tools": [],
            "top_p": 1.0,
            "usage": None,
        }

    def blocks(self) -> Iterable[Block]:
        """What is to be said."""
        return to_blocks(self._reply, self._names, "call")

    def open(self) -> Iterator[Frame]:
        """The response is there, and in progress."""
        yield self._event("response.created", response=self._response)
        yield self._event("response.in_progress", response=self._response)

    def say(self, block: Block) -> Iterator[Frame]:
        """One item from added to done."""
        if isinstance(block, ThinkingBlock):
            yield from self._reasoning(block.text, block.signature)
        elif isinstance(block, RedactedBlock):
            yield from self._reasoning("", block.data)
        elif isinstance(block, TextBlock):
            yield from self._message(block.text)
        elif isinstance(block, CallBlock):
            yield from self._call(block)
        else:
            yield from self._server_tool(block)

    def ping(self) -> str:
        """A comment: this API has no event for it."""
        return ": keep-alive\n\n"

    def fail(self, fault: WireFault) -> Iterator[Frame]:
        """With a status the response fails; without one, an `error` event says it."""
        code = fault.code or fault.type or "server_error"
        if fault.status is None:
            yield self._event("error", code=code, message=fault.message, param=None)
            return
        error = {"code": code, "message": fault.message}
        failed = {**self._response, "status": "failed", "error": error}
        yield self._event("response.failed", response=failed)

    def close(self) -> Iterator[Frame]:
        """The whole response, once more."""
        self._rules.remember(self._output)
        done = {**self._response, "output": self._output, "usage": _usage(self._reply.usage)}
        stop = self._reply.wire_stop
        if stop or self._reply.stop_reason == "max_tokens":
            details = {"reason": stop or "max_output_tokens"}
            done |= {"status": "incomplete", "incomplete_details": details}
            yield self._event("response.incomplete", response=done)
        else:
            yield self._event("response.completed", response={**done, "status": "completed"})

    def _reasoning(self, text: str, sealed: str) -> Iterator[Frame]:
        item: Json = {"id": self._names.new("rs"), "type": "reasoning", "summary": []}
        yield self._added(item)
        at = {"item_id": item["id"], "output_index": len(self._output), "summary_index": 0}
        whole = {**item, "encrypted_content": sealed}
        if text:
            part = {"type": "summary_text", "text": ""}
            yield self._event("response.reasoning_summary_part.added", **at, part=part)
            for piece in pieces(text, self._reply.chunk):
                yield self._event("response.reasoning_summary_text.delta", **at, delta=piece)
            yield self._event("response.reasoning_summary_text.done", **at, text=text)
            part = {"type": "summary_text", "text": text}
            yield self._event("response.reasoning_summary_part.done", **at, part=part)
            whole["summary"] = [part]
        yield self._done(whole)

    def _message(self, text: str) -> Iterator[Frame]:
        refuses = self._reply.stop_reason == "refusal"
        kind, field = ("refusal", "refusal") if refuses else ("output_text", "text")
        more: Json = {} if refuses else {"annotations": [], "logprobs": []}
        logs: Json = {} if refuses else {"logprobs": []}
        item = {"id": self._names.new("msg"), "type": "message", "role": "assistant"}
        yield self._added({**item, "status": "in_progress", "content": []})
        at = {"item_id": item["id"], "output_index": len(self._output), "content_index": 0}
        empty = {"type": kind, field: "", **more}
        yield self._event("response.content_part.added", **at, part=empty)
        for piece in pieces(text, self._reply.chunk):
            yield self._event(f"response.{kind}.delta", **at, delta=piece, **logs)
        yield self._event(f"response.{kind}.done", **at, **{field: text}, **logs)
        part = {"type": kind, field: text, **more}
        yield self._event("response.content_part.done", **at, part=part)
        yield self._done({**item, "status": "completed", "content": [part]})

    def _call(self, block: CallBlock) -> Iterator[Frame]:
        item = {
            "id": self._names.new("fc"),
            "type": "function_call",
            "status": "in_progress",
            "arguments": "",
            "call_id": block.id,
            "name": block.name,
        }
        yield self._added(item)
        at = {"item_id": item["id"], "output_index": len(self._output)}
        for piece in pieces(block.arguments, self._reply.chunk or 16):
            yield self._event("response.function_call_arguments.delta", **at, delta=piece)
        whole = {"name": block.name, "arguments": block.arguments}
        yield self._event("response.function_call_arguments.done", **at, **whole)
        yield self._done({**item, "status": "completed", "arguments": block.arguments})

    def _server_tool(self, block: ServerBlock) -> Iterator[Frame]:
        kind = f"{block.tool.name}_call"
        item = {"id": self._names.new("ws"), "type": kind, "status": "in_progress"}
        yield self._added(item)
        at = {"item_id": item["id"], "output_index": len(self._output)}
        for status in ("in_progress", "searching", "completed"):
            yield self._event(f"response.{kind}.{status}", **at)
        action = {"type": "search", **block.tool.input}
        yield self._done({**item, "status": "completed", "action": action})

    def _added(self, item: Json) -> Frame:
        index = len(self._output)
        return self._event("response.output_item.added", output_index=index, item=item)

    def _done(self, item: Json) -> Frame:
        index = len(self._output)
        self._output.append(item)
        return self._event("response.output_item.done", output_index=index, item=item)

    def _event(self, kind: str, **fields: Any) -> Frame:
        self._number += 1
        return Frame(kind, {"type": kind, "sequence_number": self._number, **fields})


def _usage(usage: Usage) -> Json:
    details = {
        "cached_tokens": usage.cache_read_tokens,
        "cache_write_tokens": usage.cache_write_tokens,
    }
    return {
        "input_tokens": usage.context_tokens,
        "input_tokens_details": details,
        "output_tokens": usage.output_tokens,
        "output_tokens_details": {"reasoning_tokens": usage.thinking_tokens},
        "total_tokens": usage.total_tokens,
    }
