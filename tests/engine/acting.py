"""An agent that does what a test writes, and an engine in which it carries the turns."""

from bridle.engine.engine import Engine
from bridle.engine.engine_config import EngineConfig
from bridle.engine.foreign.agent import NoModel
from bridle.stores.memory_store import MemoryStore
from bridle.tools.function import as_tool
from bridle.workspace.workspace import Workspace
from rig import is_valid


class Acting:
    """An agent whose execute is whatever a test writes."""

    name = "acting"

    def __init__(self, act):
        self.act = act
        self.cancelled = []
        self.is_down = False

    async def execute(
        self, prompt, session, *, can_use_tool=None, on_text_chunk=None, on_tool_activity=None
    ):
        self.chunk, self.activity = on_text_chunk, on_tool_activity
        return await self.act(prompt, session, can_use_tool)

    async def cancel(self, session_id):
        self.cancelled.append(session_id)

    async def shutdown(self):
        self.is_down = True


def acting_engine(agent, *tools, store=None, root="/", **rest):
    named = {tool.name: tool for tool in map(as_tool, tools)}
    store = store or MemoryStore()
    return Engine(EngineConfig(NoModel(agent), named, store, Workspace(root), agent=agent, **rest))


async def one_turn(agent, *tools, prompt="go", **rest):
    async with acting_engine(agent, *tools, **rest) as engine:
        session = await engine.session()
        result = await session.wait(await session.send(prompt))
        assert is_valid(session.history.transcript)
        return engine, session.id, result


async def yes(asked):
    """An approver who allows everything."""
    return True
