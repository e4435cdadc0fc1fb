"""`bridle mcp login`: sign in to an MCP server with a browser.

The browser comes back to a free port of 127.0.0.1, which is open for a few minutes.
"""

import asyncio
from contextlib import suppress
from types import TracebackType
from urllib.parse import parse_qsl, urlsplit

import click
from msgspec.structs import replace

from bridle.cli.commands.mcp.list import found_servers
from bridle.cli.style import plain
from bridle.errors import ConfigError, ToolError
from bridle.tools.mcp.server import Server

PATIENCE = 300.0  # seconds for a person with a browser
_LONGEST = 8192  # bytes of a request
_PAGE = "<!doctype html><meta charset=utf-8><title>bridle</title><p>You can close this page."


@click.command("login")
@click.argument("name")
def command(name: str) -> int:
    """Sign in to the server NAME, which has `auth: oauth` in your settings."""
    servers, _ = found_servers()
    found = next((one for one in servers if one.name == name), None)
    if found is None:
        known = ", ".join(one.name for one in servers) or "none"
        raise ConfigError(f"there is no MCP server {plain(name)!r}", hint=f"There are: {known}.")
    if not found.spec.tokens:
        raise ConfigError(
            f"{name} is not set up for signing in", hint="Add `auth: oauth` below its `url`."
        )
    return asyncio.run(sign_in(found))


async def sign_in(server: Server) -> int:
    """Let the person sign in, and show the server's tools."""
    from bridle.cli.commands.mcp.manage import show_server

    async with Loopback() as browser:
        server.browser = browser
        server.spec = replace(server.spec, timeout=PATIENCE)
        return await show_server(server, accept=False)


class Loopback:
    """Shows the person an address, and waits on another for their browser to come back."""

    def __init__(self) -> None:
        self._came: asyncio.Future[dict[str, str]] = asyncio.get_running_loop().create_future()
        self._server: asyncio.Server | None = None

    async def __aenter__(self) -> "Loopback":
        self._server = await asyncio.start_server(self._answer, "127.0.0.1", 0, limit=_LONGEST)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._came.cancel()
        if self._server is not None:
            self._server.close()
            await self._server.wait_closed()

    @property
    def redirect_url(self) -> str:
        """The address to which the browser is sent back."""
        assert self._server is not None
        return f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}/callback"

    async def open(self, url: str) -> None:
        """Show the address of the sign-in page. The server names it, so it is checked."""
        if not url.startswith(("https://", "http://")) or not url.isprintable():
            raise ToolError("cannot sign in: the server did not name a valid page")
        click.echo(f"Sign in with your browser:\n  {plain(url)}", err=True)

    async def callback(self) -> dict[str, str]:
        """Return what the browser came back with."""
        try:
            return await asyncio.wait_for(asyncio.shield(self._came), PATIENCE)
        except TimeoutError:
            raise ToolError("nobody signed in within five minutes") from None

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError, ValueError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            head = (await reader.readuntil(b"\r\n\r\n")).decode("ascii", "replace")
            method, target, *_ = head.split(" ", 2)
            asked = urlsplit(target)
            good = method == "GET" and asked.path == "/callback"
            status = "200 OK" if good else "404 Not Found"
            body = _PAGE if good else ""
            writer.write(
                f"HTTP/1.1 {status}\r\ncontent-type: text/html\r\ncontent-length: {len(body)}\r\n"
                f"connection: close\r\n\r\n{body}".encode()
            )
            await writer.drain()
            if good and not self._came.done():
                self._came.set_result(dict(parse_qsl(asked.query)))
        writer.close()
