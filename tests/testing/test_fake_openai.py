"""The fake OpenAI server: the official SDK reads it, and it refuses what the vendor refuses."""

import asyncio
from typing import Any

import aiohttp
import pytest

from bridle.testing import FakeOpenAI
from rig import Later

openai = Later("openai")

REPLY = {
    "thinking": "hm",
    "signature": "sealed==",
    "text": "hello there",
    "calls": [{"name": "ls", "id": "c1", "arguments": {"path": "a long path to see pieces"}}],
    "usage": {
        "input_tokens": 70,
        "output_tokens": 42,
        "cache_read_tokens": 300,
        "cache_write_tokens": 100,
        "thinking_tokens": 7,
    },
    "pings": 1,
}
ARGUMENTS = '{"path":"a long path to see pieces"}'


def client(server: FakeOpenAI) -> Any:
    return openai.AsyncOpenAI(api_key="k", base_url=server.url, max_retries=0)


def refusal(path: str, body: dict[str, Any]) -> str:
    """What the fake says against this request; empty if it serves it."""

    async def ask() -> str:
        async with (
            FakeOpenAI(["ok"]) as server,
            aiohttp.ClientSession() as session,
            session.post(
                server.url + path,
                json={"model": "m", "stream": True, **body},
                headers={"authorization": "Bearer k"},
            ) as answer,
        ):
            return str((await answer.json())["error"]["message"]) if answer.status == 400 else ""

    return asyncio.run(ask())


def test_the_official_sdk_reads_a_whole_response() -> None:
    async def read() -> Any:
        async with (
            FakeOpenAI([REPLY]) as server,
            client(server) as sdk,
            sdk.responses.stream(model="m", input="go") as stream,
        ):
            async for _ in stream:
                pass
            return await stream.get_final_response()

    response = asyncio.run(read())
    reasoning, message, call = response.output
    assert (reasoning.summary[0].text, reasoning.encrypted_content) == ("hm", "sealed==")
    assert message.content[0].text == "hello there"
    assert (call.call_id, call.name, call.arguments) == ("c1", "ls", ARGUMENTS)
    usage = response.usage
    assert (usage.input_tokens, usage.output_tokens, usage.total_tokens) == (470, 42, 512)
    assert usage.input_tokens_details.cached_tokens == 300
    assert (response.status, response.model) == ("completed", "m")


def test_the_official_sdk_reads_a_whole_completion() -> None:
    async def read() -> Any:
        async with (
            FakeOpenAI([REPLY]) as server,
            client(server) as sdk,
            sdk.chat.completions.stream(
                model="m",
                messages=[{"role": "user", "content": "go"}],
                stream_options={"include_usage": True},
            ) as stream,
        ):
            return await stream.get_final_completion()

    completion = asyncio.run(read())
    choice = completion.choices[0]
    assert (choice.message.content, choice.finish_reason) == ("hello there", "tool_calls")
    [call] = choice.message.tool_calls
    assert (call.id, call.function.name, call.function.arguments) == ("c1", "ls", ARGUMENTS)
    assert (completion.usage.prompt_tokens, completion.usage.completion_tokens) == (470, 42)


@pytest.mark.parametrize(
    ("status", "kind", "code"),
    [
        (400, "BadRequestError", None),
        (401, "AuthenticationError", "invalid_api_key"),
        (403, "PermissionDeniedError", "insufficient_permissions"),
        (404, "NotFoundError", "model_not_found"),
        (429, "RateLimitError", "rate_limit_exceeded"),
        (500, "InternalServerError", None),
    ],
)
def test_the_official_sdk_reads_its_errors(status: int, kind: str, code: str | None) -> None:
    async def ask() -> Any:
        fault = {"error": {"status": status, "message": "no", "retry_after": 3}}
        async with FakeOpenAI([fault]) as server, client(server) as sdk:
            with pytest.raises(getattr(openai, kind)) as caught:
                await sdk.responses.create(model="m", input="go", stream=True)
            return caught.value

    error = asyncio.run(ask())
    assert (error.status_code, error.code, error.request_id) == (status, code, "req_0001")
    assert error.response.headers["retry-after"] == "3"


ASK = {"role": "user", "content": "go"}
CALLING = {
    "role": "assistant",
    "tool_calls": [
        {"id": name, "type": "function", "function": {"name": "ls", "arguments": "{}"}}
        for name in ("c1", "c2")
    ],
}


def answer(call_id: str) -> dict[str, str]:
    return {"role": "tool", "tool_call_id": call_id, "content": "ok"}


@pytest.mark.parametrize(
    ("messages", "words"),
    [
        ([], "empty array"),
        ([{"role": "boss", "content": "x"}], "Invalid value: 'boss'"),
        ([{"role": "user", "content": ""}], "messages[0].content"),
        ([ASK, {"role": "assistant", "content": None}], "messages[1].content"),
        ([ASK, CALLING, answer("c1")], "did not have response messages: c2"),
        ([ASK, CALLING, ASK], "did not have response messages: c1, c2"),
        ([ASK, CALLING, answer("c1"), ASK, answer("c2")], "response messages: c2"),
        ([ASK, CALLING, answer("c1"), answer("c1")], "Duplicate"),
        ([ASK, CALLING, answer("c3")], "'c3' not found"),
        ([ASK, answer("c1")], "must be a response to a preceeding message"),
        ([ASK, CALLING, answer("c2"), answer("c1"), ASK], ""),
        ([{}], "could not parse"),
    ],
)
def test_chat_refuses_what_the_vendor_refuses(messages: list[Any], words: str) -> None:
    said = refusal("/chat/completions", {"messages": messages})
    assert words in said if words else said == ""


def call(call_id: str) -> dict[str, str]:
    return {"type": "function_call", "call_id": call_id, "name": "ls", "arguments": "{}"}


def output(call_id: str) -> dict[str, str]:
    return {"type": "function_call_output", "call_id": call_id, "output": "ok"}


@pytest.mark.parametrize(
    ("items", "words"),
    [
        ([], "Missing required parameter: 'input'"),
        ([ASK, call("c1")], "No tool output found for function call c1."),
        ([ASK, output("c1")], "No tool call found for function call output with call_id c1."),
        ([ASK, output("c1"), call("c1")], "No tool call found"),
        ([ASK, call("c1"), output("c1"), output("c1")], "Duplicate function call output"),
        ([ASK, call("c1"), output("c1"), call("c1"), output("c1")], "Duplicate"),
        ([ASK, {"type": "reasoning", "id": "rs_9", "summary": []}, ASK], "could not be verified"),
        ([ASK, call("c1"), call("c2"), output("c2"), output("c1"), ASK], ""),
    ],
)
def test_responses_refuses_what_the_vendor_refuses(items: list[Any], words: str) -> None:
    said = refusal("/responses", {"input": items})
    assert words in said if words else said == ""


@pytest.mark.parametrize(
    ("change", "status"),
    [({}, 200), ({"encrypted_content": "forged"}, 400), ({"summary": []}, 400), (None, 400)],
)
def test_reasoning_comes_back_unmodified_inside_a_tool_loop(change: Any, status: int) -> None:
    async def loop() -> int:
        async with FakeOpenAI([REPLY, "ok"]) as server, client(server) as sdk:
            async with sdk.responses.stream(model="m", input="go") as stream:
                first = await stream.get_final_response()
            thought = first.output[0].to_dict()
            kept = [] if change is None else [{**thought, **change}]
            items: Any = [ASK, *kept, call("c1"), output("c1")]
            try:
                await sdk.responses.create(model="m", input=items, stream=True)
            except openai.APIStatusError as error:
                return error.status_code
            return 200

    assert asyncio.run(loop()) == status


@pytest.mark.parametrize(
    ("schema", "strict", "said"),
    [
        ({"type": "array"}, False, "schema must be a JSON Schema of 'type: \"object\"'"),
        ({"type": "object", "properties": {}}, True, "'additionalProperties' is required"),
        (
            {"type": "object", "properties": {"a": {}}, "additionalProperties": False},
            True,
            "Missing 'a'",
        ),
        ({"type": "object", "properties": {"a": {}}}, False, ""),
    ],
)
def test_schemas_that_the_vendor_refuses_are_refused(schema: Any, strict: bool, said: str) -> None:
    named = {"name": "reply", "schema": schema, "strict": strict}
    chat = {
        "messages": [{"role": "user", "content": "go"}],
        "response_format": {"type": "json_schema", "json_schema": named},
    }
    responses = {"input": "go", "text": {"format": {"type": "json_schema", **named}}}
    for found in (refusal("/chat/completions", chat), refusal("/responses", responses)):
        assert said in found if said else not found


def test_ids_and_names_that_the_vendor_refuses_are_refused() -> None:
    function = {"name": "a.b", "arguments": "{}"}
    call = {"id": "c", "type": "function", "function": function}
    said = {"role": "assistant", "content": None, "tool_calls": [call]}
    ask = {"role": "user", "content": "go"}
    answer = {"role": "tool", "tool_call_id": "c", "content": "ok"}
    found = refusal("/chat/completions", {"messages": [ask, said, answer]})
    assert found.startswith("Invalid 'messages[1].tool_calls[0].function.name': string does not")
    function["name"] = "ab"
    call["id"] = answer["tool_call_id"] = "c" * 41
    found = refusal("/chat/completions", {"messages": [ask, said, answer]})
    assert found.startswith("Invalid 'messages[1].tool_calls[0].id': string too long.")
    item = {"type": "function_call", "call_id": "a:b", "name": "ab", "arguments": "{}"}
    output = {"type": "function_call_output", "call_id": "a:b", "output": "ok"}
    found = refusal("/responses", {"input": [ask, item, output]})
    assert found.startswith("Invalid 'input[1].call_id': string does not match pattern.")
