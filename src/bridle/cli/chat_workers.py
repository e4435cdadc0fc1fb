"""Several processes that answer on one port: uvicorn's own worker processes.

Each worker gets its settings through the pipe that starts it: a secret is in no argument list and
in no environment.
"""

import asyncio
import functools
import gc
import logging
import multiprocessing
import os
import signal
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any

from starlette.routing import Router
from uvicorn.config import STARTUP_FAILURE
from uvicorn.supervisors import Multiprocess

from bridle.cli.server_log import logged
from bridle.errors import AgentError
from bridle.server.chat.app import ChatServer, ChatSettings, create_chat_server
from bridle.server.chat.context import LIMITS, ChatContext
from bridle.server.http import protocol_of, uvicorn_config
from bridle.server.middleware import App, Receive, Scope, Send

_log = logging.getLogger("bridle.server")
_REQUEST_SECONDS = 7  # that requests have to end when a worker stops
_CLOSE_SECONDS = 3.0  # ... and what it does besides
_HEALTH_SECONDS = 60  # without an answer, after which a worker is replaced
_GARBAGE = 10_000  # new objects after which cycles among them are looked for


def run_workers(setup: ChatSettings, listening: socket.socket, count: int) -> bool:
    """Serve until a signal comes. Return False if the workers could not start."""
    os.environ["PYTHONSAFEPATH"] = "1"  # workers import nothing from the current folder
    config = uvicorn_config(
        functools.partial(create_worker, setup),
        factory=True,
        workers=count,
        http=protocol_of(listening, LIMITS),
        lifespan="on",
        timeout_graceful_shutdown=_REQUEST_SECONDS,
        timeout_worker_healthcheck=_HEALTH_SECONDS,
    )
    supervisor = Multiprocess(config, [listening])
    # uvicorn would start the workers anew; for us it means that the terminal has gone.
    signal.signal(signal.SIGHUP, lambda *_: supervisor.signal_queue.append(signal.SIGTERM))
    supervisor.run()
    return all(process.exitcode != STARTUP_FAILURE for process in supervisor.processes)


def create_worker(setup: ChatSettings) -> App:
    """The application of one worker process."""
    try:
        server = create_chat_server(setup)
    except AgentError:
        _log.exception("a worker cannot start")
        sys.exit(STARTUP_FAILURE)
    lifespan = Router(lifespan=lambda app: _lifespan(server, setup))

    async def worker(scope: Scope, receive: Receive, send: Send) -> None:
        app = lifespan if scope["type"] == "lifespan" else server
        await app(scope, receive, send)

    return worker


@asynccontextmanager
async def _lifespan(server: ChatServer, setup: ChatSettings) -> AsyncIterator[None]:
    with logged(Path(setup.log)) if setup.log else nullcontext():
        await server.room.app.start()
        _exit_with_parent()
        _end_streams_on_exit(server.room)
        _freeze_objects()
        try:
            yield
        finally:
            server.room.stop()
            with suppress(TimeoutError):
                async with asyncio.timeout(_CLOSE_SECONDS):
                    await server.room.app.close()


def _exit_with_parent() -> None:
    """Stop when the process that started this one is gone."""
    loop, parent = asyncio.get_running_loop(), multiprocessing.parent_process()
    assert parent is not None

    def stop() -> None:
        loop.remove_reader(parent.sentinel)
        os.kill(os.getpid(), signal.SIGTERM)

    loop.add_reader(parent.sentinel, stop)


def _end_streams_on_exit(room: ChatContext) -> None:
    """End streams at the signal: uvicorn waits for every response before it ends the lifespan."""
    loop = asyncio.get_running_loop()

    def on_signal(then: Any, number: int, frame: Any) -> None:
        loop.call_soon_threadsafe(room.stop)
        then(number, frame)

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, functools.partial(on_signal, signal.getsignal(number)))


def _freeze_objects() -> None:
    """Keep the garbage collector from looking through everything that is loaded by now."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(_GARBAGE)
