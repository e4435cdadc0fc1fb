"""`bridle chat-tools` as a real process, over HTTP: started, killed, started again on its port."""

import os
import signal
import subprocess
import sys

from nursery import begun
from rig import free_port

SECRET = "a secret that both sides of the test have"
PROGRAM = [sys.executable, "-m", "bridle", "chat-tools"]
PATIENCE = 240  # seconds: programs start slowly where ten things run at once


def environ(url, **more):
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "TMPDIR") if name in os.environ}
    return {**kept, "LANG": "C.UTF-8", "BRIDLE_CHAT_DATABASE": url, **more}


class Served:
    """One process at a time; `port` stays the same."""

    def __init__(self, url, *words, **more):
        self._environ = environ(url, BRIDLE_CHAT_SECRET=SECRET, **more)
        self._words = words
        self.database = url
        self.port = free_port()  # nobody is given it while the server is down
        self.token = ""
        self.process = None

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}/mcp"

    def start(self):
        """Until it listens."""
        words = ["bridle", "chat-tools", "--http", str(self.port), *self._words]
        pipes = {"stderr": subprocess.PIPE, "stdin": subprocess.DEVNULL}
        self.process = begun(words, self._environ, big=True, text=True, **pipes)
        for line in self.process.stderr:
            if line.startswith(f"listening on {self.url}"):
                break
        else:
            raise AssertionError(f"it did not start: {self.process.wait()}")
        if "--user" in self._words:
            self.token = self.process.stderr.readline().removeprefix("token: ").strip()
        return self

    def end(self, how=signal.SIGTERM):
        """Its exit code, and what it said."""
        if self.process.poll() is None:
            self.process.send_signal(how)
        said = self.process.stderr.read()
        self.process.stderr.close()
        return self.process.wait(20), said

    def __enter__(self):
        return self.start()

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.end(signal.SIGKILL)
        else:
            self.process.stderr.close()
