"""A bridle that is killed while a command runs: what that did is mended when the next one runs."""

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from bridle.errors import ConfigError
from bridle.promises.tool import ToolContext, ToolResult
from bridle.tools.shell import Shell
from bridle.workspace.paths import Workspace
from bridle.workspace.sandbox import Sandbox, probe

DRIVER = """
import asyncio, sys
from bridle.promises.tool import ToolContext
from bridle.tools.shell import Shell
from bridle.workspace.paths import Workspace
from bridle.workspace.sandbox import Sandbox
root, state, command = sys.argv[1:]
say = lambda event: print(event.text, end="", flush=True)
context = ToolContext(Workspace(root), "1", emit=say)
sandbox = Sandbox(root, level="landlock", hidden=(state,))
sandbox.state = state
asyncio.run(Shell(sandbox).execute({"command": command}, context))
"""
EVIL = "echo evil > .git/hooks/pre-push; echo evil >> .git/hooks/pre-commit; "


@pytest.fixture
def root(tmp_path: Path) -> Path:
    try:
        probe("landlock")
    except ConfigError as error:
        pytest.skip(error.message)
    root = tmp_path / "work"
    subprocess.run(["git", "init", "-q", str(root)], check=True)
    (root / ".git/hooks/pre-commit").write_text("mine")
    return root


@pytest.fixture
def state(tmp_path: Path) -> Path:
    return tmp_path / "state"


def execute(root: Path, state: Path, command: str) -> ToolResult:
    sandbox = Sandbox(str(root), level="landlock", hidden=(str(state),))
    sandbox.state = str(state)
    context = ToolContext[None](Workspace(root), "1")
    return asyncio.run(Shell(sandbox).execute({"command": command}, context))


def begin(root: Path, state: Path, command: str) -> "subprocess.Popen[bytes]":
    """A bridle whose command has said `ready`."""
    words = [sys.executable, "-c", DRIVER, str(root), str(state), command]
    bridle = subprocess.Popen(words, stdout=subprocess.PIPE)
    assert bridle.stdout is not None
    assert bridle.stdout.readline() == b"ready\n"
    return bridle


def end(bridle: "subprocess.Popen[bytes]") -> None:
    os.kill(bridle.pid, signal.SIGKILL)
    bridle.communicate()


def left(state: Path) -> list[str]:
    return [path.name for path in (state / "watched").iterdir()]


def hooks(root: Path) -> dict[str, str]:
    found = (root / ".git/hooks").iterdir()
    return {path.name: path.read_text() for path in found if path.suffix != ".sample"}


def test_what_was_done_is_mended_by_the_next_and_set_aside(root: Path, state: Path) -> None:
    end(begin(root, state, EVIL + "echo ready; sleep 1000"))
    assert hooks(root) == {"pre-commit": "mineevil\n", "pre-push": "evil\n"}
    found = execute(root, state, "true")
    assert (found.ok, ".git/hooks/pre-push" in found.stops) == (False, True)
    now = hooks(root)
    assert now.pop("pre-commit") == "mine"
    assert sorted(now.values()) == ["evil\n", "mineevil\n"]
    assert all(".bridle-refused-" in name for name in now)
    assert (execute(root, state, "true").stops, left(state)) == ("", [])


def test_nothing_stays_of_a_command_that_ends(root: Path, state: Path) -> None:
    assert execute(root, state, "true").ok
    assert left(state) == []
    (root / ".git/hooks/pre-push").write_text("mine, too")
    assert execute(root, state, "true").ok
    assert hooks(root) == {"pre-commit": "mine", "pre-push": "mine, too"}


def test_what_another_bridle_holds_is_left_to_it(root: Path, state: Path) -> None:
    other = begin(root, state, "echo ready; sleep 1000")
    try:
        assert len(left(state)) == 1
        assert execute(root, state, "true").ok
        assert len(left(state)) == 1
    finally:
        end(other)


def test_what_cannot_be_read_is_thrown_away(root: Path, state: Path) -> None:
    end(begin(root, state, "echo ready; sleep 1000"))
    (name,) = left(state)
    (state / "watched" / name).write_bytes(b"nonsense")
    assert execute(root, state, "true").ok
    assert left(state) == []


def test_without_a_place_to_write_commands_run_all_the_same(root: Path, state: Path) -> None:
    state.write_text("a file")
    assert execute(root, state, "true").ok
    assert "pre-push" in execute(root, state, EVIL).stops
