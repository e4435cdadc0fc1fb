"""How many streams there may be, and how they end with the server."""

import asyncio

import pytest
from watching_rig import House, read, seqs, until_live

from bridle.errors import UnknownSession
from bridle.protocols.session_errors import ServerStopping
from bridle.server.streams import TooManyStreams
from rig import run


async def first(chunks):
    return await anext(chunks)


@pytest.mark.parametrize(
    ("limits", "names"), [({"most": 2}, ["ann", "bob", "cat"]), ({"each": 2}, ["ann"] * 3)]
)
def test_one_stream_too_many_is_refused_before_its_first_byte_and_others_go_on(
    tmp_path, limits, names
):
    async def work():
        async with House(tmp_path, **limits) as house:
            session = await house.begun()
            streams = [house.streams.session(session.id, by=name) for name in names]
            for one in streams[:2]:
                await first(one)
            with pytest.raises(TooManyStreams) as refused:
                await first(streams[2])
            assert (refused.value.status_code, refused.value.code) == (429, "too_many_streams")
            assert refused.value.hint
            await streams[0].aclose()
            again = house.streams.session(session.id, by=names[2])
            await first(again)
            assert len(house.streams) == 2
            for one in (streams[1], again):
                await one.aclose()
            assert len(house.streams) == 0

    run(work())


def test_a_session_that_is_not_there_is_refused_before_the_first_byte(tmp_path):
    async def work():
        async with House(tmp_path) as house:
            for session_id in ("../../etc", ""):
                with pytest.raises(UnknownSession):
                    await first(house.streams.session(session_id))
            assert len(house.streams) == 0

    run(work())


def test_when_the_server_stops_everybody_is_told_and_every_stream_ends(tmp_path):
    async def work():
        async with House(tmp_path) as house:
            session = await house.begun()
            chunks = [house.streams.session(session.id) for _ in range(3)]
            for one in chunks:
                await first(one)  # one has not read what was before, one is live
            live = asyncio.create_task(read(chunks[0], lambda _: False))
            await until_live(house, session.id)
            await house.streams.stop()
            late = [await read(one, lambda _: False) for one in chunks[1:]]
            for events in (await live, *late):
                assert events[-1][:2] == ("stopping", {})
                assert seqs(events) in ([], [1])
            with pytest.raises(ServerStopping):
                await first(house.streams.session(session.id))
            with pytest.raises(ServerStopping):
                await first(house.streams.events())

    run(work())
