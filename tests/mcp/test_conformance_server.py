"""`bridle mcp serve` before the official conformance suite: lifecycle and tools over HTTP."""

import asyncio
from pathlib import Path

from conformance_rig import NEXT, STABLE, conform, every_group, expected, failures, passed
from serve_rig import Served
from suite_fixtures import fixtures

from bridle.server.mcp.http import PATH, HttpTransport, application, bind
from bridle.server.mcp.server import create_server

TOKEN = "a-token-that-only-this-test-knows"
LIFECYCLE = {"server-initialize", "ping", "tools-list", "dns-rebinding-protection"}
TOOLS = {
    "tools-call-simple-text",
    "tools-call-image",
    "tools-call-audio",
    "tools-call-embedded-resource",
    "tools-call-mixed-content",
    "tools-call-error",
    "tools-call-with-progress",
    "json-schema-2020-12",
}


class Lending:
    """The suite knows of no tokens: this hands it ours, in front of the same guard as ever."""

    def __init__(self, app):
        self._app = app

    async def __call__(self, scope, receive, send):
        if scope["type"] == "http":
            token = (b"authorization", f"Bearer {TOKEN}".encode())
            scope = scope | {"headers": [*scope["headers"], token]}
        await self._app(scope, receive, send)


def judged(suite, folder: Path, *arguments):
    """What the suite finds of our server, which offers its tools beside our own."""

    async def work():
        server = create_server([*Served(folder, "hello").verbs.offers(), *fixtures()])
        with bind(0) as listening:
            port = listening.getsockname()[1]
            web = HttpTransport(Lending(application(server, port, TOKEN)), listening)
            serves = asyncio.ensure_future(web.serve())
            url = f"http://127.0.0.1:{port}{PATH}"
            try:
                return await conform(suite, folder / "out", "server", "--url", url, *arguments)
            finally:
                web.stop()
                await serves

    return asyncio.run(work())  # the SDK's SSE library leaves a task to the loop's own end


def test_the_stable_suite_finds_nothing_but_what_is_written_down(tmp_path):
    found, said = judged(STABLE, tmp_path, "--suite", "all")
    assert failures(found) == expected("server", STABLE), said
    assert passed(found) >= LIFECYCLE | TOOLS, said


def test_the_next_suite_finds_nothing_but_what_is_written_down(tmp_path):
    found, said = judged(NEXT, tmp_path, "--suite", "all", "--spec-version", "2026-07-28")
    assert failures(found) == expected("server", NEXT), said
    lifecycle = {"tools-list", "dns-rebinding-protection", "http-header-validation"}
    assert passed(found) >= lifecycle | TOOLS, said


def test_every_expected_failure_has_a_reason():
    groups = every_group()
    named = [[*one["checks"], *one.get("scenarios", ())] for one in groups]
    assert all(len(one["why"]) > 20 for one in groups)
    assert all(one and len(set(one)) == len(one) for one in named)
