"""The server under load: many who watch, and many who send prompts. Prints one line of JSON.

    serve_measure.py STATE WORKSPACE CLIENTS SESSIONS PER_S SECONDS WORKERS

Server, bare handler and load are processes of their own. Prompts go to the bare handler and to the
server in turns, so that a noisy moment hits both.
"""

import json
import subprocess
import sys
import urllib.request
from pathlib import Path
from statistics import median
from typing import Any

HERE = Path(__file__).parent
EACH = 8  # sessions of one who sends: a turn is over before it is that session's turn again
ROUNDS = 3


class Helper:
    """A process that answers lines with lines."""

    def __init__(self, name: str, *words: object) -> None:
        self._name, pipe = name, subprocess.PIPE
        command = [sys.executable, str(HERE / f"{name}.py"), *map(str, words)]
        self._process = subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True)

    def __enter__(self) -> "Helper":
        return self

    def __exit__(self, *error: object) -> None:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.close()
        try:
            self._process.wait(30)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()

    def put(self, value: Any) -> None:
        """Say something."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(value) + "\n")
        self._process.stdin.flush()

    def get(self) -> Any:
        """What it says."""
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"{self._name} has ended")
        return json.loads(line)

    def ask(self, value: Any) -> Any:
        """Say something, and hear the answer."""
        self.put(value)
        return self.get()


def begun(port: int, token: str, workspace: str, count: int) -> list[str]:
    """New sessions."""
    made = []
    for _ in range(count):
        request = urllib.request.Request(
            f"http://127.0.0.1:{port}/api/sessions",
            json.dumps({"workspacePath": workspace}).encode(),
            {"Authorization": f"Bearer {token}", "Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request) as answer:
            made.append(json.load(answer)["id"])
    return made


def watched(server: Helper, told: Any, words: list[str]) -> dict[str, Any]:
    """Many who watch."""
    workspace, clients, sessions, per_s, seconds = words[:5]
    ids = begun(told["port"], told["token"], workspace, int(sessions))
    with Helper("serve_load", "watch", told["port"], told["token"], clients) as load:
        load.put(ids)
        load.get()
        before = server.ask({"do": "use"})
        emit = {"do": "emit", "sessions": ids, "per_s": float(per_s), "seconds": float(seconds)}
        found: dict[str, Any] = load.ask(server.ask(emit)["ends"])
    after = server.ask({"do": "use"})
    found["load_cpu"] = found.pop("cpu") / float(seconds)
    cpu = (after["cpu"] - before["cpu"]) / float(seconds)
    return found | {"server_cpu": cpu, "rss_mb": max(before["rss_mb"], after["rss_mb"])}


def sent(helper: Helper, told: Any, workers: int, paths: list[str]) -> dict[str, Any]:
    """Prompts for two seconds: how many a second, and the CPU of each."""
    before = helper.ask({"do": "use"})["cpu"]
    token = told.get("token", "")
    with Helper("serve_load", "send", told["port"], token, workers, 2, *paths) as load:
        found: dict[str, Any] = load.get()
    count = sum(found["answered"].values())
    found["cpu_ms"] = (helper.ask({"do": "use"})["cpu"] - before) * 1000 / count
    found["load_cpu"] = found.pop("cpu") / 2
    found["refused"] = count - found["answered"].get("202", 0)
    return found


def prompted(server: Helper, told: Any, state: str, words: list[str]) -> dict[str, Any]:
    """Prompts to both, in turns."""
    workers = int(words[5])
    ids = begun(told["port"], told["token"], words[0], workers * EACH)
    paths = [f"/api/sessions/{one}/chat" for one in ids]
    ours, floor = [], []
    with Helper("serve_bare", Path(state) / "bare.jsonl") as bare:
        where = bare.get()
        for number in range(ROUNDS + 1):  # the first one warms up
            found = sent(bare, where, workers, ["/bare"]), sent(server, told, workers, paths)
            if number:
                floor.append(found[0])
                ours.append(found[1])
    times = [one["per_s"] / other["per_s"] for one, other in zip(ours, floor, strict=True)]
    return {
        "chat_times": median(times),
        "chat_per_s": median(one["per_s"] for one in ours),
        "bare_per_s": median(one["per_s"] for one in floor),
        "chat_cpu_ms": median(one["cpu_ms"] for one in ours),
        "bare_cpu_ms": median(one["cpu_ms"] for one in floor),
        "chat_load_cpu": median(one["load_cpu"] for one in ours),
        "chat_refused": sum(one["refused"] for one in (*ours, *floor)),
    }


def main() -> None:
    """Both, one after the other, with one server."""
    state, *words = sys.argv[1:]
    with Helper("serve_app", state, words[0]) as server:
        told = server.get()
        found = watched(server, told, words)
        found |= prompted(server, told, state, words)
    sys.stdout.write(json.dumps(found) + "\n")


if __name__ == "__main__":
    main()
