"""bubblewrap: a command with a file system, a network and a process namespace of its own.

What is not mounted cannot be read, and what a mount covers cannot be changed. When bridle dies, so
does everything in it. This module makes the command line of `bwrap` and finds out whether it works
here; which folders are mounted is decided by `sandbox.py`.
"""

import os
import shutil
import subprocess
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path

_NAMESPACES = ("--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try")
_CAPABILITIES = ("CAP_CHOWN", "CAP_DAC_OVERRIDE", "CAP_FOWNER", "CAP_FSETID")  # kept for root
_PROBE_SECONDS = 5


@cache
def program() -> str:
    """Return the path of bwrap, or empty if it is not installed."""
    return shutil.which("bwrap") or ""


@cache
def problem() -> str:
    """Try bubblewrap. Return why it cannot be used here, or empty if it works."""
    if not program():
        return "bubblewrap is not installed"
    return failure([*common_words(network=False), *_mounts("--ro-bind", ("/",)), *_own_mounts()])


def failure(words: list[str]) -> str:
    """Run a command with these words. Return why that fails, or empty if it works."""
    try:
        done = subprocess.run(
            [*words, "--json-status-fd", "1", "--", "/bin/sh", "-c", "exit 7"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_PROBE_SECONDS,
            text=True,
            errors="replace",
            env={"PATH": "/usr/bin:/bin"},
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"bubblewrap does not run here: {error}"
    if done.returncode == 7:
        return ""
    message = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
    return f"bubblewrap does not work here: {message}"


def common_words(*, network: bool) -> list[str]:
    """Return what every command line begins with: namespaces, no rights, an end with its parent."""
    rights = ["--cap-drop", "ALL"]
    if os.geteuid() == 0:
        rights += [word for name in _CAPABILITIES for word in ("--cap-add", name)]
    net = [] if network else ["--unshare-net"]
    return [program(), "--die-with-parent", *_NAMESPACES, *net, *rights]


def mounts(
    readable: Iterable[str],
    writable: Iterable[str],
    read_only: Iterable[str],
    covered: Iterable[str],
) -> list[str]:
    """Return the words for a file system.

    What is `read_only` lies in a folder that is writable. What is `covered` cannot be read.
    """
    shown = _without_nested(readable)
    links = [path for path in shown if Path(path).is_symlink()]
    words = [
        *_own_mounts(),
        *_mounts("--ro-bind-try", (path for path in shown if path not in links)),
    ]
    for path in links:
        words += ["--symlink", os.readlink(path), path]  # noqa: PTH115 - the words of the link
    words += _mounts("--bind", writable)
    words += _mounts("--ro-bind-try", read_only)
    for path in covered:
        if Path(path).is_dir():
            words += ["--tmpfs", path]
        else:
            words += ["--ro-bind", "/dev/null", path]
    return [*words, "--remount-ro", "/"]  # what is created beside the workspace would be lost


def empty_folders(paths: Iterable[str]) -> list[str]:
    """Return the words for folders that stay empty. They are created if they are missing."""
    return [word for path in paths for word in ("--tmpfs", path, "--remount-ro", path)]


def _without_nested(paths: Iterable[str]) -> list[str]:
    """Return paths without those that lie below another one, which is enough.

    bwrap would create folders on the way to them, and fail if one of these has to be a link.
    """
    unique = dict.fromkeys(paths)

    def has_parent(path: str) -> bool:
        while path := path.rpartition("/")[0]:
            if path in unique:
                return True
        return False

    return [path for path in unique if not has_parent(path)]


def _mounts(option: str, paths: Iterable[str]) -> list[str]:
    return [word for path in paths for word in (option, path, path)]


def _own_mounts() -> Sequence[str]:
    """Return words for /proc, /dev and /tmp. /proc is read-only: root could set what runs there."""
    return ("--proc", "/proc", "--remount-ro", "/proc", "--dev", "/dev", "--tmpfs", "/tmp")
