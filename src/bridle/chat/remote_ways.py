"""The two ways to tools of another process, by the official SDK. Imports the SDK."""

import logging
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager

import httpx2
from mcp import Client, StdioServerParameters
from mcp.client._transport import TransportStreams
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client

_CONNECTING = 5.0  # seconds


class _Unsaid(logging.Filter):
    """The SDK would write whole messages into its log; in ours stands who the user is."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Is it a line that may be written?"""
        return not str(record.msg).startswith(("Sending client message", "SSE message"))


logging.getLogger("mcp.client.streamable_http").addFilter(_Unsaid())


def over_pipes(command: Sequence[str], environ: Mapping[str, str]) -> Client:
    """A program that is started here, and ends with the connection."""
    started = StdioServerParameters(command=command[0], args=list(command[1:]), env=dict(environ))
    return Client(started, cache=None)


def over_http(url: str, token: str) -> Client:
    """An address."""
    return Client(_web(url, token), cache=None)


@asynccontextmanager
async def _web(url: str, token: str) -> AsyncIterator[TransportStreams]:
    headers = {"Authorization": f"Bearer {token}"}
    timeout = httpx2.Timeout(30.0, connect=_CONNECTING)
    async with (
        create_mcp_http_client(headers=headers, timeout=timeout) as http,
        streamable_http_client(url, http_client=http) as streams,
    ):
        yield streams
