"""The small values of the protocols: results, requests, drained streams (M1, M3, A4)."""

import asyncio

import pytest

from bridle.errors import ProviderError, StreamCutShort
from bridle.events import ResponseCompleted, TextDelta, ToolOutputDelta
from bridle.messages import Message, Text, ToolCall
from bridle.protocols.provider import Request, RequestConfig, Response, drain, to_response
from bridle.protocols.session import NO, YES, Answer, TurnResult
from bridle.protocols.tool import ToolContext, ToolResult
from bridle.usage import Usage


def test_a_request_and_its_settings_have_the_documented_shape():
    """M1: max_tokens 0 and temperature unset are the provider's defaults."""
    config = RequestConfig()
    assert (config.max_tokens, config.temperature) == (0, None)
    request = Request([Message("user", (Text("hi"),))])
    assert (request.tools, request.config, request.system) == ((), config, "")


def test_a_response_says_content_calls_use_and_why_it_stopped():
    """M1, M3."""
    call = ToolCall("c", "look", {"n": 1})
    message = Message("assistant", (Text("a"), call, Text("b")))
    done = ResponseCompleted("tool_use", message, Usage(1, 2), "m", "r")
    expected = Response("ab", (call,), Usage(1, 2), "tool_use", message, "m", "r")
    assert to_response(done) == expected
    assert to_response(ResponseCompleted("error")).content == ""


def test_a_drained_stream_is_closed_and_one_without_an_end_is_cut_short():
    closed = []

    async def stream(end):
        try:
            yield TextDelta("a")
            if end:
                yield ResponseCompleted("complete", Message("assistant", (Text("a"),)))
                yield TextDelta("never looked at")
        finally:
            closed.append(end)

    assert asyncio.run(drain(stream(True))).content == "a"
    with pytest.raises(StreamCutShort):
        asyncio.run(drain(stream(False)))
    assert closed == [True, False]


def test_a_drained_error_is_raised_as_it_is():
    async def stream():
        raise ProviderError("no")
        yield

    with pytest.raises(ProviderError, match="no"):
        asyncio.run(drain(stream()))


@pytest.mark.parametrize(
    ("data", "text"),
    [(None, "done"), ("words", "words"), ({"a": 1}, '{"a":1}'), (7, "7"), ([], "[]")],
)
def test_success_is_read_as_it_is_or_as_json(data, text):
    """A4."""
    found = ToolResult.success(data)
    assert (found.ok, found.text, found.data) == (True, text, data)
    assert ToolResult.success(data, text="short").text == "short"


def test_failure_says_why_and_carries_diagnostics():
    """A4."""
    found = ToolResult.failure("no such file", {"path": "x"})
    expected = (False, "no such file", None, {"path": "x"})
    assert (found.ok, found.text, found.data, found.diagnostics) == expected


def test_a_tool_says_things_under_its_calls_number():
    said = []
    ToolContext(None, "c1", emit=said.append).say("half way")
    assert said == [ToolOutputDelta("c1", "half way")]
    assert ToolContext(None, "c1").say("nobody listens") is None


def test_contexts_do_not_share_their_memory():
    one, two = ToolContext(None, "a"), ToolContext(None, "b")
    one.memory["x"] = 1
    assert two.memory == {}


def test_yes_and_no():
    assert (Answer(True), Answer(False)) == (YES, NO)
    assert TurnResult("t", "done", "s", 1).ok
    assert not TurnResult("t", "stuck", "s", 1).ok
