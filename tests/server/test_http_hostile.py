"""Hostile input over a real server: its documented answer, and another client notices nothing."""

import asyncio
import logging
import re
import socket
from contextlib import aclosing

from msgspec.structs import replace
from rig_raw import answered, closed, connected, head, said
from rig_server import LIMITS, server, write_note

from bridle.server.routing import Routes
from rig import SOAK, call, run, seeds

IDS = (
    "none",
    "..",
    "%2e%2e",
    "%2e%2e%2f%2e%2e%2fetc%2fpasswd",
    "..%5c..",
    "%00",
    "a%00b",
    "%ff%fe",
    "%0d%0aSet-Cookie:x",
    "x" * 1_000,
    "20260101-000000-0000000000",
    "-",
    "*",
    "%E2%80%AE",
    "inbox",
    ".lock",
)


async def when(there, so):
    """Wait until it is so, by what another client does meanwhile."""
    while not so():
        assert (await there.get("/api/health")).status == 200


def test_path_tricks_in_ids_lead_nowhere(tmp_path):
    async def work():
        async with server(tmp_path) as there:
            (tmp_path / "sessions" / "secret.jsonl").write_text('{"seq":1}\n')
            for one in (*IDS, "secret", "..%2fsessions%2fsecret"):
                for more in ("", "/records", "/stream", "/export", "/history", "/files"):
                    found = await said(there, head(there, "GET", f"/api/sessions/{one}{more}"))
                    assert found.status == 404, (one, more)
                    assert found.code in ("unknown_session", "not_found"), (one, more)
                body = b'{"allowed": true, "shown": "x"}'
                kind = ("Content-Type: application/json", f"Content-Length: {len(body)}")
                path = f"/api/sessions/{one}/approvals/{one}"
                found = await said(there, head(there, "POST", path, *kind), body)
                assert found.status == 404, one
            made = await there.made()
            for one in IDS:
                path = f"/api/sessions/{made}/approvals/{one}"
                found = await said(there, head(there, "POST", path, *kind), body)
                assert found.status in (404, 405), one
                grant = head(there, "DELETE", f"/api/sessions/{made}/grants/{one}")
                assert (await said(there, grant)).status in (404, 405), one
            assert (await there.get(f"/api/sessions/{made}")).status == 200

    run(work())


def test_a_session_of_another_workspace_is_unknown(tmp_path):
    async def work():
        (tmp_path / "other").mkdir()
        (tmp_path / "sessions").mkdir()
        (tmp_path / "other" / "sessions").symlink_to(tmp_path / "sessions")
        async with server(tmp_path / "other") as there:
            foreign = await there.made()
        async with server(tmp_path) as there:
            assert (await there.get("/api/sessions")).body["sessions"] == []
            for path in ("", "/stream", "/records", "/export"):
                answer = await there.get(f"/api/sessions/{foreign}{path}")
                assert (answer.status, answer.code) == (404, "unknown_session"), path
            sent = await there.post(f"/api/sessions/{foreign}/chat", {"prompt": "x"})
            assert (sent.status, sent.code) == (404, "unknown_session")

    run(work())


def test_nonsense_in_last_event_id_is_400_and_beyond_the_end_is_a_resync(tmp_path):
    async def work():
        async with server(tmp_path) as there:
            path = f"/api/sessions/{await there.made()}/stream"
            for last in ("x", "-1", "1.5", "1 2", "٣", "9" * 17, "0x1", "1;2"):
                found = await said(there, head(there, "GET", path, f"Last-Event-ID: {last}"))
                assert (found.status, found.code) == (400, "invalid_request"), last
            for after in ("x", "-1", "1.5", "9" * 20, ""):
                answer = await there.get(f"{path}?after={after}")
                assert (answer.status, answer.code) == (400, "invalid_request"), after
            beyond = {"Last-Event-ID": "9" * 16}
            (event,) = await there.until(path, lambda event: True, headers=beyond)
            assert (event.name, event.data) == ("resync", {"after": 1})

    run(work())


def test_more_streams_than_there_may_be_are_429_and_those_that_are_open_go_on(tmp_path):
    async def work():
        most = 20
        limits = replace(LIMITS, streams=most, connections=100_000)
        async with server(tmp_path, [{"text": "hi"}], limits=limits) as there:
            session_id = await there.made()
            path = f"/api/sessions/{session_id}"
            watching = [
                asyncio.ensure_future(
                    there.until(f"{path}/stream", lambda e: e.name == "completed")
                )
                for _ in range(most)
            ]
            await when(there, lambda: len(there.room.streams) == most)
            for _ in range(10_000 if SOAK else 200):
                answer = await there.get(f"{path}/stream")
                assert (answer.status, answer.code) == (429, "too_many_streams")
                assert answer.headers["retry-after"]
            assert (await there.get("/api/events")).code == "too_many_streams"
            assert (await there.post(f"{path}/chat", {"prompt": "hi"})).status == 202
            found = await asyncio.gather(*watching)
            assert len({tuple(event.data["seq"] for event in one) for one in found}) == 1

    run(work())


def test_a_client_that_vanishes_at_any_byte_of_a_stream_leaves_nothing_behind(tmp_path):
    async def work():
        async with server(tmp_path, [{"text": "hello there"}]) as there:
            path = f"/api/sessions/{await there.made()}"
            await there.post(f"{path}/chat", {"prompt": "hi"})
            whole = await there.until(f"{path}/stream", lambda e: e.name == "completed")
            reader, writer = await connected(there)
            writer.write(head(there, "GET", f"{path}/stream"))
            most = len(await reader.readuntil(b"event: completed"))
            await closed(writer)
            for size in range(1, most, 1 if SOAK else most // 20):
                reader, writer = await connected(there)
                writer.write(head(there, "GET", f"{path}/stream"))
                await reader.readexactly(size)
                writer.transport.abort()
            await when(there, lambda: not len(there.room.streams))
            again = await there.until(f"{path}/stream", lambda e: e.name == "completed")
            assert [event.data for event in again] == [event.data for event in whole]

    run(work())


def test_a_client_that_does_not_read_is_cut_off_and_the_others_are_not(tmp_path):
    async def work():
        limits = replace(LIMITS, stalled_seconds=0.3)
        async with server(tmp_path, [{"text": "x" * 100}], limits=limits) as there:
            path = f"/api/sessions/{await there.made()}"
            big = b'{"queue": true, "prompt": "' + b"y" * 8_000_000 + b'"}'
            kind = ("Content-Type: application/json", f"Content-Length: {len(big)}")
            begin = head(there, "POST", f"{path}/chat", *kind)
            assert (await said(there, begin, big)).status == 202
            deaf = socket.socket()
            deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
            deaf.setblocking(False)
            loop = asyncio.get_running_loop()
            await loop.sock_connect(deaf, ("127.0.0.1", there.port))
            await loop.sock_sendall(deaf, head(there, "GET", f"{path}/stream"))
            await when(there, lambda: there.room.streams.told)  # it was there, if only for a moment
            assert (await there.get(path)).status == 200
            await when(there, lambda: not len(there.room.streams))
            deaf.close()

    run(work())


def test_late_answers_are_410_and_run_nothing(tmp_path):
    """(A11)"""

    async def work():
        script = [call("write_note", text="one"), {"text": "well"}]
        async with server(tmp_path, script, write_note, ask_seconds=0.05) as there:
            path = f"/api/sessions/{await there.made()}"
            await there.post(f"{path}/chat", {"prompt": "go"})
            events = await there.until(f"{path}/stream", lambda e: e.name == "completed")
            (asked,) = (e.data["data"] for e in events if e.name == "approval_required")
            answer = {"allowed": True, "shown": asked["shown"]}
            late = await there.post(f"{path}/approvals/{asked['call']['id']}", answer)
            assert (late.status, late.code) == (410, "approval_expired")
            (result,) = (e.data["data"]["result"] for e in events if e.name == "tool_result")
            assert result["ok"] is False

    run(work())


BROKEN = Routes("Broken")


@BROKEN.get("/api/broken", role="watch")
async def broken() -> None:
    """Breaks."""
    raise RuntimeError("a secret of the house")


def test_a_handler_that_breaks_is_500_with_a_number_that_the_log_has_too(tmp_path, caplog):
    async def work():
        async with server(tmp_path, more=BROKEN) as there:
            with caplog.at_level(logging.ERROR, "bridle.server"):
                answer = await there.get("/api/broken")
            assert (answer.status, answer.code) == (500, "internal")
            assert "secret" not in str(answer.body) and "Traceback" not in str(answer.body)
            incident = answer.body["incident"]
            assert incident in answer.body["detail"]
            assert f"incident {incident}" in caplog.text and "a secret of the house" in caplog.text
            assert (await there.get("/api/me")).status == 200

    run(work())


def test_pipelined_requests_are_answered_in_order(tmp_path):
    async def work():
        async with server(tmp_path) as there:
            reader, writer = await connected(there)
            for path in ("/api/me", "/api/nowhere", "/api/health"):
                writer.write(head(there, "GET", path))
            found = [(await answered(reader)).status for _ in range(3)]
            assert found == [200, 404, 200]
            await closed(writer)

    run(work())


def test_rubbish_of_any_kind_does_not_bring_it_down(tmp_path):
    async def work():
        import random

        async with server(tmp_path) as there:
            whole = head(there, "POST", "/api/sessions", "Content-Length: 2") + b"{}"
            for seed in seeds(300):
                chance = random.Random(seed)
                data = bytearray(whole)
                for _ in range(chance.randint(1, 8)):
                    data[chance.randrange(len(data))] = chance.randrange(256)
                _, writer = await connected(there)
                writer.write(bytes(data))
                await closed(writer)
            assert (await there.get("/api/health")).status == 200

    run(work())


def test_a_stream_of_events_says_what_it_is_and_is_kept_nowhere(tmp_path):
    async def work():
        async with server(tmp_path) as there:
            headers = there.headers()
            url = f"{there.url}/api/sessions/{await there.made()}/stream"
            async with there.client.get(url, headers=headers) as answer:
                assert answer.headers["content-type"] == "text/event-stream; charset=utf-8"
                assert answer.headers["cache-control"] == "no-store"
                assert answer.headers["x-accel-buffering"] == "no"
                first = await answer.content.readline()
                assert re.fullmatch(rb"retry: \d+\n", first)
            async with aclosing(there.events("/api/events")) as events:
                assert (await anext(events)).name == "sessions"

    run(work())
