"""What a fake server does to a stream: splits, cuts, silences, huge lines; and who left it."""

import asyncio
import subprocess
import sys
from typing import Any

import aiohttp
import pytest

import bridle.testing
from bridle.runtime.providers import LocalServer, find_local_servers
from bridle.testing import FakeAnthropic, FakeLocal, FakeOpenAI
from bridle.testing.server import FakeServer

HEADERS = {"x-api-key": "k", "anthropic-version": "1", "authorization": "Bearer k"}
BODY = {
    "model": "m",
    "max_tokens": 9,
    "stream": True,
    "messages": [{"role": "user", "content": "go"}],
    "input": "go",
}
PATHS = [
    (FakeAnthropic, "/v1/messages"),
    (FakeOpenAI, "/responses"),
    (FakeOpenAI, "/chat/completions"),
]


async def fetch(server: FakeServer, path: str) -> bytes:
    async with (
        aiohttp.ClientSession() as session,
        session.post(server.url + path, json=BODY, headers=HEADERS) as answer,
    ):
        assert answer.status == 200, await answer.text()
        return await answer.read()


def served(fake: type[FakeServer], path: str, reply: Any) -> bytes:
    async def ask() -> bytes:
        async with fake([reply]) as server:
            return await fetch(server, path)

    return asyncio.run(ask())


@pytest.mark.parametrize(("fake", "path"), PATHS)
def test_the_bytes_are_the_same_however_they_are_split(fake: type[FakeServer], path: str) -> None:
    reply = {"thinking": "hm", "text": "grüße, 世界", "calls": [{"name": "ls"}], "pings": 1}
    whole = served(fake, path, reply)
    assert "世界".encode() in whole
    assert [served(fake, path, {**reply, "split": size}) for size in (1, 7)] == [whole, whole]


@pytest.mark.parametrize(("fake", "path"), PATHS)
def test_a_cut_stream_never_ends(fake: type[FakeServer], path: str) -> None:
    for fault in ({"cut": True}, {"cut_at": 40}, {"cut_at": 0}):
        with pytest.raises(aiohttp.ClientPayloadError):
            served(fake, path, {"text": "half", **fault})


def test_a_connection_can_be_closed_without_an_answer() -> None:
    with pytest.raises(aiohttp.ServerDisconnectedError):
        served(FakeAnthropic, "/v1/messages", {"error": {"kind": "network"}})


def test_raw_text_is_served_as_it_is() -> None:
    raw = "event: x\r\ndata: {\r\n\r\n"
    assert served(FakeOpenAI, "/responses", {"raw": raw}) == raw.encode()


def test_a_huge_line_is_one_line() -> None:
    text = served(FakeOpenAI, "/responses", {"text": "a", "huge": 1_000_000})
    assert max(map(len, text.splitlines())) == 1_000_006


def test_the_server_sees_a_client_leave_a_silent_stream() -> None:
    async def leave() -> int:
        async with FakeAnthropic([{"text": "wait", "silent": True}]) as server:
            async with (
                aiohttp.ClientSession() as session,
                session.post(f"{server.url}/v1/messages", json=BODY, headers=HEADERS) as answer,
            ):
                await answer.content.readline()
            await server.disconnected()
            return server.disconnects

    assert asyncio.run(leave()) == 1


def test_a_silent_stream_does_not_keep_the_server_from_stopping() -> None:
    async def stop() -> None:
        async with aiohttp.ClientSession() as session:
            async with FakeAnthropic([{"text": "wait", "silent": True}]) as server:
                answer = await session.post(f"{server.url}/v1/messages", json=BODY, headers=HEADERS)
                await answer.content.readline()
            answer.close()

    asyncio.run(stop())


def test_a_script_that_is_used_up_answers_400() -> None:
    async def ask() -> Any:
        async with (
            FakeOpenAI([]) as server,
            aiohttp.ClientSession() as session,
            session.post(f"{server.url}/responses", json=BODY, headers=HEADERS) as answer,
        ):
            return answer.status, (await answer.json())["error"]["message"]

    assert asyncio.run(ask()) == (400, "the fake's script has 0 replies and was asked for 1")


def test_a_function_of_the_request_can_be_the_script() -> None:
    async def ask() -> list[bytes]:
        async with FakeOpenAI(lambda body: f"said {body['input']}") as server:
            return [await fetch(server, "/responses") for _ in range(2)]

    assert [b'"text":"said go"' in text for text in asyncio.run(ask())] == [True, True]


def test_a_fake_local_server_needs_no_key_and_is_found_as_llama_cpp() -> None:
    async def ask() -> tuple[int, list[LocalServer], str]:
        async with (
            FakeLocal(["hi"]) as server,
            aiohttp.ClientSession() as session,
            session.post(f"{server.url}/chat/completions", json=BODY) as answer,
        ):
            return (
                answer.status,
                await find_local_servers({"llamacpp": server.port}, deadline=5),
                server.url,
            )

    status, found, url = asyncio.run(ask())
    assert status == 200
    assert found == [LocalServer("llamacpp", url, ("fake-model",))]


def test_every_public_name_is_there_and_the_scripted_model_loads_no_server() -> None:
    code = "import sys; from bridle.testing import Scripted; print('aiohttp' in sys.modules)"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout == "False\n"
    assert [name for name in bridle.testing.__all__ if not hasattr(bridle.testing, name)] == []
    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        bridle.testing.Nothing  # noqa: B018  # reading the attribute is the test
