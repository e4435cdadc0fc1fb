"""LocalService of a server without HTTP: real engines with scripted models, real files."""

import asyncio
import os
from contextlib import asynccontextmanager, suppress

from bridle.engine.engine import Engine
from bridle.engine.engine_config import EngineConfig
from bridle.events import ApprovalAsked, TurnEnded
from bridle.policy import ToolPolicy
from bridle.protocols.session_values import ApprovalAnswer, NewSession, PromptRequest
from bridle.providers.scripted import Scripted
from bridle.service.engine_pool import EnginePool
from bridle.service.local_service import LocalService
from bridle.stores.jsonl import JsonlStore
from bridle.tools.function import as_tool
from bridle.workspace.workspace import Workspace
from rig import until


def note(text: str) -> str:
    """Write a note. It changes something, so that it is asked about."""
    return f"noted {text}"


note.policy = ToolPolicy(requires_approval=True)
ASKS = {"calls": [{"name": "note", "arguments": {"text": "one"}}]}


class Held:
    """A tool that runs until the test lets it go."""

    name, description = "hold", "waits"
    parameters = {"type": "object", "properties": {}}
    policy = ToolPolicy(read_only=True)

    def __init__(self):
        self.begun, self.free = asyncio.Event(), asyncio.Event()

    async def execute(self, arguments, context):
        from bridle.protocols.tool import ToolResult

        self.begun.set()
        await self.free.wait()
        return ToolResult.success("let go")


HOLDS = {"calls": [{"name": "hold", "arguments": {}}]}


def opening(state, replies, *tools, store=None, made=None, **parts):
    """How engines are made: a scripted model, and these tools."""

    def open_engine(wanted, session_id):
        model = replies() if callable(replies) else Scripted(replies)
        named = {tool.name: tool for tool in map(as_tool, tools or (note,))}
        kept = store() if store else JsonlStore(state)
        usual = {"on_ask": "wait", "face": "server"} | parts
        engine = Engine(EngineConfig(model, named, kept, Workspace(wanted.workspace), **usual))
        if made is not None:
            made.append((wanted, session_id))
        return engine

    return open_engine


@asynccontextmanager
async def serving(place, replies, *tools, rest=60.0, wait=3.0, workspaces=None, **more):
    """LocalService over the state folder `place/state`, which work in `place/work`."""
    state, work = str(place / "state"), place / "work"
    work.mkdir(exist_ok=True)
    engines = EnginePool(opening(state, replies, *tools, **more))
    folders = (str(work),) if workspaces is None else workspaces
    sessions = LocalService(state, engines, folders, idle=rest, timeout=wait)
    await sessions.start()
    await sessions.wait_for_recovery()
    try:
        yield sessions
    finally:
        await sessions.stop(5.0)


async def made(sessions, **wanted):
    """A new session's id."""
    return (await sessions.create(NewSession(**wanted), "ann")).id


async def asked(sessions, session_id, after=0):
    """The question that a session puts, and its record's number."""
    record = await until(
        sessions.get_open(session_id), lambda one: isinstance(one, ApprovalAsked), after
    )
    return record.event, record.seq


async def ended(sessions, session_id, turn=0):
    """How a turn of an open session ends."""
    found = await until(
        sessions.get_open(session_id),
        lambda one: isinstance(one, TurnEnded) and turn in (0, one.turn),
    )
    return found.event.reason


async def spoken(sessions, session_id, words="go", **more):
    """A prompt, to its turn's end."""
    accepted = await sessions.send(session_id, PromptRequest(words, **more), "ann")
    assert await ended(sessions, session_id, accepted.turn) == "done"
    return accepted.turn


def yes(question, **more):
    return ApprovalAnswer(True, question.shown, **more)


def no(question, **more):
    return ApprovalAnswer(False, question.shown, **more)


async def seen(look, wanted, seconds=240.0):
    """What `look` comes to, once it is what is wanted; for what no stream tells of."""
    async with asyncio.timeout(seconds):
        while not wanted(found := await look()):  # noqa: ASYNC110 - another process tells nobody
            await asyncio.sleep(0.01)
        return found


async def refused(work, kind):
    """The refusal that some work comes to."""
    try:
        found = await work
    except kind as error:
        return error
    raise AssertionError(f"{found!r} was not refused")


def kill(pid):
    with suppress(ProcessLookupError):
        os.kill(pid, 9)
