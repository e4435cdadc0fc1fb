"""`bridle serve` as a person starts it: in a process of its own, on a free port."""

import json
import re
import signal
import subprocess
import urllib.request
from contextlib import contextmanager

from cli_program import Program

PATIENCE = 240


class Served:
    """A running server: where it is, and one's own token."""

    def __init__(self, program: Program, process: "subprocess.Popen[str]") -> None:
        self.process = process
        self.said = ""
        while "stop" not in self.said:
            line = process.stdout.readline()
            assert line, process.stderr.read()
            self.said += line
        self.url = re.search(r"serves (\S+)", self.said)[1]
        self.link = re.search(r"(\S+#code=\S+)", self.said)[1]
        self.token = (program.state / "server" / "token").read_text().strip()

    def ask(self, method, path, body=None, token=None):
        """One request; its JSON."""
        request = urllib.request.Request(
            self.url + path,
            data=None if body is None else json.dumps(body).encode(),
            method=method,
            headers={
                "Authorization": f"Bearer {token or self.token}",
                "Content-Type": "application/json",
            },
        )
        with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
            return json.loads(answer.read() or b"null")

    def stop(self, number=signal.SIGTERM):
        """End it; its exit code and what it said on stderr."""
        self.process.send_signal(number)
        _, err = self.process.communicate(timeout=PATIENCE)
        return self.process.returncode, err


@contextmanager
def served(program: Program, *arguments):
    """A server in the program's workspace."""
    process = program.start("serve", "--port", "0", *arguments)
    try:
        yield Served(program, process)
    finally:
        process.kill()
        process.wait(PATIENCE)
        process.stdout.close()
        process.stderr.close()
