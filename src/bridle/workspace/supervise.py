"""Supervises one command: confines it, waits for it, and ends all that it has started. A script.

It is run as a file by a bare interpreter (no site, no environment), so it imports next to nothing
and no module of bridle. Everything that the command starts is a descendant of this process, also a
daemon with a session of its own, because this process adopts orphans. When the command has ended,
or when the lifeline says so, it ends all of them, and then itself, as the command ended.

The lifeline is a pipe whose other end bridle holds. A `T` asks all processes to end. If the pipe is
closed, also because bridle was killed, all processes are killed.

A process that is asked to end gets TERM and may clean up, except a shell: if the program that it
waits for ends, a shell continues with the next command of its line. So all processes are stopped
first, shells stay stopped (or are killed), and only then do the others get TERM and continue.
"""

import marshal
import os
import select
import sys
import time
from ctypes import (
    CDLL,
    addressof,
    c_size_t,
    c_uint32,
    c_ulong,
    c_void_p,
    create_string_buffer,
    get_errno,
)

_TERM, _KILL, _STOP, _CONT = 15, 9, 19, 18
_DRAIN, _GRACE = (
    200,
    500,
)  # milliseconds for what the command leaves behind: by itself, and after TERM
_STEP = 5
_DEFAULT, _IGNORE = 0, 1
_IGNORED_BY_PYTHON = (13, 25)  # PIPE, XFSZ
_ASKED_TO_END = (1, 2, 15)  # HUP, INT, TERM: it ends when the command has
_ROUNDS = 400  # of killing, for processes that start others meanwhile
_STOP_ROUNDS = 30  # of stopping all; one round takes some milliseconds
_POLL = 20  # milliseconds between two looks at what is left after it was asked to end
_STOPPED = b"Tt"  # states of a process in /proc
_UNKNOWN = 0  # the group of a process whose entry in /proc cannot be read
_MANY_PROGRAMS = ("busybox", "toybox")  # one file that is a shell or another program, by its name
_PDEATHSIG, _DUMPABLE, _SECCOMP, _DROP, _SUBREAPER, _NO_NEW_PRIVS = 1, 4, 22, 24, 36, 38
_ADD_RULE, _CREATE, _RESTRICT = 445, 444, 446
_CAPABILITIES = 64
_KEPT = (0, 1, 3, 4, 6, 7)  # chown, dac_override, fowner, fsetid, setgid, setuid
_NO_MORE_FILES = (23, 24)  # ENFILE, EMFILE
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_PATH_ONLY = 0o10000000 | os.O_CLOEXEC  # O_PATH
_OF_FILES = 1 << 0 | 1 << 1 | 1 << 2 | 1 << 14 | 1 << 15  # rights that a file can have


def _libc() -> CDLL:
    return CDLL(None, use_errno=True)


def _check_result(result: int) -> int:
    if result < 0:
        raise OSError(get_errno(), os.strerror(get_errno()))
    return result


def _prctl(option: int, *values: int) -> int:
    padded = [c_ulong(value) for value in (*values, 0, 0, 0, 0)[:4]]
    return int(_libc().prctl(option, *padded))


def _set_handler(numbers: tuple[int, ...], handler: int) -> None:
    """Set how signals are handled. The module `signal` would take 4 ms to import."""
    libc = _libc()
    for number in numbers:
        libc.signal(number, c_void_p(handler))


def _confine(attributes: bytes, rules: list[tuple[str, int]]) -> None:
    """Landlock: from here on, allow only what the rules say."""
    libc = _libc()
    size = c_size_t(len(attributes))
    handle = _check_result(libc.syscall(_CREATE, attributes, size, c_uint32(0)))
    for path, access in rules:
        try:
            entry = os.open(path, _PATH_ONLY)
        except OSError:
            continue  # it is gone
        if os.fstat(entry).st_mode & 0o170000 != 0o040000:
            access &= _OF_FILES
        rule = access.to_bytes(8, sys.byteorder) + entry.to_bytes(4, sys.byteorder)
        _check_result(libc.syscall(_ADD_RULE, handle, 1, rule, c_uint32(0)))
        os.close(entry)
    _check_result(libc.syscall(_RESTRICT, handle, c_uint32(0)))
    os.close(handle)


def _filter(program: bytes) -> None:
    """Seccomp: from here on, refuse the calls of the filter."""
    buffer = create_string_buffer(program, len(program))
    count = (len(program) // 8).to_bytes(8, sys.byteorder)
    whole = create_string_buffer(count + addressof(buffer).to_bytes(8, sys.byteorder), 16)
    _check_result(_prctl(_SECCOMP, 2, addressof(whole)))


def _run_command(spec: dict[str, object], argv: list[str], above: int) -> None:
    """Become the command, in the child process."""
    os.setsid()
    _set_handler(_IGNORED_BY_PYTHON, _DEFAULT)
    if sys.platform == "linux":
        _prctl(_PDEATHSIG, _KILL)
        if os.getppid() != above:
            os._exit(1)
    attributes, rules, program = spec["attributes"], spec["rules"], spec["program"]
    if isinstance(attributes, bytes) and isinstance(rules, list) and isinstance(program, bytes):
        if os.geteuid() == 0:
            for number in set(range(_CAPABILITIES)).difference(_KEPT):
                _prctl(_DROP, number)  # one that does not exist fails, which does not matter
        _check_result(_prctl(_NO_NEW_PRIVS, 1))
        _confine(attributes, rules)
        _filter(program)
    os.execv(argv[0], argv)


def _descendants(processes: int) -> dict[int, tuple[bytes, int]]:
    """Return all living descendants of this process, with their state and group.

    Parents come before their children: a shell that learns that its child was stopped or killed
    could continue before it is stopped itself.

    `processes` is a handle of /proc. If no file can be opened any more (a limit was set on this
    process), only its children are returned: their orphans are its children next time.
    """
    parents: dict[int, int] = {}
    states: dict[int, tuple[bytes, int]] = {}
    numbers = _numbers(processes)
    for number in numbers:
        try:
            handle = os.open(f"{number}/stat", os.O_RDONLY | os.O_CLOEXEC, dir_fd=processes)
        except OSError as error:
            if error.errno in _NO_MORE_FILES:
                return {pid: (_STOPPED, _UNKNOWN) for pid in numbers if _is_child(pid)}
            continue
        fields = _read(handle).rpartition(b")")[2].split()
        if fields and fields[0] not in b"ZX":
            parents[number] = int(fields[1])
            states[number] = (fields[0], int(fields[2]))
    descendants: dict[int, tuple[bytes, int]] = {}
    level = {os.getpid()}
    while level:
        level = {pid for pid, parent in parents.items() if parent in level}
        descendants |= {pid: states[pid] for pid in level}
    return descendants


def is_shell(pid: int, shells: tuple[str, ...]) -> bool:
    """Does the process run a shell? By its program: a script has a name of its own."""
    try:
        name = os.readlink(f"/proc/{pid}/exe")  # noqa: PTH115 - pathlib would take time to import
        name = name.removesuffix(" (deleted)")
        if name.rpartition("/")[2] in _MANY_PROGRAMS:
            words = os.open(f"/proc/{pid}/cmdline", os.O_RDONLY | os.O_CLOEXEC)
            name = os.fsdecode(_read(words).partition(b"\0")[0])
    except OSError:
        return False
    return name.rpartition("/")[2].lstrip("-") in shells


def _numbers(processes: int) -> list[int]:
    """Return the numbers of all processes."""
    try:
        return [int(name) for name in os.listdir(processes) if name.isdigit()]
    except OSError:
        return _numbers_without_files(processes)


def _numbers_without_files(processes: int) -> list[int]:
    """Do the same if no file can be opened any more: `os.listdir` opens one."""
    libc = _libc()
    numbers: list[int] = []
    buffer = create_string_buffer(1 << 15)
    os.lseek(processes, 0, os.SEEK_SET)
    while (size := libc.getdents64(processes, buffer, c_size_t(len(buffer)))) > 0:
        data, at = buffer.raw[:size], 0
        while at < size:
            length = int.from_bytes(data[at + 16 : at + 18], sys.byteorder)
            name = data[at + 19 : at + length].partition(b"\0")[0]
            numbers += [int(name)] if name.isdigit() else []
            at += length
    return numbers


def _read(handle: int) -> bytes:
    try:
        return os.read(handle, 1024)
    except OSError:
        return b""  # it is gone
    finally:
        os.close(handle)


def _is_child(pid: int) -> bool:
    try:
        os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except OSError:
        return False
    return True


def _signal_all(number: int, leader: int, processes: int) -> None:
    """Signal all descendants; on systems other than Linux, the group of the command."""
    for pid in _descendants(processes) if processes >= 0 else (-leader,):
        _signal(pid, number)


def _signal(pid: int, number: int) -> None:
    try:
        os.kill(pid, number)
    except OSError:
        return  # it is gone, or belongs to another user


class _Supervision:
    """The command, and all processes that it has started."""

    def __init__(self, leader: int, lifeline: int, processes: int, shells: tuple[str, ...]) -> None:
        self.leader = leader
        self._processes = processes
        self._shells = shells
        self._stopped_shells: set[int] = set()
        self.status: int | None = None
        self.is_cut = False
        self.is_asked = False
        self._lifeline = lifeline
        self._poll = select.poll()
        self._poll.register(lifeline, select.POLLIN)
        self._handle = -1
        if hasattr(os, "pidfd_open"):
            try:
                self._handle = os.pidfd_open(leader)
                self._poll.register(self._handle, select.POLLIN)
            except OSError:
                self._handle = -1

    def wait(self, milliseconds: int | None) -> bool:
        """Wait for an event, at most so long. Return whether any process is left."""
        if milliseconds is None and self._handle < 0:
            milliseconds = 20
        for handle in self._ready_handles(milliseconds):
            if handle == self._lifeline:
                self._read_lifeline()
            else:
                self._poll.unregister(handle)
        return self._reap()

    def _ready_handles(self, milliseconds: int | None) -> list[int]:
        """Return the handles that are ready. With a limit of no open files, polling fails."""
        try:
            return [handle for handle, _ in self._poll.poll(milliseconds)]
        except OSError:
            time.sleep(min(milliseconds or _STEP, _STEP) / 1000)
            os.set_blocking(self._lifeline, False)
            return [] if self.is_cut else [self._lifeline]

    def _read_lifeline(self) -> None:
        try:
            byte = os.read(self._lifeline, 1)
        except BlockingIOError:
            return
        if byte:
            self.ask_to_end()
        else:
            self._poll.unregister(self._lifeline)
            self.is_cut = True

    def signal(self, number: int) -> None:
        """Send a signal to all."""
        _signal_all(number, self.leader, self._processes)

    def ask_to_end(self) -> None:
        """Send TERM to all but shells, which run nothing from here on."""
        self.is_asked = True
        if self._processes < 0:  # not Linux: only the command's own shell is known
            _signal(self.leader, _STOP)
            self._stopped_shells.add(self.leader)
            self.signal(_TERM)
            return
        others = []
        for pid, (_, group) in self._stop_all().items():
            if not is_shell(pid, self._shells):
                others.append(pid)
            elif group in (self.leader, _UNKNOWN):
                _signal(pid, _STOP)
                self._stopped_shells.add(pid)
            else:  # if its group loses its parent, the kernel would continue it
                _signal(pid, _KILL)
        for number in (_TERM, _CONT):
            for pid in others:
                _signal(pid, number)

    def _stop_all(self) -> dict[int, tuple[bytes, int]]:
        """Stop all, also those that are started meanwhile, and return them."""
        processes: dict[int, tuple[bytes, int]] = {}
        for _ in range(_STOP_ROUNDS):
            before, processes = processes, _descendants(self._processes)
            running = [pid for pid, (state, _) in processes.items() if state not in _STOPPED]
            if not running and processes.keys() <= before.keys():
                break
            for pid in running:
                _signal(pid, _STOP)
            time.sleep(0.001)
        return processes

    def has_work(self) -> bool:
        """After `ask_to_end`: is any process left but stopped shells?"""
        if self._processes < 0:
            return True
        return not _descendants(self._processes).keys() <= self._stopped_shells

    def _reap(self) -> bool:
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return False
            if pid == 0:
                return True
            if pid == self.leader:
                self.status = status

    def wait_all(self, milliseconds: int) -> bool:
        """Wait for all to end, at most so long. Return whether any process is left."""
        for _ in range(0, milliseconds, _STEP):
            if not self.wait(_STEP):
                return False
            if self.is_cut:
                return True
        return True


def _supervise(supervision: _Supervision) -> None:
    """Return when no process is left."""
    left = supervision.wait(0)
    while (
        left and supervision.status is None and not supervision.is_cut and not supervision.is_asked
    ):
        left = supervision.wait(None)
    if left and not supervision.is_cut and not supervision.is_asked:
        left = supervision.wait_all(_DRAIN)
    if left and not supervision.is_cut and not supervision.is_asked:
        supervision.ask_to_end()
    waited = 0  # since the command has ended; before that, bridle says how long
    while left and not supervision.is_cut and waited < _GRACE and supervision.has_work():
        left = supervision.wait(_POLL)
        waited += _POLL if supervision.status is not None else 0
    for _ in range(_ROUNDS if left else 0):
        supervision.signal(_STOP)  # a stopped process starts no others
        supervision.signal(_KILL)
        if not supervision.wait_all(_STEP * 4):
            return


def _end_as(status: int | None) -> None:
    """End as the command did."""
    if status is None:
        os._exit(1)
    number = os.waitstatus_to_exitcode(status)
    if number < 0:
        if sys.platform == "linux":
            _prctl(_DUMPABLE, 0)  # the command has left a core file, if there is to be one
        _set_handler((-number,), _DEFAULT)
        os.kill(os.getpid(), -number)
    os._exit(number if number >= 0 else 128 - number)


def _close_all_but(*handles: int) -> None:
    """Close all handles but these: others are for the command."""
    first = 3
    for handle in sorted(handles):
        os.closerange(first, max(handle, first))
        first = max(handle + 1, first)
    os.closerange(first, 1024)


def main() -> None:
    """`supervise.py SPEC PROGRAM ARGUMENT…`; the spec is what `sandbox.py` wrote."""
    spec = marshal.loads(bytes.fromhex(sys.argv[1]))
    above = os.getpid()
    if sys.platform == "linux":
        _prctl(_SUBREAPER, 1)
    null = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
    processes = os.open("/proc", _FOLDER) if sys.platform == "linux" else -1
    leader = os.fork()
    if leader == 0:
        try:
            os.close(spec["lifeline"])
            _run_command(spec, sys.argv[2:], above)
        except BaseException as error:
            os.write(2, f"bridle: the command was not started: {error}\n".encode())
        os._exit(126)
    _set_handler(_ASKED_TO_END, _IGNORE)
    for handle in (0, 1, 2):
        os.dup2(null, handle)
    _close_all_but(lifeline := spec["lifeline"], processes)
    _supervise(supervision := _Supervision(leader, lifeline, processes, spec["shells"]))
    if sys.platform != "linux":
        supervision.signal(_KILL)  # orphans were not given to this process
    _end_as(supervision.status)


if __name__ == "__main__":
    main()
