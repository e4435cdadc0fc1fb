"""A real server that can be stopped and started again at the same place, and clients of it."""

from contextlib import asynccontextmanager

from rig_server import LIMITS, opening, write_note

from bridle.client import Client
from bridle.server.app import Application
from bridle.server.auth import AllowedHosts
from bridle.server.context import ServerContext
from bridle.server.http import ServerLifecycle, bind, bind_unix
from bridle.server.login import Authenticator
from bridle.server.streams import Streams
from bridle.server.tokens import Tokens
from bridle.service.engine_pool import EnginePool
from bridle.service.local_service import LocalService
from rig import free_port

NOTE = {"calls": [{"name": "write_note", "arguments": {"text": "milk"}}]}


class Place:
    """Where a server is: its folders, its port or socket, what its model says."""

    def __init__(self, tmp_path, *replies, unix=False):
        self.folder = tmp_path / "sessions"
        self.workspace = tmp_path / "workspace"
        for one in (self.folder, self.workspace):
            one.mkdir()
        self.door = Authenticator(Tokens(tmp_path / "server"))
        self.token = self.door.tokens.own
        self.replies = list(replies)
        self.socket = tmp_path / "s" if unix else None
        self.port = 0 if unix else free_port()  # nobody is given it while the server is down
        self.told = []

    @property
    def url(self):
        return f"unix://{self.socket}" if self.socket else f"http://127.0.0.1:{self.port}"

    def client(self, token=None):
        return Client(self.url, token or self.token, tell=self.told.append)

    @asynccontextmanager
    async def up(self, *tools):
        """The server, running."""
        tools = (write_note, *tools)
        engines = EnginePool(opening(self.replies, *tools, folder=self.folder, face="server"))
        sessions = LocalService(self.folder, engines, (str(self.workspace),))
        room = ServerContext(sessions, Streams(sessions), self.door, LIMITS)
        listening = bind_unix(self.socket) if self.socket else bind("127.0.0.1", self.port)
        names = AllowedHosts(None) if self.socket else AllowedHosts(self.port, "127.0.0.1")
        serving = ServerLifecycle(Application(room, names), listening)
        await serving.start()
        try:
            yield room
        finally:
            await serving.stop(5)


@asynccontextmanager
async def place(tmp_path, *replies, unix=False):
    """A running server's place, and a client of it."""
    here = Place(tmp_path, *replies, unix=unix)
    async with here.up(), here.client() as client:
        yield here, client


async def asked(session, count=1):
    """The questions that wait, once there are so many."""
    await session.until(lambda: len(session.history.pending) >= count)
    return list(session.history.pending.values())
