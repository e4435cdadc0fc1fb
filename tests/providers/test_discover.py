"""Finding a local server: real sockets that answer well, badly, slowly or not at all."""

import asyncio
import socket
import subprocess
import sys
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AsyncExitStack

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bridle.runtime.providers import LocalServer, _models, find_local_servers

Talk = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
OLLAMA = b'{"models": [{"name": "qwen3:8b"}, {"name": "nomic-embed-text"}]}'
LLAMA = b'{"object":"list","models":[],"data":[{"id":"smollm2.gguf","owned_by":"llamacpp"}]}'
STUDIO = b'{"object": "list", "data": [{"id": "gemma-3", "owned_by": "organization_owner"}]}'


def saying(body: bytes, status: bytes = b"200 OK") -> Talk:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.0 " + status + b"\r\nContent-Type: application/json\r\n\r\n" + body)
        writer.close()

    return talk


async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.read()
    writer.close()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def found(
    servers: Mapping[str, Talk | None], deadline: float = 5.0
) -> tuple[list[LocalServer], list[int]]:
    """Start these servers (None: nobody listens), look for them, and tell their ports."""

    async def look() -> tuple[list[LocalServer], list[int]]:
        async with AsyncExitStack() as stack:
            ports = {}
            for name, talk in servers.items():
                if talk is None:
                    ports[name] = free_port()
                    continue
                server = await asyncio.start_server(talk, "127.0.0.1", 0)
                await stack.enter_async_context(server)
                ports[name] = server.sockets[0].getsockname()[1]
            return await find_local_servers(ports, deadline=deadline), list(ports.values())

    return asyncio.run(look())


def test_the_servers_that_answer_are_found_with_their_models() -> None:
    servers = {"ollama": saying(OLLAMA), "llamacpp": saying(LLAMA), "lmstudio": saying(STUDIO)}
    answer, ports = found(servers)
    assert answer == [
        LocalServer("ollama", f"http://127.0.0.1:{ports[0]}/v1", ("qwen3:8b",)),
        LocalServer("llamacpp", f"http://127.0.0.1:{ports[1]}/v1", ("smollm2.gguf",)),
        LocalServer("lmstudio", f"http://127.0.0.1:{ports[2]}/v1", ("gemma-3",)),
    ]


def test_a_port_where_nobody_listens_is_no_server() -> None:
    answer, _ = found({"ollama": None, "llamacpp": None, "lmstudio": saying(STUDIO)})
    assert [one.name for one in answer] == ["lmstudio"]


def test_a_server_that_says_nothing_holds_nobody_up() -> None:
    assert found({"ollama": silent, "llamacpp": silent}, deadline=0.05)[0] == []


@pytest.mark.parametrize(
    "talk",
    [
        saying(b"<html><title>Tomcat</title></html>"),
        saying(b""),
        saying(b"\xff\xfe"),
        saying(b"[" * 100_000),
        saying(b'{"status": "UP"}'),
        saying(b'{"object": "list", "data": []}'),
        saying(b'{"object": "list", "data": [1]}'),
        saying(STUDIO),
        saying(LLAMA, b"404 Not Found"),
        saying(LLAMA, b"302 Found"),
    ],
)
def test_another_program_on_its_port_is_not_taken_for_llama_cpp(talk: Talk) -> None:
    assert found({"llamacpp": talk})[0] == []


def test_an_endless_answer_is_cut_off() -> None:
    async def endless(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.0 200 OK\r\n\r\n")
        try:
            while True:
                writer.write(b"x" * 65536)
                await writer.drain()
        except ConnectionError:
            writer.close()

    assert found({"ollama": endless})[0] == []


def test_looking_for_servers_does_not_load_a_http_client() -> None:
    code = "import sys, bridle.runtime.providers; print('aiohttp' in sys.modules)"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout == "False\n"


@settings(max_examples=50)
@given(st.binary(max_size=100), st.sampled_from(["ollama", "llamacpp", "lmstudio"]))
def test_any_bytes_are_models_or_nothing(answer: bytes, name: str) -> None:
    models = _models(name, answer)
    assert models is None or all(isinstance(model, str) for model in models)
