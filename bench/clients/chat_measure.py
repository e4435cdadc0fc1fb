"""Messages a second: `bridle chat-server`, and a bare handler with the same statements, in turns.

    chat_measure.py FOLDER WORKERS USERS SECONDS ROUNDS

PostgreSQL, the rule-based responder, both servers with as many workers. Both databases are copies
of one in which every user has talked a while. The statements of a turn are heard from our own
engine first (`chat_script.py`), so that the bare handler sends exactly those.
"""

import asyncio
import json
import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any

from chat_load import MESSAGE
from chat_postgres import admin, postgres
from chat_script import Recorder, Step

HERE = Path(__file__).parent
EARLIER = 10  # turns that every conversation has had
OFTEN = 1_000_000  # messages a minute: the limit is on, and nobody reaches it
PATIENCE = 60.0
ADDRESS = re.compile(r"http://127\.0\.0\.1:(\d+)")
SPENT = (
    "INSERT INTO chat_spent (user_id, period, messages, dollars, until)"
    " SELECT DISTINCT ON (user_id) user_id, '{0}', messages, dollars, until FROM chat_spent"
    " ON CONFLICT DO NOTHING"
)


async def begun(url: str, users: int) -> tuple[dict[str, str], Step]:
    """Everybody has talked a while; and the last turn of it, as its statements."""
    from bridle.chat import ChatApp
    from bridle.chat.values import ServiceLimits

    limits = ServiceLimits(messages_a_minute=OFTEN)
    async with ChatApp(None, None, url, provider="offline", service_limits=limits) as app:
        say = app.service.reply

        async def talk(user: str) -> str:
            conversation = None
            for number in range(EARLIER):
                reply = await say(user, f"{MESSAGE} {number}", conversation)
                conversation = reply.conversation_id
            assert conversation is not None
            return conversation

        names = [f"user{number}" for number in range(users)]
        found = dict(zip(names, await asyncio.gather(*map(talk, names)), strict=True))
        recorder = Recorder(app)
        await say(names[0], MESSAGE, found[names[0]])
        return found, recorder.take(names[0], found[names[0]], MESSAGE)


@contextmanager
def ours(url: str, folder: Path, workers: int) -> Iterator[tuple[int, int]]:
    """`bridle chat-server`: its process and its port."""
    line = [sys.executable, "-m", "bridle", "chat-server", "--database", url, "--port", "0"]
    line += ["--workers", str(workers), "--secret-file", str(folder / "secret"), "-m", "offline"]
    line += ["--messages-a-minute", str(OFTEN)]
    process = subprocess.Popen(
        line,
        env=os.environ | {"BRIDLE_STATE": str(folder / "state"), "HOME": str(folder)},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    try:
        found = next((m for line in process.stdout if (m := ADDRESS.search(line))), None)
        if found is None:
            raise RuntimeError("the chat's server did not start")
        yield process.pid, int(found[1])
    finally:
        process.terminate()
        process.wait(30)


@contextmanager
def bare(url: str, folder: Path, workers: int) -> Iterator[tuple[int, int]]:
    """The floor: its process and its port."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    words = [str(port), url, str(folder / "script.json"), str(workers)]
    process = subprocess.Popen([sys.executable, str(HERE / "chat_bare.py"), *words])
    try:
        end = time.monotonic() + PATIENCE
        while True:
            try:
                socket.create_connection(("127.0.0.1", port), 1).close()
                break
            except OSError:
                if time.monotonic() > end or process.poll() is not None:
                    raise RuntimeError("the bare handler did not start") from None
                time.sleep(0.05)
        yield process.pid, port
    finally:
        process.terminate()
        process.wait(30)


def cpu_of(pid: int) -> float:
    """CPU seconds of a process and its children."""
    tick, spent = os.sysconf("SC_CLK_TCK"), 0.0
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(path.parent.name) == pid or int(fields[1]) == pid:
            spent += (int(fields[11]) + int(fields[12])) / tick
    return spent


def loaded(server: tuple[int, int], seconds: float, users: Path) -> dict[str, Any]:
    """Messages for so long."""
    pid, port = server
    before = cpu_of(pid)
    command = [sys.executable, str(HERE / "chat_load.py"), str(port), str(seconds), str(users)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"the load failed: {done.stderr.strip()[-300:]}")
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    found["cpu_ms"] = (cpu_of(pid) - before) * 1000 / max(1, found["answered"])
    return found


def compared(
    servers: tuple[tuple[int, int], tuple[int, int]], users: Path, seconds: float, rounds: int
) -> dict[str, Any]:
    """Both in turns; the first round warms up."""
    mine, floor = [], []
    for number in range(rounds + 1):
        found = [loaded(one, seconds, users) for one in servers]
        if number:
            mine.append(found[0])
            floor.append(found[1])
    times = [one["per_s"] / other["per_s"] for one, other in zip(mine, floor, strict=True)]
    return {
        "times": median(times),
        "per_s": median(one["per_s"] for one in mine),
        "bare_per_s": median(one["per_s"] for one in floor),
        "cpu_ms": median(one["cpu_ms"] for one in mine),
        "bare_cpu_ms": median(one["cpu_ms"] for one in floor),
        "load_cpu": median(one["cpu"] for one in mine),
        "refused": sum(one["refused"] for one in (*mine, *floor)),
    }


def main() -> None:
    """Everything, and one line of JSON."""
    folder, workers, users, seconds, rounds = Path(sys.argv[1]), *map(int, sys.argv[2:6])
    from bridle.server.chat.jwt import SharedSecret

    secret = folder / "secret"
    secret.touch(0o600)
    secret.write_text(os.urandom(32).hex())
    mint = SharedSecret(secret.read_text()).mint
    with postgres() as url:
        admin(url, "CREATE DATABASE ours")
        talked, script = asyncio.run(begun(url % "ours", users))
        admin(url, SPENT.format(script["period"]), "ours")
        admin(url, "CREATE DATABASE bare TEMPLATE ours")
        (folder / "script.json").write_text(json.dumps(script))
        everybody = [
            {"path": f"/api/{user}/chat", "conversation": place, "token": mint(user, 3600)}
            for user, place in talked.items()
        ]
        (folder / "users.json").write_text(json.dumps(everybody))
        with (
            ours(url % "ours", folder, workers) as one,
            bare(url % "bare", folder, workers) as other,
        ):
            found = compared((one, other), folder / "users.json", seconds, rounds)
    counted = {"statements": script["statements"], "calls": script["calls"]}
    print(json.dumps(found | counted))


if __name__ == "__main__":
    main()
