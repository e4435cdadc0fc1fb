"""What another agent changes by its own means is taken back like anything else: real files."""

import asyncio
from pathlib import Path

import pytest
from acting import Acting, yes

from bridle.agents.base import AgentResponse
from bridle.engine.foreign import turn as foreign_turn
from bridle.events import FilesChanged
from bridle.runtime.assembly import build_engine
from bridle.workspace.undo.undo import Undo
from rig import events, run

BEFORE = {"a.txt": "a", "b.txt": "b", "c.txt": "c"}


@pytest.fixture
def work(tmp_path):
    folder = tmp_path / "work"
    folder.mkdir()
    for name, text in BEFORE.items():
        (folder / name).write_text(text)
    return folder


def held(folder):
    return {file.name: file.read_text() for file in sorted(folder.iterdir())}


async def one_turn(act, work, state, *, stop=None):
    async with build_engine(
        agent=Acting(act), workspace=work, state=state, approver=yes, sandbox="none"
    ) as engine:
        session = await engine.session()
        turn = await session.send("go")
        if stop is not None:
            await stop.wait()
            await session.interrupt()
        await session.wait(turn)
        return engine, session.id


def put(session, name):
    Path(session.working_directory, name).write_text("changed")


async def ask(can_use_tool, name):
    return await can_use_tool("write", {"path": name, "content": "changed"}, name)


def test_edits_side_by_side_are_all_taken_back(work, tmp_path):
    async def act(prompt, session, can_use_tool):
        assert all([await ask(can_use_tool, name) for name in BEFORE])
        for name in reversed(BEFORE):  # the first that began is the last that ends
            put(session, name)
            await session.finish(name, "written")
        return AgentResponse("ok")

    engine, sid = run(one_turn(act, work, tmp_path / "state"))
    assert held(work) == dict.fromkeys(BEFORE, "changed")
    named = {file.path for one in events(engine, sid, FilesChanged) for file in one.files}
    assert named == set(BEFORE)
    Undo(str(work), tmp_path / "state").undo(sid)
    assert held(work) == BEFORE


def test_an_edit_that_outlasts_another_is_taken_back_and_so_is_our_own_between_them(work, tmp_path):
    async def act(prompt, session, can_use_tool):
        await ask(can_use_tool, "a.txt")
        await ask(can_use_tool, "b.txt")
        put(session, "b.txt")
        await session.finish("b.txt", "written")
        await session.call("write", {"path": "d.txt", "content": "changed"})
        put(session, "a.txt")  # after everything else is over
        await session.finish("a.txt", "written")
        return AgentResponse("ok")

    _, sid = run(one_turn(act, work, tmp_path / "state"))
    assert held(work) == {**dict.fromkeys(("a.txt", "b.txt", "d.txt"), "changed"), "c.txt": "c"}
    Undo(str(work), tmp_path / "state").undo(sid)
    assert held(work) == BEFORE


def test_what_was_never_reported_or_was_stopped_is_taken_back_too(work, tmp_path, monkeypatch):
    monkeypatch.setattr(foreign_turn, "CANCEL_SECONDS", 0.01)

    async def act(prompt, session, can_use_tool):
        for name in ("a.txt", "b.txt"):  # an agent that never says what came of it
            await ask(can_use_tool, name)
            put(session, name)
        stop.set()
        return await asyncio.Event().wait()

    async def story():
        nonlocal stop
        stop = asyncio.Event()
        return await one_turn(act, work, tmp_path / "state", stop=stop)

    stop = None
    _, sid = run(story())
    assert held(work) == {**BEFORE, "a.txt": "changed", "b.txt": "changed"}
    Undo(str(work), tmp_path / "state").undo(sid)
    assert held(work) == BEFORE
