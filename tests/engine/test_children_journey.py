"""Two tasks at once through the whole engine: approvals, files, undo; and a kill in the middle."""

import os
import signal
import subprocess
import sys
from pathlib import Path

from family import Cast, children_of, ends_of, tasks

from bridle import build_engine
from bridle.engine.history import UNKNOWN
from bridle.events import CallIntended, ChildStarted, FilesChanged
from bridle.providers.scripted import Scripted
from bridle.stores.jsonl import JsonlStore
from bridle.workspace.undo.undo import Undo
from rig import call, endings, events, results, run


def writing(path, content):
    return call("write", path=path, content=content)


def folders(tmp_path):
    work = tmp_path / "work"
    work.mkdir()
    (work / "a.txt").write_text("old a\n")
    (work / "b.txt").write_text("old b\n")
    return work, tmp_path / "state"


def test_two_tasks_at_once_each_change_a_file_with_a_persons_yes_and_are_undone_by_their_ids(
    tmp_path,
):
    """What a child changed is the child's: `bridle undo CHILD` takes it back, and that alone."""
    work, state = folders(tmp_path)
    asked = []

    async def yes(question):
        asked.append((question.paths, question.reason.rpartition("; ")[2]))
        return True

    async def story():
        cast = Cast(
            go=[tasks(("a", {"description": "renew a"}), ("b", {"description": "renew b"})), "ok"],
            a=[call("read", path="a.txt"), writing("a.txt", "new a\n"), "a is new"],
            b=[call("read", path="b.txt"), writing("b.txt", "new b\n"), "b is new"],
        )
        async with build_engine(
            Scripted(cast), workspace=work, state=state, approver=yes, sandbox="none"
        ) as engine:
            result = await engine.run("go")
            parent = result.session_id
            assert result.reason == "done"
            assert set(ends_of(engine, parent).values()) == {"done"}
            assert events(engine, parent, FilesChanged) == []
            return children_of(engine, parent)

    a, b = run(story())
    assert sorted(asked) == [
        (("a.txt",), "for the task “renew a”"),
        (("b.txt",), "for the task “renew b”"),
    ]
    assert [(work / name).read_text() for name in ("a.txt", "b.txt")] == ["new a\n", "new b\n"]
    undo = Undo(work, state)
    assert {(one.session, one.turn, one.paths) for one in undo.turns()} == {
        (a, 1, ("a.txt",)),
        (b, 1, ("b.txt",)),
    }
    assert undo.undo(a).done
    assert [(work / name).read_text() for name in ("a.txt", "b.txt")] == ["old a\n", "new b\n"]


PROGRAM = """
import asyncio, sys
from pathlib import Path
sys.path.insert(0, sys.argv[3])
from family import Cast, task
from rig import call
from bridle import build_engine, tool
from bridle.providers.scripted import Scripted

work = Path(sys.argv[1])

@tool
async def mark(word: str) -> str:
    (work / "marks").open("a").write(word)
    print("begun", flush=True)
    await asyncio.sleep(1000)

async def main():
    from bridle.tools.session_tools import TaskTool
    cast = Cast(go=[task("a"), "never"], a=[call("mark", word="x"), "never"])
    async with build_engine(Scripted(cast), tools=[mark, TaskTool()], workspace=work,
                            state=sys.argv[2], mode="auto") as engine:
        await engine.run("go")

asyncio.run(main())
"""


def test_killed_in_the_middle_of_a_childs_effect_nothing_is_run_twice(tmp_path):
    """kill -9: the child's turn is interrupted, both calls are unknown, the log says where."""
    work, state = folders(tmp_path)
    here = Path(__file__).parent
    path = os.pathsep.join((str(here), str(here.parent)))
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM, work, state, here],
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": path},
    ) as program:
        assert program.stdout.readline() == b"begun\n"
        program.send_signal(signal.SIGKILL)
    found = {one.id for one in JsonlStore(state).sessions()}
    assert len(found) == 2

    async def resume():
        async with build_engine(Scripted([]), workspace=work, state=state) as engine:
            for one in found:
                await engine.session(one)
            for one in found:
                assert endings(engine, one) == ["interrupted"]
                assert [text for _, text, _ in results(engine, one)] == [UNKNOWN]
                assert len(events(engine, one, CallIntended)) == 1
            started = [one for each in found for one in events(engine, each, ChildStarted)]
            assert len(started) == 1
            assert started[0].session_id in found

    run(resume())
    assert (work / "marks").read_text() == "x"
