"""The permission mode that the owner of a session records right after each start."""

import json
import os
from contextlib import suppress
from functools import partial
from pathlib import Path

from bridle.policy import MODES, Mode
from bridle.stores.log_format import iter_lines_backward, record_types

MODE_KIND = "gate"  # of the trace that records it
_START = record_types("session_start")
_OPENING = 1 << 16  # bytes; a start and the records right after it are not longer
_DEFAULT: Mode = "ask"  # if the log records no mode


def recorded_mode(log: Path) -> Mode:
    """Return the mode that was recorded when the session was last created or resumed.

    Only records right after the start count, since only the owner writes there. A trace of that
    name further on may come from a model or an agent that wants another mode to be shown.
    """
    with suppress(OSError, ValueError, KeyError, TypeError):
        handle = os.open(log, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)  # it may be a pipe
        try:
            starts = iter_lines_backward(
                partial(os.pread, handle), os.fstat(handle).st_size, _START
            )
            newest = next(starts, None)
            opening = os.pread(handle, _OPENING, newest.offset if newest else 0)
        finally:
            os.close(handle)
        for line in opening.split(b"\n")[1:-1]:
            data = json.loads(line)["data"]
            if data["type"] == "event" and data["kind"] == MODE_KIND:
                recorded = data["detail"]["mode"]
                return next((mode for mode in MODES if mode == recorded), _DEFAULT)
            if data["type"] != "mode":
                break
    return _DEFAULT
