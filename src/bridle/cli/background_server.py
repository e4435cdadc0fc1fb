"""The servers behind background sessions: find one, start it, connect to it, and what it runs.

Such a server is our own, on a Unix socket that is private to this user, so it can run sessions of
any folder. There is one for each way of running: its name is a digest of the flags and of that part
of the environment which decides what a turn does (keys, addresses, PATH). So a session gets exactly
what its caller had, no key goes over a socket, and nobody's work has to be stopped because somebody
else's environment differs. A server holds a lock as long as it lives; of two that are started, one
ends at once.

A server stays while something runs, is queued or is watched, an hour if only approval requests wait
(they are on disk and need no process), and a minute otherwise. It is started as
`python -m bridle.cli.background_server FOLDER`.
"""

import asyncio
import fcntl
import hashlib
import json
import os
import re
import secrets
import socket
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from bridle.client import Client
from bridle.config.paths import state_folder
from bridle.errors import AgentError, ConfigError
from bridle.workspace.fs import write_private

if TYPE_CHECKING:
    from bridle.server.context import ServerContext
    from bridle.server.streams import Streams

NAME = "the background process"
IDLE_VARIABLE = "BRIDLE_BACKGROUND_IDLE"  # seconds, for those who want it to end sooner or later
_DECIDING = re.compile(
    r"BRIDLE_(?!TOKEN$|DEBUG$|BACKGROUND).*|.*_API_KEY|.*_BASE_URL|.*_AUTH_TOKEN|.*_PROXY"
    r"|SSL_CERT_.*|AWS_.*|GOOGLE_.*|PATH|HOME|VIRTUAL_ENV|XDG_(CONFIG|STATE)_HOME",
    re.IGNORECASE,
)
_LONGEST = 100  # bytes of a socket's path, on every system
_START_TIMEOUT = 30.0  # seconds until one that was started has to answer
_EVERY = 0.05
_LOOK, _TRIES = 0.5, 10  # seconds between two looks at one that may be gone; starts of it
_MOST = 500  # background sessions that are remembered as such
_IDLE = 60.0  # seconds without anything to do, after which a server ends
_WAITING = 3600.0  # ... if approval requests wait
_IDLE_LOOK = 0.5  # seconds between two looks whether there is anything to do


class BackgroundServer(NamedTuple):
    """One of them, running or not: its folder in the state folder."""

    folder: Path

    @property
    def name(self) -> str:
        """What distinguishes it from others."""
        return self.folder.name

    @property
    def socket(self) -> Path:
        """Where it listens: in its folder, or in a shorter one if that path is too long."""
        usual = self.folder / "socket"
        if len(os.fsencode(usual)) <= _LONGEST:
            return usual
        digest = hashlib.blake2b(os.fsencode(self.folder), digest_size=8).hexdigest()
        return Path(tempfile.gettempdir(), f"bridle-{os.getuid()}", digest)

    @property
    def lock(self) -> Path:
        """What it holds as long as it lives; its process id is in there."""
        return self.folder / "lock"

    @property
    def pid(self) -> int:
        """Its process, if it is running; else 0."""
        try:
            with self.lock.open("rb") as file:
                try:
                    fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
                except BlockingIOError:
                    return int(file.read(20) or b"0") or 1
                return 0
        except (OSError, ValueError):
            return 0

    def answers(self) -> bool:
        """Whether somebody listens there, and it is this user's own socket."""
        with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as trying:
            info = self.socket.parent.lstat()
            if info.st_uid != os.getuid() or info.st_mode & 0o077:
                raise ConfigError(
                    f"{self.socket.parent} is not private to you, so it is not used",
                    hint=f"Run: chmod 700 {self.socket.parent}",
                )
            trying.connect(str(self.socket))
            return True
        return False

    def flags(self) -> dict[str, Any]:
        """Return what it was started with."""
        try:
            flags: dict[str, Any] = json.loads((self.folder / "flags.json").read_bytes())
        except (OSError, ValueError):
            return {}
        return flags

    def client(self, tell: Callable[[str], None] | None = None) -> Client:
        """Return a client of it."""
        token = (self.folder / "token").read_text("ascii").strip()
        return Client(f"unix://{self.socket}", token, tell=tell, name=NAME)

    async def start(self) -> None:
        """Start it unless it is running. Raise `AgentError`."""
        if self.answers():
            return
        process = self._spawn()
        loop = asyncio.get_running_loop()
        deadline = loop.time() + _START_TIMEOUT
        while not self.answers():
            code = process.poll()
            if (code not in (None, 0)) or loop.time() > deadline:
                raise AgentError(
                    "agent",
                    f"the process for background sessions did not start{self._last_error()}",
                    hint=f"Its log is {self.folder / 'log'}.",
                )
            if code == 0 and not self.pid:  # another one was running, and has ended meanwhile
                process = self._spawn()
            await asyncio.sleep(_EVERY)

    def _spawn(self) -> "subprocess.Popen[bytes]":
        # -P: no module is imported from the current folder
        program = [sys.executable, "-P", "-m", "bridle.cli.background_server", str(self.folder)]
        with (self.folder / "log").open("ab") as log:
            (self.folder / "log").chmod(0o600)
            return subprocess.Popen(
                program,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd="/",
                start_new_session=True,
            )

    def _last_error(self) -> str:
        with suppress(OSError):
            lines = (self.folder / "log").read_bytes()[-2000:].decode("utf-8", "replace")
            if errors := [line for line in lines.splitlines() if line.startswith("bridle:")]:
                return errors[-1].removeprefix("bridle")
        return ""


def background_folder() -> Path:
    """Return where servers and the names of background sessions are kept; it is private."""
    folder = state_folder(os.environ) / "background"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return folder


def background_servers() -> list[BackgroundServer]:
    """Return all that were ever started here."""
    return [BackgroundServer(path.parent) for path in sorted(background_folder().glob("*/lock"))]


def background_server_for(flags: Mapping[str, Any], environ: Mapping[str, str]) -> BackgroundServer:
    """Return the server for these flags in this environment."""
    server = BackgroundServer(background_folder() / settings_digest(flags, environ))
    server.folder.mkdir(mode=0o700, exist_ok=True)
    write_private(server.folder / "flags.json", json.dumps(dict(flags)).encode())
    return server


def settings_digest(flags: Mapping[str, Any], environ: Mapping[str, str]) -> str:
    """Return a digest of what decides how turns run.

    Prompts that one server has accepted are resumed only by a server with the same digest.
    """
    key = _secret(background_folder() / "secret")
    deciding = {name: value for name, value in environ.items() if _DECIDING.fullmatch(name)}
    text = json.dumps([deciding, dict(flags)], sort_keys=True, default=str).encode()
    return hashlib.blake2b(text, digest_size=6, key=key).hexdigest()


def _secret(path: Path) -> bytes:
    """Return the key of the digests, so that they reveal nothing about what they stand for."""
    if not path.exists():
        with suppress(FileExistsError):  # if two processes make one, the first one's is used
            write_private(path, secrets.token_bytes(32), overwrite=False)
    return path.read_bytes()[:64]


@asynccontextmanager
async def connect_background(
    session_id: str, tell: Callable[[str], None] | None = None
) -> AsyncIterator[Client]:
    """Connect to the server that runs this session, or is to run it from now on.

    If its process is killed meanwhile, it is started again, as the next command would do.
    """
    server = background_server_of(session_id) or background_server_for({}, os.environ)
    await server.start()
    async with server.client(tell) as client:
        restarting = asyncio.ensure_future(_restart_if_killed(server))
        try:
            yield client
        finally:
            restarting.cancel()
            await asyncio.wait([restarting])


async def _restart_if_killed(server: BackgroundServer) -> None:
    """A server that ends by itself removes its socket first."""
    for _ in range(_TRIES):
        while server.pid or not server.socket.exists():  # noqa: ASYNC110 - nobody tells us
            await asyncio.sleep(_LOOK)
        with suppress(AgentError):
            await server.start()


def background_server_of(session_id: str) -> BackgroundServer | None:
    """Return the server that the session was given to."""
    with suppress(OSError, ValueError):
        name = (background_folder() / "sessions" / session_id).read_text("ascii").strip()
        if re.fullmatch(r"[0-9a-f]{12}", name):
            return BackgroundServer(background_folder() / name)
    return None


def remember_session(session_id: str, server: BackgroundServer) -> None:
    """Remember which server runs a background session."""
    folder = background_folder() / "sessions"
    folder.mkdir(mode=0o700, exist_ok=True)
    write_private(folder / session_id, server.name.encode())
    for old in sorted(background_sessions())[:-_MOST]:  # ids begin with the time
        forget_session(old)


def forget_session(session_id: str) -> None:
    """Forget that a session is a background session."""
    (background_folder() / "sessions" / session_id).unlink(missing_ok=True)


def background_sessions() -> set[str]:
    """Return the ids of the background sessions."""
    folder = background_folder() / "sessions"
    return {path.name for path in folder.iterdir()} if folder.is_dir() else set()


# The process


def main(folder: str) -> int:
    """Serve until there is nothing left to do."""
    from bridle.cli.exit_codes import report
    from bridle.cli.signals import run_async

    os.umask(0o077)
    server = BackgroundServer(Path(folder))
    try:
        with _locked(server) as is_free:
            return run_async(_serve(server)) if is_free else 0
    except Exception as error:  # the end of the program: whatever it is, it goes into the log
        return report(error)


@contextmanager
def _locked(server: BackgroundServer) -> Iterator[bool]:
    """Hold the lock, with our process id in it; False if another process has it."""
    handle = os.open(server.lock, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    with os.fdopen(handle, "r+b") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
            return
        file.truncate()
        file.write(b"%d" % os.getpid())
        file.flush()
        yield True


async def _serve(server: BackgroundServer) -> int:
    from bridle.cli.options import to_settings
    from bridle.cli.server_log import logged
    from bridle.cli.server_run import room_of, stopped
    from bridle.cli.server_setup import FACE
    from bridle.config.loader import load_settings
    from bridle.server.app import Application
    from bridle.server.auth import AllowedHosts
    from bridle.server.http import ServerLifecycle, bind_unix, process_limits
    from bridle.server.login import Authenticator
    from bridle.server.middleware import Limits
    from bridle.server.tokens import Tokens
    from bridle.service.choices import AllowedChoices

    flags: dict[str, Any] = {**server.flags(), "workspaces": None}
    door = Authenticator(Tokens(server.folder))
    digest = settings_digest(server.flags(), os.environ)  # its own, whoever has started it
    choices = AllowedChoices(face=f"{FACE}:{digest}")  # the caller is the user
    settings = load_settings(to_settings(flags)).settings
    room = room_of(flags, settings, door, process_limits(Limits()), choices)
    with bind_unix(server.socket) as listening, logged(server.folder / "log"):
        serving = ServerLifecycle(Application(room, AllowedHosts(None)), listening)
        await serving.start()
        idle = asyncio.Event()
        watching = asyncio.ensure_future(_watch_idle(room, idle))
        try:
            return await stopped(serving, room, idle)
        finally:
            watching.cancel()
            server.socket.unlink(missing_ok=True)


async def _watch_idle(room: "ServerContext", idle: asyncio.Event) -> None:
    """Set `idle` when there was nothing to do for a while."""
    loop = asyncio.get_running_loop()
    patience = float(os.environ.get(IDLE_VARIABLE) or _IDLE)
    streams = cast("Streams", room.streams)
    since = loop.time()
    while True:
        await asyncio.sleep(min(_IDLE_LOOK, patience / 4))
        sessions = room.sessions.open_sessions()
        waiting = [each for each in sessions if each.is_busy and each.history.pending]
        running = [each for each in sessions if each.is_busy and each not in waiting]
        if len(streams) or running or not room.sessions.ready:
            since = loop.time()
        elif loop.time() - since > (_WAITING if waiting else patience):
            idle.set()
            return


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
