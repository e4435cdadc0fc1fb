"""Anthropic's Messages API over real sockets: what is sent, and what a stream becomes."""

import asyncio
import json
from typing import Any

import pytest
from loopback import ASK, collected, recording, saying, served, split_everywhere

from bridle.errors import (
    AgentError,
    KeyRefused,
    Overloaded,
    ProviderError,
    RateLimited,
    RequestRefused,
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
from bridle.messages import Message, Text, Thinking, ToolCall
from bridle.providers.anthropic import Anthropic, MessagesReader
from bridle.providers.reply_reader import NO_ARGUMENTS
from bridle.providers.sse import EventParser
from bridle.usage import Usage

MODEL = "claude-sonnet-5-5"
SAID = "claude-sonnet-5-5-20261001"
META = {"api": "anthropic", "model": MODEL}
READ = ToolCall("toolu_01", "read", {"path": "src/add.py"})
TODO = ToolCall("toolu_02", "todo_read", {})
BEGUN = Usage(120, 3, 2000, 40)
USED = Usage(120, 89, 2000, 40, 31)
TOOLS = [
    UsageReported(BEGUN, SAID),
    ThinkingDelta("The test fails in add. "),
    ThinkingDelta("I read it first — ünïcode."),
    TextDelta("I look at "),
    TextDelta("both files 🙂."),
    ToolCallStarted("toolu_01", "read"),
    ToolCallArgsDelta("toolu_01", '{"path": "src/a'),
    ToolCallArgsDelta("toolu_01", 'dd.py"}'),
    ToolCallReady(READ),
    ToolCallStarted("toolu_02", "todo_read"),
    ToolCallReady(TODO),
    UsageReported(USED, SAID),
    ResponseCompleted(
        "tool_use",
        Message(
            "assistant",
            (
                Thinking(
                    "The test fails in add. I read it first — ünïcode.",
                    {**META, "signature": "EqQBCkgIARABGAIiQL8"},
                ),
                Thinking("", {**META, "redacted": "EmwKAhgBEgy3va"}),
                Text("I look at both files 🙂."),
                READ,
                TODO,
            ),
        ),
        USED,
        SAID,
        "req_7",
        "tool_use",
    ),
]


def streamed(*chunks: bytes) -> list[ModelEvent]:
    async def main() -> list[ModelEvent]:
        async with served(saying(*chunks, request_id="req_7")) as place:
            return await collected(Anthropic(MODEL, api_key="sk-1", base_url=place.url))

    return asyncio.run(main())


def read(*chunks: bytes) -> list[ModelEvent]:
    """Without a socket: the reader alone."""
    parser, reader = EventParser(), MessagesReader(MODEL)
    reader.begin({"request-id": "req_7"})
    events = [event for chunk in chunks for event in reader.feed(parser.feed(chunk))]
    assert reader.over
    assert reader.failure is None
    return events


def stream_of(*events: dict[str, Any] | str) -> bytes:
    told = (event if isinstance(event, str) else json.dumps(event) for event in events)
    return b"".join(b"event: x\ndata: %b\n\n" % data.encode() for data in told)


START = {"type": "message_start", "message": {"model": MODEL, "usage": {"input_tokens": 5}}}
TEXT = {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}
HELLO = {
    "type": "content_block_delta",
    "index": 0,
    "delta": {"type": "text_delta", "text": "hello"},
}
STOPPED = {"type": "message_stop"}


def ended(reason: str) -> dict[str, Any]:
    return {"type": "message_delta", "delta": {"stop_reason": reason}, "usage": {}}


def call(index: int, arguments: str) -> list[dict[str, Any]]:
    block = {"type": "tool_use", "id": f"c{index}", "name": "read", "input": {}}
    delta = {"type": "input_json_delta", "partial_json": arguments}
    return [
        {"type": "content_block_start", "index": index, "content_block": block},
        {"type": "content_block_delta", "index": index, "delta": delta},
        {"type": "content_block_stop", "index": index},
    ]


def failed(*events: dict[str, Any] | str) -> tuple[list[ModelEvent], AgentError]:
    """What came before the failure, and the failure."""

    async def main() -> tuple[list[ModelEvent], AgentError]:
        seen: list[ModelEvent] = []
        async with served(saying(stream_of(*events))) as place:
            provider = Anthropic(MODEL, base_url=place.url)
            with pytest.raises(AgentError) as told:
                async for event in provider.stream(ASK):
                    seen.append(event)
            await provider.close()
        return seen, told.value

    return asyncio.run(main())


def test_a_stream_becomes_events_and_one_whole_message() -> None:
    """(M3) (M5) (A2): thinking, text, calls, usage and stop reason, in the order they came."""
    assert streamed(recording("anthropic-tools.sse")) == TOOLS


def test_a_stream_split_at_every_byte_gives_the_same_events() -> None:
    """(M5) (A2)"""
    stream = recording("anthropic-tools.sse")
    assert all(read(*halves) == TOOLS for halves in split_everywhere(stream))
    assert streamed(*(stream[at : at + 1] for at in range(len(stream)))) == TOOLS


@pytest.mark.parametrize(
    ("word", "reason"),
    [
        ("end_turn", "complete"),
        ("stop_sequence", "complete"),
        ("pause_turn", "complete"),
        ("max_tokens", "max_tokens"),
        ("model_context_window_exceeded", "max_tokens"),
        ("refusal", "refusal"),
        ("a word of tomorrow", "complete"),
    ],
)
def test_every_stop_reason_has_its_meaning_and_keeps_its_word(word: str, reason: str) -> None:
    """(M3)"""
    done = streamed(stream_of(START, TEXT, HELLO, ended(word), STOPPED))[-1]
    assert done == ResponseCompleted(
        reason, Message("assistant", (Text("hello"),)), Usage(5), MODEL, "req_7", word
    )


def test_what_the_vendors_own_tools_do_is_kept_as_trace() -> None:
    """(A2): server-side tools, their results and citations reach those who look closely."""
    events = streamed(recording("anthropic-search.sse"))
    traces = [event.kind for event in events if isinstance(event, TraceEvent)]
    assert traces == [
        "server_tool_use",
        "server_tool_use",
        "web_search_tool_result",
        "citations_delta",
    ]
    assert events[-1].message == Message("assistant", (Text("It is a library."),))


def test_unknown_events_become_traces_and_the_stream_goes_on() -> None:
    """(A2)"""
    odd = {"type": "weather", "sunny": True}
    events = streamed(stream_of(START, odd, TEXT, HELLO, ended("end_turn"), STOPPED))
    assert events[1] == TraceEvent("weather", odd)
    assert events[-1].message == Message("assistant", (Text("hello"),))


@pytest.mark.parametrize("broken", ['{"type": "cont', "not json", "", '"text"', "[" * 100_000])
def test_a_broken_event_becomes_a_trace_and_the_stream_goes_on(broken: str) -> None:
    """(A3)"""
    events = streamed(stream_of(START, TEXT, broken, HELLO, ended("end_turn"), STOPPED))
    assert isinstance(events[1], TraceEvent)
    assert events[-1].message == Message("assistant", (Text("hello"),))
    assert broken[:1] == '"' or events[1] == TraceEvent("parse_error", {"raw": broken[:2000]})


def test_invalid_utf8_in_an_event_is_a_parse_error() -> None:
    """(A3)"""
    bad = b'event: x\ndata: {"type":"\xff"}\n\n'
    rest = stream_of(TEXT, HELLO, ended("end_turn"), STOPPED)
    events = streamed(stream_of(START) + bad + rest)
    assert events[1] == TraceEvent("parse_error", {"raw": '{"type":"\ufffd"}'})


def test_a_call_is_ready_only_when_its_arguments_are_whole() -> None:
    """(A2): one that does not parse is told, stands as broken, and the others are ready."""
    stream = stream_of(START, *call(0, '{"path": '), *call(1, '{"path": "b"}'))
    events = streamed(stream + stream_of(ended("tool_use"), STOPPED))
    good = ToolCall("c1", "read", {"path": "b"})
    assert [event for event in events if isinstance(event, ToolCallReady)] == [ToolCallReady(good)]
    assert [event.kind for event in events if isinstance(event, TraceEvent)] == ["parse_error"]
    broken = ToolCall("c0", "read", {}, '{"path": ')
    assert events[-1].message == Message("assistant", (broken, good))


@pytest.mark.parametrize("arguments", ['{"path": ', "[1]", "7"])
def test_a_reply_whose_only_call_cannot_be_read_keeps_it_as_broken(arguments: str) -> None:
    """(A2) (A4): so that the model can be told."""
    events = streamed(stream_of(START, *call(0, arguments), ended("tool_use"), STOPPED))
    assert not any(isinstance(event, ToolCallReady) for event in events)
    done = events[-1]
    broken = ToolCall("c0", "read", {}, arguments)
    assert (done.stop_reason, done.message) == ("tool_use", Message("assistant", (broken,)))


@pytest.mark.parametrize(("arguments", "kept"), [('{"path', '{"path'), ("", NO_ARGUMENTS)])
def test_a_call_cut_off_by_max_tokens_is_kept_as_broken(arguments: str, kept: str) -> None:
    """(M3): also one of whose arguments nothing has come."""
    stream = stream_of(START, TEXT, HELLO, *call(1, arguments), ended("max_tokens"), STOPPED)
    done = streamed(stream)[-1]
    broken = ToolCall("c1", "read", {}, kept)
    assert (done.stop_reason, done.message) == (
        "max_tokens",
        Message("assistant", (Text("hello"), broken)),
    )


def test_a_stream_that_ends_early_is_a_retryable_error_after_what_came() -> None:
    """(M5) (M8)"""
    seen, error = failed(START, TEXT, HELLO)
    assert seen[1:] == [TextDelta("hello")]
    assert (type(error), error.kind, error.retryable) == (StreamCutShort, "network", True)


@pytest.mark.parametrize(
    ("word", "kind"),
    [
        ("overloaded_error", Overloaded),
        ("api_error", Overloaded),
        ("rate_limit_error", RateLimited),
        ("invalid_request_error", RequestRefused),
        ("authentication_error", KeyRefused),
        ("something_new", ProviderError),
    ],
)
def test_an_error_in_the_middle_is_judged_by_its_type(word: str, kind: type) -> None:
    """(M8) (A3): never by its prose."""
    told = {"type": "error", "error": {"type": word, "message": "500 429 overloaded"}}
    seen, error = failed(START, TEXT, HELLO, told)
    assert seen[1:] == [TextDelta("hello")]
    assert (type(error), error.origin.type) == (kind, word)
    assert error.message == "the model's server reports an error: 500 429 overloaded"
