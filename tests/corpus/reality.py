"""Runs command lines for real, where they can do no harm: what came out, and what changed.

Bubblewrap gives them a field of their own, a file system that is otherwise read-only, no network
and no other processes. One driver runs a whole batch; it ends what a command leaves behind.
"""

import hashlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

CANARY = "CANARY"

_DRIVER = r"""
import json, os, resource, signal, subprocess, sys

def limits():
    resource.setrlimit(resource.RLIMIT_CPU, (2, 2))
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))

def end_others():
    for name in os.listdir("/proc"):
        if name.isdigit() and int(name) not in (1, os.getpid()):
            try:
                os.kill(int(name), signal.SIGKILL)
            except ProcessLookupError:
                pass

told = []
for line in json.load(sys.stdin):
    with open("/tmp/output", "w+b") as out:
        words = ["/bin/bash", "-c", "--", line.encode("utf-8", "surrogateescape")]
        shell = subprocess.Popen(
            words, stdin=subprocess.DEVNULL, stdout=out, stderr=out,
            start_new_session=True, preexec_fn=limits,
        )
        try:
            code = shell.wait(4)
        except subprocess.TimeoutExpired:
            code = -1
        end_others()
        shell.wait()
        out.seek(0)
        told.append([code, out.read(1 << 20).decode("utf-8", "replace")])
json.dump(told, sys.stdout)
"""


def why_not():
    """Why nothing can be run here; empty where it can."""
    if shutil.which("bwrap") is None:
        return "bubblewrap is not installed"
    tried = subprocess.run([*_cage("/"), "true"], capture_output=True)
    return "" if tried.returncode == 0 else "bubblewrap does not work here"


def _cage(*writable):
    bound = [word for path in writable if path != "/" for word in ("--bind", path, path)]
    alone = ["--unshare-all", "--die-with-parent", "--new-session"]
    seen = ["--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--tmpfs", "/tmp"]
    for prefix in {sys.prefix, sys.base_prefix}:  # the checkout may itself lie below /tmp
        seen += ["--ro-bind", prefix, prefix]
    return ["bwrap", *alone, *seen, *bound]


def run_lines(field, lines):
    """(exit code, output) of each line, run one after the other in the field's workspace."""
    environ = {
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "HOME": str(field.home),
        "LANG": "C.UTF-8",
        "TERM": "dumb",
        "PAGER": "cat",
        "GIT_PAGER": "cat",
    }
    done = subprocess.run(
        [*_cage(str(field.base)), "--chdir", str(field.root), sys.executable, "-Ic", _DRIVER],
        input=json.dumps(list(lines)).encode("ascii"),
        capture_output=True,
        env=environ,
    )
    assert done.returncode == 0, done.stderr.decode("utf-8", "replace")
    return json.loads(done.stdout)


def picture(field):
    """Every file, folder and link of the field with what is in it.

    Git may note in its index when it last looked at a file; that is not a change of anything.
    """
    found = {}
    for folder, folders, files in os.walk(field.base):
        for path in (Path(folder, name) for name in [*folders, *files]):
            shown = str(path.relative_to(field.base))
            if not shown.endswith(".git/index"):
                found[shown] = _looked_at(path)
    return found


def _looked_at(path):
    status = path.lstat()
    kind = (oct(status.st_mode), status.st_uid, status.st_gid)
    if path.is_symlink():
        return (*kind, str(path.readlink()))
    if path.is_file():
        return (*kind, hashlib.sha256(path.read_bytes()).hexdigest())
    return kind


def harm_of(field, lines):
    """What running these lines changed or gave away, line by line; empty where nothing."""
    before = picture(field)
    told = run_lines(field, lines)
    found = [
        f"gave away a secret: {line!r}"
        for line, (_, output) in zip(lines, told, strict=True)
        if CANARY in output
    ]
    after = picture(field)
    changed = sorted(
        name for name in before.keys() | after.keys() if before.get(name) != after.get(name)
    )
    return found + [f"changed: {name}" for name in changed]
