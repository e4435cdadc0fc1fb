"""A model for a whole family of sessions, which knows each by its prompt, and engines for them."""

from bridle.engine.engine import Engine
from bridle.engine.engine_config import EngineConfig
from bridle.events import ChildEnded, ChildStarted
from bridle.providers.scripted import Scripted
from bridle.stores.memory_store import MemoryStore
from bridle.tools.function import as_tool
from bridle.tools.session_tools import TaskTool
from bridle.workspace.workspace import Workspace
from rig import events


class Cast:
    """Says to each session what was written for its prompt, reply after reply."""

    def __init__(self, **parts):
        self.parts = {name: list(replies) for name, replies in parts.items()}
        self.heard = []

    def __call__(self, request):
        name = next(one.content for one in request.messages if one.role == "user")
        self.heard.append((name, request))
        return self.parts[name].pop(0)

    def requests(self, name):
        return [request for who, request in self.heard if who == name]


def family_engine(cast, *tools, info=None, store=None, root="/", **rest):
    """An engine whose sessions can hand out tasks."""
    named = {tool.name: tool for tool in (TaskTool(), *map(as_tool, tools))}
    model = Scripted(cast, info=info)
    return Engine(EngineConfig(model, named, store or MemoryStore(), Workspace(root), **rest))


def task(prompt, **more):
    """A scripted reply that hands out one task."""
    return tasks((prompt, more))


def tasks(*wanted):
    """A scripted reply that hands out several."""
    calls = [{"name": "task", "arguments": {"prompt": name, **more}} for name, more in wanted]
    return {"calls": calls}


def children_of(engine, session_id):
    """The child sessions that a log names, in order."""
    return [one.session_id for one in events(engine, session_id, ChildStarted)]


def ends_of(engine, session_id):
    """How the children of a session ended, by their ids."""
    return {one.session_id: one.reason for one in events(engine, session_id, ChildEnded)}
