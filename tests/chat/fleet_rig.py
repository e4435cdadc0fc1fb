"""Several real workers of the chat over one database, each a process with a port of its own.

As a program it makes them: everything is imported once, and each order on its input is a fork that
serves until it is told to end or killed. What happens to them stands on its output, a JSON line
each. As a module it is the fleet as tests see it, and the client that speaks with any of them.
"""

import asyncio
import atexit
import ctypes
import json
import logging
import os
import random
import secrets
import signal
import subprocess
import sys
import tempfile
import threading
from contextlib import asynccontextmanager, suppress
from functools import cache
from pathlib import Path

import aiohttp

HERE = Path(__file__).parent
SECRET = "a secret that is long enough for HS256, and known to this fleet alone"
_DIES_WITH_PARENT = 1  # of prctl
FAILURES = (aiohttp.ClientError, ConnectionError, TimeoutError)


class Worker:
    """One process."""

    def __init__(self, pid, port):
        self.pid, self.port = pid, port
        self.gone = asyncio.Event()

    def kill(self, how=signal.SIGKILL):
        """kill -9, if it still lives."""
        if not self.gone.is_set():
            with suppress(ProcessLookupError):
                os.kill(self.pid, how)


class Yard:
    """The process that makes workers, for as long as the tests run; each fleet in its turn."""

    def __init__(self):
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 (it is closed with the yard)
        self._process = subprocess.Popen(
            [sys.executable, HERE / "fleet_rig.py"],
            cwd=HERE,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
        )
        self.listener = None
        self._reading = threading.Thread(target=self._read, daemon=True)
        self._reading.start()
        atexit.register(self._close)

    def order(self, **what):
        self._process.stdin.write(json.dumps(what).encode() + b"\n")
        self._process.stdin.flush()

    def logged(self):
        """All that the workers have written into their log."""
        self._log.flush()
        return os.pread(self._log.fileno(), 50_000_000, 0).decode("utf-8", "replace")

    def _read(self):
        for line in self._process.stdout:
            if (listener := self.listener) is not None:
                listener(json.loads(line))

    def _close(self):
        with suppress(OSError):
            self._process.stdin.close()
        self._process.wait(20)
        self._reading.join(5)
        self._process.stdout.close()
        self._log.close()


yard = cache(Yard)


class Fleet:
    """The workers; those that ended are taken out by themselves."""

    def __init__(self, url):
        self._url = url
        self._starting = {}
        self._all = {}
        self.deaths = 0
        loop = asyncio.get_running_loop()
        yard().listener = lambda told: loop.call_soon_threadsafe(self._told, told)

    @property
    def workers(self):
        """Those that live, as far as is known."""
        return [one for one in self._all.values() if not one.gone.is_set()]

    async def start(self, **order):
        """One more worker, which takes requests."""
        number = secrets.token_hex(8)
        ready = self._starting[number] = asyncio.get_running_loop().create_future()
        yard().order(number=number, url=self._url, **order)
        return await asyncio.wait_for(ready, 240)

    def _told(self, told):
        if "port" in told:
            worker = Worker(told["pid"], told["port"])
            self._all[worker.pid] = worker
            self._starting.pop(told["number"]).set_result(worker)
        elif (worker := self._all.get(told["died"])) is not None:
            self.deaths += 1
            worker.gone.set()

    async def close(self):
        for worker in self.workers:
            worker.kill(signal.SIGTERM)
        async with asyncio.timeout(240):
            for worker in self._all.values():
                await worker.gone.wait()
        yard().listener = None


@asynccontextmanager
async def fleet(url, count, **order):
    """So many workers, started and in the end stopped."""
    made = Fleet(url)
    try:
        await asyncio.gather(*(made.start(**order) for _ in range(count)))
        yield made
    finally:
        await made.close()


class Client:
    """Speaks in one user's name with whichever worker; `heard` sees every byte of an answer."""

    def __init__(self, http, workers, user, heard=None):
        from bridle.server.chat.jwt import SharedSecret

        self.http, self.user, self._workers = http, user, workers
        self._heard = heard or (lambda data: None)
        self._chance = random.Random(user)
        self.token = SharedSecret(SECRET).mint(user, 3_600)

    async def call(self, method, path, body=None, *, headers=None, worker=None):
        """One request: status and JSON (or what there is)."""
        worker = worker or self._chance.choice(self._workers())
        sent = {"Authorization": f"Bearer {self.token}"} | (headers or {})
        how = {} if body is None else {"json": body}
        url = f"http://127.0.0.1:{worker.port}{path}"
        async with self.http.request(method, url, headers=sent, **how) as answer:
            data = await answer.read()
            self._heard(data + repr(answer.raw_headers).encode())
            kind = answer.headers.get("content-type", "")
            if kind.startswith("text/event-stream"):
                return answer.status, events(data)
            return answer.status, json.loads(data) if "json" in kind else data

    async def say(self, message, conversation=None, *, key="", stream=False, **more):
        """A message: status and answer. A stream is read to its end, and is its last event."""
        fields = more.pop("fields", {})
        body = {"message": message, "conversation_id": conversation, **fields}
        headers = {"Idempotency-Key": key} if key else {}
        if stream:
            headers["Accept"] = "text/event-stream"
        path = f"/api/{self.user}/chat"
        status, found = await self.call("POST", path, body, headers=headers, **more)
        if isinstance(found, list):
            names = [name for name, _ in found]
            assert names[0] == "accepted" and names[-1] in ("done", "error"), names
            pieces = "".join(data["text"] for name, data in found if name == "text")
            found = found[-1][1]
            assert names[-1] == "error" or pieces == found["response"]
        return status, found

    async def insist(self, message, conversation=None, *, key):
        """As a client that must not lose it: with the same key again, until it is answered."""
        while True:
            with suppress(*FAILURES, IndexError):
                status, found = await self.say(message, conversation, key=key)
                if status == 200:
                    return found
                assert status in (429, 503), (status, found)
            await asyncio.sleep(0.02)

    async def messages(self, conversation):
        """The whole conversation, oldest first: who said what."""
        pages, cursor = [], ""
        while True:
            path = f"/api/{self.user}/conversations/{conversation}?limit=100&cursor={cursor}"
            status, page = await self.call("GET", path)
            assert status == 200, page
            pages.insert(0, [(one["role"], one["content"]) for one in page["messages"]])
            cursor = page["next"]
            if not cursor:
                return [one for page in pages for one in page]

    async def tasks(self):
        """All of the user's tasks."""
        found, cursor = [], ""
        while True:
            path = f"/api/{self.user}/tasks?limit=100&cursor={cursor}"
            status, page = await self.call("GET", path)
            assert status == 200, page
            found += page["tasks"]
            cursor = page["next"]
            if not cursor:
                return found


def events(data):
    """The events of a stream that has ended: name and value."""
    found = []
    for block in data.decode().split("\n\n"):
        fields = dict(line.split(": ", 1) for line in block.splitlines() if ": " in line)
        if "data" in fields:
            found.append((fields.get("event", "message"), json.loads(fields["data"])))
    return found


@asynccontextmanager
async def talking(seconds=240):
    """What clients share: connections without a bound."""
    timeout = aiohttp.ClientTimeout(total=seconds)
    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(connector=connector, timeout=timeout) as http:
        yield http


# what follows runs in the processes


class Moments:
    """Counts what is done in the database; at the n-th thing the process is gone, by kill -9."""

    def __init__(self, engine, last):
        from sqlalchemy import event

        self.count, self.last = 0, last
        for name in ("before_cursor_execute", "after_cursor_execute", "commit"):
            event.listen(engine, name, self._moment)

    def _moment(self, *_):
        self.count += 1
        if self.count == self.last:
            os.kill(os.getpid(), signal.SIGKILL)


def make_app(order):
    """The chat that an order asks for."""
    from hostile_model import HostileModel

    from bridle.chat import ChatApp, Database, RemoteTools, ServiceLimits

    provider = HostileModel() if order.get("hostile") else "offline"
    limits = ServiceLimits(messages_a_minute=0)
    tools = order.get("tools")
    if tools:
        tools = RemoteTools(tools, environ=order["environ"], timeout=240)
    patience = order.get("patience", 20.0)
    database = Database(order["url"], patience=patience)
    return ChatApp(tools=tools, database=database, provider=provider, service_limits=limits)


async def serve(order, output):
    """Until SIGTERM."""
    from msgspec.structs import replace

    from bridle.server.auth import AllowedHosts
    from bridle.server.chat.app import ChatLifecycle, ChatServer
    from bridle.server.chat.context import LIMITS, ChatContext
    from bridle.server.chat.jwt import JwtVerifier, SharedSecret
    from bridle.server.http import bind

    ended = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, ended.set)
    app = make_app(order)
    room = ChatContext(app, JwtVerifier(SharedSecret(SECRET)), replace(LIMITS, rate=0.0))
    with bind("127.0.0.1", 0) as listening:
        port = listening.getsockname()[1]
        serving = ChatLifecycle(ChatServer(room, AllowedHosts(port, "127.0.0.1")), listening)
        await serving.start()
        if order.get("last"):
            Moments(app.database.engine, order["last"])
        if output is not None:
            tell(output, number=order["number"], pid=os.getpid(), port=port)
            await ended.wait()
        else:
            await app.service.reply("ana", "Add task buy milk")
        await serving.stop(2)
    app.database.close()


def tell(output, **what):
    os.write(output, json.dumps(what).encode() + b"\n")


def warm():
    """What is imported with the first message is imported here, before any fork."""
    import psycopg  # noqa: F401

    with tempfile.TemporaryDirectory() as room:
        asyncio.run(serve({"url": f"sqlite:///{room}/warm.db"}, None))


def child(order, output):
    """In a new process: serve, and end."""
    ctypes.CDLL(None).prctl(_DIES_WITH_PARENT, signal.SIGKILL)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    code = 1
    try:
        asyncio.run(serve(order, output))
        code = 0
    finally:
        sys.stderr.flush()
        os._exit(code)


def main():
    """Fork for each order; say who died; at the end of input, let the living end."""
    output = os.dup(1)
    os.dup2(2, 1)
    logging.basicConfig(level=logging.INFO)
    living = set()

    def buried(*_):
        with suppress(ChildProcessError):
            while (pid := os.waitpid(-1, os.WNOHANG)[0]) > 0:
                living.discard(pid)
                tell(output, died=pid)

    warm()
    signal.signal(signal.SIGCHLD, buried)
    for line in sys.stdin:
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD})
        pid = os.fork()
        if not pid:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGCHLD})
            child(json.loads(line), output)
        living.add(pid)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGCHLD})
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    for pid in living:
        os.kill(pid, signal.SIGTERM)
    for pid in living:
        os.waitpid(pid, 0)


if __name__ == "__main__":
    main()
