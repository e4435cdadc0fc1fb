"""What a session does at this moment, for a list: held by a process, parked, or neither.

The system's table of locks is read once, and each log's end without the codec. What the end does
not tell is left unsaid.
"""

import os
import re
from pathlib import Path
from typing import NamedTuple

from bridle.stores.glance import Glance

_RECORD = re.compile(
    rb'^\{"seq":\d{1,18},"timestamp":"[^"\\]{0,40}","data":\{"type":'
    rb'"(turn_parked|turn_end|rewind|fork|intent|approval_answered)"([^\n]*)\n',
    re.M,
)
_CALLS = re.compile(rb'"calls":\[([^\]]*)\]')


class Doing(NamedTuple):
    """`holder` has it open now (empty: nobody); `waiting` questions wait for an answer."""

    holder: str = ""
    parked: bool = False
    waiting: int = 0

    @property
    def words(self) -> str:
        """In a word or two; empty where it rests."""
        if self.waiting:
            return f"asks {self.waiting}"
        return "parked" if self.parked else "busy" if self.holder else ""


def doing(found: list[Glance]) -> dict[str, Doing]:
    """What each of these sessions does, by id."""
    locks = _locks()
    return {one.id: _look(one, locks) for one in found}


def _look(one: Glance, locks: dict[tuple[int, int], str]) -> Doing:
    waiting = _waiting(one.end)
    return Doing(locks.get(one.file, ""), waiting is not None, waiting or 0)


def _waiting(end: bytes) -> int | None:
    """How many questions a parked turn has that nobody has answered; None: none is parked."""
    if b'"turn_parked"' not in end:  # as in nearly every log
        return None
    waiting: int | None = None
    for kind, rest in _RECORD.findall(end):
        if kind == b"turn_parked":
            calls = _CALLS.search(rest)
            waiting = calls[1].count(b",") + 1 if calls and calls[1] else 1
        elif kind == b"approval_answered":
            waiting = None if waiting is None else max(0, waiting - 1)
        else:
            waiting = None
    return waiting


def _locks() -> dict[tuple[int, int], str]:
    """Who holds which file, by its device and inode, as far as the system tells."""
    try:
        with Path("/proc/locks").open() as file:
            lines = [line.split() for line in file]
    except OSError:
        return {}
    return {
        _file(line[5]): f"process {line[4]}"
        if line[4].isdecimal() and line[4] != "0"
        else "another process"
        for line in lines
        if len(line) > 5 and line[1] == "FLOCK"
    }


def _file(spelled: str) -> tuple[int, int]:
    """A file's device and inode, of which the table of locks says `fe:01:1234`; or no file."""
    try:
        major, minor, inode = spelled.split(":")
        return os.makedev(int(major, 16), int(minor, 16)), int(inode)
    except ValueError:
        return -1, -1
