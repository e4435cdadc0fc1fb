"""Chat Completions over real sockets: OpenAI's own stream, and those of its many copies."""

import asyncio
import json
from typing import Any

import pytest
from loopback import ASK, Exchange, collected, recording, saying, served, split_everywhere

from bridle.errors import AgentError, Overloaded, RateLimited, StreamCutShort
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
from bridle.messages import Message, Text, Thinking, ToolCall, ToolOutput, user
from bridle.protocols.provider import Request, RequestConfig
from bridle.providers.openai_chat import ChatReader, OpenAIChat
from bridle.providers.sse import EventParser
from bridle.usage import Usage

SAID = "gpt-6-mini-2026-09-01"
USED = Usage(900, 33, 256, 0, 5, True)
READ = ToolCall("call_1", "read", {"path": "src/add.py"})
TODO = ToolCall("call_2", "todo_read", {})
TOOLS = [
    TextDelta("I read "),
    TextDelta("both — 🙂."),
    ToolCallStarted("call_1", "read"),
    ToolCallArgsDelta("call_1", '{"path":"src'),
    ToolCallArgsDelta("call_1", '/add.py"}'),
    ToolCallStarted("call_2", "todo_read"),
    ToolCallArgsDelta("call_2", "{}"),
    ToolCallReady(READ),
    ToolCallReady(TODO),
    UsageReported(USED, SAID),
    ResponseCompleted(
        "tool_use",
        Message("assistant", (Text("I read both — 🙂."), READ, TODO)),
        USED,
        SAID,
        "req_7",
        "tool_calls",
    ),
]


def streamed(*chunks: bytes) -> list[ModelEvent]:
    async def main() -> list[ModelEvent]:
        async with served(saying(*chunks, x_request_id="req_7")) as place:
            return await collected(OpenAIChat("m", base_url=place.url))

    return asyncio.run(main())


def failed(*chunks: dict[str, Any]) -> tuple[list[ModelEvent], AgentError]:
    """What came before the failure, and the failure."""

    async def main() -> tuple[list[ModelEvent], AgentError]:
        seen: list[ModelEvent] = []
        async with served(saying(stream_of(*chunks))) as place:
            provider = OpenAIChat("m", base_url=place.url)
            with pytest.raises(AgentError) as told:
                async for event in provider.stream(ASK):
                    seen.append(event)
            await provider.close()
        return seen, told.value

    return asyncio.run(main())


def delta(finish: str | None = None, **fields: Any) -> dict[str, Any]:
    return {"choices": [{"delta": fields, "finish_reason": finish}]}


def calling(**fields: Any) -> dict[str, Any]:
    return delta(tool_calls=[fields])


def stream_of(*chunks: dict[str, Any], done: bool = False) -> bytes:
    told = b"".join(b"data: %b\n\n" % json.dumps(chunk).encode() for chunk in chunks)
    return told + (b"data: [DONE]\n\n" if done else b"")


def calls_of(events: list[ModelEvent]) -> list[tuple[str, dict[str, Any]]]:
    done = events[-1]
    assert isinstance(done, ResponseCompleted)
    assert done.message is not None
    assert done.stop_reason == "tool_use"
    ready = [event.call for event in events if isinstance(event, ToolCallReady)]
    assert list(done.message.tool_calls) == ready
    assert len({call.id for call in ready}) == len(ready)
    return [(call.name, call.arguments) for call in ready]


def test_a_stream_becomes_events_and_one_whole_message() -> None:
    """(M3) (A2) (A3): text, calls, usage and stop reason, in the order they came."""
    assert streamed(recording("chat-tools.sse")) == TOOLS


def test_a_stream_split_at_every_byte_gives_the_same_events() -> None:
    """(A2) (A3)"""
    stream = recording("chat-tools.sse")
    for halves in split_everywhere(stream):
        parser, reader = EventParser(), ChatReader("m")
        reader.begin({"x-request-id": "req_7"})
        assert [event for half in halves for event in reader.feed(parser.feed(half))] == TOOLS
    assert streamed(*(stream[at : at + 3] for at in range(0, len(stream), 3))) == TOOLS


def test_a_refusal_is_shown_and_said_to_be_one() -> None:
    """(M3)"""
    events = streamed(recording("chat-refusal.sse"))
    message = Message("assistant", (Text("I cannot do that."),))
    assert events[-1] == ResponseCompleted("refusal", message, USED, SAID, "req_7", "stop")


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning"])
def test_reasoning_is_kept_and_goes_back_under_its_own_name(field: str) -> None:
    """Inside the turn in progress, and to the model that thought it."""
    chunks = (delta(**{field: "hm"}), delta(**{field: "!"}), delta("stop", content="yes"))
    events = streamed(stream_of(*chunks, done=True))
    assert events[:3] == [ThinkingDelta("hm"), ThinkingDelta("!"), TextDelta("yes")]
    meta = {"api": "openai-chat", "model": "m", "field": field}
    message = Message("assistant", (Thinking("hm!", meta), Text("yes")))
    assert events[-1].message == message
    entry = {"role": "assistant", "content": "yes"}
    for provider, sent in (("m", {**entry, field: "hm!"}), ("other", entry)):
        body = OpenAIChat(provider).encode(Request([user("go"), message]))
        assert json.loads(body)["messages"][1] == sent


def test_a_finish_reason_is_enough_without_done_usage_or_blank_line() -> None:
    """(A3): and what was never said stays at nothing."""
    stream = stream_of(delta(content="hi"), delta("stop"))
    done = ResponseCompleted(
        "complete",
        Message("assistant", (Text("hi"),)),
        Usage(input_has_cache=True),
        "m",
        "req_7",
        "stop",
    )
    assert streamed(stream) == [TextDelta("hi"), done]
    assert streamed(stream[:-2]) == [TextDelta("hi"), done]


def test_a_stream_that_ends_early_is_a_retryable_error() -> None:
    """(M5) (M8)"""
    seen, error = failed(delta(content="hi"))
    assert (seen, type(error), error.retryable) == ([TextDelta("hi")], StreamCutShort, True)


def test_calls_without_ids_or_indexes_are_told_apart() -> None:
    """(A2): some servers give no id, some no index, some the same index to all."""
    read = {"name": "read", "arguments": '{"path":"a"}'}
    look = {"name": "look", "arguments": "{}"}
    wanted = [("read", {"path": "a"}), ("look", {})]
    for chunks in (
        (calling(index=0, function=read), calling(index=1, function=look)),
        (calling(id="a", function=read), calling(id="b", function=look)),
        (calling(index=0, id="a", function=read), calling(index=0, id="b", function=look)),
        (delta(tool_calls=[{"index": 0, "function": read}, {"index": 1, "function": look}]),),
        (calling(function=read), calling(function=look)),
        (delta(tool_calls=[{"function": read}, {"function": look}]),),
    ):
        assert calls_of(streamed(stream_of(*chunks, delta("stop"), done=True))) == wanted


def test_calls_of_one_tool_without_ids_and_indexes_are_told_apart() -> None:
    """(A2): the same name again begins a new call once the arguments before it are whole."""
    chunks = (
        calling(function={"name": "read", "arguments": '{"path"'}),
        calling(function={"name": "read", "arguments": ':"a"}'}),
        calling(function={"name": "read", "arguments": '{"path":"b"}'}),
    )
    wanted = [("read", {"path": "a"}), ("read", {"path": "b"})]
    assert calls_of(streamed(stream_of(*chunks, delta("stop"), done=True))) == wanted


def test_content_may_be_a_list_of_parts() -> None:
    parts = [{"type": "text", "text": "hi "}, {"type": "image"}, "odd", {"text": "there"}]
    events = streamed(stream_of(delta(content=parts), delta("stop"), done=True))
    assert events[0] == TextDelta("hi there")
    assert events[-1].message == Message("assistant", (Text("hi there"),))


def test_arguments_may_come_before_the_name_and_as_an_object() -> None:
    events = streamed(
        stream_of(
            calling(index=0, id="a", function={"arguments": '{"path"'}),
            calling(index=0, function={"name": "read", "arguments": ':"a"}'}),
            calling(index=1, id="b", function={"name": "look", "arguments": {"deep": True}}),
            delta("tool_calls"),
            done=True,
        )
    )
    assert calls_of(events) == [("read", {"path": "a"}), ("look", {"deep": True})]
    assert events[:3] == [
        ToolCallStarted("a", "read"),
        ToolCallArgsDelta("a", '{"path"'),
        ToolCallArgsDelta("a", ':"a"}'),
    ]


@pytest.mark.parametrize("word", ["tool_calls", "stop"])
def test_a_reply_whose_only_call_cannot_be_read_keeps_it_as_broken(word: str) -> None:
    """(A2) (A4): so that the model can be told; also if it was cut off by max_tokens."""
    broken = calling(index=0, id="a", function={"name": "read", "arguments": "{"})
    *seen, done = streamed(stream_of(broken, delta(word)))
    assert [event.kind for event in seen if isinstance(event, TraceEvent)] == ["parse_error"]
    assert not any(isinstance(event, ToolCallReady) for event in seen)
    kept = Message("assistant", (ToolCall("a", "read", {}, "{"),))
    assert (done.stop_reason, done.message) == ("tool_use", kept)
    done = streamed(stream_of(broken, delta("length")))[-1]
    assert (done.stop_reason, done.message) == ("max_tokens", kept)


def test_a_call_without_a_name_is_kept_so_that_the_model_can_be_told() -> None:
    """(A4)"""
    nameless = calling(index=0, id="a", function={"arguments": '{"path":"a"}'})
    assert calls_of(streamed(stream_of(nameless, delta("tool_calls")))) == [("", {"path": "a"})]


@pytest.mark.parametrize(
    ("told", "kind"),
    [
        ({"message": "busy", "code": 429}, RateLimited),
        ({"message": "broken", "code": 502}, Overloaded),
        ({"message": "busy", "type": "overloaded_error"}, Overloaded),
    ],
)
def test_an_error_inside_the_stream_is_judged_by_its_code(told: Any, kind: type) -> None:
    """(M8) (A3)"""
    seen, error = failed(delta(content="hi"), {"error": told})
    assert (seen, type(error)) == ([TextDelta("hi")], kind)


def test_broken_and_unknown_chunks_become_traces_and_the_stream_goes_on() -> None:
    """(A2) (A3)"""
    odd = {"object": "weather"}
    stream = b"data: {oops\n\n" + stream_of(odd, delta(content="hi"), delta("stop"), done=True)
    assert streamed(stream)[:3] == [
        TraceEvent("parse_error", {"raw": "{oops"}),
        TraceEvent("unknown", odd),
        TextDelta("hi"),
    ]


class Read:
    """A tool, as much of it as a model is told."""

    name = "read"
    description = "Reads a file."
    parameters = {"type": "object", "properties": {"path": {"type": "string"}}}


def received(request: Request, **options: Any) -> Exchange:
    async def main() -> Exchange:
        async with served(saying(recording("chat-length.sse"))) as place:
            await collected(OpenAIChat("m", base_url=place.url, **options), request)
            return place.asked[0]

    return asyncio.run(main())


def test_a_request_says_everything_in_the_apis_own_words() -> None:
    """(M1) (A3)"""
    schema = {"type": "object", "properties": {"a": {"type": "string"}}}
    closed = {**schema, "additionalProperties": False, "required": ["a"]}
    config = RequestConfig(100, 0.5, "low", "read", ("END",), schema)
    messages = [
        user("look"),
        Message("assistant", (READ, TODO)),
        Message("tool", (ToolOutput("call_1", "text"), ToolOutput("call_2", "none"))),
        user("and"),
    ]
    asked = received(Request(messages, (Read(),), config, "be kind"), api_key="sk-1")
    assert asked.line == "POST /chat/completions HTTP/1.1"
    assert asked.headers["authorization"] == "Bearer sk-1"
    function = {"name": "read", "description": "Reads a file.", "parameters": Read.parameters}
    named = {"name": "read", "arguments": '{"path":"src/add.py"}'}
    assert json.loads(asked.body) == {
        "model": "m",
        "stream": True,
        "stream_options": {"include_usage": True},
        "max_tokens": 100,
        "temperature": 0.5,
        "reasoning_effort": "low",
        "stop": ["END"],
        "response_format": {
            "type": "json_schema",
            "json_schema": {"name": "reply", "schema": closed, "strict": True},
        },
        "tools": [{"type": "function", "function": function}],
        "tool_choice": {"type": "function", "function": {"name": "read"}},
        "messages": [
            {"role": "system", "content": "be kind"},
            {"role": "user", "content": "look"},
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [
                    {"id": "call_1", "type": "function", "function": named},
                    {
                        "id": "call_2",
                        "type": "function",
                        "function": {"name": "todo_read", "arguments": "{}"},
                    },
                ],
            },
            {"role": "tool", "tool_call_id": "call_1", "content": "text"},
            {"role": "tool", "tool_call_id": "call_2", "content": "none"},
            {"role": "user", "content": "and"},
        ],
    }


def chunk(delta: dict[str, Any], **choice: Any) -> bytes:
    whole = {"choices": [{"delta": delta, "finish_reason": None, **choice}]}
    return b"data: %b\n\n" % json.dumps(whole).encode()


END = b'data: {"choices": [{"delta": {}, "finish_reason": "stop"}]}\n\ndata: [DONE]\n\n'


def test_another_choice_is_not_mixed_into_the_reply() -> None:
    """(A3): some servers send several, though one was asked for."""
    pieces = [chunk({"content": text}, index=index) for text, index in (("a", 0), ("x", 1))]
    both = {"choices": [{"index": 1, "delta": {"content": "y"}}, {"delta": {"content": "b"}}]}
    last = b"data: %b\n\n" % json.dumps(both).encode()
    other = chunk({}, index=1, finish_reason="length")
    done = streamed(*pieces, last, other, END)[-1]
    assert (done.stop_reason, done.message) == ("complete", Message("assistant", (Text("ab"),)))


@pytest.mark.parametrize(
    "delta",
    [
        {"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}]},
        {"content": [{"type": "thinking", "thinking": "hm"}]},
        {"reasoning_details": [{"type": "reasoning.text", "text": "hm"}]},
        {"reasoning_details": [{"type": "reasoning.summary", "summary": "hm"}]},
    ],
)
def test_thinking_is_heard_in_whatever_form_it_comes(delta: dict[str, Any]) -> None:
    """(S7): it does not go back in a form that nobody else knows."""
    events = streamed(chunk(delta), chunk({"content": "so"}), END)
    assert events[:2] == [ThinkingDelta("hm"), TextDelta("so")]
    (thought, _) = events[-1].message.parts
    assert (thought.text, "field" in thought.meta) == ("hm", False)


def test_thinking_that_comes_twice_is_heard_once() -> None:
    details = [{"type": "reasoning.text", "text": "hm"}]
    events = streamed(chunk({"reasoning": "hm", "reasoning_details": details}), END)
    assert [event for event in events if isinstance(event, ThinkingDelta)] == [ThinkingDelta("hm")]


def test_a_local_server_needs_no_key() -> None:
    assert "authorization" not in received(ASK).headers


def test_openai_itself_is_told_the_ceiling_by_its_new_name() -> None:
    request = Request([user("go")], config=RequestConfig(max_tokens=7))
    assert json.loads(OpenAIChat("m").encode(request))["max_completion_tokens"] == 7
