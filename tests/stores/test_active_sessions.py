"""Who else is at work in a folder: sessions whose log is held, here or in another process."""

import subprocess

from bridle.stores import locks
from bridle.stores.jsonl import JsonlStore
from bridle.stores.session_index import active_sessions, list_sessions
from rig import PYTHON, make_engine, run

HOLDER = """
import asyncio, sys
from bridle.engine.engine import Engine
from bridle.engine.engine_config import EngineConfig
from bridle.providers.scripted import Scripted
from bridle.stores.jsonl import JsonlStore
from bridle.workspace.workspace import Workspace

async def hold():
    store = JsonlStore(sys.argv[1])
    async with Engine(EngineConfig(Scripted(["ok"]), {}, store, Workspace(sys.argv[2]))) as engine:
        session = await engine.session()
        await session.wait(await session.send("go"))
        print(session.id, flush=True)
        await asyncio.to_thread(sys.stdin.readline)

asyncio.run(hold())
"""


def held_by_another(state, root, look):
    """Have another process hold a session there, and look while it does."""
    command = [PYTHON, "-c", HOLDER, str(state), str(root)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            session_id = process.stdout.readline().strip()
            return session_id, process.pid, look()
        finally:
            process.stdin.close()


def test_a_session_that_another_process_holds_is_a_neighbour_in_its_own_folder(state, tmp_path):
    here, there = tmp_path / "here", tmp_path / "there"
    here.mkdir()
    there.mkdir()

    def look():
        return active_sessions(state, str(here)), active_sessions(state, str(there))

    found, pid, (near, far) = held_by_another(state, here, look)
    assert [(one.session_id, one.owner.split(" (")[0]) for one in near] == [
        (found, f"process {pid}")
    ]
    assert far == []
    assert active_sessions(state, str(here)) == []


def test_a_list_says_which_sessions_a_process_has_open_and_takes_no_lock(state, tmp_path):
    def look():
        return [entry.is_owned for entry in list_sessions(state)]

    _, _, owned = held_by_another(state, tmp_path, look)
    assert owned == [True]
    assert look() == [False]  # the other process has ended


def test_where_the_system_tells_nothing_the_lock_is_asked(state, tmp_path, monkeypatch):
    monkeypatch.setattr(locks, "LOCK_TABLE", "/nowhere")
    found, _, near = held_by_another(state, tmp_path, lambda: active_sessions(state, str(tmp_path)))
    assert near == [(found, "another process")]
    assert active_sessions(state, str(tmp_path)) == []


def test_a_session_is_not_its_own_neighbour(state, tmp_path):
    async def story():
        store = JsonlStore(state)
        async with make_engine(["ok"] * 2, store=store, root=tmp_path) as engine:
            one, two = await engine.session(), await engine.session()
            for session in (one, two):
                await session.wait(await session.send("go"))
            found = active_sessions(store.folder, str(tmp_path), except_id=one.id)
            return [one.session_id for one in found], two.id

    near, other = run(story())
    assert near == [other]


def test_a_folder_without_sessions_has_no_neighbours(tmp_path):
    assert active_sessions(tmp_path / "none", "/") == []
