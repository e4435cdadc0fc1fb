"""What signals do while something runs. Knows the event loop, and nothing of what runs."""

import asyncio
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager

ENDING = (signal.SIGTERM, signal.SIGHUP)  # the machine goes down; the terminal was closed
_acts: dict[signal.Signals, list[Callable[[], object]]] = {}


@contextmanager
def on_signals(act: Callable[[], object], *signals: signal.Signals) -> Iterator[None]:
    """While inside, these signals do this too, before what they did; `nohup` is respected."""
    loop = asyncio.get_running_loop()
    heard = [number for number in signals if not _ignored(number)]
    for number in heard:
        _acts.setdefault(number, []).append(act)
        loop.add_signal_handler(number, _act_on, number)
    try:
        yield
    finally:
        for number in heard:
            _acts[number].remove(act)
            if not _acts[number]:
                loop.remove_signal_handler(number)


def _ignored(number: signal.Signals) -> bool:
    return number == signal.SIGHUP and signal.getsignal(number) == signal.SIG_IGN


def _act_on(number: signal.Signals) -> None:
    for act in reversed(_acts[number]):
        act()
