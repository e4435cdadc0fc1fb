"""One session's stream (A10): positions, change-overs, slow clients, and what is left behind."""

import asyncio
from contextlib import aclosing, suppress
from pathlib import Path

import pytest
from watching_rig import House, Parser, note, read, seqs, until_live

from bridle.events import Repaired, TextDelta, TraceEvent
from bridle.server import streams as feeding
from rig import run


def is_record(seq):
    return lambda event: event[1].get("seq") == seq


async def chunk_with(chunks, wanted):
    """Chunks up to the first with that in it."""
    seen = b""
    async for chunk in chunks:
        seen += chunk
        if wanted in seen:
            return seen
    raise AssertionError(seen)


def handles():
    """What this process has open."""
    found = []
    for one in Path("/proc/self/fd").iterdir():
        with suppress(OSError):  # that of the folder itself
            found.append(str(one.readlink()))
    return sorted(one for one in found if "/proc/" not in one)


def test_positions_stop_at_what_would_survive_and_go_on_when_more_does(tmp_path):
    async def work():
        async with House(tmp_path) as house:
            session = await house.begun()
            async with aclosing(house.streams.session(session.id)) as chunks:
                seen = await chunk_with(chunks, b'"seq":1,')
                assert seen.count(b"id: 1\nevent: trace\ndata: ") == 1
                session.emit(note(2))
                session.emit(note(3))
                seen = await chunk_with(chunks, b'"seq":3,')
                assert (session.durable, b"id: " in seen) == (1, False)
                await session._log.settled()
                assert await chunk_with(chunks, b"id: 3\n\n") == b"id: 3\n\n"
                session.emit(note(4))
                await session._log.settled()
                seen = await chunk_with(chunks, b'"seq":4,')
                assert seen.startswith(b"id: 4\nevent: trace\n")

    run(work())


def test_what_another_process_wrote_gets_a_position_once_it_would_survive(tmp_path):
    async def work():
        async with House(tmp_path) as house:
            session = await house.begun()
            await house.let_go(session)
            log = await house.elsewhere.resume(session.id, lambda record: None)
            async with aclosing(house.streams.session(session.id, 1)) as chunks:
                log.append(note(2))
                seen = await chunk_with(chunks, b"id: 2\n")
                assert seen.count(b'"seq":2,') == 1
            await log.close()

    run(work())


def test_a_line_that_was_torn_elsewhere_is_mended_here_and_the_stream_goes_on(tmp_path):
    async def work():
        async with House(tmp_path) as house:
            session = await house.begun()
            await house.let_go(session)
            watching = asyncio.create_task(read(house.streams.session(session.id), is_record(3)))
            with house.folder.path(session.id).open("ab") as file:  # killed in the middle of it
                file.write(b'{"seq":2,"timestamp":"2026-')
            session = await house.open(session.id)
            session.emit(note(3))
            events = await watching
            assert seqs(events) == [1, 2, 3]
            assert events[1][1]["data"]["type"] == Repaired.__struct_config__.tag

    run(work())


@pytest.mark.parametrize("here", [True, False])
def test_beyond_the_end_a_client_is_told_the_end_and_goes_on_from_there(tmp_path, here):
    async def work():
        async with House(tmp_path) as house:
            session = await house.begun()
            log = session._log
            if not here:
                await house.let_go(session)
                log = await house.elsewhere.resume(session.id, lambda record: None)
            async with aclosing(house.streams.session(session.id, 999)) as chunks:
                told = await chunk_with(chunks, b"resync")
                assert told.endswith(b'id: 1\nevent: resync\ndata: {"after":1}\n\n')
                (session.emit if here else log.append)(note(0))
                await log.settled()
                assert b'"seq":2,' in await chunk_with(chunks, b'"seq":')
            if not here:
                await log.close()

    run(work())


def test_a_slow_client_is_told_where_to_go_on_and_another_loses_nothing(tmp_path):
    async def work():
        async with House(tmp_path) as house:
            session = await house.begun()
            count, text = 60, "x" * 100_000
            last = is_record(count + 2)
            fast = asyncio.create_task(read(house.streams.session(session.id), last))
            async with aclosing(house.streams.session(session.id)) as slow:
                waiting = asyncio.create_task(chunk_with(slow, b'"seq":2,'))
                await until_live(house, session.id, 2)
                session.emit(note(2))
                await waiting
                for number in range(count):
                    session.emit(TraceEvent("note", {"number": number, "text": text}))
                    await session._log.settled()
                assert seqs(await fast) == list(range(1, count + 3))
                events = await read(slow, lambda event: False)
            (name, data, position) = events[-1]
            assert (name, data) == ("resync", {"after": int(position)})
            assert len(seqs(events)) < count
            again = await read(house.streams.session(session.id, data["after"]), last)
            assert seqs(again) == list(range(data["after"] + 1, count + 3))

    run(work())


def test_one_who_reads_a_long_log_slowly_is_not_too_slow_for_what_is_live(tmp_path):
    async def work():
        async with House(tmp_path) as house:
            session = await house.begun()
            for number in range(80):
                session.emit(TraceEvent("note", {"number": number, "text": "x" * 100_000}))
            await session._log.settled()
            parser, events = Parser(), []
            async with aclosing(house.streams.session(session.id)) as chunks:
                async for chunk in chunks:
                    assert len(chunk) <= 1 << 16  # however large the records are
                    events += parser.feed(chunk)
                    if session.seq < 200:
                        session.emit(note(session.seq))
                    elif len(seqs(events)) == 200:
                        break
            assert seqs(events) == list(range(1, 201))

    run(work())


def test_a_session_that_is_deleted_ends_its_streams(tmp_path):
    async def work():
        async with House(tmp_path) as house:
            session = await house.begun()
            watching = asyncio.create_task(read(house.streams.session(session.id), lambda _: False))
            await until_live(house, session.id)
            await house.let_go(session)
            house.folder.delete(session.id)
            house.tell(session.id, "deleted")
            assert seqs(await watching) == [1]

    run(work())


@pytest.mark.parametrize("here", [True, False])
@pytest.mark.parametrize("taken", range(4))
def test_one_who_vanishes_leaves_no_file_no_watcher_and_no_task(tmp_path, taken, here):
    async def work():
        async with House(tmp_path) as house:
            session = await house.begun()
            if not here:
                await house.let_go(session)
            before, tasks = handles(), asyncio.all_tasks()
            for rounds in range(12):
                chunks = house.streams.session(session.id)
                for _ in range(min(taken, 2)):
                    await anext(chunks)
                if taken == 3:  # in the middle of waiting for more
                    more = asyncio.create_task(anext(chunks))
                    for _ in range(rounds):
                        await asyncio.sleep(0)
                    more.cancel()
                    await asyncio.wait([more])
                await chunks.aclose()
                assert (len(house.streams), house.streams._feeds) == (0, {})
            assert handles() == before
            assert len(session.broadcast) == 0
            assert asyncio.all_tasks() == tasks

    run(work())


def test_in_a_quiet_stream_a_comment_says_that_we_are_there(tmp_path, monkeypatch):
    monkeypatch.setattr(feeding, "QUIET", 0.05)

    async def work():
        async with House(tmp_path) as house:
            session = await house.begun()
            async with aclosing(house.streams.session(session.id)) as chunks:
                await chunk_with(chunks, b"\n\n: still here\n\n")

    run(work())


def test_deltas_of_a_real_turn_come_in_order_with_their_names(tmp_path):
    """(A10) text_delta, completed."""

    async def work():
        async with House(tmp_path) as house:
            session = await house.begun()
            chunks = house.streams.session(session.id)
            done = asyncio.create_task(read(chunks, lambda event: event[0] == "completed"))
            await session.send("say yes")
            events = await done
            names = [name for name, _, _ in events if name != "trace"]
            assert names == ["text_delta", "usage", "completed"]
            assert seqs(events) == list(range(1, len(events) + 1))
            said = [data["data"] for name, data, _ in events if name == "text_delta"]
            assert said == [{"type": "event", "eventType": TextDelta.__name__, "text": "yes"}]

    run(work())
