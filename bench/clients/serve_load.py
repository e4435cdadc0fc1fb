"""The load: clients that watch sessions, and clients that send prompts. As little work as can be.

    serve_load.py watch PORT TOKEN CLIENTS   the sessions on the first line of its input
    serve_load.py send PORT TOKEN WORKERS SECONDS PATH...

`watch` says when all are in, is told where the logs end, and says what its clients have seen.
`send` posts a prompt to one path after the other, each worker to its own.
"""

import asyncio
import json
import re
import resource
import sys
import time
from functools import partial
from typing import Any

EVENT = re.compile(rb'data: \{"seq":(\d+),[^\n]*?"at":([\d.]+)|data: \{"seq":(\d+),')
HEAD = "GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAuthorization: Bearer {token}\r\n\r\n"
POST = (
    "POST {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAuthorization: Bearer {token}\r\n"
    "Content-Type: application/json\r\nContent-Length: {size}\r\n\r\n{body}"
)
BODY = json.dumps({"prompt": "What does the function return when the index is out of range?"})
PATIENCE = 20.0


def cpu() -> float:
    """CPU seconds of this process."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


class Watcher(asyncio.Protocol):
    """One client of one session. Events come whole in what ends with an empty line."""

    def __init__(self, request: bytes, seen: "Seen") -> None:
        self._request, self._seen = request, seen
        self._rest = b""
        self._last = 0
        self.wanted = -1
        self.began = asyncio.get_running_loop().create_future()
        self.done = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: Any) -> None:
        """Ask."""
        self.transport = transport
        transport.write(self._request)

    def data_received(self, data: bytes) -> None:
        """Take note of every event's number, and of how long it was on its way."""
        now = time.monotonic()
        data = self._rest + data
        end = data.rfind(b"\n\n")
        self._rest = data[end + 2 :] if end >= 0 else data
        for seq, at, bare in EVENT.findall(data[: max(0, end)]):
            number = int(seq or bare)
            if number != self._last + 1:
                self._seen.wrong(self._last, number)
            self._last = max(number, self._last)
            if at:
                self._seen.late.append(now - float(at))
        if not self.began.done() and self._last:
            self.began.set_result(None)
        self._look()

    def connection_lost(self, error: Exception | None) -> None:
        """It should not have."""
        for one in (self.began, self.done):
            if not one.done():
                one.set_exception(ConnectionError("a stream ended by itself"))

    def until(self, seq: int) -> None:
        """It is over with that record."""
        self.wanted = seq
        self._look()

    def _look(self) -> None:
        if 0 <= self.wanted <= self._last and not self.done.done():
            self.done.set_result(None)


class Seen:
    """What all clients have seen."""

    def __init__(self) -> None:
        self.late: list[float] = []
        self.lost = self.again = 0

    def wrong(self, last: int, number: int) -> None:
        """A number that is not the next one."""
        if number > last:
            self.lost += number - last - 1
        else:
            self.again += 1

    def told(self) -> dict[str, float]:
        """In figures; times in ms."""
        late = sorted(self.late)

        def at(share: float) -> float:
            return late[min(len(late) - 1, int(len(late) * share))] * 1000 if late else 0.0

        return {
            "events": len(late),
            "lost": self.lost,
            "repeated": self.again,
            "p50_ms": at(0.5),
            "p99_ms": at(0.99),
            "worst_ms": at(1),
        }


def say(**words: Any) -> None:
    """A line of JSON."""
    sys.stdout.write(json.dumps(words) + "\n")
    sys.stdout.flush()


async def watch(port: int, token: str, clients: int) -> None:
    """Clients of all sessions, until each has seen its log's end."""
    sessions = json.loads(sys.stdin.readline())
    loop, seen, watchers = asyncio.get_running_loop(), Seen(), []
    for number in range(clients):
        session_id = sessions[number % len(sessions)]
        path = f"/api/sessions/{session_id}/stream?after=0"
        request = HEAD.format(path=path, port=port, token=token).encode()
        making = partial(Watcher, request, seen)
        _, one = await loop.create_connection(making, "127.0.0.1", port)
        watchers.append((session_id, one))
    await asyncio.wait_for(asyncio.gather(*(one.began for _, one in watchers)), PATIENCE)
    before = cpu()
    say(ready=clients)
    ends = json.loads(await asyncio.to_thread(sys.stdin.readline))
    for session_id, one in watchers:
        one.until(ends[session_id])
    _, missing = await asyncio.wait([one.done for _, one in watchers], timeout=PATIENCE)
    spent = cpu() - before
    for late in missing:
        late.cancel()
    for _, one in watchers:
        one.transport.abort()
    say(**seen.told(), unfinished=len(missing), cpu=spent)


class Sender(asyncio.Protocol):
    """One connection that posts, and posts again when it has its answer."""

    def __init__(self, requests: list[bytes], answered: dict[int, int]) -> None:
        self._requests, self._answered = requests, answered
        self._next = 0
        self._data = b""
        self.running = True
        self.over = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: Any) -> None:
        """The first."""
        self.transport = transport
        self._post()

    def data_received(self, data: bytes) -> None:
        """An answer, and then the next."""
        self._data += data
        head, found, body = self._data.partition(b"\r\n\r\n")
        if not found:
            return
        length = re.search(rb"content-length: (\d+)", head, re.IGNORECASE)
        if length is None or len(body) < int(length[1]):
            return
        status, self._data = int(head[9:12]), b""
        self._answered[status] = self._answered.get(status, 0) + 1
        if self.running:
            self._post()
        elif not self.over.done():
            self.over.set_result(None)

    def connection_lost(self, error: Exception | None) -> None:
        """It should not have."""
        if not self.over.done():
            self.over.set_exception(ConnectionError("a connection ended by itself"))

    def _post(self) -> None:
        self.transport.write(self._requests[self._next % len(self._requests)])
        self._next += 1


async def send(port: int, token: str, workers: int, seconds: float, paths: list[str]) -> None:
    """Prompts for so long, from so many at once."""
    loop, answered, senders = asyncio.get_running_loop(), dict[int, int](), []
    for number in range(workers):
        mine = paths[number::workers] or paths
        requests = [
            POST.format(path=path, port=port, token=token, size=len(BODY), body=BODY).encode()
            for path in mine
        ]
        making = partial(Sender, requests, answered)
        _, one = await loop.create_connection(making, "127.0.0.1", port)
        senders.append(one)
    started, before = time.monotonic(), cpu()
    await asyncio.sleep(seconds)
    for one in senders:
        one.running = False
    await asyncio.wait_for(asyncio.gather(*(one.over for one in senders)), PATIENCE)
    spent = time.monotonic() - started
    for one in senders:
        one.transport.abort()
    say(answered=answered, per_s=sum(answered.values()) / spent, cpu=cpu() - before)


def main() -> None:
    """One or the other."""
    what, port, token, count, *rest = sys.argv[1:]
    if what == "watch":
        asyncio.run(watch(int(port), token, int(count)))
    else:
        asyncio.run(send(int(port), token, int(count), float(rest[0]), rest[1:]))


if __name__ == "__main__":
    main()
