"""OpenAI's Responses API over real sockets: what is sent, and what a stream becomes."""

import asyncio
import json
from typing import Any

import pytest
from loopback import ASK, Exchange, collected, recording, saying, served, split_everywhere

from bridle.errors import (
    AgentError,
    Overloaded,
    ProviderError,
    RateLimited,
    StreamCutShort,
)
from bridle.events import (
    ModelEvent,
    ResponseCompleted,
    TextDelta,
    ThinkingDelta,
    ToolCallArgsDelta,
    ToolCallReady,
    ToolCallStarted,
    TraceEvent,
    UsageReported,
)
from bridle.messages import Image, Message, Text, Thinking, ToolCall, ToolOutput, user
from bridle.protocols.provider import Request, RequestConfig
from bridle.providers.openai_responses import OpenAIResponses, ResponsesReader
from bridle.providers.sse import EventParser
from bridle.usage import Usage

SAID = "gpt-6-2026-09-01"
USED = Usage(1000, 42, 300, 100, 7, True)
META = {"api": "openai", "model": "m", "id": "rs_1", "encrypted_content": "gAAAAAB-whole"}
THOUGHT = Thinking("**Looking** at the test.\n\nThen the code.", META)
READ = ToolCall("call_1", "read", {"path": "src/add.py"})
TODO = ToolCall("call_2", "todo_read", {})
TOOLS = [
    ThinkingDelta("**Looking** at"),
    ThinkingDelta(" the test."),
    ThinkingDelta("\n\n"),
    ThinkingDelta("Then the code."),
    TextDelta("I read "),
    TextDelta("the file — 🙂."),
    ToolCallStarted("call_1", "read"),
    ToolCallArgsDelta("call_1", '{"path":"src'),
    ToolCallArgsDelta("call_1", '/add.py"}'),
    ToolCallReady(READ),
    ToolCallStarted("call_2", "todo_read"),
    ToolCallArgsDelta("call_2", "{}"),
    ToolCallReady(TODO),
    UsageReported(USED, SAID),
    ResponseCompleted(
        "tool_use",
        Message("assistant", (THOUGHT, Text("I read the file — 🙂."), READ, TODO)),
        USED,
        SAID,
        "req_7",
        "completed",
    ),
]


def streamed(*chunks: bytes) -> list[ModelEvent]:
    async def main() -> list[ModelEvent]:
        async with served(saying(*chunks, x_request_id="req_7")) as place:
            return await collected(OpenAIResponses("m", api_key="sk-1", base_url=place.url))

    return asyncio.run(main())


def failed(*events: dict[str, Any]) -> tuple[list[ModelEvent], AgentError]:
    """What came before the failure, and the failure."""

    async def main() -> tuple[list[ModelEvent], AgentError]:
        seen: list[ModelEvent] = []
        async with served(saying(stream_of(*events))) as place:
            provider = OpenAIResponses("m", base_url=place.url)
            with pytest.raises(AgentError) as told:
                async for event in provider.stream(ASK):
                    seen.append(event)
            await provider.close()
        return seen, told.value

    return asyncio.run(main())


def stream_of(*events: dict[str, Any]) -> bytes:
    return b"".join(b"data: %b\n\n" % json.dumps(event).encode() for event in events)


HELLO = {"type": "response.output_text.delta", "output_index": 0, "delta": "hello"}


def completed(**response: Any) -> dict[str, Any]:
    return {"type": "response.completed", "response": {"status": "completed", **response}}


def call(arguments: str) -> dict[str, Any]:
    item = {"type": "function_call", "call_id": "c", "name": "read", "arguments": arguments}
    return {"type": "response.output_item.done", "output_index": 0, "item": item}


def unsettled(arguments: str) -> dict[str, Any]:
    """A call that begins and of which no end comes."""
    item = {"type": "function_call", "call_id": "c", "name": "read", "arguments": arguments}
    return {"type": "response.output_item.added", "output_index": 0, "item": item}


def test_a_stream_becomes_events_and_one_whole_message() -> None:
    """(M3) (A2) (A3): reasoning, text, calls, usage and stop reason, in the order they came."""
    assert streamed(recording("openai-tools.sse")) == TOOLS


def test_a_stream_split_at_every_byte_gives_the_same_events() -> None:
    """(A2) (A3)"""
    stream = recording("openai-tools.sse")
    for halves in split_everywhere(stream):
        parser, reader = EventParser(), ResponsesReader("m")
        reader.begin({"x-request-id": "req_7"})
        assert [event for half in halves for event in reader.feed(parser.feed(half))] == TOOLS
    assert streamed(*(stream[at : at + 5] for at in range(0, len(stream), 5))) == TOOLS


def test_a_refusal_is_shown_and_said_to_be_one() -> None:
    """(M3)"""
    events = streamed(recording("openai-refusal.sse"))
    assert events[:2] == [TextDelta("I cannot "), TextDelta("do that.")]
    message = Message("assistant", (Text("I cannot do that."),))
    assert events[-1] == ResponseCompleted("refusal", message, USED, SAID, "req_7", "completed")


def test_a_reply_that_was_too_long_says_so_and_foreign_items_are_trace() -> None:
    """(M3) (A2)"""
    events = streamed(recording("openai-incomplete.sse"))
    kinds = [event.kind for event in events if isinstance(event, TraceEvent)]
    assert kinds == ["response.web_search_call.searching", "web_search_call"]
    message = Message("assistant", (Text("One, two"),))
    word = "max_output_tokens"
    assert events[-1] == ResponseCompleted("max_tokens", message, USED, SAID, "req_7", word)


def test_what_deltas_left_out_is_said_when_the_item_is_whole() -> None:
    done = {"type": "response.output_item.done", "output_index": 0}
    content = [{"type": "output_text", "text": "all at once"}]
    stream = stream_of({**done, "item": {"type": "message", "content": content}}, completed())
    events = streamed(stream)
    assert events[0] == TextDelta("all at once")
    assert events[-1].message == Message("assistant", (Text("all at once"),))


def test_a_broken_event_becomes_a_trace_and_the_stream_goes_on() -> None:
    """(A3)"""
    events = streamed(b"data: {oops\n\n" + stream_of(HELLO, completed()))
    assert events[:2] == [TraceEvent("parse_error", {"raw": "{oops"}), TextDelta("hello")]


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("server_error", Overloaded),
        ("rate_limit_exceeded", RateLimited),
        ("a_new_one", ProviderError),
    ],
)
def test_a_failure_in_the_middle_is_judged_by_its_code(code: str, kind: type) -> None:
    """(M8) (A3): as `response.failed`, as `error`, and as an `error` with an object inside."""
    told = {"code": code, "message": "why"}
    for last in (
        {"type": "response.failed", "response": {"status": "failed", "error": told}},
        {"type": "error", **told},
        {"type": "error", "error": told},
    ):
        seen, error = failed(HELLO, last)
        assert seen == [TextDelta("hello")]
        assert (type(error), error.origin.type) == (kind, code)


def test_a_stream_that_ends_early_is_a_retryable_error() -> None:
    """(M5) (M8)"""
    seen, error = failed(HELLO)
    assert (seen, type(error), error.retryable) == ([TextDelta("hello")], StreamCutShort, True)


def test_a_reply_whose_only_call_cannot_be_read_keeps_it_as_broken() -> None:
    """(A2) (A4): so that the model can be told; also if it was cut off by max_tokens."""
    *seen, done = streamed(stream_of(call('{"path": '), completed()))
    assert [type(event) for event in seen] == [ToolCallStarted, TraceEvent]
    broken = ToolCall("c", "read", {}, '{"path": ')
    assert (done.stop_reason, done.message) == ("tool_use", Message("assistant", (broken,)))
    cut = completed(incomplete_details={"reason": "max_output_tokens"})
    delta = {"type": "response.function_call_arguments.delta", "delta": '{"path": '}
    for said in ([call('{"path": ')], [unsettled(""), delta]):
        done = streamed(stream_of(*said, cut))[-1]
        assert (done.stop_reason, done.message) == ("max_tokens", Message("assistant", (broken,)))


class Read:
    """A tool, as much of it as a model is told."""

    name = "read"
    description = "Reads a file."
    parameters = {"type": "object", "properties": {}}


def received(request: Request) -> Exchange:
    async def main() -> Exchange:
        async with served(saying(recording("openai-refusal.sse"))) as place:
            await collected(OpenAIResponses("m", api_key="sk-1", base_url=place.url), request)
            return place.asked[0]

    return asyncio.run(main())


IMAGE = {"type": "input_image", "detail": "auto", "image_url": "https://example.org/a.png"}
ARGUMENTS = '{"path":"src/add.py"}'
WRITTEN = [
    {"role": "user", "content": [{"type": "input_text", "text": "look"}, IMAGE]},
    {
        "type": "reasoning",
        "id": "rs_1",
        "summary": [{"type": "summary_text", "text": THOUGHT.text}],
        "encrypted_content": "gAAAAAB-whole",
    },
    {"role": "assistant", "content": "I read."},
    {"type": "function_call", "call_id": "call_1", "name": "read", "arguments": ARGUMENTS},
    {"type": "function_call_output", "call_id": "call_1", "output": "text"},
    {"role": "developer", "content": [{"type": "input_text", "text": "hurry"}]},
]


def test_a_request_says_everything_in_the_apis_own_words() -> None:
    """(M1) (A3): and reasoning goes back inside its turn."""
    schema = {"type": "object", "properties": {}, "required": [], "additionalProperties": False}
    config = RequestConfig(100, 0.5, "high", "read", (), schema)
    messages = [
        user("look", Image(url="https://example.org/a.png")),
        Message("assistant", (THOUGHT, Text("I read."), READ)),
        Message("tool", (ToolOutput("call_1", "text"),)),
        Message("system", (Text("hurry"),)),
    ]
    asked = received(Request(messages, (Read(),), config, "be kind"))
    assert asked.line == "POST /responses HTTP/1.1"
    assert asked.headers["authorization"] == "Bearer sk-1"
    assert json.loads(asked.body) == {
        "model": "m",
        "stream": True,
        "store": False,
        "max_output_tokens": 100,
        "temperature": 0.5,
        "reasoning": {"effort": "high", "summary": "auto"},
        "tool_choice": {"type": "function", "name": "read"},
        "text": {
            "format": {"type": "json_schema", "name": "reply", "schema": schema, "strict": True}
        },
        "instructions": "be kind",
        "tools": [
            {
                "type": "function",
                "name": "read",
                "description": "Reads a file.",
                "parameters": Read.parameters,
                "strict": False,
            }
        ],
        "input": WRITTEN,
    }


def test_what_is_left_out_is_not_sent() -> None:
    """(M1)"""
    assert json.loads(received(ASK).body) == {
        "model": "m",
        "stream": True,
        "store": False,
        "input": [{"role": "user", "content": [{"type": "input_text", "text": "go on"}]}],
    }


def test_stop_sequences_which_this_api_has_not_are_said_to_be_left_out() -> None:
    async def main() -> tuple[list[ModelEvent], Exchange]:
        async with served(saying(recording("openai-refusal.sse"))) as place:
            request = Request([user("go on")], config=RequestConfig(stop=("END",)))
            events = await collected(OpenAIResponses("m", base_url=place.url), request)
            return events, place.asked[0]

    events, asked = asyncio.run(main())
    (told,) = [event for event in events if isinstance(event, TraceEvent)]
    assert (told.kind, told.detail["setting"]) == ("setting_left_out", "stop")
    assert b"END" not in asked.body
