"""The fake Messages API: the official SDK reads it, and it refuses what the vendor refuses."""

import asyncio
from typing import Any

import aiohttp
import pytest

from bridle.testing import FakeAnthropic
from rig import Later

pytestmark = pytest.mark.slow

anthropic = Later("anthropic")

KEY = {"x-api-key": "k", "anthropic-version": "2026-10-21"}
ASK = {"role": "user", "content": "go"}
CALL = {"type": "tool_use", "id": "t1", "name": "ls", "input": {}}
RESULT = {"type": "tool_result", "tool_use_id": "t1", "content": "ok"}


async def post(server: FakeAnthropic, messages: list[Any], **fields: Any) -> tuple[int, Any]:
    body = {"model": "m", "max_tokens": 9, "stream": True, "messages": messages, **fields}
    async with (
        aiohttp.ClientSession() as session,
        session.post(f"{server.url}/v1/messages", json=body, headers=KEY) as answer,
    ):
        if answer.status != 200:
            return answer.status, await answer.json()
        return answer.status, await answer.text()


def refusal(messages: list[Any], **fields: Any) -> str:
    """What the fake says against these messages; empty if it serves them."""

    async def ask() -> str:
        async with FakeAnthropic(["ok"]) as server:
            status, body = await post(server, messages, **fields)
            return str(body["error"]["message"]) if status == 400 else ""

    return asyncio.run(ask())


def test_the_official_sdk_reads_a_whole_message_from_it() -> None:
    reply = {
        "thinking": "hm",
        "signature": "SIG==",
        "redacted": "b64==",
        "server_tool": {"input": {"query": "q"}, "result": []},
        "text": "hello there",
        "calls": [{"name": "ls", "arguments": {"path": "a long path to see the pieces"}}],
        "usage": {"input_tokens": 10, "output_tokens": 5, "cache_read_tokens": 3},
        "pings": 2,
    }

    async def read() -> Any:
        async with (
            FakeAnthropic([reply]) as server,
            anthropic.AsyncAnthropic(api_key="k", base_url=server.url) as client,
            client.messages.stream(model="m", max_tokens=9, messages=[ASK]) as stream,  # type: ignore[list-item]  # a plain dict will do
        ):
            return await stream.get_final_message(), stream.request_id

    message, request_id = asyncio.run(read())
    assert [block.to_dict() for block in message.content] == [
        {"type": "thinking", "thinking": "hm", "signature": "SIG=="},
        {"type": "redacted_thinking", "data": "b64=="},
        {
            "type": "server_tool_use",
            "id": "srvtoolu_0002",
            "name": "web_search",
            "input": {"query": "q"},
        },
        {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_0002", "content": []},
        {"type": "text", "text": "hello there"},
        {
            "type": "tool_use",
            "id": "toolu_0003",
            "name": "ls",
            "input": {"path": "a long path to see the pieces"},
        },
    ]
    usage = message.usage
    assert (usage.input_tokens, usage.output_tokens, usage.cache_read_input_tokens) == (10, 5, 3)
    assert (message.stop_reason, request_id) == ("tool_use", "req_0001")


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, "BadRequestError"),
        (401, "AuthenticationError"),
        (403, "PermissionDeniedError"),
        (404, "NotFoundError"),
        (429, "RateLimitError"),
        (500, "InternalServerError"),
        (529, "InternalServerError"),
    ],
)
def test_the_official_sdk_reads_its_errors(status: int, kind: str) -> None:
    async def ask() -> Any:
        fault = {"error": {"status": status, "message": "no", "retry_after": 3}}
        async with (
            FakeAnthropic([fault]) as server,
            anthropic.AsyncAnthropic(api_key="k", base_url=server.url, max_retries=0) as client,
        ):
            with pytest.raises(anthropic.APIStatusError) as caught:
                await client.messages.create(
                    model="m",
                    max_tokens=9,
                    messages=[ASK],  # type: ignore[list-item]  # a plain dict will do
                    stream=True,
                )
            return caught.value

    error = asyncio.run(ask())
    assert error.status_code == status
    assert isinstance(error, getattr(anthropic, kind)) or status == 529
    assert (error.request_id, error.response.headers["retry-after"]) == ("req_0001", "3")


@pytest.mark.parametrize(
    ("messages", "words"),
    [
        ([], "at least one message is required"),
        ([{"role": "assistant", "content": "x"}], 'must use the "user" role'),
        ([{"role": "user", "content": ""}], "non-empty content"),
        ([{"role": "user", "content": [{"type": "text", "text": " "}]}], "non-whitespace"),
        ([{"role": "boss", "content": "x"}], "messages.0.role"),
        ([ASK, {"role": "assistant", "content": [CALL]}], "without `tool_result` blocks"),
        (
            [ASK, {"role": "assistant", "content": [CALL]}, {"role": "user", "content": "and?"}],
            "without `tool_result` blocks immediately after: t1",
        ),
        (
            [
                ASK,
                {"role": "assistant", "content": [CALL]},
                {"role": "user", "content": [RESULT, RESULT]},
            ],
            "each tool_use must have a single result",
        ),
        ([{"role": "user", "content": [RESULT]}], "unexpected `tool_use_id`"),
        (
            [
                ASK,
                {"role": "assistant", "content": [CALL]},
                {"role": "user", "content": [{"type": "text", "text": "so"}, RESULT]},
            ],
            "must come before other content",
        ),
        (
            [
                ASK,
                {
                    "role": "assistant",
                    "content": [
                        {"type": "thinking", "thinking": "x", "signature": "forged"},
                        {"type": "text", "text": "y"},
                    ],
                },
                ASK,
            ],
            "Invalid `signature` in `thinking` block",
        ),
        ([{"role": "user"}], "non-empty content"),
        ([{"role": "user", "content": [{}]}], "valid list of messages"),
    ],
)
def test_what_the_vendor_refuses_is_refused(messages: list[Any], words: str) -> None:
    assert words in refusal(messages)


def test_what_the_vendor_accepts_is_served() -> None:
    answered = [
        ASK,
        {"role": "assistant", "content": [CALL, {**CALL, "id": "t2"}]},
        {"role": "user", "content": [{**RESULT, "tool_use_id": "t2"}, RESULT]},
        {"role": "system", "content": "a reminder"},
        {"role": "assistant", "content": "done"},
        ASK,
        ASK,
    ]
    assert refusal(answered) == ""


def test_more_than_four_cache_marks_are_refused() -> None:
    block = {"type": "text", "text": "x", "cache_control": {"type": "ephemeral"}}
    assert refusal([{"role": "user", "content": [block] * 4}]) == ""
    assert "maximum of 4" in refusal([{"role": "user", "content": [block] * 5}])


@pytest.mark.parametrize(
    ("change", "accepted"),
    [
        ({}, True),
        ({"thinking": "hmm"}, False),
        ({"signature": "other"}, False),
        (None, False),
    ],
)
def test_thinking_comes_back_unmodified_inside_a_tool_loop(change: Any, accepted: bool) -> None:
    async def loop() -> int:
        first = {"thinking": "hm", "signature": "S", "calls": [{"name": "ls", "id": "t1"}]}
        async with FakeAnthropic([first, "ok"]) as server:
            await post(server, [ASK])
            thought = {"type": "thinking", "thinking": "hm", "signature": "S"}
            kept = [] if change is None else [{**thought, **change}]
            messages = [ASK, {"role": "assistant", "content": [*kept, CALL]}]
            status, _ = await post(server, [*messages, {"role": "user", "content": [RESULT]}])
            return status

    assert asyncio.run(loop()) == (200 if accepted else 400)


def test_a_request_without_a_key_is_refused_and_kept() -> None:
    async def ask() -> tuple[int, Any, list[str]]:
        async with (
            FakeAnthropic(["ok"]) as server,
            aiohttp.ClientSession() as session,
            session.post(f"{server.url}/v1/messages", json={"model": "m"}) as answer,
        ):
            return answer.status, await answer.json(), [each.path for each in server.requests]

    status, body, paths = asyncio.run(ask())
    assert (status, body["error"]["type"]) == (401, "authentication_error")
    assert paths == ["/v1/messages"]


@pytest.mark.parametrize(
    ("schema", "said"),
    [
        ({"type": "object", "properties": {}}, "'additionalProperties' must be explicitly set"),
        ({"type": "integer", "minimum": 1}, "properties minimum are not supported"),
        ({"type": "array", "items": {}}, "must have a 'type'"),
        ({"type": "object", "properties": {}, "additionalProperties": False}, ""),
    ],
)
def test_schemas_that_the_vendor_refuses_are_refused(schema: Any, said: str) -> None:
    asked = {"format": {"type": "json_schema", "schema": schema}}
    found = refusal([ASK], output_config=asked)
    assert said in found if said else not found


@pytest.mark.parametrize(
    ("call_id", "name", "said"),
    [
        ("a:b", "ls", "messages.1.content.0.tool_use.id: String should match pattern"),
        ("ab", "l.s", "messages.1.content.0.tool_use.name: String should match pattern"),
    ],
)
def test_ids_and_names_that_the_vendor_refuses_are_refused(
    call_id: str, name: str, said: str
) -> None:
    call = {"type": "tool_use", "id": call_id, "name": name, "input": {}}
    result = {"type": "tool_result", "tool_use_id": call_id, "content": "ok"}
    messages = [
        ASK,
        {"role": "assistant", "content": [call]},
        {"role": "user", "content": [result]},
    ]
    assert refusal(messages).startswith(said)
