"""A server's life: up on a socket, told to stop, everything settled; and what starting it costs."""

import asyncio
import stat
import subprocess
import sys
from contextlib import aclosing

import aiohttp
import pytest
from rig_raw import connected, head
from rig_server import server, write_note

from bridle.errors import ConfigError
from bridle.server.http import bind, bind_unix
from rig import Thing, call, run


def test_a_stop_tells_the_streams_parks_the_question_and_takes_nothing_new(tmp_path):
    async def work():
        script = [call("write_note", text="one"), {"text": "done"}]
        async with server(tmp_path, script, write_note) as there:
            path = f"/api/sessions/{await there.made()}"
            await there.post(f"{path}/chat", {"prompt": "go"})
            await there.until(f"{path}/stream", lambda e: e.name == "approval_required")
            while len(there.room.streams):  # that one is over, but the server may not know it yet
                assert (await there.get("/api/ready")).status == 200
            watching = asyncio.ensure_future(there.until(f"{path}/stream", ends))
            listening = asyncio.ensure_future(there.until("/api/events", ends))
            while len(there.room.streams) < 2:
                assert (await there.get("/api/ready")).status == 200
            await there.serving.stop(5)
            told = [(await one)[-1].name for one in (watching, listening)]
            assert told == ["stopping", "stopping"]
            with pytest.raises(aiohttp.ClientError):
                await there.get("/api/health")
        async with server(tmp_path, [{"text": "done"}], write_note) as there:
            (question,) = (await there.get("/api/approvals")).body["approvals"]
            where = f"{path}/approvals/{question['callId']}"
            answer = await there.post(where, {"allowed": True, "shown": question["shown"]})
            assert answer.status == 200
            found = await there.until(f"{path}/stream", lambda e: e.name == "completed")
            results = [e.data["data"]["result"]["text"] for e in found if e.name == "tool_result"]
            assert results == ["wrote one"]

    run(work())


def ends(event):
    return event.name == "stopping"


def test_a_turn_that_would_never_end_is_interrupted_and_its_watcher_sees_how_it_ended(tmp_path):
    async def never(arguments, context):
        await asyncio.Event().wait()

    async def work():
        async with server(tmp_path, [call("thing")], Thing(never)) as there:
            path = f"/api/sessions/{await there.made()}"
            await there.post(f"{path}/chat", {"prompt": "go"})
            found, stopping = [], None
            async with aclosing(there.events(f"{path}/stream")) as events, asyncio.timeout(240):
                async for event in events:
                    found.append(event)
                    if event.data.get("data", {}).get("type") == "intent":
                        stopping = asyncio.ensure_future(there.serving.stop(10))
                await stopping
            *_, ended, told = found
            assert (ended.name, ended.data["data"]["reason"]) == ("error", "interrupted")
            assert told.name == "stopping"

    run(work())


def test_while_it_stops_verbs_are_503_and_reading_still_works(tmp_path):
    async def work():
        async with server(tmp_path) as there:
            path = f"/api/sessions/{await there.made()}"
            await there.room.sessions.stop(1)
            for way, body in (("/chat", {"prompt": "x"}), ("/resume", {}), ("/fork", {})):
                answer = await there.post(path + way, body)
                assert (answer.status, answer.code) == (503, "server_stopping"), way
            ready = await there.get("/api/ready", token="")
            assert (ready.status, ready.code) == (503, "server_stopping")
            assert (await there.get("/api/health", token="")).status == 200

    run(work())


def test_a_client_that_says_nothing_and_one_that_reads_nothing_do_not_hold_up_the_end(tmp_path):
    async def work():
        async with server(tmp_path) as there:
            path = f"/api/sessions/{await there.made()}/stream"
            silent = await connected(there)
            half = await connected(there)
            half[1].write(head(there, "GET", path)[:-2])
            deaf = await connected(there)
            deaf[1].write(head(there, "GET", path))
            while not len(there.room.streams):
                assert (await there.get("/api/health")).status == 200
            async with asyncio.timeout(240):
                await there.serving.stop(2)
            for _, writer in (silent, half, deaf):
                writer.transport.abort()

    run(work())


def test_a_private_unix_socket_answers_to_localhost_with_the_same_token(tmp_path):
    async def work():
        path = tmp_path / "run" / "server.sock"
        async with server(tmp_path, unix=path) as there:
            assert stat.S_IMODE(path.stat().st_mode) == 0o600
            assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
            with pytest.raises(ConfigError, match="cannot be used") as caught:
                bind_unix(path)
            assert "running there already" in caught.value.hint
            assert (await there.get("/api/me")).body["name"] == "me"
            assert (await there.get("/api/me", token="")).status == 401
            assert (await there.get("/api/me", headers={"Host": "evil.example"})).status == 421
            assert (await there.made()) in str((await there.get("/api/sessions")).body)
        bind_unix(path).close()  # its server is gone, so the place is free
        with pytest.raises(ConfigError, match="cannot be used"):
            bind_unix(tmp_path / ("x" * 200) / "server.sock")

    run(work())


def test_a_port_that_is_taken_says_so():
    with bind("127.0.0.1", 0) as one:
        port = one.getsockname()[1]
        for host, number in (("127.0.0.1", port), ("127.0.0.1", 70_000), ("::1::", 0)):
            with pytest.raises(ConfigError, match=f"port {number} cannot be used") as caught:
                bind(host, number)
            assert caught.value.hint
            assert "(" not in caught.value.message  # not the pair that Python names the place by


LOOK = """
import importlib, sys
for module in {modules!r}:
    importlib.import_module(f"bridle.server.{{module}}")
    print(module, *(name for name in {names!r} if name in sys.modules))
"""
HEAVY = ["starlette", "uvicorn", "pydantic", "attrs", "opentelemetry", "ag_ui"]
LIGHT = ["streams", "tokens", "login", "auth", "middleware", "context"]


def test_only_the_application_imports_the_framework():
    code = LOOK.format(modules=[*LIGHT, "app", "http"], names=HEAVY)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    wanted = [*LIGHT, "app starlette", "http starlette uvicorn"]
    assert done.stdout.splitlines() == wanted


MADE = """
import sys, tempfile
from pathlib import Path
sys.path[:0] = {path!r}
from rig_server import server
from rig import run

async def work():
    async with server(Path(tempfile.mkdtemp())):
        print(sorted(name for name in {names!r} if name in sys.modules))

run(work())
"""


def test_a_server_that_runs_has_imported_nothing_that_it_does_not_need():
    here = [str(one) for one in sys.path if one.endswith(("tests", "tests/server"))]
    code = MADE.format(path=here, names=["pydantic", "attrs", "opentelemetry", "ag_ui"])
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
