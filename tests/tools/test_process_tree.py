"""A process that leaves the group of its command ends with it all the same (M6)."""

import asyncio
import os
import re
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from early_clock import TIME, out_of_time

from bridle.events import Event, ToolOutputDelta
from bridle.protocols.tool import ToolContext, ToolResult
from bridle.tools.shell.tool import Shell
from bridle.workspace.process.process_tree import VARIABLE, ProcessTree
from bridle.workspace.workspace import Workspace

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="it looks into /proc")

# each says its number, leaves the session of the command, and stays
RUNAWAYS = {
    "setsid": "setsid sh -c 'echo pid $$; exec sleep 1000' &",
    "silent": "setsid sh -c 'echo pid $$; exec sleep 1000 >/dev/null 2>&1' &",
    "orphan": "(setsid sh -c 'echo pid $$; exec sleep 1000 >/dev/null 2>&1' &) &",
    "stubborn": "setsid sh -c 'trap \"\" TERM; echo pid $$; while :; do sleep 1; done' &",
    "without a mark": "setsid env -i sh -c 'echo pid $$; exec sleep 1000' &",
}


def run(root: Path, command: str, **options: Any) -> ToolResult:
    context: ToolContext[Any] = ToolContext(Workspace(root), "1", **options)
    return asyncio.run(Shell().execute({"command": command, "timeout": TIME}, context))


def pids(text: str) -> list[int]:
    return [int(found) for found in re.findall(r"pid (\d+)\n", text)]


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def wait_until(condition: Callable[[], bool]) -> None:
    """Wait for the kernel, which may need a moment: to end a process, to show a new one whole."""
    for _ in range(3000):
        if condition():
            return
        threading.Event().wait(0.01)
    raise AssertionError("it never came to that")


@pytest.mark.parametrize("runaway", RUNAWAYS.values(), ids=RUNAWAYS)
def test_who_left_the_group_ends_when_the_time_is_over(tmp_path: Path, runaway: str) -> None:
    found = run(tmp_path, f"{runaway} sleep 1000", emit=out_of_time(pids))
    assert found.text.endswith("[timed out after 60 s; the command and its children were ended]")
    (pid,) = pids(found.text)
    wait_until(lambda: not alive(pid))


@pytest.mark.parametrize("runaway", RUNAWAYS.values(), ids=RUNAWAYS)
def test_who_left_the_group_ends_when_the_call_is_cancelled(tmp_path: Path, runaway: str) -> None:
    said: list[str] = []

    async def scenario() -> None:
        ready = asyncio.Event()

        def hear(event: Event) -> None:
            assert isinstance(event, ToolOutputDelta)
            said.append(event.text)
            if pids("".join(said)):
                ready.set()

        context: ToolContext[Any] = ToolContext(Workspace(tmp_path), "1", emit=hear)
        task = asyncio.create_task(Shell().execute({"command": f"{runaway} sleep 999"}, context))
        await ready.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(scenario())
    (pid,) = pids("".join(said))
    wait_until(lambda: not alive(pid))


@pytest.mark.parametrize("runaway", ["setsid", "silent", "orphan", "stubborn"])
def test_who_left_the_group_ends_with_a_command_that_ends(tmp_path: Path, runaway: str) -> None:
    said: list[str] = []

    def hear(event: Event) -> None:
        assert isinstance(event, ToolOutputDelta)
        said.append(event.text)
        if pids("".join(said)):
            (tmp_path / "go").touch()

    until = "until [ -e go ]; do sleep 0.01; done"
    found = run(tmp_path, f"{RUNAWAYS[runaway]} {until}", emit=hear)
    assert found.text.endswith("[exit code 0]")
    (pid,) = pids(found.text)
    wait_until(lambda: not alive(pid))


def is_marked(pid: int) -> bool:
    """Whether its environment can be read: not in the first instant after `exec`."""
    return VARIABLE.encode() in Path(f"/proc/{pid}/environ").read_bytes()


def test_nobody_else_is_touched() -> None:
    """Neither a neighbour, nor the child of another command, nor we."""
    ours, other = ProcessTree(), ProcessTree()
    wait = [sys.executable, "-c", "input()"]
    kinds: dict[str, Any] = {"stdin": subprocess.PIPE, "start_new_session": True}
    with subprocess.Popen(wait, **kinds) as neighbour:
        with subprocess.Popen(wait, env=other.with_mark(os.environ), **kinds) as foreign:
            with subprocess.Popen(wait, env=ours.with_mark(os.environ), **kinds) as own:
                ours.leader = foreign.pid + 1_000_000_000
                wait_until(lambda: is_marked(own.pid))
                ours.kill(thorough=True)
                assert own.wait() == -9
            assert (neighbour.poll(), foreign.poll()) == (None, None)
            foreign.communicate(b"\n")
        neighbour.communicate(b"\n")
    assert (neighbour.returncode, foreign.returncode) == (0, 0)


def test_a_command_within_a_command_carries_both_marks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "outer")
    assert ProcessTree().with_mark({"A": "b"}).keys() == {"A", VARIABLE}
    assert ProcessTree().with_mark({})[VARIABLE].startswith("outer:")
