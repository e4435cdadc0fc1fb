"""No command outlives whoever started it: a bridle that is killed, a cancel, its time."""

import asyncio
import os
import secrets
import signal
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from early_clock import TIME, out_of_time

from bridle.errors import ConfigError
from bridle.protocols.tool import ToolContext
from bridle.tools.shell.tool import Shell
from bridle.workspace.sandbox import Sandbox, probe
from bridle.workspace.workspace import Workspace

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="it looks into /proc")

# twice forked, in sessions of their own, with an empty environment, deaf to TERM; and a loud one
DAEMONS = (
    "(setsid env -i sh -c \"trap '' TERM; (setsid sleep {mark} >/dev/null 2>&1 &) ; "
    'sleep {mark}" >/dev/null 2>&1 &) ; (setsid setsid env -i sleep {mark} &) ; '
    "nohup sleep {mark} >/dev/null 2>&1 & sleep {mark} & "
    "(exec -a {mark} sleep 1000 </dev/null >/dev/null 2>&1 & disown) ; "
)
READY = "until [ $(pgrep -fc 'slee[p] {mark}') -ge 5 ]; do sleep 0.01; done; echo ready; "

DRIVER = """
import asyncio, sys
from bridle.protocols.tool import ToolContext
from bridle.tools.shell.tool import Shell
from bridle.workspace.workspace import Workspace
from bridle.workspace.sandbox import Sandbox
root, level, command = sys.argv[1:]
say = lambda event: print(event.text, end="", flush=True)
context = ToolContext(Workspace(root), "1", emit=say)
asyncio.run(Shell(Sandbox(root, level=level)).execute({"command": command}, context))
"""


KILLER = """
import asyncio, os, random, signal, sys, time
import bridle.tools.shell.tool
from bridle.protocols.tool import ToolContext
from bridle.tools.shell.tool import Shell
from bridle.workspace.workspace import Workspace
from bridle.workspace.sandbox import Sandbox
root, level, command, times = sys.argv[1:]
context = ToolContext(Workspace(root), "1")
sandbox = Sandbox(root, level=level)
shell, _ = Shell(sandbox), sandbox.level
for number in range(int(times)):
    reader, writer = os.pipe()
    if not (bridle := os.fork()):
        def tell(event, given):
            if event == "subprocess.Popen" and command in given[1]:
                os.write(writer, b".")
        sys.addaudithook(tell)
        asyncio.run(shell.execute({"command": command}, context))
    os.read(reader, 1)
    end = time.perf_counter() + random.Random(number).uniform(0, 0.012)
    while time.perf_counter() < end:
        pass
    os.kill(bridle, signal.SIGKILL)
    os.waitpid(bridle, 0)
    os.close(reader)
    os.close(writer)
"""
TIMES = 1000 if os.environ.get("BRIDLE_SOAK") else 60


@pytest.fixture(params=["none", "landlock", "bubblewrap"])
def level(request: pytest.FixtureRequest) -> str:
    try:
        probe(request.param)
    except ConfigError as error:
        pytest.skip(error.message)
    return str(request.param)


@pytest.fixture
def mark() -> str:
    """Seconds to sleep that nobody else sleeps."""
    return f"1000.{secrets.randbelow(10**12):012d}"


def alive(mark: str) -> int:
    """How many processes have the mark in their words, and are not dead."""
    count = 0
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                is_one = mark.encode() in (entry / "cmdline").read_bytes()
                dead = (entry / "stat").read_bytes().rpartition(b")")[2].split()[0] in b"ZX"
            except OSError:
                continue
            count += is_one and not dead
    return count


def until_gone(mark: str) -> None:
    for _ in range(3000):
        if alive(mark) == 0:
            return
        threading.Event().wait(0.01)
    raise AssertionError(f"{alive(mark)} processes are still there")


def command(mark: str) -> str:
    return (DAEMONS + READY + "sleep {mark}").format(mark=mark)


def shell(root: Path, level: str, emit: Any = lambda event: None) -> tuple[Shell, Any]:
    context: ToolContext[Any] = ToolContext(Workspace(root), "1", emit=emit)
    return Shell(Sandbox(str(root), level=level)), context


def test_a_cancel_leaves_no_process(tmp_path: Path, level: str, mark: str) -> None:
    """(M6)"""

    async def scenario() -> int:
        ready = asyncio.Event()
        tool, context = shell(tmp_path, level, lambda event: ready.set())
        task = asyncio.create_task(tool.execute({"command": command(mark)}, context))
        await ready.wait()
        running = alive(mark)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return running

    assert asyncio.run(scenario()) >= 6
    until_gone(mark)


def test_the_end_of_its_time_leaves_no_process(tmp_path: Path, level: str, mark: str) -> None:
    """(M6, A13)"""
    tool, context = shell(tmp_path, level, out_of_time(lambda said: "ready\n" in said))
    found = asyncio.run(tool.execute({"command": command(mark), "timeout": TIME}, context))
    assert found.data["output"].startswith("ready\n")
    assert found.data["timed_out"] is True
    until_gone(mark)


def test_a_command_that_ends_leaves_no_process(tmp_path: Path, level: str, mark: str) -> None:
    tool, context = shell(tmp_path, level)
    words = (DAEMONS + READY + "exit 5").format(mark=mark)
    found = asyncio.run(tool.execute({"command": words}, context))
    assert (found.data["exit_code"], found.data["output"]) == (5, "ready\n")
    until_gone(mark)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_killed_bridle_leaves_no_process(
    tmp_path: Path, level: str, mark: str, number: signal.Signals
) -> None:
    words = [sys.executable, "-c", DRIVER, str(tmp_path), level, command(mark)]
    pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    environment = {**os.environ, "TMPDIR": str(tmp_path)}  # who is killed leaves a folder there
    with subprocess.Popen(words, env=environment, **pipes) as bridle:
        assert bridle.stdout is not None
        assert bridle.stdout.readline() == b"ready\n"
        assert alive(mark) >= 6
        bridle.send_signal(number)
        bridle.wait()
    until_gone(mark)


def test_a_bridle_that_is_killed_while_it_starts_a_command_leaves_no_command(
    tmp_path: Path, level: str, mark: str
) -> None:
    """At any moment. A bwrap that has started nothing, and never will, may be left behind."""
    words = [sys.executable, "-c", KILLER, str(tmp_path), level, f"sleep {mark}", str(TIMES)]
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    subprocess.run(words, env=environment, check=True)
    try:
        until_gone(f"sleep\0{mark}\0")
    finally:
        for entry in Path("/proc").iterdir():
            with suppress(OSError):
                if entry.name.isdigit() and mark.encode() in (entry / "cmdline").read_bytes():
                    os.kill(int(entry.name), signal.SIGKILL)


def test_who_kills_the_one_who_stands_over_it_gets_no_further(tmp_path: Path, mark: str) -> None:
    """Without a sandbox a command can do that; it and its children end all the same."""
    words = f"sleep {mark} & setsid sleep {mark} & kill -9 $PPID; sleep {mark}"
    tool, context = shell(tmp_path, "none")
    found = asyncio.run(tool.execute({"command": words}, context))
    assert found.ok is False
    until_gone(mark)


def test_a_fork_bomb_ends_with_its_time(tmp_path: Path, level: str, mark: str) -> None:
    """A small one, that goes on as long as it lives: forty at a time."""
    bomb = f"b() {{ sleep {mark} & [ $1 -gt 0 ] && b $(($1 - 1)) & b2 & }}; b2() {{ :; }}; "
    words = bomb + "while :; do b 3; sleep 0.05; done"
    tool, context = shell(tmp_path, level)
    found = asyncio.run(tool.execute({"command": words, "timeout": 1}, context))
    assert found.data["timed_out"] is True
    until_gone(mark)


def test_signals_are_what_they_are_in_any_shell(tmp_path: Path) -> None:
    """PIPE ends a writer, and a shell that is killed says by what."""
    tool, context = shell(tmp_path, "none")

    async def scenario() -> list[str]:
        lines = ("yes | head -1; echo ${PIPESTATUS[0]}", "kill -INT $$", "kill -PIPE $$")
        return [(await tool.execute({"command": line}, context)).text for line in lines]

    assert asyncio.run(scenario()) == [
        "y\n141\n[exit code 0]",
        "(no output)\n[ended by signal SIGINT]",
        "(no output)\n[ended by signal SIGPIPE]",
    ]


def test_a_supervisor_that_can_open_no_file_still_leaves_nobody_behind(
    tmp_path: Path, level: str, mark: str
) -> None:
    """Unconfined a command can take its files away; confined it cannot even do that."""
    command = (
        f"env -i setsid -f setsid sleep {mark} >/dev/null 2>&1; "
        f"env -i setsid -f sh -c 'sleep {mark}; true' >/dev/null 2>&1; "
        "prlimit --pid $PPID --nofile=0:0 && echo taken"
    )
    context = ToolContext[None](Workspace(tmp_path), "1")
    sandbox = Sandbox(str(tmp_path), level=level)
    found = asyncio.run(Shell(sandbox).execute({"command": command}, context))
    assert ("taken" in found.text) == (level != "landlock")
    until_gone(mark)
