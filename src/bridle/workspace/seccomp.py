"""A seccomp filter: the system calls that a confined command may not make. Pure; returns bytes.

They fail with EPERM, as if a right were missing, which programs report in their own words. Refused
are ways around a sandbox (access to other processes, mounts, namespaces, io_uring, file handles),
keys of the kernel, and what only an administrator does. Only sockets of some families can be
created; a pair of connected ones (`socketpair`) always can. A program for another architecture (32
bit) may not make any call: its calls have other numbers.

No file can get the setuid bit: whoever runs such a file acts as its owner. If a command shares the
processes of this machine, no file can get the setgid bit either; in a namespace of its own that is
possible, because folders inherit the bit and programs copy it. A filter sees the mode, and not the
path. `openat2`, whose mode it does not see, fails as if it did not exist.

A command that shares the processes of this machine (under Landlock, which does not cover any of
this) may do less. It can set limits and priorities only of itself, by the number 0: a limit can
kill another process. It has no shared memory, semaphores and queues of System V, nor queues of
POSIX: they are outside of the file system, and other programs read them. PostgreSQL and fakeroot
need them and do not work. And it cannot set extended attributes, which fail as not supported: `cp
-a` and `tar` ignore that.
"""

import os
import struct
import sys
from collections.abc import Sequence

AF_UNIX, AF_INET, AF_INET6, AF_NETLINK = 1, 2, 10, 16
LOCAL = (AF_UNIX, AF_INET, AF_INET6, AF_NETLINK)  # in a network of its own
OPEN = (
    AF_INET,
    AF_INET6,
    AF_NETLINK,
)  # in the network of this machine: none that other programs here listen on

_ALLOW, _ERRNO = 0x7FFF0000, 0x00050000
_EPERM, _ENOSYS, _ENOTSUP = 1, 38, 95
_LOAD, _EQUAL, _AT_LEAST, _HAS_BITS, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_NUMBER, _MACHINE, _ARGUMENTS = 0, 4, 16  # offsets in `struct seccomp_data`
_NEW_USER = 0x10000000  # CLONE_NEWUSER
_TERMINAL_INPUT = (0x5412, 0x541C)  # ioctls that write input into a terminal

# the number that the kernel has for an architecture, and its column in the tables
_MACHINES = {"x86_64": (0xC000003E, 0), "aarch64": (0xC00000B7, 1)}
_CLONE, _CLONE3, _SOCKET, _IOCTL = (56, 220), (435, 435), (41, 198), (16, 29)
_TRUNCATE = (76, 45)
_SETUID, _SETGID = 0o4000, 0o2000
_CREATES_FILE = 0o100 | 0o20000000  # O_CREAT, O_TMPFILE: only with one of them a mode counts
_OPENAT2 = (437, 437)
# calls that set the mode of a file, and the argument that has it; None: not on this architecture
_MODES: dict[str, tuple[tuple[int | None, int | None], int]] = {
    "chmod": ((90, None), 1),
    "fchmod": ((91, 52), 1),
    "fchmodat": ((268, 53), 2),
    "fchmodat2": ((452, 452), 2),
    "creat": ((85, None), 1),
    "mknod": ((133, None), 1),
    "mknodat": ((259, 33), 2),
}
# calls that may create a file: which arguments have the flags and the mode
_OPENS: dict[str, tuple[tuple[int | None, int | None], int, int]] = {
    "open": ((2, None), 1, 2),
    "openat": ((257, 56), 2, 3),
}
_REFUSED: dict[str, tuple[int, int]] = {
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "process_madvise": (440, 440),
    "pidfd_getfd": (438, 438),
    "kcmp": (312, 272),
    "bpf": (321, 280),
    "perf_event_open": (298, 241),
    "userfaultfd": (323, 282),
    "io_uring_setup": (425, 425),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    "unshare": (272, 97),
    "setns": (308, 268),
    "mount": (165, 40),
    "umount2": (166, 39),
    "pivot_root": (155, 41),
    "chroot": (161, 51),
    "open_tree": (428, 428),
    "move_mount": (429, 429),
    "fsopen": (430, 430),
    "fsconfig": (431, 431),
    "fsmount": (432, 432),
    "fspick": (433, 433),
    "mount_setattr": (442, 442),
    "open_by_handle_at": (304, 265),
    "add_key": (248, 217),
    "request_key": (249, 218),
    "keyctl": (250, 219),
    "init_module": (175, 105),
    "finit_module": (313, 273),
    "delete_module": (176, 106),
    "kexec_load": (246, 104),
    "kexec_file_load": (320, 294),
    "reboot": (169, 142),
    "swapon": (167, 224),
    "swapoff": (168, 225),
    "settimeofday": (164, 170),
    "clock_settime": (227, 112),
    "clock_adjtime": (305, 266),
    "acct": (163, 89),
    "quotactl": (179, 60),
    "sethostname": (170, 161),
    "setdomainname": (171, 162),
    "syslog": (103, 116),
}
# if processes are shared: calls on what is outside of the file system
_IPC: dict[str, tuple[int, int]] = {
    "shmget": (29, 194),
    "shmat": (30, 196),
    "shmctl": (31, 195),
    "semget": (64, 190),
    "semop": (65, 193),
    "semctl": (66, 191),
    "semtimedop": (220, 192),
    "msgget": (68, 186),
    "msgsnd": (69, 189),
    "msgrcv": (70, 188),
    "msgctl": (71, 187),
    "mq_open": (240, 180),
    "mq_unlink": (241, 181),
    "process_mrelease": (448, 448),
}
_ATTRIBUTES: dict[str, tuple[int, int]] = {
    "setxattr": (188, 5),
    "lsetxattr": (189, 6),
    "fsetxattr": (190, 7),
    "removexattr": (197, 14),
    "lremovexattr": (198, 15),
    "fremovexattr": (199, 16),
    "setxattrat": (463, 463),
    "removexattrat": (466, 466),
}
# calls on a process, and the argument that names it: 0 is the caller itself
_ON_PROCESS: dict[str, tuple[tuple[int, int], int]] = {
    "prlimit64": ((302, 261), 0),
    "sched_setaffinity": ((203, 122), 0),
    "sched_setscheduler": ((144, 119), 0),
    "sched_setparam": ((142, 118), 0),
    "sched_setattr": ((314, 274), 0),
    "migrate_pages": ((256, 238), 0),
    "move_pages": ((279, 239), 0),
    "setpriority": ((141, 140), 1),
    "ioprio_set": ((251, 30), 1),
}
_ON_ALL_PROCESSES = (((141, 140), 2), ((251, 30), 3))  # the first argument: all of the user's


def machine() -> tuple[int, int] | None:
    """Return the number and the column of this architecture, or None if its calls are not known."""
    if sys.platform != "linux" or sys.maxsize < 2**32:
        return None
    return _MACHINES.get(os.uname().machine)


def compile_filter(
    families: Sequence[int], *, truncates: bool = True, shared: bool = False
) -> bytes:
    """Return the filter for this machine, with which only sockets of those families can be created.

    Without `truncates`, files cannot be truncated by name, for a Landlock that does not handle it.
    `shared`: the command shares the processes of this machine, and has no namespace of its own.
    """
    known = machine()
    if known is None:
        return b""
    number, column = known
    lines = [_line(_LOAD, _MACHINE), *_unless(_EQUAL, number), _line(_LOAD, _NUMBER)]
    if column == 0:  # the same architecture with other numbers (x32)
        lines += _refuse_if(_AT_LEAST, 0x40000000)
    refused = [pair[column] for pair in _REFUSED.values()]
    refused += () if truncates else (_TRUNCATE[column],)
    for call in refused:
        lines += _refuse_if(_EQUAL, call)
    lines += _shared_lines(column) if shared else []
    lines += _mode_lines(column, _SETUID | _SETGID if shared else _SETUID)
    # a filter cannot see its flags; without it the C library uses `clone`
    lines += _refuse_if(_EQUAL, _CLONE3[column], _ENOSYS)
    lines += _within(_CLONE[column], 0, _refuse_if(_HAS_BITS, _NEW_USER))
    terminal_input = [line for request in _TERMINAL_INPUT for line in _refuse_if(_EQUAL, request)]
    lines += _within(_IOCTL[column], 1, terminal_input)
    lines += _within(_SOCKET[column], 0, _allow_only(families))
    return b"".join([*lines, _line(_RETURN, _ALLOW)])


def _shared_lines(column: int) -> list[bytes]:
    """Refuse what reaches other processes of this machine."""
    lines = [line for pair in _IPC.values() for line in _refuse_if(_EQUAL, pair[column])]
    for pair in _ATTRIBUTES.values():
        lines += _refuse_if(_EQUAL, pair[column], _ENOTSUP)
    for pair, argument in _ON_PROCESS.values():
        lines += _within(pair[column], argument, _unless(_EQUAL, 0))
    for pair, which in _ON_ALL_PROCESSES:
        lines += _within(pair[column], 0, _refuse_if(_EQUAL, which))
    return lines


def _mode_lines(column: int, bits: int) -> list[bytes]:
    """Refuse modes with any of these bits."""
    lines = _refuse_if(_EQUAL, _OPENAT2[column], _ENOSYS)
    for calls, argument in _MODES.values():
        if (call := calls[column]) is not None:
            lines += _within(call, argument, _refuse_if(_HAS_BITS, bits))
    for calls, flags, argument in _OPENS.values():
        if (call := calls[column]) is not None:
            mode = [_line(_LOAD, _ARGUMENTS + 8 * argument), *_refuse_if(_HAS_BITS, bits)]
            lines += _within(call, flags, [_line(_HAS_BITS, _CREATES_FILE, 0, len(mode)), *mode])
    return lines


def _line(code: int, value: int, then: int = 0, otherwise: int = 0) -> bytes:
    return struct.pack("HBBI", code, then, otherwise, value)


def _refuse_if(test: int, value: int, errno: int = _EPERM) -> list[bytes]:
    return [_line(test, value, 0, 1), _line(_RETURN, _ERRNO | errno)]


def _unless(test: int, value: int) -> list[bytes]:
    return [_line(test, value, 1, 0), _line(_RETURN, _ERRNO | _EPERM)]


def _within(call: int, argument: int, lines: list[bytes]) -> list[bytes]:
    """Test an argument of one call, and load the number of the call again after that."""
    inner = [_line(_LOAD, _ARGUMENTS + 8 * argument), *lines, _line(_LOAD, _NUMBER)]
    return [_line(_EQUAL, call, 0, len(inner)), *inner]


def _allow_only(families: Sequence[int]) -> list[bytes]:
    """Refuse all but these families: each of them jumps over the refusal."""
    lines = [
        _line(_EQUAL, family, len(families) - place, 0) for place, family in enumerate(families)
    ]
    return [*lines, _line(_RETURN, _ERRNO | _EPERM)]
