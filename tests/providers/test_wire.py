"""The wire over real sockets: refusals, broken connections, timeouts, cancellation, proxies."""

import asyncio
import contextlib
import traceback
from typing import Any

import pytest
from loopback import (
    ASK,
    Answerer,
    Exchange,
    Loopback,
    collected,
    recording,
    refusing,
    saying,
    served,
)

from bridle.errors import (
    AgentError,
    BadStream,
    ConfigError,
    ContextTooLong,
    KeyRefused,
    Overloaded,
    RateLimited,
    RequestRefused,
    StreamCutShort,
    StreamStalled,
    TimedOut,
    UnknownModel,
    Unreachable,
)
from bridle.events import ResponseCompleted, TextDelta
from bridle.messages import user
from bridle.protocols.provider import Request
from bridle.providers.anthropic import Anthropic
from bridle.providers.openai_chat import OpenAIChat
from bridle.providers.wire import Timeouts, Wire

HELLO = recording("anthropic-refusal.sse")
KEY = "sk-very-secret"


def failure(answer: Answerer, provider: type[Any] = Anthropic, **options: Any) -> AgentError:
    async def main() -> AgentError:
        async with served(answer) as place:
            return await raised(provider("m", api_key=KEY, base_url=place.url, **options))

    return asyncio.run(main())


async def raised(provider: Any) -> AgentError:
    with pytest.raises(AgentError) as told:
        await collected(provider)
    return told.value


def vendor_error(word: str) -> bytes:
    return b'{"type":"error","error":{"type":"%b","message":"why"},"request_id":"req_b"}' % (
        word.encode()
    )


@pytest.mark.parametrize(
    ("status", "kind", "retryable"),
    [
        (400, RequestRefused, False),
        (401, KeyRefused, False),
        (402, KeyRefused, False),
        (403, KeyRefused, False),
        (404, UnknownModel, False),
        (408, StreamStalled, True),
        (413, ContextTooLong, False),
        (422, RequestRefused, False),
        (429, RateLimited, True),
        (500, Overloaded, True),
        (503, Overloaded, True),
        (529, Overloaded, True),
        (307, BadStream, False),
    ],
)
def test_every_status_is_an_error_of_its_own(status: int, kind: type, retryable: bool) -> None:
    """(M8) (A3): with the vendor's message, its word, and its number for the request."""
    error = failure(refusing(status, vendor_error("its_word"), request_id="req_h"))
    assert (type(error), error.retryable) == (kind, retryable)
    assert error.message.startswith("127.0.0.1:")
    assert error.message.endswith(f" answered {status}: why")
    assert error.origin == (status, "its_word", "req_h")


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("context_length_exceeded", ContextTooLong),
        ("model_not_found", UnknownModel),
        ("insufficient_quota", KeyRefused),
        ("some_other", RequestRefused),
    ],
)
def test_a_code_says_more_than_the_status(code: str, kind: type) -> None:
    """(M8)"""
    body = b'{"error":{"message":"529 overloaded","type":"invalid_request_error","code":"%b"}}'
    assert type(failure(refusing(400, body % code.encode()), OpenAIChat)) is kind


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry_after": "7"}, 7.0),
        ({"retry_after": "0.5"}, 0.5),
        ({"retry_after_ms": "1500", "retry_after": "9"}, 1.5),
        ({"retry_after": "Thu, 01 Jan 2015 00:00:00 GMT"}, 0.0),
        ({"retry_after": "soon"}, None),
        ({}, None),
    ],
)
def test_the_vendors_wish_to_wait_is_kept(headers: dict[str, str], seconds: float | None) -> None:
    """(M5)"""
    error = failure(refusing(429, vendor_error("rate_limit_error"), **headers))
    assert error.retry_after == seconds


def test_the_vendor_may_forbid_another_try() -> None:
    error = failure(refusing(500, vendor_error("api_error"), x_should_retry="false"))
    assert (type(error), error.retryable) == (Overloaded, False)


@pytest.mark.parametrize(
    "body",
    [
        b"<html>Bad gateway</html>",
        b"",
        b"[]",
        b'{"error":"gone"}',
        b'{"error":{"message":"\xff"}}',
        b"[" * 5000,
    ],
    ids=lambda body: body[:12],
)
def test_an_error_in_another_shape_is_still_typed(body: bytes) -> None:
    error = failure(refusing(502, body))
    assert (type(error), error.status) == (Overloaded, 502)


def test_an_endless_error_document_is_read_as_far_as_it_is_useful() -> None:
    """(A13)"""

    async def answer(exchange: Exchange) -> None:
        await exchange.begin(500)
        with contextlib.suppress(ConnectionError):
            while True:
                await exchange.say(b"x" * 65536)

    assert type(failure(answer)) is Overloaded


def test_the_key_is_in_no_error_even_when_the_server_says_it() -> None:
    """The secret stays secret: in the text, the cause and the traceback."""
    echo = b'{"error":{"type":"authentication_error","message":"bad key %b"}}' % KEY.encode()
    error = failure(refusing(401, echo))
    assert error.message.endswith("bad key ***")
    for refused in (error, failure(refusing(200, b"<p>", content_type="text/html"))):
        assert KEY not in "".join(traceback.format_exception(refused)) + repr(refused)
    assert KEY not in repr(Anthropic("m", api_key=KEY)) + repr(Wire("http://h", {"k": KEY}))


def test_a_page_instead_of_a_stream_is_a_bad_stream() -> None:
    error = failure(refusing(200, b"<html></html>", content_type="text/html"))
    assert type(error) is BadStream
    assert error.hint == BadStream.hint


def test_no_server_is_unreachable_and_the_host_is_named() -> None:
    """(M8)"""

    async def main() -> AgentError:
        async with served(saying(HELLO)) as place:
            url = place.url
        return await raised(Anthropic("m", base_url=url))

    error = asyncio.run(main())
    assert (type(error), error.kind) == (Unreachable, "network")
    assert error.message.startswith("127.0.0.1:")
    assert isinstance(error.cause or error.__cause__, OSError)


def test_a_host_that_does_not_exist_is_unreachable() -> None:
    error = asyncio.run(raised(Anthropic("m", base_url="http://nowhere.invalid")))
    assert type(error) is Unreachable
    assert "nowhere.invalid" in error.message


@pytest.mark.parametrize("url", ["", "example.org", "ftp://example.org", "https://"])
def test_a_base_url_that_is_none_is_said_at_once(url: str) -> None:
    with pytest.raises(ConfigError):
        Anthropic("m", base_url=url)


def test_a_server_that_hangs_up_before_it_answers_is_unreachable() -> None:
    error = failure(lambda exchange: exchange.hang_up())
    assert (type(error), error.retryable) == (Unreachable, True)


def test_a_body_cut_in_the_middle_is_a_cut_stream() -> None:
    """(M5) (M8)"""

    async def answer(exchange: Exchange) -> None:
        await exchange.begin()
        await exchange.say(HELLO[:700])
        await exchange.hang_up()

    assert type(failure(answer)) is StreamCutShort


def test_silence_is_a_stalled_stream() -> None:
    """(A13): before the first byte and in the middle."""

    async def mute(exchange: Exchange) -> None:
        await asyncio.Event().wait()

    async def stalls(exchange: Exchange) -> None:
        await exchange.begin()
        await exchange.say(HELLO[:700])
        await asyncio.Event().wait()

    for answer in (mute, stalls):
        error = failure(answer, timeouts=Timeouts(idle=0.05))
        assert (type(error), error.kind) == (StreamStalled, "timeout")


def test_a_reply_that_takes_too_long_in_all_has_timed_out() -> None:
    """(A13): also when bytes keep coming, or none at all."""

    async def answer(exchange: Exchange) -> None:
        await exchange.begin()
        with contextlib.suppress(ConnectionError):
            while True:
                await exchange.say(b": ping\\n\\n")
                await asyncio.sleep(0.005)

    async def mute(exchange: Exchange) -> None:
        await asyncio.Event().wait()

    for says in (answer, mute):
        error = failure(says, timeouts=Timeouts(total=0.1))
        assert (type(error), error.kind) == (TimedOut, "timeout")


def test_closing_the_stream_closes_the_connection_at_once() -> None:
    """(M6): the server sees its client leave in the middle of the reply."""

    async def main() -> list[Any]:
        gone = asyncio.Event()

        async def answer(exchange: Exchange) -> None:
            await exchange.begin()
            await exchange.say(HELLO[:700])
            await exchange.wait_until_gone()
            gone.set()

        async with served(answer) as place:
            provider = Anthropic("m", base_url=place.url)
            events = provider.stream(ASK)
            seen = [await anext(events), await anext(events)]
            await events.aclose()
            await gone.wait()
            await provider.close()
        return seen

    assert asyncio.run(main())[1] == TextDelta("I cannot help with that.")


def test_cancelling_the_task_closes_the_connection_at_once() -> None:
    """(M6)"""

    async def main() -> None:
        begun, gone = asyncio.Event(), asyncio.Event()

        async def answer(exchange: Exchange) -> None:
            begun.set()
            await exchange.wait_until_gone()
            gone.set()

        async with served(answer) as place:
            provider = Anthropic("m", base_url=place.url)
            task = asyncio.create_task(collected(provider))
            await begun.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            await gone.wait()

    asyncio.run(main())


def test_one_connection_serves_many_requests() -> None:
    """Also when the end of the body comes after the end of the reply."""

    async def answer(exchange: Exchange) -> None:
        await exchange.begin()
        await exchange.say(HELLO)
        await asyncio.sleep(0)
        await exchange.end()

    async def main() -> Loopback:
        async with served(answer) as place:
            provider = Anthropic("m", base_url=place.url)
            for _ in range(5):
                events = [event async for event in provider.stream(ASK)]
                assert isinstance(events[-1], ResponseCompleted)
                await given_back(provider)
            await provider.close()
            return place

    async def given_back(provider: Any) -> None:
        pool = provider._transport._pools[asyncio.get_running_loop()]
        for _ in range(1000):
            if pool._session.connector._conns:
                return
            await asyncio.sleep(0)

    assert asyncio.run(main()).connections == 1


def test_a_provider_outlives_its_event_loop() -> None:
    """Closed or not, it works in the next loop, and after `close`."""

    async def once(provider: Anthropic, close: bool) -> ResponseCompleted:
        async with served(saying(HELLO)) as place:
            provider._transport.base_url = place.url
            events = [event async for event in provider.stream(ASK)]
            if close:
                await provider.close()
        assert isinstance(events[-1], ResponseCompleted)
        return events[-1]

    provider = Anthropic("m", base_url="http://127.0.0.1:1")
    replies = [asyncio.run(once(provider, close)) for close in (False, True, False, True)]
    assert replies == [replies[0]] * 4


def test_a_large_request_is_sent_whole() -> None:
    async def main() -> Exchange:
        async with served(saying(HELLO)) as place:
            await collected(Anthropic("m", base_url=place.url), Request([user("x" * 3_000_000)]))
            return place.asked[0]

    assert len(asyncio.run(main()).body) > 3_000_000


def test_the_environments_proxy_is_used_with_its_login(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> Exchange:
        async with served(saying(HELLO)) as place:
            login = place.url.replace("http://", "http://me:p%40ss@")
            monkeypatch.setenv("http_proxy", login)
            monkeypatch.setenv("no_proxy", "elsewhere.invalid")
            await collected(Anthropic("m", base_url="http://model.invalid"))
            return place.asked[0]

    asked = asyncio.run(main())
    assert asked.line == "POST http://model.invalid/v1/messages HTTP/1.1"
    assert asked.headers["host"] == "model.invalid"
    assert asked.headers["proxy-authorization"] == "Basic bWU6cEBzcw=="


def test_a_host_that_needs_no_proxy_is_reached_directly(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> int:
        async with served(saying(HELLO)) as place:
            monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
            await collected(Anthropic("m", base_url=place.url))
            return len(place.asked)

    assert asyncio.run(main()) == 1


def test_a_proxy_of_another_kind_is_said_to_be_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("all_proxy", "socks5://127.0.0.1:1")
    error = asyncio.run(raised(Anthropic("m", base_url="http://model.invalid")))
    assert type(error) is ConfigError
    assert "socks5" in error.message
