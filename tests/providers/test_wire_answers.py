"""Answers that are nearly replies: cut off, errors in disguise, and the way they are reached."""

import asyncio
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
from bridle.messages import user
from bridle.promises.provider import Request
from bridle.providers.anthropic import Anthropic
from bridle.providers.openai_chat import OpenAIChat

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
