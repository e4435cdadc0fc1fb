"""Where this user's own servers listen, so that a token of ours goes to nobody else.

A server holds a lock on a file of its port for as long as it listens there; the folder is this
user's alone, so that nobody else can. Whoever finds the lock held knows whose port it is.
"""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

_FOLDER = "ports"
_WIDE = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # listening on all: it is reached here
_LOOPBACK = ("127.0.0.1", "::1")
_OPEN = os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC


@contextmanager
def recorded(folder: Path, address: str, port: int) -> Iterator[None]:
    """Say that a server of ours listens there, as long as it does."""
    path = folder / _FOLDER / str(port)
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    handle = os.open(path, _OPEN | os.O_CREAT, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        os.ftruncate(handle, 0)
        os.write(handle, _WIDE.get(address, address).encode())
        yield
    finally:
        path.unlink(missing_ok=True)  # nobody else has the port yet
        os.close(handle)


def own_address(folder: Path, url: str) -> str:
    """The address of our own server that is meant, in numbers; empty where there is none there."""
    parts = urlsplit(url)
    if parts.scheme != "http":
        return ""
    port = parts.port or 80
    address = _listening(folder / _FOLDER / str(port))
    if address not in _LOOPBACK or parts.hostname not in (address, "localhost"):
        return ""
    host = f"[{address}]" if ":" in address else address
    return parts._replace(netloc=f"{host}:{port}").geturl()


def _listening(path: Path) -> str:
    """What the file says, while a server holds it."""
    try:
        handle = os.open(path, _OPEN)
    except OSError:
        return ""
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        found = os.fstat(handle)
        ours = found.st_uid == os.geteuid() and not found.st_mode & 0o077
        return os.read(handle, 64).decode("ascii", "replace") if ours else ""
    finally:
        os.close(handle)
    return ""  # left behind by one that was killed
