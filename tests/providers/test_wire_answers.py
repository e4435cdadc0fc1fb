"""Answers that are nearly replies: cut off, errors in disguise, and the way they are reached."""

import asyncio
import json
from typing import Any

import pytest
from loopback import Answerer, Exchange, collected, recording, refusing, saying, served

import bridle
from bridle.errors import (
    AgentError,
    Overloaded,
    RateLimited,
    RequestRefused,
    StreamCutShort,
)
from bridle.events import ResponseCompleted
from bridle.messages import Message, Text, user
from bridle.protocols.provider import Request
from bridle.providers.anthropic import Anthropic
from bridle.providers.openai_chat import OpenAIChat
from bridle.providers.openai_responses import OpenAIResponses

HELLO = recording("anthropic-refusal.sse")


def failure(answer: Answerer, provider: type[Any]) -> AgentError:
    async def main() -> AgentError:
        async with served(answer) as place:
            with pytest.raises(AgentError) as told:
                await collected(provider("m", base_url=place.url))
            return told.value

    return asyncio.run(main())


@pytest.mark.parametrize("whole", [True, False])
def test_a_cut_stream_carries_the_number_of_its_request(whole: bool) -> None:
    """(M8): for a support question, whether the body ended early or the connection broke."""

    async def answer(exchange: Exchange) -> None:
        await exchange.begin(request_id="req_9")
        await exchange.say(HELLO[:100])
        await (exchange.end() if whole else exchange.hang_up())

    for provider in (Anthropic, OpenAIChat):
        error = failure(answer, provider)
        assert (type(error), error.request_id) == (StreamCutShort, "req_9")


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (b'{"message": "slow", "code": 429}', RateLimited),
        (b'{"message": "busy", "code": 503}', Overloaded),
        (b'{"message": "busy", "type": "overloaded_error"}', Overloaded),
        (b'"no"', RequestRefused),
    ],
)
def test_an_error_in_an_answer_200_is_judged_by_the_code_inside(error: bytes, kind: type) -> None:
    """(M8)"""
    document = b'{"error": %b}' % error
    found = failure(refusing(200, document, content_type="application/json"), OpenAIChat)
    assert type(found) is kind


def test_a_base_url_with_the_version_does_not_say_it_twice() -> None:
    async def main() -> str:
        async with served(saying(HELLO)) as place:
            await collected(Anthropic("m", base_url=place.url + "/v1/"))
            return place.asked[0].line

    assert asyncio.run(main()) == "POST /v1/messages HTTP/1.1"


def test_a_cancel_while_the_answer_is_waited_for_is_a_cancel() -> None:
    """(M6): whoever cancels is not told of a timeout, and the task is as cancelled as they said."""

    async def main() -> tuple[bool, int]:
        asked = asyncio.Event()

        async def mute(exchange: Exchange) -> None:
            asked.set()
            await asyncio.Event().wait()

        async with served(mute) as place:
            provider = Anthropic("m", base_url=place.url)
            task = asyncio.ensure_future(anext(provider.stream(Request((user("hi"),)))))
            await asked.wait()
            task.cancel()
            await asyncio.wait([task])
            await provider.close()
            return task.cancelled(), task.cancelling()

    assert asyncio.run(main()) == (True, 1)


@pytest.mark.parametrize("sdk", [False, True])
@pytest.mark.parametrize("name", ["anthropic/m", "openai/m", "openai-chat/m"])
def test_a_key_that_stands_in_ordinary_words_leaves_them_readable(name: str, sdk: bool) -> None:
    """A local server's key may be one letter; a real key is taken out."""

    async def main(key: str) -> str:
        said = b'{"error": {"message": "failed as expected: %b"}}' % key.encode()
        async with served(refusing(500, said, content_type="application/json")) as place:
            options: dict[str, Any] = {"api_key": key, "base_url": place.url, "sdk": sdk}
            provider = bridle.provider(name, retries=0, **options)
            with pytest.raises(AgentError) as told:
                await bridle.complete(provider, Request([user("hi")]))
            await provider.close()
            return told.value.message

    assert asyncio.run(main("e")).endswith("failed as expected: e")
    assert asyncio.run(main("sk-very-secret")).endswith("failed as expected: ***")


KEY = "sk-very-secret-key"
SAID = {"type": "error", "code": "server_error", "message": f"no: {KEY}"}
BROKEN = {
    Anthropic: {"type": "error", "error": {"type": "api_error", "message": f"no: {KEY}"}},
    OpenAIResponses: SAID,
    OpenAIChat: {"error": SAID},
}
COMPLETED = {
    Anthropic: [
        {"type": "message_start", "message": {"model": "m"}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text"}},
        {
            "type": "content_block_delta",
            "index": 0,
            "delta": {"type": "text_delta", "text": "so"},
        },
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}},
        {"type": "message_stop"},
    ],
    OpenAIResponses: [
        {"type": "response.output_text.delta", "output_index": 0, "delta": "so"},
        {"type": "response.completed", "response": {"status": "completed"}},
    ],
    OpenAIChat: [
        {"choices": [{"delta": {"content": "so"}, "finish_reason": None}]},
        {"choices": [{"delta": {}, "finish_reason": "stop"}]},
        "[DONE]",
    ],
}


def framed(events: list[Any]) -> bytes:
    said = (one if isinstance(one, str) else json.dumps(one) for one in events)
    return b"".join(b"data: %b\n\n" % one.encode() for one in said)


@pytest.mark.parametrize("provider", BROKEN)
def test_an_error_inside_a_stream_does_not_show_the_key(provider: type[Any]) -> None:
    async def main() -> AgentError:
        async with served(saying(framed([BROKEN[provider]]))) as place:
            with pytest.raises(AgentError) as told:
                await collected(provider("m", base_url=place.url, api_key=KEY))
            return told.value

    error = asyncio.run(main())
    assert error.message.endswith("no: ***")
    assert KEY not in f"{error} {error.hint} {error.origin}"


@pytest.mark.parametrize("cut", [1, 2])
@pytest.mark.parametrize("provider", COMPLETED)
def test_a_stream_without_its_last_blank_line_ends_once(provider: type[Any], cut: int) -> None:
    """(A2): exactly one `ResponseCompleted`, and nothing is raised after it."""

    async def main() -> list[Any]:
        async with served(saying(framed(COMPLETED[provider])[:-cut])) as place:
            return await collected(provider("m", base_url=place.url))

    events = asyncio.run(main())
    ends = [event for event in events if isinstance(event, ResponseCompleted)]
    assert [one.message for one in ends] == [Message("assistant", (Text("so"),))]


def test_what_the_vendor_behind_openrouter_says_is_shown() -> None:
    """Its own message is only that the other one returned an error."""
    raw = "m is temporarily rate-limited upstream. Please retry shortly."
    named = {"raw": raw, "provider_name": "Other"}
    error = {"message": "Provider returned error", "code": 429, "metadata": named}

    async def answer(exchange: Exchange) -> None:
        await exchange.begin(429, **{"content-type": "application/json"})
        await exchange.say(json.dumps({"error": error}).encode())
        await exchange.end()

    said = failure(answer, OpenAIChat)
    assert said.message.endswith(f"answered 429: Provider returned error: {raw}")
