"""The event loop of a command: run its work, and react to signals meanwhile."""

import asyncio
import logging
import os
import signal
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import Any

from bridle.cli.exit_codes import INTERRUPTED
from bridle.workspace.text import neutral, one_line

END_SIGNALS = (signal.SIGTERM, signal.SIGHUP)  # the machine shuts down; the terminal was closed
_SHUTDOWN = 3.0  # seconds that an orderly end may take after the second signal
_handlers: dict[signal.Signals, list[Callable[[], object]]] = {}


class _LogLine(logging.Formatter):
    """A warning of the engine as one line; with BRIDLE_DEBUG, also where it happened."""

    def format(self, record: logging.LogRecord) -> str:
        line = f"bridle: {one_line(record.getMessage(), 1000)}"
        if record.exc_info and os.environ.get("BRIDLE_DEBUG"):
            line += "\n" + neutral(self.formatException(record.exc_info))
        return line


def run_async(work: Coroutine[Any, Any, int]) -> int:
    """Run a command's work in an event loop of its own and return its exit code."""
    if logging.lastResort is not None:  # what writes to stderr if nobody set up anything else
        logging.lastResort.setFormatter(_LogLine())
    try:
        return asyncio.run(work)
    except asyncio.CancelledError:
        return INTERRUPTED


@contextmanager
def on_signals(handler: Callable[[], object], *signals: signal.Signals) -> Iterator[None]:
    """Call `handler` on these signals while inside; outer handlers run after it.

    SIGHUP stays ignored if it was, as below `nohup`.
    """
    loop = asyncio.get_running_loop()
    handled = [
        number
        for number in signals
        if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN
    ]
    for number in handled:
        _handlers.setdefault(number, []).append(handler)
        loop.add_signal_handler(number, _call_handlers, number)
    try:
        yield
    finally:
        for number in handled:
            _handlers[number].remove(handler)
            if not _handlers[number]:
                loop.remove_signal_handler(number)


def _call_handlers(number: signal.Signals) -> None:
    for handler in reversed(_handlers[number]):
        handler()


@contextmanager
def interrupt_on_signals(
    interrupt: Callable[[], Awaitable[Any]], *, only_ctrl_c: bool = False
) -> Iterator[None]:
    """Call `interrupt` on Ctrl-C, SIGTERM or a closed terminal; end the program on the second.

    `only_ctrl_c` is for a turn that another process runs: it goes on when this program ends.
    """
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    interrupting: list[asyncio.Future[Any]] = []

    def handle() -> None:
        if not interrupting:
            interrupting.append(asyncio.ensure_future(interrupt()))
            # whoever waits for the turn learns of an error; here it is only marked as seen
            interrupting[0].add_done_callback(lambda done: done.cancelled() or done.exception())
        elif task is not None:
            loop.call_later(_SHUTDOWN, os._exit, INTERRUPTED)
            task.cancel()

    with on_signals(handle, signal.SIGINT, *(() if only_ctrl_c else END_SIGNALS)):
        yield
