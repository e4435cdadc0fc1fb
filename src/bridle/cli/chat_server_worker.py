"""One worker of a chat: a process that answers on a socket which it was handed.

Its settings come as a line of JSON on standard input; when that ends, whoever started it is gone,
and it stops. On standard output it says one line: that it is ready, or why it is not.
"""

import asyncio
import gc
import os
import signal
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

import msgspec

from bridle.cli.server_log import logged
from bridle.cli.signals import END_SIGNALS, on_signals
from bridle.errors import AgentError
from bridle.server.chat.app import ChatServing, ChatSetup, server_of

DEADLINE = 10.0  # seconds that an orderly stop may take
_GARBAGE = 10_000  # new objects after which cycles among them are looked for


class Up(msgspec.Struct, frozen=True):
    """What a worker says of itself; without an `error` it takes requests."""

    error: str = ""
    hint: str = ""


async def work(setup: ChatSetup, listening: socket.socket) -> int:
    """Until it is told to stop."""
    asked = asyncio.Event()
    with on_signals(asked.set, *END_SIGNALS):
        serving = ChatServing(server_of(setup), listening)
        await serving.start()
        _settle()
        _say(Up())
        with _parent(asked):
            waiting = [asyncio.ensure_future(asked.wait()), asyncio.ensure_future(serving.ended())]
            await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        await serving.stop(DEADLINE)
        for one in waiting:
            one.cancel()
    return 0


def _settle() -> None:
    """What is loaded by now stays: nobody need look through it for garbage again and again."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(_GARBAGE)


@contextmanager
def _parent(asked: asyncio.Event) -> Iterator[None]:
    """When whoever started us is gone, our standard input has ended."""
    loop, number = asyncio.get_running_loop(), sys.stdin.fileno()

    def look() -> None:
        if not os.read(number, 4_096):
            loop.remove_reader(number)
            asked.set()

    loop.add_reader(number, look)
    try:
        yield
    finally:
        loop.remove_reader(number)


def _say(up: Up) -> None:
    sys.stdout.buffer.write(msgspec.json.encode(up) + b"\n")
    sys.stdout.buffer.flush()


def main() -> int:
    """The whole life of a worker."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches all; who started us decides
    setup = msgspec.json.decode(sys.stdin.buffer.readline(), type=ChatSetup)
    listening = socket.socket(fileno=int(sys.argv[1]))
    try:
        with logged(Path(setup.log)) if setup.log else nullcontext():
            return asyncio.run(work(setup, listening))
    except AgentError as error:
        _say(Up(error.message, error.hint))
        return 1


if __name__ == "__main__":
    code = main()
    sys.stdout.flush()
    os._exit(code)  # everything is closed; tearing the interpreter down would take seconds
