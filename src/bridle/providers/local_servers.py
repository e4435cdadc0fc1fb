"""Finds model servers on this machine: Ollama, llama.cpp, LM Studio on their usual ports.

Asks loopback only, all at once, with a short deadline, over plain sockets. An answer counts only if
it has the shape that the server is known for: another program on the same port is not a model.
"""

import asyncio
from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec

_HOST = "127.0.0.1"
_DEADLINE = 0.15
_LARGEST_ANSWER = 2**20

PORTS: Mapping[str, int] = {"ollama": 11434, "llamacpp": 8080, "lmstudio": 1234}


class LocalServer(NamedTuple):
    """A server that answered: its base URL for the OpenAI API, and the models it has."""

    name: str
    base_url: str
    models: tuple[str, ...]


async def find_local_servers(
    ports: Mapping[str, int] | None = None, *, deadline: float = _DEADLINE
) -> list[LocalServer]:
    """The local servers that answer within the deadline (seconds), in the order of `ports`."""
    asked = [_probe(name, port, deadline) for name, port in (ports or PORTS).items()]
    return [found for found in await asyncio.gather(*asked) if found is not None]


async def _probe(name: str, port: int, deadline: float) -> LocalServer | None:
    path = "/api/tags" if name == "ollama" else "/v1/models"
    try:
        async with asyncio.timeout(deadline):
            answer = await _get(port, path)
    except (OSError, TimeoutError, asyncio.IncompleteReadError):
        return None
    models = _models(name, answer)
    return None if models is None else LocalServer(name, f"http://{_HOST}:{port}/v1", models)


async def _get(port: int, path: str) -> bytes:
    """The body of an answer 200; empty for any other."""
    reader, writer = await asyncio.open_connection(_HOST, port, limit=_LARGEST_ANSWER)
    try:
        # 1.0, so that the answer is not chunked and ends where the connection does.
        writer.write(f"GET {path} HTTP/1.0\r\nHost: {_HOST}:{port}\r\n\r\n".encode())
        raw = await _read(reader)
    finally:
        writer.transport.abort()  # nothing more to say, and nobody to wait for
    head, _, body = raw.partition(b"\r\n\r\n")
    status = head.split(None, 2)[1:2]
    return body if status == [b"200"] else b""


async def _read(reader: asyncio.StreamReader) -> bytes:
    pieces = bytearray()
    while len(pieces) < _LARGEST_ANSWER and (piece := await reader.read(2**16)):
        pieces += piece
    return bytes(pieces)


def _models(name: str, answer: bytes) -> tuple[str, ...] | None:
    """The models in an answer of the shape that this server gives; None for any other shape."""
    try:
        found = msgspec.json.decode(answer)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    if not isinstance(found, dict):
        return None
    key, field = ("models", "name") if name == "ollama" else ("data", "id")
    rows = found.get(key)
    if not isinstance(rows, list) or not all(_fits(name, row, field) for row in rows):
        return None
    if name != "ollama" and (not rows or found.get("object") != "list"):
        return None
    return tuple(row[field] for row in rows if "embed" not in row[field])


def _fits(name: str, row: Any, field: str) -> bool:
    if not isinstance(row, dict) or not isinstance(row.get(field), str):
        return False
    # llama.cpp's port is everybody's port, and it signs its list.
    return name != "llamacpp" or row.get("owned_by") == "llamacpp"
