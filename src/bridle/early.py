"""What the program does before anything else is imported.

`python -m bridle` imports nothing from the current folder: what lies there may be anybody's.
Ctrl-C while the program is still being loaded ends it without a word, as nothing was begun; and
while it ends because of one, the next ends it at once.

Only where this process is the program `bridle`; whoever imports the package keeps their signals.
"""

import _signal as signal  # type: ignore[import-not-found]  # the same without its enumerations
import os
import sys
from itertools import pairwise

INTERRUPTED = 130
_ours: list[int] = []  # the signals that are ours to hear: none where we are only imported


def is_program() -> bool:
    """Was `bridle` itself started? (`-m`: a module that is still being looked for.)"""
    words = getattr(sys, "argv", None) or [""]
    return os.path.basename(words[0]) == "bridle" or _is_module()  # noqa: PTH119


def _is_module() -> bool:
    """Is it `python -m bridle`, whatever options stand before?"""
    words = getattr(sys, "argv", None) or [""]
    given = getattr(sys, "orig_argv", [])
    return words[0] == "-m" and ("-m", "bridle") in pairwise(given)


def begin() -> None:
    """Forget the current folder as a place of modules, as `python -P` does. From here on Ctrl-C
    just ends; `nohup`, and whoever hears it already, are respected."""
    if _is_module() and not sys.flags.safe_path and sys.path:
        del sys.path[0]
    if is_program() and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        _ours.append(signal.SIGINT)
        signal.signal(signal.SIGINT, _leave)


def loaded() -> None:
    """Everything is there: from here on Ctrl-C is an exception again, and somebody's business."""
    if signal.getsignal(signal.SIGINT) is _leave:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def once_more() -> None:
    """It ends because of Ctrl-C. Another one ends it at once: something may be waited for still."""
    if _ours:
        signal.signal(signal.SIGINT, _leave)


def _leave(number: int, frame: object) -> None:
    os._exit(INTERRUPTED)
