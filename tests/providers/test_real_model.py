"""One real model behind a real llama.cpp server: tokens that nobody scripted."""

import asyncio
from collections.abc import Iterator

import pytest
import realmodel

from bridle.events import ModelEvent, ResponseCompleted, TextDelta, UsageReported
from bridle.messages import user
from bridle.protocols.provider import Request, RequestConfig
from bridle.providers.openai_chat import OpenAIChat
from bridle.runtime.providers import find_local_servers
from bridle.usage import Usage

pytestmark = pytest.mark.timeout(900)  # the first run downloads the model

SHORT = Request(
    [user("Write one sentence about horses.")], config=RequestConfig(max_tokens=12, temperature=0)
)
LONG = Request([user("Write a very long story about horses.")])


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    try:
        realmodel.fetch()
    except realmodel.Missing as missing:
        pytest.skip(str(missing))
    with realmodel.serving() as base_url:
        yield base_url


def model(url: str) -> OpenAIChat:
    return OpenAIChat("smollm2", base_url=url)


async def everything(provider: OpenAIChat, request: Request) -> list[ModelEvent]:
    return [event async for event in provider.stream(request)]


def test_a_real_model_streams_text_and_its_usage(url: str) -> None:
    """(A3, M7) Several deltas, one end, the server's own figures."""

    async def ask() -> list[ModelEvent]:
        provider = model(url)
        try:
            return await everything(provider, SHORT)
        finally:
            await provider.close()

    events = asyncio.run(ask())
    done = events[-1]
    assert isinstance(done, ResponseCompleted)
    assert done.message is not None
    deltas = [event.text for event in events if isinstance(event, TextDelta)]
    assert len(deltas) > 3
    assert "".join(deltas) == done.message.content
    assert done.stop_reason == "max_tokens"
    usage = done.usage
    assert usage.output_tokens == 12
    assert usage.context_tokens > 10
    reported = [event.usage for event in events if isinstance(event, UsageReported)]
    assert reported[-1] == usage != Usage()


def test_a_reply_cut_in_the_middle_frees_the_model_at_once(url: str) -> None:
    """(M6) The server has one slot: it can answer the second only because the first was let go."""

    async def cut() -> tuple[list[str], ModelEvent]:
        provider = model(url)
        try:
            story = provider.stream(LONG)
            begun = []
            async for event in story:
                begun += [event.text] if isinstance(event, TextDelta) else []
                if len(begun) == 3:
                    break
            await story.aclose()
            return begun, (await everything(provider, SHORT))[-1]
        finally:
            await provider.close()

    begun, done = asyncio.run(cut())
    assert len(begun) == 3
    assert isinstance(done, ResponseCompleted)
    assert done.stop_reason == "max_tokens"
    assert "cancel task" in realmodel.log()


def test_the_server_is_found_by_what_it_says_of_itself(url: str) -> None:
    port = int(url.removesuffix("/v1").rpartition(":")[2])
    [found] = asyncio.run(find_local_servers({"llamacpp": port}, deadline=5))
    assert (found.name, found.base_url) == ("llamacpp", url)
    assert found.models[0].endswith(".gguf")
