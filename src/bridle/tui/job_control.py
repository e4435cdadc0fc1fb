"""Suspends the program as a shell does it with Ctrl-Z. Knows no screen."""

import os
import signal


def has_shell() -> bool:
    """Would anybody continue the program if it stopped? Only a shell with job control does."""
    group, session = os.getpgrp(), os.getsid(0)
    parent = os.getppid()
    try:
        while parent > 1 and os.getsid(parent) == session:
            if os.getpgid(parent) != group:
                return True
            parent = _parent_of(parent)  # a script that runs us: its shell is further up
    except (OSError, ValueError, IndexError):
        return False
    return False


def stop_job() -> None:
    """Stop every process of this job; return when a shell continues it."""
    ours = signal.signal(signal.SIGTSTP, signal.SIG_IGN)
    try:
        os.killpg(os.getpgrp(), signal.SIGTSTP)  # the others: a script, a pipe
        signal.signal(signal.SIGTSTP, signal.SIG_DFL)
        signal.raise_signal(signal.SIGTSTP)
    finally:
        signal.signal(signal.SIGTSTP, ours)


def _parent_of(pid: int) -> int:
    with open(f"/proc/{pid}/stat", "rb") as file:  # noqa: PTH123
        return int(file.read().rpartition(b")")[2].split()[1])
