"""Programs that begin at once: forked from a process that has read the libraries already.

`Forked` is a `subprocess.Popen` of `python -m MODULE …`: a process of its own with its own pipes,
terminal, environment and signals, which ends as any other. All that it does not do is to read the
same libraries again, which is most of what a short program costs. What a start itself is like is
told by those who really start one; in a soak everything is really started.

The other half of this file is the process that forks. It knows nothing of what is tested.
"""

import json
import os
import select
import signal
import socket
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path

_SOAK = os.environ.get("BRIDLE_SOAK") == "1"  # looked at here: tests see an empty environment
_STATUS = 65536  # bytes of a request; more is started in the usual way
_ready = threading.Lock()
_mothers: dict[str, socket.socket] = {}

LIBRARIES = (
    *("asyncio.subprocess", "concurrent.futures.thread", "difflib", "email.utils", "html.parser"),
    *("http.server", "sqlite3", "shlex", "tempfile", "urllib.request", "uuid", "zoneinfo"),
    *("click.shell_completion", "msgspec.json", "yaml", "aiohttp", "tree_sitter_bash"),
)
BIG = ("acp", "mcp", "mcp.server", "mcp.client.stdio", "claude_agent_sdk")
BIG += ("uvicorn", "uvicorn.protocols.http.auto", "uvloop", "httptools", "websockets")
BIG += (
    "starlette.applications",
    "sqlalchemy.ext.asyncio",
    "sqlmodel",
    "alembic.command",
    "psycopg",
)


def may_fork(environ):
    """Is there nothing about the environment that Python looks at when it starts?"""
    odd = ("PYTHON", "LC_", "LANGUAGE", "TZ", "LD_", "MALLOC")
    given = {name: value for name, value in environ.items() if name.startswith(odd)}
    plain = given in ({}, {"PYTHONWARNINGS": "error"})
    return plain and environ.get("LANG") == "C.UTF-8" and not _SOAK


class Forked(subprocess.Popen):
    """`Forked(["bridle", "run", …], environ, …)`: a module, or a script, and its arguments."""

    def __init__(self, words, environ, *, terminal=False, big=False, **rest):
        self._terminal, self._big = terminal, big
        super().__init__([os.fsencode(word) for word in words], env=environ, **rest)

    def _execute_child(self, args, _executable, _preexec, _close, _pass, cwd, env, *rest):
        pipes = rest[3:9]  # ours and theirs, by turns: of stdin, stdout and stderr
        theirs = (pipes[0], pipes[3], pipes[5])
        said, says = os.pipe()
        wanted = {
            "words": [os.fsdecode(word) for word in args],
            "folder": str(cwd or Path.cwd()),
            "environ": dict(env),
            "terminal": self._terminal,
        }
        given = [own if fd == -1 else fd for own, fd in enumerate(theirs)]
        try:
            _ask("big" if self._big else "small", wanted, [*given, says])
        finally:
            os.close(says)
            self._close_pipe_fds(*pipes)
        self._said = os.fdopen(said, "rb", buffering=0)
        self.pid = int(self._line())
        self._child_created = True

    def _line(self):
        found = b""
        while not found.endswith(b"\n"):
            more = self._said.read(1)
            if not more:
                raise OSError("the process that forks is gone")
            found += more
        return found

    def _internal_poll(self, _deadstate=None, **_):
        if self.returncode is None and self._over(0):
            self._ended()
        return self.returncode

    def _wait(self, timeout):
        if self.returncode is None:
            if not self._over(timeout):
                raise subprocess.TimeoutExpired(self.args, timeout)
            self._ended()
        return self.returncode

    def _over(self, timeout):
        return bool(select.select([self._said], [], [], timeout)[0])

    def _ended(self):
        with self._waitpid_lock:
            if self.returncode is None:
                self.returncode = int(self._line())
                self._said.close()


def begun(words, environ, *, big=False, **rest):
    """The program, forked where that changes nothing, and else really started."""
    if may_fork(environ):
        return Forked(words, environ, big=big, **rest)
    return subprocess.Popen([sys.executable, "-m", *words], env=environ, **rest)


def run(words, environ, *, stdin=None, timeout=None, big=False, **rest):
    """As `subprocess.run`, with what it says captured."""
    pipe = subprocess.PIPE
    source = subprocess.DEVNULL if stdin is None else pipe
    with Forked(words, environ, big=big, stdin=source, stdout=pipe, stderr=pipe, **rest) as process:
        try:
            out, err = process.communicate(stdin, timeout=timeout)
        except BaseException:
            process.kill()
            raise
    return subprocess.CompletedProcess(process.args, process.returncode, out, err)


def _ask(size, wanted, fds):
    with _ready:
        if size not in _mothers:
            _mothers[size] = _mother(size)
        socket.send_fds(_mothers[size], [json.dumps(wanted).encode()], fds)


def _mother(size):
    """Start the process that forks; it ends when we do."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4 * _STATUS)
    environ = {"LANG": "C.UTF-8", "PATH": os.environ["PATH"], "PYTHONWARNINGS": "error"}
    words = [sys.executable, str(Path(__file__)), size, str(theirs.fileno())]
    none = subprocess.DEVNULL
    process = subprocess.Popen(words, env=environ, pass_fds=[theirs.fileno()], stdin=none)
    process.returncode = 0  # nobody waits for it: it sees that we are gone
    theirs.close()
    return ours


# --- the process that forks -----------------------------------------------------------------------


def _read_libraries(size):
    """Everything that a program may need, and nothing that is kept in a thread."""
    import gc
    import importlib
    import pkgutil

    import bridle

    names = [*LIBRARIES, *(BIG if size == "big" else ())]
    faces = ("bridle.tui", "bridle.testing", "bridle.__main__")
    if size != "big":
        faces += ("bridle.server", "bridle.agents", "bridle.tools.mcp", "bridle.cli.house_")
        faces += (
            "bridle.chat",
            "bridle.cli.chat_",
            "bridle.cli.full_screen",
            "bridle.cli.start_checks",
            "bridle.cli.acp_host",
        )
    for module in pkgutil.walk_packages(bridle.__path__, "bridle."):
        if not module.name.startswith(faces):
            names.append(module.name)
    for name in names:
        with suppress(ImportError):
            importlib.import_module(name)
    assert threading.active_count() == 1
    gc.collect()
    gc.freeze()


def _requests(door):
    """Fork for each request; yields in the children only."""
    waited = {}
    woken, wakes = os.pipe()
    os.set_blocking(wakes, False)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(wakes, warn_on_full_buffer=False)
    while True:
        ready, _, _ = select.select([door, woken], [], [])
        if woken in ready:
            os.read(woken, 4096)
            _reap(waited)
        if door in ready:
            data, fds, _, _ = socket.recv_fds(door, 4 * _STATUS, 4)
            if not data:  # who asks is gone
                os._exit(0)
            if (pid := os.fork()) == 0:
                signal.set_wakeup_fd(-1)
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                signal.signal(signal.SIGINT, signal.default_int_handler)
                for fd in (woken, wakes, *waited.values(), fds.pop()):
                    os.close(fd)
                door.close()
                yield json.loads(data), fds
                raise AssertionError("it should have ended")
            waited[pid] = fds.pop()
            with suppress(OSError):
                os.write(waited[pid], b"%d\n" % pid)
            for fd in fds:
                os.close(fd)


def _reap(waited):
    while waited:
        pid, status = os.waitpid(-1, os.WNOHANG)
        if not pid:
            return
        says = waited.pop(pid)
        with suppress(OSError):  # nobody wants to know
            os.write(says, b"%d\n" % os.waitstatus_to_exitcode(status))
        os.close(says)


def _become(wanted, fds):
    """Be the program that is wanted: its streams, folder, environment and words."""
    if wanted["terminal"]:
        os.setsid()
    for own, fd in enumerate(fds):
        os.dup2(fd, own)
    for fd in fds:
        if fd > 2:
            os.close(fd)
    if wanted["terminal"]:
        import fcntl
        import termios

        fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    os.chdir(wanted["folder"])
    os.environ.clear()
    os.environ.update(wanted["environ"])
    sys.path[0] = wanted["folder"]
    sys.argv = ["-m", *wanted["words"][1:]]
    _streams()


def _streams():
    """The standard streams, as Python makes them."""
    for name, fd in (("stdin", 0), ("stdout", 1), ("stderr", 2)):
        old = getattr(sys, name)
        new = open(  # noqa: SIM115
            fd,
            "r" if fd == 0 else "w",
            buffering=1 if fd == 2 or (fd == 1 and os.isatty(fd)) else -1,
            encoding=old.encoding,
            errors=old.errors,
            newline=None if fd == 0 else "\n",
            closefd=False,
        )
        setattr(sys, name, new)
        setattr(sys, f"__{name}__", new)


def _play(module):
    """Run it as `python -m` would, and end as Python does."""
    import atexit
    import gc
    import runpy
    import traceback

    code = 0
    try:
        if module.endswith(".py"):
            sys.path[0] = str(Path(module).parent)
            sys.argv[0] = module
            runpy.run_path(module, run_name="__main__")
        else:
            runpy.run_module(module, run_name="__main__", alter_sys=True)
    except SystemExit as error:
        code = error.code if isinstance(error.code, int) else int(error.code is not None)
        if code == 1 and not isinstance(error.code, int):
            print(error.code, file=sys.stderr)  # noqa: T201
    except BaseException as error:
        traceback.print_exc()
        code = -signal.SIGINT if isinstance(error, KeyboardInterrupt) else 1
    threading._shutdown()
    atexit._run_exitfuncs()
    gc.collect()
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except (OSError, ValueError):
        code = 120
    if code < 0:
        signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    os._exit(code & 255)


def _mother_of(size, fd):
    sys.path.pop(0)
    sys.path.insert(0, "")
    _read_libraries(size)
    for wanted, fds in _requests(socket.socket(fileno=fd)):
        _become(wanted, fds)
        _play(wanted["words"][0])


if __name__ == "__main__":
    _mother_of(sys.argv[1], int(sys.argv[2]))
