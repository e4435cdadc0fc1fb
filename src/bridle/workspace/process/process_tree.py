"""The processes that belong to a program, wherever they went: found in /proc, and ended.

This is for programs without a supervisor, and for those whose supervisor was killed. A process that
makes a session of its own (`setsid`, a daemon) leaves the process group, but it is still found: by
a mark in the environment that every child inherits, by the session of the program's first process,
and by who started whom. What escapes is a process that empties its environment, leaves the session
and has lost its parent before anybody looked. On systems without /proc nothing is found here, and
only the process group is ended.
"""

import asyncio
import os
import secrets
import signal
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from bridle.workspace.programs import SHELLS
from bridle.workspace.supervise import is_shell

VARIABLE = "BRIDLE_COMMAND"
_ROUNDS = 8  # of looking and killing, because processes may start others meanwhile
_STOP_ROUNDS = 30  # of stopping everything; one round takes some milliseconds
_POLL = 0.01  # seconds between two looks at what is left
_PROC = Path("/proc")


class _Stat(NamedTuple):
    state: str
    parent: int
    group: int
    session: int
    start: str


class ProcessTree:
    """The processes of one program. `leader` is its first process, once it runs."""

    __slots__ = ("_known", "_mark", "_stopped_shells", "leader")

    def __init__(self) -> None:
        self._mark = secrets.token_hex(8)
        self.leader = 0
        self._known: dict[int, str] = {}  # start time by pid, because pids are used again
        self._stopped_shells: set[int] = set()

    def with_mark(self, environment: Mapping[str, str]) -> dict[str, str]:
        """Return the environment with the mark added. A command within a command has both marks."""
        outer = os.environ.get(VARIABLE, "")
        return {**environment, VARIABLE: f"{outer}:{self._mark}" if outer else self._mark}

    def send_signal(self, number: signal.Signals) -> None:
        """Signal all but the leader, and remember them: their parents may end first."""
        for pid in self._find(oldest=0):
            _kill(pid, number)

    def ask_to_end(self) -> None:
        """Send TERM to all but shells, for a leader that is bubblewrap.

        If the program that a shell waits for ends, the shell would run the next command of its
        line (with job control also while it is stopped). So everything is stopped first, shells
        before their children. Shells stay stopped, or are killed if they are in another group: the
        kernel continues a stopped process whose group loses its parent.
        """
        others = []
        for pid, stat in self._stop_all().items():
            if not is_shell(pid, SHELLS):
                others.append(pid)
            elif stat.group == self.leader:
                self._stopped_shells.add(pid)
            else:
                _kill(pid, signal.SIGKILL)
        for number in (signal.SIGTERM, signal.SIGCONT):
            for pid in others:
                _kill(pid, number)

    def has_work(self) -> bool:
        """After `ask_to_end`: is anything left but stopped shells?"""
        left = self._known.keys() - self._stopped_shells
        stats = ((pid, _stat(pid)) for pid in left)
        return any(
            stat is not None and stat.start == self._known[pid] and stat.parent != self.leader
            for pid, stat in stats
        )

    def kill(self, *, thorough: bool) -> None:
        """Kill all but the leader.

        If not `thorough`, only processes younger than the leader are looked at. That is cheap, and
        enough for a command that has ended by itself: it seldom leaves anything.
        """
        killed: set[int] = set()
        for _ in range(_ROUNDS):
            processes = self._find(oldest=0 if thorough else self.leader)
            for pid in processes:
                _kill(pid, signal.SIGKILL)
            if processes.keys() <= killed:
                return
            killed.update(processes)

    async def kill_until_gone(self, seconds: float) -> None:
        """Kill all but the leader, and wait until they are gone, at most so long."""
        deadline = asyncio.get_running_loop().time() + seconds
        self.kill(thorough=True)
        while self._find(oldest=0) and asyncio.get_running_loop().time() < deadline:
            await asyncio.sleep(_POLL)
            self.kill(thorough=True)

    def _stop_all(self) -> dict[int, _Stat]:
        """Stop everything but bubblewrap itself, also what is started meanwhile."""
        processes: dict[int, _Stat] = {}
        for _ in range(_STOP_ROUNDS):
            before = processes
            processes = {
                pid: stat
                for pid, stat in self._find(oldest=0).items()
                if pid != self.leader and stat.parent != self.leader
            }
            running = [pid for pid, stat in processes.items() if stat.state not in "Tt"]
            if not running and processes.keys() <= before.keys():
                break
            for pid in running:
                _kill(pid, signal.SIGSTOP)
            time.sleep(0.001)
        return processes

    def _find(self, oldest: int) -> dict[int, _Stat]:
        """Return the processes that run now, parents before their children.

        A shell that learns that its child was stopped or killed may go on before it is itself.
        """
        if not self.leader:
            return {}
        running = {pid: stat for pid in _pids(oldest) if (stat := _stat(pid)) is not None}
        members = {pid for pid, stat in running.items() if self._is_member(pid, stat)}
        has_grown = True
        while has_grown:
            children = {pid for pid, stat in running.items() if stat.parent in members} - members
            has_grown = bool(children)
            members |= children
        members.discard(os.getpid())
        self._known.update({pid: running[pid].start for pid in members})
        ordered: dict[int, _Stat] = {}
        level = {pid for pid in members if running[pid].parent not in members}
        while level:
            ordered |= {pid: running[pid] for pid in level}
            level = {pid for pid in members - ordered.keys() if running[pid].parent in level}
        return ordered

    def _is_member(self, pid: int, stat: _Stat) -> bool:
        if self.leader in (stat.parent, stat.session) or self._known.get(pid) == stat.start:
            return True
        try:
            return self._mark.encode() in (_PROC / str(pid) / "environ").read_bytes()
        except OSError:  # it has ended, or belongs to another user
            return False

    def __repr__(self) -> str:
        return f"<process tree of {self.leader}>"


def _pids(oldest: int) -> list[int]:
    with suppress(OSError):
        names = [entry.name for entry in _PROC.iterdir()]
        return [int(name) for name in names if name.isdigit() and int(name) > oldest]
    return []


def _stat(pid: int) -> _Stat | None:
    """Return what the kernel says of a process; None if it has ended."""
    try:
        fields = (_PROC / str(pid) / "stat").read_bytes().rpartition(b")")[2].split()
    except OSError:
        return None
    if len(fields) < 20 or fields[0] in (b"Z", b"X"):
        return None
    parent, group, session = map(int, fields[1:4])
    return _Stat(
        state=fields[0].decode(),
        parent=parent,
        group=group,
        session=session,
        start=fields[19].decode(),
    )


def _kill(pid: int, number: signal.Signals) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.kill(pid, number)
