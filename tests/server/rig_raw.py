"""A client that says exactly these bytes, and a look at what comes back."""

import asyncio
import json
from contextlib import suppress
from typing import NamedTuple


class Raw(NamedTuple):
    """An answer as it came; status 0: the connection was closed without a word."""

    status: int
    body: bytes

    @property
    def code(self):
        return json.loads(self.body)["code"]


def head(there, method, path, *more, token=None):
    """The head of a request, with the token and the right Host."""
    lines = [f"{method} {path} HTTP/1.1", f"Host: 127.0.0.1:{there.port}", *more]
    if token != "":
        lines.append(f"Authorization: Bearer {token or there.token}")
    return "\r\n".join([*lines, "", ""]).encode()


async def connected(there):
    return await asyncio.open_connection("127.0.0.1", there.port)


async def answered(reader):
    """The next whole answer on a connection."""
    try:
        start = await reader.readuntil(b"\r\n\r\n")
    except (asyncio.IncompleteReadError, ConnectionError):
        return Raw(0, b"")
    first, *lines = start.decode("latin-1").split("\r\n")
    fields = dict(line.lower().split(": ", 1) for line in lines if ": " in line)
    length = int(fields.get("content-length", "0"))
    return Raw(int(first.split()[1]), await reader.readexactly(length))


async def said(there, *pieces):
    """What comes back when these bytes are sent on a connection of their own."""
    reader, writer = await connected(there)
    try:
        for piece in pieces:
            writer.write(piece)
            await writer.drain()
        return await answered(reader)
    except ConnectionError:
        return Raw(0, b"")
    finally:
        await closed(writer)


async def closed(writer):
    writer.close()
    with suppress(ConnectionError):
        await writer.wait_closed()
