"""The processes that carry background sessions: found, started where there is none, asked.

A supervisor is our own server on a Unix socket of this user alone. There is one for each way of
running: its name is a digest of the flags and of that part of the environment which decides what a
turn does (keys, addresses, PATH). So a session gets exactly what its caller had, no key goes over a
socket, and nobody's work has to be stopped because somebody else's environment is another. A
supervisor holds a lock as long as it lives; of two that are started, one goes at once.
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
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

from bridle.client import Client
from bridle.config.paths import state_folder
from bridle.errors import AgentError, ConfigError
from bridle.workspace.fs import write_private

_DECIDING = re.compile(
    r"BRIDLE_(?!TOKEN$|DEBUG$|BACKGROUND).*|.*_API_KEY|.*_BASE_URL|.*_AUTH_TOKEN|.*_PROXY"
    r"|SSL_CERT_.*|AWS_.*|GOOGLE_.*|PATH|HOME|VIRTUAL_ENV|XDG_(CONFIG|STATE)_HOME",
    re.IGNORECASE,
)
NAME = "the background process"
_LONGEST = 100  # bytes of a socket's path, on every system
_PATIENCE = 30.0  # seconds until one that was started has to answer
_EVERY = 0.05
_LOOK, _TRIES = 0.5, 10  # seconds between two looks at one that may be gone; starts of it
_MOST = 500  # background sessions that are remembered as such


class Supervisor(NamedTuple):
    """One of them, running or not: its folder in the state folder."""

    folder: Path

    @property
    def name(self) -> str:
        """What tells it from others."""
        return self.folder.name

    @property
    def socket(self) -> Path:
        """Where it listens: in its folder, or in a shorter one where that is too long."""
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
        """Its process, where it is running; else 0."""
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
        """Does somebody listen there, and is it this user's own socket?"""
        with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as trying:
            found = self.socket.parent.lstat()
            if found.st_uid != os.getuid() or found.st_mode & 0o077:
                raise ConfigError(
                    f"{self.socket.parent} is not private to you, so it is not used",
                    hint=f"Run: chmod 700 {self.socket.parent}",
                )
            trying.connect(str(self.socket))
            return True
        return False

    def flags(self) -> dict[str, Any]:
        """What it was started with."""
        try:
            found: dict[str, Any] = json.loads((self.folder / "flags.json").read_bytes())
        except (OSError, ValueError):
            return {}
        return found

    def client(self, tell: Callable[[str], None] | None = None) -> Client:
        """A client of it."""
        token = (self.folder / "token").read_text("ascii").strip()
        return Client(f"unix://{self.socket}", token, tell=tell, name=NAME)


def background_folder() -> Path:
    """Where supervisors and the names of background sessions are kept; private."""
    folder = state_folder(os.environ) / "background"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return folder


def supervisors() -> list[Supervisor]:
    """All that ever were started here."""
    found = sorted(background_folder().glob("*/lock"))
    return [Supervisor(path.parent) for path in found]


def supervisor_for(flags: Mapping[str, Any], environ: Mapping[str, str]) -> Supervisor:
    """The one for these flags in this environment."""
    found = Supervisor(background_folder() / identity(flags, environ))
    found.folder.mkdir(mode=0o700, exist_ok=True)
    write_private(found.folder / "flags.json", json.dumps(dict(flags)).encode())
    return found


def identity(flags: Mapping[str, Any], environ: Mapping[str, str]) -> str:
    """A digest of what decides how turns are run: what one has accepted is for its like alone."""
    key = _secret(background_folder() / "secret")
    deciding = {name: value for name, value in environ.items() if _DECIDING.fullmatch(name)}
    said = json.dumps([deciding, dict(flags)], sort_keys=True, default=str).encode()
    return hashlib.blake2b(said, digest_size=6, key=key).hexdigest()


async def ensure(supervisor: Supervisor) -> None:
    """Have it running. Raise `AgentError`."""
    if supervisor.answers():
        return
    started = _spawn(supervisor)
    loop = asyncio.get_running_loop()
    deadline = loop.time() + _PATIENCE
    while not supervisor.answers():
        code = started.poll()
        if (code not in (None, 0)) or loop.time() > deadline:
            raise AgentError(
                "agent",
                f"the process for background sessions did not start{_last(supervisor)}",
                hint=f"Its log is {supervisor.folder / 'log'}.",
            )
        if code == 0 and not supervisor.pid:  # another was there, and has gone meanwhile
            started = _spawn(supervisor)
        await asyncio.sleep(_EVERY)


@asynccontextmanager
async def supervised(
    session_id: str, tell: Callable[[str], None] | None = None
) -> AsyncIterator[Client]:
    """A client of whoever carries that session, or is to carry it from now on.

    Should that process be killed meanwhile, it is started again, as the next command would.
    """
    supervisor = carrier_of(session_id) or supervisor_for({}, os.environ)
    await ensure(supervisor)
    async with supervisor.client(tell) as client:
        tending = asyncio.ensure_future(_tend(supervisor))
        try:
            yield client
        finally:
            tending.cancel()
            await asyncio.wait([tending])


async def _tend(supervisor: Supervisor) -> None:
    """Start it again where it was killed. One that ends by itself takes its socket away first."""
    for _ in range(_TRIES):
        while supervisor.pid or not supervisor.socket.exists():  # noqa: ASYNC110 - nobody tells us
            await asyncio.sleep(_LOOK)
        with suppress(AgentError):
            await ensure(supervisor)


def carrier_of(session_id: str) -> Supervisor | None:
    """The supervisor that the session was given to."""
    with suppress(OSError, ValueError):
        name = (background_folder() / "sessions" / session_id).read_text("ascii").strip()
        if re.fullmatch(r"[0-9a-f]{12}", name):
            return Supervisor(background_folder() / name)
    return None


def note_session(session_id: str, supervisor: Supervisor) -> None:
    """Keep in mind who carries it."""
    folder = background_folder() / "sessions"
    folder.mkdir(mode=0o700, exist_ok=True)
    write_private(folder / session_id, supervisor.name.encode())
    for old in sorted(noted_sessions())[:-_MOST]:  # ids begin with the time
        forget_session(old)


def forget_session(session_id: str) -> None:
    """It is no background session any more."""
    (background_folder() / "sessions" / session_id).unlink(missing_ok=True)


def noted_sessions() -> set[str]:
    """The background sessions, by id."""
    folder = background_folder() / "sessions"
    return {one.name for one in folder.iterdir()} if folder.is_dir() else set()


def _spawn(supervisor: Supervisor) -> "subprocess.Popen[bytes]":
    # -P: no module is imported from the current folder
    program = [sys.executable, "-P", "-m", "bridle.cli.supervisor", str(supervisor.folder)]
    with (supervisor.folder / "log").open("ab") as log:
        (supervisor.folder / "log").chmod(0o600)
        return subprocess.Popen(
            program,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            cwd="/",
            start_new_session=True,
        )


def _last(supervisor: Supervisor) -> str:
    with suppress(OSError):
        lines = (supervisor.folder / "log").read_bytes()[-2000:].decode("utf-8", "replace")
        if said := [line for line in lines.splitlines() if line.startswith("bridle:")]:
            return said[-1].removeprefix("bridle")
    return ""


def _secret(path: Path) -> bytes:
    """What makes the names say nothing about the keys that they stand for."""
    if not path.exists():
        with suppress(FileExistsError):  # if two processes make one, the first one's is used
            write_private(path, secrets.token_bytes(32), overwrite=False)
    return path.read_bytes()[:64]
