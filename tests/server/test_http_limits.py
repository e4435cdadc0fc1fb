"""Limits over a real server: sizes, depth, rate, slow clients, many streams, bad HTTP."""

import asyncio
import resource
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from rig_raw import answered, closed, connected, head, said
from rig_server import LIMITS, server
from sessions_rig import HOLDS, Held

from bridle.errors import ConfigError
from bridle.server import middleware as limiting
from bridle.server.http import check_listen_address, process_limits
from bridle.server.middleware import Limits, TokenBucket, is_too_deep
from rig import SOAK, run

CHAT = "/api/sessions/none/chat"
KIND = "Content-Type: application/json"


async def is_well(there):
    """Another client notices nothing."""
    answer = await there.get("/api/health", token="")
    return answer.status == 200


def chunked(size, piece=65_536):
    """A body that does not say how long it is."""
    for _ in range(0, size, piece):
        yield b"%x\r\n" % piece + b"x" * piece + b"\r\n"
    yield b"0\r\n\r\n"


@pytest.mark.parametrize("path, limit", [(CHAT, 50_000), ("/api/sessions", 10_000)])
def test_a_body_that_is_too_large_is_413_whether_it_says_so_or_not(tmp_path, path, limit):
    async def work():
        limits = replace(LIMITS, chat_bytes=50_000, body_bytes=10_000)
        async with server(tmp_path, limits=limits) as there:
            announced = head(there, "POST", path, KIND, f"Content-Length: {limit + 1}")
            found = await said(there, announced)  # nothing of it was even sent
            assert (found.status, found.code) == (413, "too_large")
            assert f"{limit:,}" in found.body.decode()
            streamed = head(there, "POST", path, KIND, "Transfer-Encoding: chunked")
            found = await said(there, streamed, *list(chunked(limit * 2))[:2])
            assert (found.status, found.code) == (413, "too_large")
            assert await is_well(there)

    run(work())


def test_a_hundred_megabytes_are_not_held_in_memory(tmp_path):
    async def work():
        async with server(tmp_path) as there:
            before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
            for more in (["Transfer-Encoding: chunked"], ["Content-Length: 104857600"]):
                begin = head(there, "POST", CHAT, KIND, *more)
                pieces = chunked(104_857_600) if "chunked" in more[0] else [b"x" * 65_536] * 1_600
                reader, writer = await connected(there)
                writer.write(begin)
                sending = asyncio.ensure_future(_pour(writer, pieces))
                found = await answered(reader)
                assert (found.status, found.code) == (413, "too_large")
                assert await is_well(there)  # while the rest still pours in
                await sending
                await closed(writer)
            grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
            assert grown < 40_000  # kilobytes; the limit for a prompt is ten megabytes

    run(work())


async def _pour(writer, pieces):
    try:
        for piece in pieces:
            writer.write(piece)
            await writer.drain()
    except ConnectionError:
        pass  # it was told to stop


def test_json_that_is_malformed_deep_or_of_the_wrong_kind_says_so(tmp_path):
    async def work():
        async with server(tmp_path) as there:
            cases = {
                b"{": "invalid_json",
                b"": "invalid_json",
                b'{"prompt": "a"} x': "invalid_json",
                b'{"prompt": "\xff\xfe"}': "invalid_json",
                b'{"prompt": "\\ud800"}': "invalid_json",
                b"[" * 100_000: "invalid_json",
                b'{"parts": ' + b"[" * 65 + b"]" * 65 + b"}": "invalid_json",
                b"[]": "invalid_request",
                b"null": "invalid_request",
                b'{"prompt": 5}': "invalid_request",
                b'{"prompt": "a", "promt": "b"}': "invalid_request",
                b'{"when": "later"}': "invalid_request",
                b'{"parts": [{"type": "bomb"}]}': "invalid_request",
            }
            for body, code in cases.items():
                begin = head(there, "POST", CHAT, KIND, f"Content-Length: {len(body)}")
                found = await said(there, begin, body)
                assert (found.status, found.code) == (400, code), body[:40]
            plain = head(there, "POST", CHAT, "Content-Type: text/plain", "Content-Length: 2")
            found = await said(there, plain, b"{}")
            assert (found.status, found.code) == (415, "unsupported_media")
            bare = head(there, "POST", CHAT, "Content-Length: 2")
            assert (await said(there, bare, b"{}")).status == 415
            assert await is_well(there)

    run(work())


@given(st.recursive(st.none() | st.text(), lambda one: st.lists(one, max_size=3), max_leaves=30))
def test_depth_is_counted_as_json_nests_and_not_inside_of_strings(value):
    import json

    def deepest(one):
        return 1 + max(map(deepest, one), default=0) if isinstance(one, list) else 0

    body = json.dumps(value, ensure_ascii=False).encode()
    for limit in range(8):
        assert is_too_deep(body, limit) == (deepest(value) > limit)


def test_a_string_that_never_ends_is_looked_at_once():
    assert not is_too_deep(b'[[[{"' + b'\\"' * 2_000_000, 3 + 1)
    assert not is_too_deep(b'["' + b"[" * 100 + b"\\", 1)


def test_too_many_requests_in_one_name_are_429_and_another_name_goes_on(tmp_path, monkeypatch):
    async def work():
        limits = replace(LIMITS, rate=0.5, burst=5)
        monkeypatch.setattr(
            limiting, "time", SimpleNamespace(monotonic=lambda: 0.0, perf_counter=lambda: 0.0)
        )
        async with server(tmp_path, limits=limits) as there:
            other = there.room.door.tokens.add("ann", "watch")
            found = [await there.get("/api/me") for _ in range(6)]
            assert [one.status for one in found] == [200] * 5 + [429]
            last = found[-1]
            assert (last.code, last.headers["retry-after"]) == ("rate_limited", "2")
            assert last.body["hint"] == "Try again in 2 seconds."
            assert (await there.get("/api/me", token=other)).status == 200

    run(work())


def test_what_does_not_fit_or_cannot_be_now_is_said_in_words_of_the_api(tmp_path):
    async def work():
        async with server(tmp_path, [HOLDS], Held()) as there:
            found = await there.get("/api/search?q=%20")
            assert (found.status, "regex" in found.body["detail"]) == (400, False)
            path = f"/api/sessions/{await there.made()}"
            assert (await there.post(f"{path}/chat", {"prompt": "one"})).status == 202
            busy = await there.post(f"{path}/chat", {"prompt": "two"})
            assert (busy.code, '"queue": true' in busy.body["hint"]) == ("session_busy", True)
            gone = await there.call("DELETE", path)
            assert (gone.code, "queue" in gone.body["hint"]) == ("session_busy", False)
            for page in ("/", "/api/metrics"):
                kind = (await there.get(page)).headers["content-type"]
                assert kind.count("charset") == 1

    run(work())


def test_a_meter_fills_again_at_its_rate():
    now = [0.0]
    meter = TokenBucket(2.0, 3, lambda: now[0])
    assert [meter.wait("a") for _ in range(4)] == [0.0, 0.0, 0.0, 0.5]
    now[0] = 0.5
    assert [meter.wait("a"), meter.wait("a"), meter.wait("b")] == [0.0, 0.5, 0.0]
    now[0] = 100.0
    assert [meter.wait("a") for _ in range(4)] == [0.0, 0.0, 0.0, 0.5]


SLOW = replace(LIMITS, head_seconds=0.3, body_seconds=0.3)


def test_a_head_that_does_not_come_in_time_is_408_whatever_dribbles_in(tmp_path):
    async def work():
        async with server(tmp_path, limits=SLOW) as there:
            for begin in (b"", b"GET /api/me HT", b"\r\n\r\n", head(there, "GET", "/")[:-2]):
                found = await said(there, begin)
                assert (found.status, found.code) == (408, "too_slow"), begin
            assert await is_well(there)

    run(work())


def test_a_body_that_does_not_come_in_time_is_408(tmp_path):
    async def work():
        async with server(tmp_path, limits=SLOW) as there:
            begin = head(there, "POST", CHAT, KIND, "Content-Length: 10")
            found = await said(there, begin, b"{")
            assert (found.status, found.code) == (408, "too_slow")
            assert await is_well(there)

    run(work())


def test_a_body_that_nobody_waits_for_any_more_does_not_hold_the_connection(tmp_path):
    async def work():
        async with server(tmp_path, limits=SLOW) as there:
            reader, writer = await connected(there)
            writer.write(head(there, "POST", CHAT, KIND, "Content-Length: 10", token="wrong"))
            assert (await answered(reader)).status == 401
            writer.write(b"{")
            assert (await answered(reader)).status == 408
            assert await reader.read() == b""
            await closed(writer)

    run(work())


def test_a_head_that_is_too_large_is_431_and_an_address_413(tmp_path):
    async def work():
        async with server(tmp_path, limits=replace(LIMITS, head_bytes=10_000)) as there:
            begin = head(there, "GET", "/api/me", "X-Much: " + "x" * 20_000)
            for sent in (begin, begin[:-4]):
                found = await said(there, sent)
                assert (found.status, found.code) == (431, "too_large")
            found = await said(there, head(there, "GET", "/api/sessions/" + "x" * 5_000))
            assert (found.status, found.code) == (413, "too_large")
            assert await is_well(there)

    run(work())


@pytest.mark.parametrize(
    "said_",
    [
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"GET /\xff HTTP/1.1\r\nHost: x\r\n\r\n",
        b"FLY / HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost x\r\n\r\n",
        b"POST /api/login HTTP/1.1\r\nContent-Length: -5\r\n\r\n",
        b"POST / HTTP/1.1\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello",
        b"\x00" * 100,
    ],
)
def test_what_is_no_http_is_400_and_closed(tmp_path, said_):
    async def work():
        async with server(tmp_path) as there:
            found = await said(there, said_)
            assert (found.status, found.code) == (400, "invalid_request")
            assert await is_well(there)

    run(work())


def test_a_client_that_vanishes_at_any_byte_of_a_request_disturbs_nobody(tmp_path):
    async def work():
        async with server(tmp_path) as there:
            body = b'{"prompt": "hello"}'
            whole = head(there, "POST", CHAT, KIND, f"Content-Length: {len(body)}") + body
            for end in range(0, len(whole), 1 if SOAK else 3):
                _, writer = await connected(there)
                writer.write(whole[:end])
                if end % 2:
                    await writer.drain()
                writer.transport.abort()
            assert await is_well(there)
            assert (await there.post(CHAT, {"prompt": "x"})).status == 404

    run(work())


def test_more_connections_than_there_may_be_are_told_so(tmp_path):
    async def work():
        async with server(tmp_path, limits=replace(LIMITS, connections=5)) as there:
            kept = [await connected(there) for _ in range(5)]
            found = await said(there, b"")
            assert (found.status, found.code) == (503, "unavailable")
            for _, writer in kept:
                await closed(writer)
            while (await said(there, head(there, "GET", "/api/me"))).status != 200:
                pass  # until the server has seen that they have gone

    run(work())


def test_a_websocket_is_not_spoken_here(tmp_path):
    async def work():
        async with server(tmp_path) as there:
            upgrade = ("Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13")
            for token, status in (("", 401), (there.token, 200)):
                begin = head(there, "GET", "/api/me", *upgrade, token=token or "")
                assert (await said(there, begin)).status == status

    run(work())


def test_it_listens_beyond_this_machine_only_with_a_token_that_was_chosen():
    for host in ("127.0.0.1", "::1", "localhost", "127.8.8.8"):
        check_listen_address(host, explicit=False)
    for host in ("0.0.0.0", "::", "192.168.1.5", "example.org", ""):
        check_listen_address(host, explicit=True)
        with pytest.raises(ConfigError, match="other machines") as caught:
            check_listen_address(host, explicit=False)
        assert "--token" in caught.value.hint


def test_limits_are_what_the_process_may_have():
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(soft, 1_000), hard))
        found = process_limits(Limits(connections=hard if hard > 0 else 4_000))
        allowed = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        assert found.connections <= allowed and found.streams < found.connections
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
