"""The official SDKs as a transport: the same bytes, the same events, the same errors as ours."""

import asyncio
import json
import runpy
import sys
from pathlib import Path
from typing import Any

import pytest
from loopback import ASK, Answerer, Exchange, collected, recording, refusing, saying, served

import bridle
from bridle.errors import (
    AgentError,
    ConfigError,
    KeyRefused,
    MissingExtra,
    Overloaded,
    RateLimited,
    StreamCutShort,
    Unreachable,
)
from bridle.events import ModelEvent
from bridle.messages import user
from bridle.protocols.provider import Request, RequestConfig
from bridle.providers.anthropic import Anthropic
from bridle.providers.openai_chat import OpenAIChat
from bridle.providers.openai_responses import OpenAIResponses
from bridle.providers.sdk import sdk_transport
from bridle.runtime.providers import known_secrets
from rig import Later

anthropic, openai = Later("anthropic"), Later("openai")

EXAMPLES = Path(__file__).parent.parent.parent / "examples"
KEY = "sk-very-secret"
APIS = [
    (Anthropic, "anthropic", "anthropic-tools.sse"),
    (OpenAIResponses, "openai", "openai-tools.sse"),
    (OpenAIChat, "openai-chat", "chat-tools.sse"),
]


def through(api: type[Any], vendor: str, url: str, client: Any = None) -> Any:
    transport = sdk_transport(vendor, client, api_key=KEY, base_url=url)
    return api("m", base_url=url or "http://unused", transport=transport)


def raised(answer: Answerer, api: type[Any] = Anthropic, vendor: str = "anthropic") -> AgentError:
    async def main() -> AgentError:
        async with served(answer) as place:
            with pytest.raises(AgentError) as told:
                await collected(through(api, vendor, place.url))
            return told.value

    return asyncio.run(main())


@pytest.mark.parametrize(("api", "vendor", "name"), APIS)
def test_the_same_request_goes_out_and_the_same_events_come_in(
    api: type[Any], vendor: str, name: str
) -> None:
    """(M5): also for settings that the SDK has no parameter for."""
    request = Request([user("go")], config=RequestConfig(9, 0.5), system="be kind")

    async def main(sdk: bool) -> tuple[list[ModelEvent], Exchange]:
        async with served(saying(recording(name), request_id="r", x_request_id="r")) as place:
            own = api("m", api_key=KEY, base_url=place.url)
            provider = through(api, vendor, place.url) if sdk else own
            return await collected(provider, request), place.asked[0]

    (theirs, through_sdk), (ours, direct) = asyncio.run(main(True)), asyncio.run(main(False))
    assert theirs == ours
    sent, wanted = json.loads(through_sdk.body), json.loads(direct.body)
    assert sent == wanted
    assert through_sdk.line == direct.line


@pytest.mark.parametrize(
    ("status", "kind"),
    [(401, KeyRefused), (429, RateLimited), (500, Overloaded), (529, Overloaded)],
)
@pytest.mark.parametrize(("api", "vendor", "name"), APIS)
def test_errors_of_the_sdk_are_ours(
    api: type[Any], vendor: str, name: str, status: int, kind: type
) -> None:
    """(M8): with status, word, number and wish to wait; asked once, for `Retrying` asks again."""
    body = b'{"error":{"type":"its_word","message":"why %b"}}' % KEY.encode()
    answer = refusing(status, body, request_id="r", x_request_id="r", retry_after="3")
    error = raised(answer, api, vendor)
    assert type(error) is kind
    assert error.origin == (status, "its_word", "r")
    assert error.retry_after == 3.0
    assert error.message == f"127.0.0.1 answered {status}: why ***"


def test_a_cut_stream_and_no_server_are_told_as_over_our_own_wire() -> None:
    """(M8)"""

    async def cut(exchange: Exchange) -> None:
        await exchange.begin()
        await exchange.say(recording("anthropic-tools.sse")[:900])
        await exchange.hang_up()

    assert type(raised(cut)) is StreamCutShort
    assert type(raised(lambda exchange: exchange.hang_up())) is Unreachable


def test_a_client_of_ones_own_is_used_and_left_open() -> None:
    async def main() -> tuple[list[ModelEvent], Exchange]:
        async with (
            served(saying(recording("anthropic-tools.sse"))) as place,
            anthropic.AsyncAnthropic(
                api_key="mine", base_url=place.url, default_headers={"x-mine": "yes"}
            ) as client,
        ):
            events = await collected(through(Anthropic, "anthropic", "", client))
            assert not client.is_closed()
            return events, place.asked[0]

    events, asked = asyncio.run(main())
    assert (asked.headers["x-mine"], asked.headers["authorization"]) == ("yes", "Bearer mine")
    assert events[-1].stop_reason == "tool_use"


def test_events_from_another_framing_are_framed_again() -> None:
    """As Bedrock's are: what the SDK could take apart reaches the same reader."""
    answer = saying(recording("anthropic-tools.sse"), content_type="application/vnd.other")

    async def main() -> ModelEvent:
        async with served(answer) as place:
            return (await collected(through(Anthropic, "anthropic", place.url)))[-1]

    done = asyncio.run(main())
    assert [call.name for call in done.message.tool_calls] == ["read", "todo_read"]


def test_closing_the_stream_closes_the_connection() -> None:
    """(M6)"""

    async def main() -> None:
        gone = asyncio.Event()

        async def answer(exchange: Exchange) -> None:
            await exchange.begin()
            await exchange.say(recording("chat-tools.sse")[:600])
            await exchange.wait_until_gone()
            gone.set()

        async with served(answer) as place:
            provider = through(OpenAIChat, "ollama", place.url)
            events = provider.stream(ASK)
            await anext(events)
            await events.aclose()
            await gone.wait()
            await provider.close()

    asyncio.run(main())


def test_a_missing_sdk_is_said_with_the_line_to_type(monkeypatch: pytest.MonkeyPatch) -> None:
    assert openai.AsyncOpenAI is not None
    monkeypatch.setitem(sys.modules, "openai", None)
    with pytest.raises(MissingExtra) as told:
        sdk_transport("openai")
    assert told.value.hint == "Install it with: pip install 'bridle-agent[sdk]'"


CLOUDS = [
    ("bedrock", "anthropic-tools.sse", "POST /model/claude-sonnet-5-5/invoke-with-response-stream"),
    (
        "vertex",
        "anthropic-tools.sse",
        "POST /projects/my-project/locations/eu/publishers/anthropic/models/claude-sonnet-5-5",
    ),
    ("azure", "openai-tools.sse", "POST /openai/responses?api-version=2025-04-01-preview"),
]


@pytest.mark.parametrize(("cloud", "reply", "line"), CLOUDS)
def test_a_client_of_a_cloud_needs_no_key_of_the_vendor(
    cloud: str, reply: str, line: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The real SDKs' clients, as the guide shows them, against a server of ours."""
    for name in ("BRIDLE_API_KEY", "ANTHROPIC_API_KEY", "OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_REGION", "us-east-1")
    for name in ("AWS_BEARER_TOKEN_BEDROCK", "VERTEX_TOKEN", "AZURE_OPENAI_API_KEY"):
        monkeypatch.setenv(name, "its-own-way-in")
    example = runpy.run_path(str(EXAMPLES / "cloud_models.py"))

    async def main() -> tuple[ModelEvent, Exchange]:
        async with served(saying(recording(reply))) as place:
            for name in ("ANTHROPIC_BEDROCK_BASE_URL", "ANTHROPIC_VERTEX_BASE_URL"):
                monkeypatch.setenv(name, place.url)
            monkeypatch.setenv("AZURE_OPENAI_ENDPOINT", place.url)
            events = await collected(example[cloud]())
            return events[-1], place.asked[0]

    done, asked = asyncio.run(main())
    assert done.stop_reason == "tool_use"
    assert asked.line.startswith(line)
    sent = asked.headers.get("authorization", asked.headers.get("api-key"))
    assert sent in ("its-own-way-in", "Bearer its-own-way-in")
    assert "its-own-way-in" in known_secrets({})


def test_what_is_no_async_client_of_that_sdk_is_refused() -> None:
    for client in (openai.OpenAI(api_key="k"), anthropic.AsyncAnthropic(api_key="k"), "yes"):
        with pytest.raises(ConfigError, match="sdk= takes"):
            bridle.provider("openai/m", sdk=client)


def test_a_package_that_a_client_needs_is_said_with_the_line_to_type(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "boto3", None)
    client = anthropic.AsyncAnthropicBedrock(
        aws_access_key="a", aws_secret_key="s", aws_region="r", base_url="http://127.0.0.1:9"
    )
    with pytest.raises(MissingExtra) as told:
        asyncio.run(collected(bridle.provider("anthropic/m", sdk=client, retries=0)))
    assert told.value.hint == "Install it with: pip install 'anthropic[bedrock]'"
