"""Streams over real sockets (A10): clients that vanish, do not read, and come back."""

import asyncio
import json
from contextlib import suppress

from rig_server import server
from watching_rig import Parser, note, seqs

from rig import run, seeds


async def connected(running, path, **headers):
    """A bare connection that has asked for a stream."""
    reader, writer = await asyncio.open_connection("127.0.0.1", running.port, limit=1 << 16)
    lines = [f"GET {path} HTTP/1.1", f"Host: 127.0.0.1:{running.port}"]
    lines += [f"Authorization: Bearer {running.token}"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    writer.write("\r\n".join([*lines, "", ""]).encode())
    await writer.drain()
    return reader, writer


async def gone(writer):
    writer.transport.abort()
    with suppress(OSError):
        await writer.wait_closed()


async def nobody_watches(running):
    """Until the server has noticed that everybody is gone."""
    while len(running.room.streams):  # noqa: ASYNC110 - no event
        await asyncio.sleep(0)


def test_clients_that_vanish_at_any_byte_leave_nothing_and_nobody_else_notices(tmp_path):
    async def work():
        async with server(tmp_path, ["yes"]) as running:
            session_id = await running.made()
            session = running.room.sessions.get_open(session_id)
            path, last = f"/api/sessions/{session_id}/stream", []
            watching = asyncio.create_task(
                running.until(path, lambda event: event.data.get("seq") in last)
            )

            async def vanish(size):
                reader, writer = await connected(running, path)
                session.emit(note(size))
                taken = 0
                while taken < size and (some := await reader.read(size - taken)):
                    taken += len(some)
                await gone(writer)

            sizes = [seed * 7 for seed in seeds(1000)]
            for start in range(0, len(sizes), 20):
                await asyncio.gather(*map(vanish, sizes[start : start + 20]))
            last.append(session.seq + 1)
            session.emit(note(0))
            await session._log.settled()
            events = await watching
            assert [event.data["seq"] for event in events] == list(range(1, session.seq + 1))
            await nobody_watches(running)
            assert (running.room.streams._feeds, len(session.broadcast)) == ({}, 0)

    run(work())


def test_one_that_does_not_read_is_dropped_and_others_see_everything(tmp_path):
    async def work():
        async with server(tmp_path, ["yes"]) as running:
            session_id = await running.made()
            session = running.room.sessions.get_open(session_id)
            path = f"/api/sessions/{session_id}/stream"
            _, lazy = await connected(running, path)
            lazy.transport.pause_reading()
            last = 400
            watching = asyncio.create_task(
                running.until(path, lambda event: event.data.get("seq") == last)
            )
            while session.seq < last:  # 20 MB
                session.emit(note("x" * 50_000))
                await session._log.settled()
            events = await watching
            assert [event.data["seq"] for event in events] == list(range(1, last + 1))
            feed = running.room.streams._feeds[session_id]
            while feed._places:  # noqa: ASYNC110 - the one that has seen everything leaves, too
                await asyncio.sleep(0)
            assert len(running.room.streams) == 1  # it is still there, and is told nothing
            await gone(lazy)
            await nobody_watches(running)

    run(work())


def test_a_client_goes_on_by_the_last_id_that_it_was_sent(tmp_path):
    async def work():
        async with server(tmp_path, ["yes"]) as running:
            session_id = await running.made()
            path = f"/api/sessions/{session_id}/stream"
            await running.post(f"/api/sessions/{session_id}/chat", {"prompt": "go"})
            first = await running.until(path, lambda event: event.name == "completed")
            session = running.room.sessions.get_open(session_id)
            await session._log.settled()
            reader, writer = await connected(running, path, Last_Event_ID=2)
            parser, events = Parser(), []
            await reader.readuntil(b"\r\n\r\n")
            while seqs(events)[-1:] != [len(first)]:
                size = int(await reader.readline(), 16)
                events += parser.feed((await reader.readexactly(size + 2))[:-2])
            await gone(writer)
            assert seqs(events) == list(range(3, len(first) + 1))
            assert [data for _, data, _ in events] == [one.data for one in first[2:]]
            assert int(parser.position) == session.durable
            await nobody_watches(running)

    run(work())


def test_what_makes_no_sense_as_an_id_is_refused_and_what_is_beyond_the_end_is_told(tmp_path):
    async def work():
        async with server(tmp_path, ["yes"]) as running:
            session_id = await running.made()
            path = f"/api/sessions/{session_id}/stream"
            for nonsense in ("nonsense", "-1", "1.5", "9" * 400):
                answer = await running.get(path, headers={"Last-Event-ID": nonsense})
                assert (answer.status, answer.code) == (400, "invalid_request"), nonsense
            headers = {"Last-Event-ID": "4000"}
            found = await running.until(path, lambda event: True, headers=headers)
            seq = running.room.sessions.get_open(session_id).seq
            assert [(one.name, one.data) for one in found] == [("resync", {"after": seq})]
            assert json.loads(found[0].id) == seq
            await nobody_watches(running)

    run(work())
