"""bridle as an MCP server for tests, in the test's own process: real engine, log, gate and SDK."""

import asyncio

from mcp import Client
from mcp_types import Implementation
from msgspec.structs import replace

from bridle.engine.budget import Limits
from bridle.providers.scripted import Scripted
from bridle.runtime import build_engine
from bridle.server.mcp.server import create_server
from bridle.server.mcp.session_views import FACE, SessionViews
from bridle.server.mcp.tasks import Tasks
from bridle.server.mcp.tools import TaskTools
from bridle.stores.inbox_files import Notifier, send
from bridle.stores.reader import SessionFolder

WRITE = {
    "text": "I write.",
    "calls": [{"name": "write", "arguments": {"path": "a", "content": "1"}}],
}


class Served:
    """A server whose model says these replies, over all tasks."""

    def __init__(self, folder, *replies, widest="ask", answers=False, **options):
        self.workspace = folder / "workspace"
        self.workspace.mkdir(exist_ok=True)
        self.state = folder / "state"
        self.model = Scripted(replies)
        self.options = options
        self.opened = []
        self.tasks = Tasks(self.engine, widest)
        self.views = SessionViews(SessionFolder(self.state), self.workspace)
        self.verbs = TaskTools(self.tasks, self.views, self.post)
        self.server = create_server(self.verbs.offers(answers=answers))

    def engine(self, mode, on_ask, caps):
        self.opened.append((mode, on_ask, caps))
        limits = replace(Limits(), max_steps=caps.max_steps or 200)
        return build_engine(
            self.model,
            workspace=self.workspace,
            state=self.state,
            mode=mode,
            on_ask=on_ask,
            limits=limits,
            face=FACE,
            sandbox="none",
            **self.options,
        )

    def post(self, session_id, letter):
        send(self.views.folder.path(session_id).parent, letter)
        Notifier(self.state).notify()

    def client(self, **options):
        """The official client, connected in memory."""
        return Client(self.server, client_info=Implementation(name="other", version="1"), **options)

    def events(self, session_id, kind):
        found = self.views.folder.read(session_id)
        return [one.event for one in found if isinstance(one.event, kind)]


def words(result):
    """What a result says, in one text."""
    return "\n".join(block.text for block in result.content)


class Watched:
    """A call under way, and what is told of it meanwhile."""

    def __init__(self, client, name, arguments):
        self.told = []
        self._news = asyncio.Event()
        calling = client.call_tool(name, arguments, progress_callback=self._note)
        self.task = asyncio.ensure_future(calling)
        self.task.add_done_callback(lambda done: self._news.set())

    async def _note(self, done, total, message):
        self.told.append(message)
        self._news.set()

    async def says(self, wanted):
        """Until that was told; a call that is over has told everything."""
        while not any(wanted in one for one in self.told):
            assert not self.task.done(), self.task.result()
            self._news.clear()
            await self._news.wait()
