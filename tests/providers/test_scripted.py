"""The scripted provider: what it streams, what it refuses, what it remembers."""

import asyncio
import json
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridle.errors import (
    AgentError,
    ConfigError,
    ContextTooLong,
    KeyRefused,
    Overloaded,
    ProviderError,
    RateLimited,
    StreamCutShort,
    UnknownModel,
)
from bridle.events import (
    ModelEvent,
    ResponseCompleted,
    TextDelta,
    ThinkingDelta,
    ToolCallArgsDelta,
    ToolCallReady,
    ToolCallStarted,
    UsageReported,
)
from bridle.messages import Message, Text, Thinking, ToolCall, user
from bridle.protocols.provider import Provider, ProviderInfo, Request, drain
from bridle.providers.scripted import Reply, Scripted, pieces
from bridle.usage import Price, Usage

ASK = Request([user("go")])


def heard(provider: Provider, request: Request = ASK) -> list[ModelEvent]:
    async def listen() -> list[ModelEvent]:
        async with aclosing(provider.stream(request)) as events:
            return [event async for event in events]

    return asyncio.run(listen())


def heard_until_error(provider: Provider) -> tuple[list[ModelEvent], AgentError]:
    async def listen() -> tuple[list[ModelEvent], AgentError]:
        said: list[ModelEvent] = []
        with pytest.raises(AgentError) as caught:
            async with aclosing(provider.stream(ASK)) as events:
                async for event in events:
                    said.append(event)
        return said, caught.value

    return asyncio.run(listen())


def test_a_reply_is_streamed_as_a_real_model_streams_it() -> None:
    """(A2) Thinking, text, a call whose arguments grow, usage, and one end."""
    info = ProviderInfo("scripted", "demo", price=Price(3, 15))
    reply = {
        "thinking": "let me see",
        "text": "I look.",
        "calls": [{"name": "shell", "arguments": {"command": "ls"}}],
        "usage": {"input_tokens": 1000, "output_tokens": 200},
        "chunk": 12,
    }
    call = ToolCall("call_1", "shell", {"command": "ls"})
    usage = Usage(1000, 200)
    message = Message("assistant", (Thinking("let me see"), Text("I look."), call))
    assert heard(Scripted([reply], info=info)) == [
        ThinkingDelta("let me see"),
        TextDelta("I look."),
        ToolCallStarted("call_1", "shell"),
        ToolCallArgsDelta("call_1", '{"command":"'),
        ToolCallArgsDelta("call_1", 'ls"}'),
        ToolCallReady(call),
        UsageReported(usage, "demo", 0.006),
        ResponseCompleted("tool_use", message, usage, "demo", "scripted_1"),
    ]


def test_text_messages_replies_and_functions_are_all_replies() -> None:
    odd = Message("assistant", (ToolCall("mine", "read", {"path": "a"}), Text("after")))
    provider = Scripted(
        ["plain", odd, Reply(text="cut off", stop_reason="max_tokens"), lambda r: r.messages[-1]]
    )

    async def four() -> list[Any]:
        return [await drain(provider.stream(ASK)) for _ in range(4)]

    replies = asyncio.run(four())
    assert [(r.content, r.tool_calls, r.stop_reason) for r in replies] == [
        ("plain", (), "complete"),
        ("after", (ToolCall("mine", "read", {"path": "a"}),), "tool_use"),
        ("cut off", (), "max_tokens"),
        ("go", (), "complete"),
    ]
    assert provider.requests == [ASK] * 4


def test_one_function_answers_every_request() -> None:
    provider = Scripted(lambda request: f"{len(request.messages)} messages")
    longer = Request([user("a"), Message("assistant", (Text("b"),)), user("c")])
    assert [asyncio.run(drain(provider.stream(r))).content for r in (ASK, longer)] == [
        "1 messages",
        "3 messages",
    ]


def test_call_ids_are_unique_over_a_looping_script() -> None:
    provider = Scripted([{"calls": [{"name": "a"}, {"name": "b"}]}], loop=True)
    ids = [e.call.id for _ in range(2) for e in heard(provider) if isinstance(e, ToolCallReady)]
    assert ids == ["call_1", "call_2", "call_3", "call_4"]


def test_a_script_that_is_used_up_says_so() -> None:
    provider = Scripted(["only one"])
    heard(provider)
    said, error = heard_until_error(provider)
    assert (said, str(error)) == ([], "the script has 1 replies and was asked for reply 2")
    assert "loop" in error.hint


@pytest.mark.parametrize(
    ("fault", "kind", "expected"),
    [
        ({"kind": "rate_limit", "retry_after": 7}, "rate_limit", RateLimited),
        ({"kind": "agent", "status": 529}, "agent", Overloaded),
        ({"status": 401}, "invalid", KeyRefused),
        ({"status": 404}, "invalid", UnknownModel),
        ({"status": 413}, "invalid", ContextTooLong),
        ({"kind": "agent"}, "agent", ProviderError),
    ],
)
def test_an_error_is_raised_as_its_class(
    fault: dict[str, Any], kind: str, expected: type[AgentError]
) -> None:
    """(M8)"""
    said, error = heard_until_error(Scripted([{"error": {**fault, "message": "no"}}]))
    assert (said, type(error), error.kind, str(error)) == ([], expected, kind, "no")
    assert (error.status, error.retry_after) == (fault.get("status"), fault.get("retry_after"))


def test_an_error_comes_after_what_was_said_first() -> None:
    said, error = heard_until_error(Scripted([{"text": "well", "error": {"status": 500}}]))
    assert said == [TextDelta("well")]
    assert error.retryable


def test_a_cut_stream_is_a_retryable_error() -> None:
    said, error = heard_until_error(Scripted([{"text": "half a", "cut": True}]))
    assert said == [TextDelta("half"), TextDelta(" a")]
    assert (type(error), error.retryable) == (StreamCutShort, True)


def test_a_delay_ends_at_once_when_the_run_is_cancelled() -> None:
    """(M6) The script would wait for an hour; the test would time out."""

    async def cancel() -> bool:
        task = asyncio.create_task(drain(Scripted([{"delay": 3600, "text": "x"}]).stream(ASK)))
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait([task])
        return task.cancelled()

    assert asyncio.run(cancel())


def test_a_pause_between_deltas_can_be_closed() -> None:
    async def close() -> ModelEvent:
        events = Scripted([{"pause": 3600, "text": "one two"}]).stream(ASK)
        first = await anext(events)
        await events.aclose()
        return first

    assert asyncio.run(close()) == TextDelta("one")


def test_a_file_holds_replies_price_and_loop(tmp_path: Path) -> None:
    script = {
        "model": "demo-1",
        "price": {"input": 1, "output": 2},
        "context_window": 1000,
        "loop": True,
        "replies": [{"text": "hello", "usage": {"input_tokens": 5}}, "bye"],
    }
    path = tmp_path / "script.json"
    path.write_text(json.dumps(script))
    provider = Scripted.from_file(path)
    price = Price(1, 2)
    assert provider.info == ProviderInfo("scripted", "demo-1", context_window=1000, price=price)
    texts = [asyncio.run(drain(provider.stream(ASK))).content for _ in range(3)]
    assert texts == ["hello", "bye", "hello"]


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (b'{"replies": [\n {"text": "a",}]}', ", line 2, column 15: "),
        (b'{"replies":\n\n ["', ", line 3, column 4: Input data was truncated"),
        (b'{"replies": ["\xff"]}', ", line 1, column 15: "),
        (b'{"replies": 3}', ": Expected `array`, got `int` - at `$.replies`"),
        (b'{"replies": ["ok", {"txt": "a"}]}', ": reply 2 of the script is wrong: "),
        (b'{"replies": [{"calls": [{}]}]}', "missing required field `name` - at `$.calls[0]`"),
        (b'{"replies": [{"delay": -1}]}', "Expected `float` >= 0"),
        (b'{"replies": [{"usage": {"input_tokens": "x"}}]}', "$.usage.inputTokens"),
        (b'{"replies": [], "lop": true}', "unknown field `lop`"),
    ],
)
def test_a_malformed_file_names_the_file_and_the_place(
    tmp_path: Path, raw: bytes, message: str
) -> None:
    path = tmp_path / "script.json"
    path.write_bytes(raw)
    with pytest.raises(ConfigError) as caught:
        Scripted.from_file(path)
    assert str(caught.value).startswith(str(path))
    assert message in str(caught.value)
    assert caught.value.hint


def test_a_missing_file_is_a_config_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read: No such file"):
        Scripted.from_file(tmp_path / "none.json")


@given(st.text(), st.integers(0, 5))
def test_pieces_join_to_the_text(text: str, chunk: int) -> None:
    cut = pieces(text, chunk)
    assert "".join(cut) == text
    assert all(cut)


@given(st.binary(max_size=60))
def test_any_bytes_are_a_script_or_a_config_error(tmp_path_factory: Any, raw: bytes) -> None:
    path = tmp_path_factory.mktemp("fuzz") / "script.json"
    path.write_bytes(raw)
    try:
        Scripted.from_file(path)
    except ConfigError as error:
        assert str(path) in str(error)
