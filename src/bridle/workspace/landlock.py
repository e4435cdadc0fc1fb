"""Landlock: what a process and all its children may do with files, for the kernel that is there.

Puts together what `supervise.py` hands to the kernel; confines nobody itself. Rights are given for
folders and hold for everything below: nothing can be taken back for a part. What Landlock does not
know stays open: the mode, owner and times of a file can be changed by whoever owns it (but see
seccomp.py on setuid bits), and on an older kernel (before version 6 of Landlock) other processes of
the user can be signalled.
"""

import struct
import sys
from collections.abc import Iterable
from functools import cache

_EXECUTE, _WRITE, _READ, _LIST = 1 << 0, 1 << 1, 1 << 2, 1 << 3
_DEVICES = 1 << 6 | 1 << 11  # making them is never allowed
_ALL = (1 << 13) - 1
_REFER, _TRUNCATE, _IOCTL = 1 << 13, 1 << 14, 1 << 15
_TCP = 3  # bind, connect
_SCOPES = 3  # abstract sockets, signals
OF_FILES = _EXECUTE | _WRITE | _READ | _TRUNCATE | _IOCTL

_CREATE = 444  # the number of `landlock_create_ruleset` on every machine
_ASK_VERSION = 1

Ruleset = tuple[bytes, list[tuple[str, int]]]


@cache
def version() -> int:
    """The version of Landlock in this kernel; 0 where there is none, or where it is off."""
    if sys.platform != "linux":
        return 0
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)
    found = libc.syscall(_CREATE, None, ctypes.c_size_t(0), ctypes.c_uint32(_ASK_VERSION))
    return max(int(found), 0)


def ruleset(
    readable: Iterable[str],
    writable: Iterable[str],
    devices: Iterable[str],
    *,
    network: bool,
    abi: int,
) -> Ruleset:
    """What is handled, as the kernel wants it, and the rights that each path has."""
    handled = _handled(abi)
    reads = (_EXECUTE | _READ | _LIST) & handled
    writes = handled & ~_DEVICES & ~_IOCTL
    uses = (_READ | _WRITE | _TRUNCATE | _IOCTL) & handled
    rules = [(path, reads) for path in readable]
    rules += [(path, writes) for path in writable]
    rules += [(path, uses) for path in devices]
    fields = [handled]
    if abi >= 4:
        fields.append(0 if network else _TCP)
    if abi >= 6:
        fields.append(_SCOPES)
    return struct.pack(f"{len(fields)}Q", *fields), rules


def _handled(abi: int) -> int:
    found = _ALL
    for since, right in ((2, _REFER), (3, _TRUNCATE), (5, _IOCTL)):
        if abi >= since:
            found |= right
    return found
