"""Several wait for a line: it goes to whoever asked last, and nobody is forgotten."""

import asyncio
import os
import pty

import pytest

from bridle.cli.line_reader import LineReader
from rig import run


def test_each_line_goes_to_whoever_asked_last():
    async def work():
        outside, inside = pty.openpty()
        lines = LineReader(inside)
        first = asyncio.ensure_future(lines.next())
        await asyncio.sleep(0)
        lines.discard()
        second = asyncio.ensure_future(lines.next())
        await asyncio.sleep(0)
        os.write(outside, b"y\n")
        assert await second == "y"
        assert not first.done()
        os.write(outside, b"more\n")
        assert await first == "more"
        os.close(outside)
        os.close(inside)

    run(work())


@pytest.mark.parametrize("data", [b"y\nmore\n", b"y\nmore"])
def test_what_came_at_once_is_shared(data):
    async def work():
        inside, outside = os.pipe()
        lines = LineReader(inside)
        waiting = [asyncio.ensure_future(lines.next()) for _ in range(3)]
        await asyncio.sleep(0)
        os.write(outside, data)
        os.close(outside)
        assert await asyncio.gather(*waiting) == [None, "more", "y"]
        os.close(inside)

    run(work())


def test_one_who_gives_up_leaves_the_line_to_others():
    async def work():
        inside, outside = os.pipe()
        lines = LineReader(inside)
        first = asyncio.ensure_future(lines.next())
        second = asyncio.ensure_future(lines.next())
        await asyncio.sleep(0)
        second.cancel()
        await asyncio.wait([second])
        os.write(outside, b"mine\n")
        assert await first == "mine"
        os.close(outside)
        os.close(inside)

    run(work())
