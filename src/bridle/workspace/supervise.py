"""Stands over one command: confines it, waits for it, and leaves nobody behind. A script.

Run by its file with a bare interpreter (no site, no environment), so it imports next to nothing
and knows nothing of bridle. Everything that the command starts stays below this process, also a
daemon with a session of its own: it is the one that orphans are given to. When the command has
ended, or when the lifeline says so, all of them are ended, and then this process, in the way in
which the command did.

The lifeline is a pipe whose other end bridle holds: `T` asks everybody to end, and its end, also
that of a bridle that was killed, kills everybody.

Who is asked to end gets TERM and may clean up, with one exception: a shell. When the program that
it waits for ends, a shell would go on to the next command of its line. So all processes are stopped
first, shells stay stopped (or are killed), and only then the others get TERM and go on.
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
_DRAIN, _GRACE = 200, 500  # milliseconds for those who stay behind: by themselves, and after TERM
_STEP = 5
_USUAL, _IGNORE = 0, 1
_IGNORED_BY_PYTHON = (13, 25)  # PIPE, XFSZ
_ASKED_TO_END = (1, 2, 15)  # HUP, INT, TERM: it ends when the command has
_ROUNDS = 400  # of killing, for those who multiply meanwhile
_STOP_ROUNDS = 30  # of stopping everybody; one round takes some milliseconds
_GLANCE = 20  # milliseconds between two looks at who is left after they were asked to end
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


def _checked(result: int) -> int:
    if result < 0:
        raise OSError(get_errno(), os.strerror(get_errno()))
    return result


def _prctl(option: int, *values: int) -> int:
    padded = [c_ulong(value) for value in (*values, 0, 0, 0, 0)[:4]]
    return int(_libc().prctl(option, *padded))


def _take(numbers: tuple[int, ...], how: int) -> None:
    """How signals are taken from here on. The module `signal` would take 4 ms to import."""
    libc = _libc()
    for number in numbers:
        libc.signal(number, c_void_p(how))


def _confine(attributes: bytes, rules: list[tuple[str, int]]) -> None:
    """Landlock: from here on only what the rules give."""
    libc = _libc()
    size = c_size_t(len(attributes))
    handle = _checked(libc.syscall(_CREATE, attributes, size, c_uint32(0)))
    for path, access in rules:
        try:
            place = os.open(path, _PATH_ONLY)
        except OSError:
            continue  # gone since: nothing to give
        if os.fstat(place).st_mode & 0o170000 != 0o040000:
            access &= _OF_FILES
        rule = access.to_bytes(8, sys.byteorder) + place.to_bytes(4, sys.byteorder)
        _checked(libc.syscall(_ADD_RULE, handle, 1, rule, c_uint32(0)))
        os.close(place)
    _checked(libc.syscall(_RESTRICT, handle, c_uint32(0)))
    os.close(handle)


def _filter(program: bytes) -> None:
    """Seccomp: the calls that are refused."""
    held = create_string_buffer(program, len(program))
    count = (len(program) // 8).to_bytes(8, sys.byteorder)
    whole = create_string_buffer(count + addressof(held).to_bytes(8, sys.byteorder), 16)
    _checked(_prctl(_SECCOMP, 2, addressof(whole)))


def _begin(spec: dict[str, object], argv: list[str], above: int) -> None:
    """In the child: become the command."""
    os.setsid()
    _take(_IGNORED_BY_PYTHON, _USUAL)
    if sys.platform == "linux":
        _prctl(_PDEATHSIG, _KILL)
        if os.getppid() != above:
            os._exit(1)
    attributes, rules, program = spec["attributes"], spec["rules"], spec["program"]
    if isinstance(attributes, bytes) and isinstance(rules, list) and isinstance(program, bytes):
        if os.geteuid() == 0:
            for number in set(range(_CAPABILITIES)).difference(_KEPT):
                _prctl(_DROP, number)  # one that does not exist is refused: so be it
        _checked(_prctl(_NO_NEW_PRIVS, 1))
        _confine(attributes, rules)
        _filter(program)
    os.execv(argv[0], argv)


def _below(processes: int) -> dict[int, tuple[bytes, int]]:
    """Everybody who descends from this process, and is not dead yet: their state and group.

    Parents come before their children: a shell that learns that its child was stopped or killed may
    go on before it is itself.

    `processes` is a handle on /proc. Where no file can be opened any more (a limit was set on this
    process), those who are right below it: who they leave behind is right below it next time.
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
    found: dict[int, tuple[bytes, int]] = {}
    wanted = {os.getpid()}
    while wanted:
        wanted = {pid for pid, parent in parents.items() if parent in wanted}
        found |= {pid: states[pid] for pid in wanted}
    return found


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
    """The numbers of all processes."""
    try:
        return [int(name) for name in os.listdir(processes) if name.isdigit()]
    except OSError:
        return _numbers_without_files(processes)


def _numbers_without_files(processes: int) -> list[int]:
    """The same where no handle can be had any more: `os.listdir` needs another."""
    libc = _libc()
    found: list[int] = []
    buffer = create_string_buffer(1 << 15)
    os.lseek(processes, 0, os.SEEK_SET)
    while (size := libc.getdents64(processes, buffer, c_size_t(len(buffer)))) > 0:
        data, at = buffer.raw[:size], 0
        while at < size:
            length = int.from_bytes(data[at + 16 : at + 18], sys.byteorder)
            name = data[at + 19 : at + length].partition(b"\0")[0]
            found += [int(name)] if name.isdigit() else []
            at += length
    return found


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


def _tell(number: int, leader: int, processes: int) -> None:
    """Signal everybody; elsewhere than on Linux, the group of the command."""
    for pid in _below(processes) if processes >= 0 else (-leader,):
        _signal(pid, number)


def _signal(pid: int, number: int) -> None:
    try:
        os.kill(pid, number)
    except OSError:
        return  # it is gone, or somebody else's


class _Watch:
    """The command, and those who came after it."""

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

    def look(self, milliseconds: int | None) -> bool:
        """Wait for something to happen, or so long. Is anybody left?"""
        if milliseconds is None and self._handle < 0:
            milliseconds = 20
        for handle in self._wait(milliseconds):
            if handle == self._lifeline:
                self._listen()
            else:
                self._poll.unregister(handle)
        return self._reap()

    def _wait(self, milliseconds: int | None) -> list[int]:
        """The handles that something came from. Nobody with a limit of no files can poll."""
        try:
            return [handle for handle, _ in self._poll.poll(milliseconds)]
        except OSError:
            time.sleep(min(milliseconds or _STEP, _STEP) / 1000)
            os.set_blocking(self._lifeline, False)
            return [] if self.is_cut else [self._lifeline]

    def _listen(self) -> None:
        try:
            said = os.read(self._lifeline, 1)
        except BlockingIOError:
            return
        if said:
            self.ask_to_end()
        else:
            self._poll.unregister(self._lifeline)
            self.is_cut = True

    def tell(self, number: int) -> None:
        """Signal everybody."""
        _tell(number, self.leader, self._processes)

    def ask_to_end(self) -> None:
        """Send TERM to everybody but shells, which run nothing from here on."""
        self.is_asked = True
        if self._processes < 0:  # not Linux: of the shells only the command's own is known
            _signal(self.leader, _STOP)
            self._stopped_shells.add(self.leader)
            self.tell(_TERM)
            return
        others = []
        for pid, (_, group) in self._stop_all().items():
            if not is_shell(pid, self._shells):
                others.append(pid)
            elif group in (self.leader, _UNKNOWN):
                _signal(pid, _STOP)
                self._stopped_shells.add(pid)
            else:  # stopped in a group that loses its parent, it would be continued by the kernel
                _signal(pid, _KILL)
        for number in (_TERM, _CONT):
            for pid in others:
                _signal(pid, number)

    def _stop_all(self) -> dict[int, tuple[bytes, int]]:
        """Stop everybody, also those who are started meanwhile: who they are."""
        found: dict[int, tuple[bytes, int]] = {}
        for _ in range(_STOP_ROUNDS):
            before, found = found, _below(self._processes)
            running = [pid for pid, (state, _) in found.items() if state not in _STOPPED]
            if not running and found.keys() <= before.keys():
                break
            for pid in running:
                _signal(pid, _STOP)
            time.sleep(0.001)
        return found

    def has_work(self) -> bool:
        """Is there anybody left but stopped shells, who were asked to end?"""
        if self._processes < 0:
            return True
        return not _below(self._processes).keys() <= self._stopped_shells

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

    def last(self, milliseconds: int) -> bool:
        """Is somebody left after so long?"""
        for _ in range(0, milliseconds, _STEP):
            if not self.look(_STEP):
                return False
            if self.is_cut:
                return True
        return True


def _follow(watch: _Watch) -> None:
    """Until nobody is left."""
    left = watch.look(0)
    while left and watch.status is None and not watch.is_cut and not watch.is_asked:
        left = watch.look(None)
    if left and not watch.is_cut and not watch.is_asked:
        left = watch.last(_DRAIN)
    if left and not watch.is_cut and not watch.is_asked:
        watch.ask_to_end()
    waited = 0  # since the command has ended; before that, bridle says how long
    while left and not watch.is_cut and waited < _GRACE and watch.has_work():
        left = watch.look(_GLANCE)
        waited += _GLANCE if watch.status is not None else 0
    for _ in range(_ROUNDS if left else 0):
        watch.tell(_STOP)  # who stands still does not multiply
        watch.tell(_KILL)
        if not watch.last(_STEP * 4):
            return


def _end_as(status: int | None) -> None:
    """End in the way in which the command did."""
    if status is None:
        os._exit(1)
    number = os.waitstatus_to_exitcode(status)
    if number < 0:
        if sys.platform == "linux":
            _prctl(_DUMPABLE, 0)  # the command has left a core file, if there is to be one
        _take((-number,), _USUAL)
        os.kill(os.getpid(), -number)
    os._exit(number if number >= 0 else 128 - number)


def _hold_only(*handles: int) -> None:
    """What is for the command is not held open here."""
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
    quiet = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
    processes = os.open("/proc", _FOLDER) if sys.platform == "linux" else -1
    leader = os.fork()
    if leader == 0:
        try:
            os.close(spec["lifeline"])
            _begin(spec, sys.argv[2:], above)
        except BaseException as error:
            os.write(2, f"bridle: the command was not started: {error}\n".encode())
        os._exit(126)
    _take(_ASKED_TO_END, _IGNORE)
    for handle in (0, 1, 2):
        os.dup2(quiet, handle)
    _hold_only(lifeline := spec["lifeline"], processes)
    _follow(watch := _Watch(leader, lifeline, processes, spec["shells"]))
    if sys.platform != "linux":
        watch.tell(_KILL)  # orphans were not given to this process
    _end_as(watch.status)


if __name__ == "__main__":
    main()
