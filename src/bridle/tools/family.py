"""Who belongs to a program, wherever they went: found in /proc, and ended.

For programs without a supervisor, and for commands whose supervisor was killed. Whoever makes a
session of their own (`setsid`, a daemon) leaves the group, and is known all the same: by a mark in
the environment that every child inherits, by the session of the leader, and by who started whom.
What escapes is a process that empties its environment, leaves
the session and has lost its parent before anybody looked. Where there is no /proc (other systems
than Linux) nobody is found here, and the group is all that is ended.
"""

import os
import secrets
import signal
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from bridle.workspace.lookup import SHELLS
from bridle.workspace.supervise import is_shell

VARIABLE = "BRIDLE_COMMAND"
_ROUNDS = 8  # of looking and killing, for those who multiply meanwhile
_STOP_ROUNDS = 30  # of stopping everybody; one round takes some milliseconds
_PROC = Path("/proc")


class _Stat(NamedTuple):
    state: str
    parent: int
    group: int
    session: int
    start: str


class Family:
    """The processes of one command."""

    __slots__ = ("_known", "_leader", "_mark", "_stopped_shells")

    def __init__(self) -> None:
        self._mark = secrets.token_hex(8)
        self._leader = 0
        self._known: dict[int, str] = {}  # when each of them started: numbers are used again
        self._stopped_shells: set[int] = set()

    def marked(self, environment: Mapping[str, str]) -> dict[str, str]:
        """That environment with the mark. A command within a command carries both."""
        outer = os.environ.get(VARIABLE, "")
        return {**environment, VARIABLE: f"{outer}:{self._mark}" if outer else self._mark}

    def lead(self, leader: int) -> None:
        """The command runs, and this is its first process."""
        self._leader = leader

    def tell(self, number: signal.Signals) -> None:
        """Signal everybody but the leader, and remember them: their parents may go first."""
        for pid in self._look(oldest=0):
            _kill(pid, number)

    def ask_to_end(self) -> None:
        """Send TERM to everybody but shells, for a leader that is bubblewrap.

        When the program that it waits for ends, a shell would go on to the next command of its
        line (with job control also when it is stopped). So all of them are stopped first, the
        shells before their children. Shells stay stopped, or are killed: the kernel
        continues a stopped process whose group loses its parent.
        """
        others = []
        for pid, stat in self._stop_all().items():
            if not is_shell(pid, SHELLS):
                others.append(pid)
            elif stat.group == self._leader:
                self._stopped_shells.add(pid)
            else:
                _kill(pid, signal.SIGKILL)
        for number in (signal.SIGTERM, signal.SIGCONT):
            for pid in others:
                _kill(pid, number)

    def has_work(self) -> bool:
        """Is anybody left of those who were asked to end, but stopped shells?"""
        left = self._known.keys() - self._stopped_shells
        there = ((pid, _stat(pid)) for pid in left)
        return any(
            stat is not None and stat.start == self._known[pid] and stat.parent != self._leader
            for pid, stat in there
        )

    def _stop_all(self) -> dict[int, _Stat]:
        """Stop everybody but bubblewrap itself, also those who are started meanwhile."""
        found: dict[int, _Stat] = {}
        for _ in range(_STOP_ROUNDS):
            before, found = (
                found,
                {
                    pid: stat
                    for pid, stat in self._look(oldest=0).items()
                    if pid != self._leader and stat.parent != self._leader
                },
            )
            running = [pid for pid, stat in found.items() if stat.state not in "Tt"]
            if not running and found.keys() <= before.keys():
                break
            for pid in running:
                _kill(pid, signal.SIGSTOP)
            time.sleep(0.001)
        return found

    def end(self, *, thorough: bool) -> None:
        """Kill everybody but the leader.

        When a command ends by itself only younger processes than it are looked at: that is
        cheap, and there is seldom anybody.
        """
        killed: set[int] = set()
        for _ in range(_ROUNDS):
            found = self._look(oldest=0 if thorough else self._leader)
            for pid in found:
                _kill(pid, signal.SIGKILL)
            if found.keys() <= killed:
                return
            killed.update(found)

    def _look(self, oldest: int) -> dict[int, _Stat]:
        """Those who are there now, parents before their children.

        A shell that learns that its child was stopped or killed may go on before it is itself.
        """
        if not self._leader:
            return {}
        there = {pid: stat for pid in _numbers(oldest) if (stat := _stat(pid)) is not None}
        found = {pid for pid, stat in there.items() if self._is_one(pid, stat)}
        grown = True
        while grown:
            more = {pid for pid, stat in there.items() if stat.parent in found} - found
            grown = bool(more)
            found |= more
        found.discard(os.getpid())
        self._known.update({pid: there[pid].start for pid in found})
        ordered: dict[int, _Stat] = {}
        level = {pid for pid in found if there[pid].parent not in found}
        while level:
            ordered |= {pid: there[pid] for pid in level}
            level = {pid for pid in found - ordered.keys() if there[pid].parent in level}
        return ordered

    def _is_one(self, pid: int, stat: _Stat) -> bool:
        if self._leader in (stat.parent, stat.session) or self._known.get(pid) == stat.start:
            return True
        try:
            return self._mark.encode() in (_PROC / str(pid) / "environ").read_bytes()
        except OSError:  # gone, or somebody else's
            return False

    def __repr__(self) -> str:
        return f"<family of {self._leader}>"


def _numbers(oldest: int) -> list[int]:
    with suppress(OSError):
        names = [entry.name for entry in _PROC.iterdir()]
        return [int(name) for name in names if name.isdigit() and int(name) > oldest]
    return []


def _stat(pid: int) -> _Stat | None:
    """What the kernel says of a process; None for one that is gone or dead."""
    try:
        fields = (_PROC / str(pid) / "stat").read_bytes().rpartition(b")")[2].split()
    except OSError:
        return None
    if len(fields) < 20 or fields[0] in (b"Z", b"X"):
        return None
    parent, group, session = map(int, fields[1:4])
    return _Stat(fields[0].decode(), parent, group, session, fields[19].decode())


def _kill(pid: int, number: signal.Signals) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.kill(pid, number)
