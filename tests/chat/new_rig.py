"""What tests of new projects need: their files, an environment without keys, a server that runs."""

import json
import os
import re
import signal
import subprocess
import urllib.error
import urllib.request

_MADE = {"__pycache__", ".ruff_cache", ".mypy_cache"}  # by tools, beside the files


def tree(folder):
    """Every file of a project."""
    found = [
        one for one in folder.rglob("*") if one.is_file() and not _MADE.intersection(one.parts)
    ]
    return sorted(str(one.relative_to(folder)) for one in found)


def environ():
    """Without anybody's keys: the project's own rules answer."""
    kept = {name: value for name, value in os.environ.items() if not name.endswith("_API_KEY")}
    return {**kept, "PYTHONDONTWRITEBYTECODE": "1", "NO_COLOR": "1"}


class Served:
    """A chat server as a process, once it says that it is there."""

    def __init__(self, command, folder, environment):
        self.process = subprocess.Popen(
            ["bash", "-c", command],
            cwd=folder,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        lines = []
        for line in self.process.stdout:
            lines.append(line.rstrip("\n"))
            if line.strip().startswith("stop"):
                break
        self.first = "\n".join(lines)
        found = re.search(r"http://127\.0\.0\.1:\d+", self.first)
        assert found, self.first + self.process.stderr.read()
        self.url = found[0]
        self.tokens = dict(re.findall(r"^  (\w+) +http\S+#token=(\S+)$", self.first, re.M))

    def say(self, user, message, conversation="", token=""):
        """The status and the body of the answer."""
        body = {"message": message} | ({"conversation_id": conversation} if conversation else {})
        bearer = f"Bearer {token or self.tokens[user]}"
        asked = urllib.request.Request(
            f"{self.url}/api/{user}/chat",
            json.dumps(body).encode(),
            {"Content-Type": "application/json", "Authorization": bearer},
        )
        try:
            with urllib.request.urlopen(asked, timeout=240) as answer:
                return answer.status, json.load(answer)
        except urllib.error.HTTPError as error:
            with error:
                return error.code, json.load(error)

    def stop(self):
        """Its exit code, after Ctrl-C."""
        self.process.send_signal(signal.SIGINT)
        self.process.communicate(timeout=240)
        return self.process.returncode
