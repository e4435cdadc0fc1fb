"""Which worker runs a turn, and whether that worker is still alive.

A lease expires by itself. If the worker is on the same machine, we also see at once that its
process has died, so nobody waits for a process that was killed. A worker counts as alive unless
we are certain that it is dead.
"""

import os
import secrets
from functools import cache
from pathlib import Path


@cache
def _machine() -> str:
    """Identify this boot of this machine and its pid namespace; empty if unknown."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{boot}.{Path('/proc/self/ns/pid').stat().st_ino}"
    except OSError:
        return ""


def _start_time(pid: int) -> str:
    """Return when a process started, which tells it from a later one with the same pid."""
    try:
        status = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return ""
    fields = status.rpartition(")")[2].split()
    return "" if fields[0] in ("Z", "X") else fields[19]


def worker_name() -> str:
    """Return a unique name for a worker in this process."""
    pid = os.getpid()
    return f"{_machine()}/{pid}/{_start_time(pid)}/{secrets.token_hex(6)}"


def is_dead(worker: str) -> bool:
    """Is it certain that the process of this worker has ended?"""
    machine, _, rest = worker.partition("/")
    if not machine or machine != _machine():
        return False
    pid, _, rest = rest.partition("/")
    started = rest.partition("/")[0]
    return pid.isdecimal() and _start_time(int(pid)) != started
