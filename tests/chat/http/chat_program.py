"""`bridle chat-server` as a person starts it: in a process of its own, on a free port."""

import json
import os
import re
import signal
import subprocess
import urllib.error
import urllib.request
from contextlib import contextmanager

from rig_chat import SECRET, Answer, token

from nursery import begun

PATIENCE = 240


class Served:
    """A running chat."""

    def __init__(self, process):
        self.process = process
        self.said = ""
        while "  stop" not in self.said:
            line = process.stdout.readline()
            assert line, self.said + process.stderr.read()
            self.said += line
        self.url = re.search(r"serves (?:a chat on )?(\S+)", self.said)[1]

    def ask(self, method, path, body=None, *, user="ana", bearer=None, **headers):
        """One request; its answer."""
        request = urllib.request.Request(
            self.url + path,
            data=None if body is None else json.dumps(body).encode(),
            method=method,
            headers={"Content-Type": "application/json", **headers}
            | {"Authorization": f"Bearer {bearer or token(user)}"},
        )
        try:
            with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
                return Answer(answer.status, json.loads(answer.read() or b"null"), answer.headers)
        except urllib.error.HTTPError as error:
            with error:
                return Answer(error.code, json.loads(error.read()), error.headers)

    def say(self, message, conversation=None, *, user="ana", **headers):
        body = {"message": message, "conversation_id": conversation}
        return self.ask("POST", f"/api/{user}/chat", body, user=user, **headers)

    def stop(self, number=signal.SIGTERM):
        """End it; its exit code, and what it said besides."""
        self.process.send_signal(number)
        out, err = self.process.communicate(timeout=PATIENCE)
        return self.process.returncode, out + err


def environ(folder):
    """A home of its own, no keys."""
    keep = {name: os.environ[name] for name in ("PATH", "TMPDIR") if name in os.environ}
    own = {"HOME": str(folder), "BRIDLE_STATE": str(folder / "state")}
    return {**keep, **own, "NO_COLOR": "1", "LANG": "C.UTF-8"}


def secret_file(folder):
    path = folder / "secret"
    path.write_text(SECRET + "\n")
    path.chmod(0o600)
    return path


def started(folder, *arguments):
    """The program, whatever becomes of it."""
    return begun(
        ["bridle", *map(str, arguments)],
        environ(folder),
        big=True,
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def ended(folder, *arguments):
    """What it says when it ends by itself: exit code, output, errors."""
    process = started(folder, *arguments)
    out, err = process.communicate(timeout=PATIENCE)
    return process.returncode, out, err


@contextmanager
def served(folder, *arguments, command="chat-server"):
    """A chat's server with a secret that the tests know."""
    named = {"--demo", "--app", "--model"}.intersection(map(str, arguments))
    model = () if named else ("--model", "offline")
    process = started(folder, command, "--port", "0", *model, *arguments)
    try:
        yield Served(process)
    finally:
        process.kill()
        process.communicate()


def workers_of(pid):
    """The workers that a process has started; Python's own helper of `multiprocessing` is none."""
    with open(f"/proc/{pid}/task/{pid}/children") as file:  # noqa: PTH123
        return [int(one) for one in file.read().split() if "spawn_main" in _line(one)]


def _line(pid):
    try:
        with open(f"/proc/{pid}/cmdline") as file:  # noqa: PTH123
            return file.read()
    except FileNotFoundError:
        return ""
