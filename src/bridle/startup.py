"""What the program does before anything else is imported.

`python -m bridle` imports nothing from the current folder: anybody may have put a file there.
Ctrl-C while the program is still being loaded ends it without a message, because nothing has begun.

All this only if this process is the program `bridle`. A program that imports the package keeps its
own signal handlers.
"""

import _signal as signal  # type: ignore[import-not-found]  # `signal` without its slow enums
import os
import sys
from itertools import pairwise

INTERRUPTED = 130
_handled: list[int] = []  # the signals that we handle: none if the package was only imported


def prepare_process() -> None:
    """Take the current folder off the module path, and let Ctrl-C end the process from now on.

    The former is what `python -P` does. `nohup` and handlers that others have set are respected.
    """
    arguments = getattr(sys, "argv", None) or [""]
    original = getattr(sys, "orig_argv", [])
    # While Python looks for the module of `-m`, that is the name of the program.
    is_module = arguments[0] == "-m" and ("-m", "bridle") in pairwise(original)
    if is_module and not sys.flags.safe_path and sys.path:
        del sys.path[0]
    is_program = is_module or os.path.basename(arguments[0]) == "bridle"  # noqa: PTH119
    if is_program and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        _handled.append(signal.SIGINT)
        signal.signal(signal.SIGINT, _exit)


def restore_interrupts() -> None:
    """Make Ctrl-C an exception again, once everything is loaded."""
    if signal.getsignal(signal.SIGINT) is _exit:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def exit_on_next_interrupt() -> None:
    """Let another Ctrl-C end the process at once, while it still waits for something."""
    if _handled:
        signal.signal(signal.SIGINT, _exit)


def _exit(number: int, frame: object) -> None:
    os._exit(INTERRUPTED)
