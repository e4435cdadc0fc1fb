"""The task tools before the official conformance suite, where it applies: a server of tools alone.

The suite's scenarios that call tools of its own making, or want prompts, resources, completion or
questions to the client, do not apply: this server has none of them, and says so.
"""

import asyncio
import sys
from pathlib import Path

import pytest

from bridle.chat.db import Database
from bridle.chat.tasks.tools import MCPToolServer
from bridle.chat.tools.identity import Binding
from bridle.server.mcp.http import PATH, HttpTransport, bind, with_token_check

sys.path.append(str(Path(__file__).parent.parent / "mcp"))
from conformance_rig import NEXT, STABLE, conform, failures, passed

TOKEN = "a-token-that-only-this-test-knows"
ELSEWHERE = ("prompts-", "resources-", "completion-", "logging-", "elicitation-", "tools-call-")
ELSEWHERE += ("input-required-", "json-schema-2020-12", "caching: sep-2549-")
ELSEWHERE += ("http-custom-header-server-validation: ",)  # wants a tool with headers of its own
ELSEWHERE += (  # "not testable: server does not list the diagnostic tool …"
    "server-stateless: sep-2575-server-rejects-undeclared-capability",
    "server-stateless: sep-2575-missing-capability-http-400",
    "server-stateless: sep-2575-http-server-no-independent-requests-on-stream",
    "server-stateless: sep-2575-server-no-log-without-loglevel",
)


class Lending:
    """The suite knows of no tokens: this hands it ours, in front of the same guard as ever."""

    def __init__(self, app):
        self._app = app

    async def __call__(self, scope, receive, send):
        if scope["type"] == "http":
            token = (b"authorization", f"Bearer {TOKEN}".encode())
            scope = scope | {"headers": [*scope["headers"], token]}
        await self._app(scope, receive, send)


def judged(suite, folder, url, *arguments):
    async def work():
        database = Database(url)
        tools = MCPToolServer(database.session_factory)
        server = tools.sdk_server(binding=Binding("ana"))
        with bind(0) as listening:
            port = listening.getsockname()[1]
            app = server.streamable_http_app(
                streamable_http_path=PATH, stateless_http=True, json_response=True
            )
            web = HttpTransport(Lending(with_token_check(app, port, TOKEN)), listening)
            serves = asyncio.ensure_future(web.serve())
            try:
                words = ("server", "--url", f"http://127.0.0.1:{port}{PATH}", *arguments)
                return await conform(suite, folder / "out", *words)
            finally:
                web.stop()
                await serves
                await tools.close()
                database.close()

    return asyncio.run(work())


@pytest.mark.parametrize(
    ("suite", "arguments", "wanted"),
    [
        (STABLE, (), {"server-initialize", "ping", "tools-list", "dns-rebinding-protection"}),
        (
            NEXT,
            ("--spec-version", "2026-07-28"),
            {"tools-list", "dns-rebinding-protection", "http-header-validation"},
        ),
    ],
)
def test_T2_the_suite_passes_where_it_applies(tmp_path, sqlite_url, suite, arguments, wanted):
    found, said = judged(suite, tmp_path, sqlite_url, "--suite", "all", *arguments)
    assert passed(found) >= wanted, said
    assert [one for one in sorted(failures(found)) if not one.startswith(ELSEWHERE)] == [], said
