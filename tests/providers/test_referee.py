"""The official SDKs as referees: from the same bytes they and we assemble the same message."""

import asyncio
import json
from typing import Any

import pytest
from loopback import ASK, collected, recording, saying, served

from bridle.events import ResponseCompleted
from bridle.messages import Message, Text, Thinking, ToolCall
from bridle.providers.anthropic import Anthropic
from bridle.providers.openai_chat import OpenAIChat
from bridle.providers.openai_responses import OpenAIResponses
from bridle.usage import Usage
from rig import Later

pytestmark = pytest.mark.slow

anthropic, openai = Later("anthropic"), Later("openai")

ASKED = [{"role": "user", "content": "go on"}]


def ours(provider: type[Any], name: str) -> ResponseCompleted:
    async def main() -> ResponseCompleted:
        async with served(saying(recording(name))) as place:
            events = await collected(provider("m", api_key="k", base_url=place.url), ASK)
        assert isinstance(events[-1], ResponseCompleted)
        return events[-1]

    return asyncio.run(main())


def calls_of(message: Message) -> list[tuple[str, str, dict[str, Any]]]:
    return [(call.id, call.name, call.arguments) for call in message.tool_calls]


@pytest.mark.parametrize("name", ["tools", "refusal", "search"])
def test_anthropics_sdk_assembles_the_same_message(name: str) -> None:
    """(M5) (M7): text, thinking, signatures, calls, usage and stop reason."""

    async def theirs() -> Any:
        async with (
            served(saying(recording(f"anthropic-{name}.sse"))) as place,
            anthropic.AsyncAnthropic(api_key="k", base_url=place.url, max_retries=0) as client,
            client.messages.stream(model="m", max_tokens=9, messages=ASKED) as stream,
        ):
            return await stream.get_final_message()

    said, done = asyncio.run(theirs()), ours(Anthropic, f"anthropic-{name}.sse")
    assert done.message is not None
    parts: list[Any] = []
    for block in said.content:
        meta = {"api": "anthropic", "model": "m"}
        if block.type == "text":
            parts.append(Text(block.text))
        elif block.type == "thinking":
            parts.append(Thinking(block.thinking, {**meta, "signature": block.signature}))
        elif block.type == "redacted_thinking":
            parts.append(Thinking("", {**meta, "redacted": block.data}))
        elif block.type == "tool_use":
            parts.append(ToolCall(block.id, block.name, block.input))
    used = said.usage
    thought = used.output_tokens_details
    assert done.message == Message("assistant", tuple(parts))
    assert done.usage == Usage(
        used.input_tokens,
        used.output_tokens,
        used.cache_read_input_tokens or 0,
        used.cache_creation_input_tokens or 0,
        thought.thinking_tokens if thought else 0,
    )
    assert (done.model, done.stop_detail.split(":")[0]) == (said.model, said.stop_reason)


@pytest.mark.parametrize("name", ["tools", "refusal", "incomplete"])
def test_openais_sdk_assembles_the_same_response(name: str) -> None:
    """(A3) (M7): text, reasoning, its encrypted content, calls, usage and stop reason."""

    async def theirs() -> Any:
        async with (
            served(saying(recording(f"openai-{name}.sse"))) as place,
            openai.AsyncOpenAI(api_key="k", base_url=place.url, max_retries=0) as client,
            client.responses.stream(model="m", input="go on") as stream,
        ):
            return await stream.get_final_response() if name != "incomplete" else await last(stream)

    async def last(stream: Any) -> Any:
        events = [event async for event in stream]  # the SDK has no final response for these
        return events[-1].response

    said, done = asyncio.run(theirs()), ours(OpenAIResponses, f"openai-{name}.sse")
    parts: list[Any] = []
    for item in said.output:
        if item.type == "message":
            text = "".join(getattr(piece, "text", "") or piece.refusal for piece in item.content)
            parts.append(Text(text))
        elif item.type == "reasoning":
            meta = {"api": "openai", "model": "m", "id": item.id}
            summary = "\n\n".join(piece.text for piece in item.summary)
            parts.append(
                Thinking(summary, {**meta, "encrypted_content": item.encrypted_content or ""})
            )
        elif item.type == "function_call":
            parts.append(ToolCall(item.call_id, item.name, json.loads(item.arguments)))
    used = said.usage
    assert done.message == Message("assistant", tuple(parts))
    assert done.usage == Usage(
        used.input_tokens,
        used.output_tokens,
        used.input_tokens_details.cached_tokens,
        used.input_tokens_details.cache_write_tokens,
        used.output_tokens_details.reasoning_tokens,
        True,
    )
    reasons = {"tools": "tool_use", "refusal": "refusal", "incomplete": "max_tokens"}
    assert (done.model, done.stop_reason) == (said.model, reasons[name])


@pytest.mark.parametrize("name", ["tools", "refusal", "length"])
def test_openais_sdk_assembles_the_same_completion(name: str) -> None:
    """(A3) (M7): text, calls, usage and finish reason."""

    async def theirs() -> Any:
        async with (
            served(saying(recording(f"chat-{name}.sse"))) as place,
            openai.AsyncOpenAI(api_key="k", base_url=place.url, max_retries=0) as client,
        ):
            asked = {"model": "m", "messages": ASKED, "stream_options": {"include_usage": True}}
            async with client.chat.completions.stream(**asked) as stream:
                try:
                    return await stream.get_final_completion()
                except openai.LengthFinishReasonError as told:
                    return told.completion

    said, done = asyncio.run(theirs()), ours(OpenAIChat, f"chat-{name}.sse")
    answer, used = said.choices[0].message, said.usage
    assert done.message is not None
    assert done.message.content == (answer.content or answer.refusal)
    assert calls_of(done.message) == [
        (call.id, call.function.name, json.loads(call.function.arguments))
        for call in answer.tool_calls or ()
    ]
    assert done.usage == Usage(
        used.prompt_tokens,
        used.completion_tokens,
        used.prompt_tokens_details.cached_tokens,
        0,
        used.completion_tokens_details.reasoning_tokens,
        True,
    )
    assert (done.model, done.stop_detail) == (said.model, said.choices[0].finish_reason)
