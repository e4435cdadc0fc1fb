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
    """This boot of this machine and its space of process numbers; empty where unknown."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{boot}.{Path('/proc/self/ns/pid').stat().st_ino}"
    except OSError:
        return ""


def _started(pid: int) -> str:
    """When that process started, so that its number taken by another is not it; empty if none."""
    try:
        status = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return ""
    fields = status.rpartition(")")[2].split()
    return "" if fields[0] in ("Z", "X") else fields[19]


def worker_name() -> str:
    """A name for one worker in this process: where it is, and something that no other has."""
    pid = os.getpid()
    return f"{_machine()}/{pid}/{_started(pid)}/{secrets.token_hex(6)}"


def is_dead(worker: str) -> bool:
    """Is it certain that the process of this worker is gone?"""
    machine, _, rest = worker.partition("/")
    if not machine or machine != _machine():
        return False
    pid, _, rest = rest.partition("/")
    started = rest.partition("/")[0]
    return pid.isdecimal() and _started(int(pid)) != started
