"""bubblewrap: a command in a file system, a network and a space of processes of its own.

Only what is named is there: what is not mounted cannot be read, and what a mount covers cannot be
changed. When bridle dies, so does everything in it. Puts together the words for `bwrap`, and finds
out whether they work here; says nothing of which folders they are for.
"""

import os
import shutil
import subprocess
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path

_SPACES = ("--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try")
_KEPT = ("CAP_CHOWN", "CAP_DAC_OVERRIDE", "CAP_FOWNER", "CAP_FSETID")  # of root, where it is root
_PROBE_SECONDS = 5


@cache
def program() -> str:
    """Where bwrap is; empty where it is not."""
    return shutil.which("bwrap") or ""


@cache
def trouble() -> str:
    """Why bubblewrap cannot be used here, found by using it; empty where it works."""
    if not program():
        return "bubblewrap is not installed"
    return refusal([*beginning(network=False), *_bound("--ro-bind", ("/",)), *_own()])


def refusal(words: list[str]) -> str:
    """Why bwrap does not work with these words, found by running something; empty where it does."""
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
    said = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
    return f"bubblewrap does not work here: {said}"


def beginning(*, network: bool) -> list[str]:
    """What every run has in common: spaces of its own, no rights, an end with its parent."""
    rights = ["--cap-drop", "ALL"]
    if os.geteuid() == 0:
        rights += [word for name in _KEPT for word in ("--cap-add", name)]
    net = [] if network else ["--unshare-net"]
    return [program(), "--die-with-parent", *_SPACES, *net, *rights]


def mounts(
    readable: Iterable[str],
    writable: Iterable[str],
    closed: Iterable[str],
    covered: Iterable[str],
) -> list[str]:
    """The words for a file system: what is read, written, read but never written, and covered."""
    seen = _apart(readable)
    links = [path for path in seen if Path(path).is_symlink()]
    words = [*_own(), *_bound("--ro-bind-try", (path for path in seen if path not in links))]
    for path in links:
        words += ["--symlink", os.readlink(path), path]  # noqa: PTH115 - the words of the link
    words += _bound("--bind", writable)
    words += _bound("--ro-bind-try", closed)
    for path in covered:
        if Path(path).is_dir():
            words += ["--tmpfs", path]
        else:
            words += ["--ro-bind", "/dev/null", path]
    return [*words, "--remount-ro", "/"]  # what is made beside the workspace would be lost


def empty(paths: Iterable[str]) -> list[str]:
    """The words for folders that stay empty, and are made for it where there are none."""
    return [word for path in paths for word in ("--tmpfs", path, "--remount-ro", path)]


def _apart(paths: Iterable[str]) -> list[str]:
    """Without what lies below another of them: it is there already, by the same name.

    bwrap would make folders of the names on the way to it, and where one is to be a link, give up.
    """
    named = dict.fromkeys(paths)

    def has_parent(path: str) -> bool:
        while path := path.rpartition("/")[0]:
            if path in named:
                return True
        return False

    return [path for path in named if not has_parent(path)]


def _bound(how: str, paths: Iterable[str]) -> list[str]:
    return [word for path in paths for word in (how, path, path)]


def _own() -> Sequence[str]:
    """Its own processes, devices and /tmp. In /proc/sys root could set what the kernel runs."""
    return ("--proc", "/proc", "--remount-ro", "/proc", "--dev", "/dev", "--tmpfs", "/tmp")
