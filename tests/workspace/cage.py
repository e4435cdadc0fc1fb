"""Commands in the sandbox, as whoever runs the tests and as an ordinary user: real ones.

Run as a script it is the part that runs as somebody else: one JSON object in, one out.
"""

import asyncio
import json
import os
import shutil
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path

import msgspec

import bridle
from bridle.errors import ConfigError
from bridle.protocols.tool import ToolContext
from bridle.tools.shell.tool import Shell
from bridle.workspace.sandbox import Sandbox, probe
from bridle.workspace.workspace import Workspace

NOBODY = 65534
LEVELS = ("landlock", "bubblewrap")
USERS = ("own", "ordinary")
_PROBE = (
    "import os, sys, msgspec, bridle.workspace.sandbox as found; "
    "sys.exit(0 if os.access(found.supervised_start([], 0).argv[0], os.X_OK) else 1)"
)
_PATHS = [str(Path(module.__file__).parent.parent) for module in (bridle, msgspec)]


def execute(root, level, command, **arguments):
    """Run a command there, in this process: the result."""
    return run(root, Sandbox(str(root), level=level), command, **arguments)


def run(root, sandbox, command, /, also=(), **arguments):
    """Run a command in that sandbox, in this process: the result."""
    context = ToolContext(Workspace(root, also=also), "1")
    return asyncio.run(Shell(sandbox).execute({"command": command, **arguments}, context))


def as_ordinary():
    """The words before a program that have it run by an ordinary user."""
    return ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", "--"]


@cache
def _python_of_ordinary():
    """The words for a Python that an ordinary user can run; None where there is none."""
    if os.geteuid() != 0 or not shutil.which("setpriv"):
        return None
    for python in (sys.executable, "/usr/bin/python3"):
        words = [*as_ordinary(), python, "-s", "-B"]
        probing = [*words, "-c", _PROBE]
        done = subprocess.run(probing, env=_environment("/"), capture_output=True, timeout=240)
        if done.returncode == 0:
            return words
    return None


def _environment(home):
    return {"PATH": os.environ["PATH"], "HOME": home, "PYTHONPATH": ":".join(_PATHS)}


class SandboxRig:
    """Folders for one test, that the user of the test can use: a workspace, a home, others."""

    def __init__(self, user):
        self.user = user
        self.base = Path(tempfile.mkdtemp(prefix="bridle-cage-"))
        self.base.chmod(0o755)
        self.root, self.home, self.outside = (
            self.base / name for name in ("work", "home", "outside")
        )
        for folder in (self.root, self.home, self.outside):
            folder.mkdir()
        self.secret = self.home / "secret.txt"
        self.secret.write_text("the canary sings\n")
        for name in "abcd":
            (self.outside / name).write_text("untouched\n")

    def close(self):
        shutil.rmtree(self.base)

    def give(self):
        """Everything in it belongs to the user of the test."""
        if self.user == "ordinary":
            for path in [self.base, *self.base.rglob("*")]:
                os.chown(path, NOBODY, NOBODY, follow_symlinks=False)

    def run(self, level, command):
        """The output of a command that this user runs at this level."""
        self.give()
        given = json.dumps({"root": str(self.root), "level": level, "command": command})
        words = _python_of_ordinary() if self.user == "ordinary" else [sys.executable, "-B"]
        done = subprocess.run(
            [*words, __file__],
            input=given,
            env=_environment(str(self.home)),
            capture_output=True,
            text=True,
            timeout=240,
        )
        assert done.returncode == 0, done.stderr
        found = json.loads(done.stdout)
        assert found["data"]["sandbox"] == level
        return found["text"]


def probed_without_bubblewrap(user, wanted=""):
    """What the probe says to this user where bubblewrap is not installed."""
    words = _python_of_ordinary() if user == "ordinary" else [sys.executable, "-B"]
    code = f"from bridle.workspace.sandbox import probe; print(*probe({wanted!r}))"
    environment = {**_environment("/"), "PATH": "/nowhere"}
    done = subprocess.run(
        [shutil.which(words[0]), *words[1:], "-c", code],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout


def lacks(user, level):
    """Why a test cannot be run for this user at this level here; empty where it can."""
    if user == "ordinary" and _python_of_ordinary() is None:
        return "an ordinary user cannot be had here, or cannot read this Python"
    try:
        probe(level)
    except ConfigError as error:
        return error.message
    return ""


if __name__ == "__main__":
    asked = json.load(sys.stdin)
    found = execute(asked["root"], asked["level"], asked["command"])
    json.dump({"text": found.text, "data": found.data}, sys.stdout)
