"""Anthropic's Messages API over real sockets: what is sent, and what a stream becomes."""

import asyncio

from loopback import collected, recording, saying, served

from bridle.events import (
    ResponseCompleted,
    TextDelta,
    ThinkingDelta,
    ToolCallArgsDelta,
    ToolCallReady,
    ToolCallStarted,
    UsageReported,
)
from bridle.messages import Message, Text, Thinking, ToolCall
from bridle.providers.anthropic import Anthropic
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


def streamed(*chunks: bytes):
    async def main():
        async with served(saying(*chunks, request_id="req_7")) as place:
            return await collected(Anthropic(MODEL, api_key="sk-1", base_url=place.url))

    return asyncio.run(main())


def test_a_stream_becomes_events_and_one_whole_message() -> None:
    """(M3) (M5) (A2): thinking, text, calls, usage and stop reason, in the order they came."""
    assert streamed(recording("anthropic-tools.sse")) == TOOLS
