"""A bridle that is killed while a command runs: what that did is mended when the next one runs."""

import asyncio
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from bridle.errors import ConfigError
from bridle.protocols.tool import ToolContext, ToolResult
from bridle.tools.shell.tool import Shell
from bridle.workspace.sandbox import Sandbox, probe
from bridle.workspace.workspace import Workspace

DRIVER = """
import asyncio, sys
from bridle.protocols.tool import ToolContext
from bridle.tools.shell.tool import Shell
from bridle.workspace.workspace import Workspace
from bridle.workspace.sandbox import Sandbox
root, state, command, level = sys.argv[1:]
say = lambda event: print(event.text, end="", flush=True)
context = ToolContext(Workspace(root), "1", emit=say)
sandbox = Sandbox(root, level=level, hidden=(state,))
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


def execute(root: Path, state: Path, command: str, level: str = "landlock") -> ToolResult:
    sandbox = Sandbox(str(root), level=level, hidden=(str(state),))
    sandbox.state = str(state)
    context = ToolContext[None](Workspace(root), "1")
    return asyncio.run(Shell(sandbox).execute({"command": command}, context))


def begin(
    root: Path, state: Path, command: str, level: str = "landlock"
) -> "subprocess.Popen[bytes]":
    """A bridle whose command has said `ready`."""
    words = [sys.executable, "-c", DRIVER, str(root), str(state), command, level]
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


@pytest.fixture(params=["none", "landlock", "bubblewrap"])
def level(request: pytest.FixtureRequest) -> str:
    try:
        probe(request.param)
    except ConfigError as error:
        pytest.skip(error.message)
    return str(request.param)


def test_files_that_run_by_themselves_are_put_back_by_the_next(
    root: Path, state: Path, level: str
) -> None:
    (root / ".envrc").write_text("mine")
    (root / ".github/workflows").mkdir(parents=True)
    (root / ".github/workflows/ci.yml").write_text("mine")
    evil = (
        "exec 2>/dev/null; rm -f .envrc; echo evil > .envrc; echo evil > .mcp.json; "
        "mv .github away; mkdir -p .github/workflows; echo evil > .github/workflows/ci.yml; "
        "echo ready; sleep 1000"
    )
    end(begin(root, state, evil, level))
    assert (root / ".mcp.json").read_text() == "evil\n"
    found = execute(root, state, "true", level)
    assert (root / ".envrc").read_text() == "mine"
    assert (root / ".github/workflows/ci.yml").read_text() == "mine"
    assert not (root / ".mcp.json").exists()
    assert ".mcp.json (the command's version is kept as" in found.text
    assert "changed when bridle was last ended here" in found.text
    assert (found.ok, found.stops) == (True, "")
    again = execute(root, state, "true", level)
    assert again.text == "(no output)\n[exit code 0]"
    assert not any((state / "guarded").iterdir())


def test_credentials_whose_folder_was_renamed_are_moved_back_by_the_next(
    root: Path, state: Path, level: str
) -> None:
    (root / ".kube").mkdir()
    (root / ".kube/config").write_text("canary")
    end(begin(root, state, "mv .kube plain; echo ready; sleep 1000", level))
    assert not (root / ".kube/config").exists()
    found = execute(root, state, "true", level)
    assert (root / ".kube/config").read_text() == "canary"
    assert ".kube/config (it holds credentials, and was moved to plain/config)" in found.text


def test_what_a_person_has_done_since_is_kept_beside_it(
    root: Path, state: Path, level: str
) -> None:
    end(begin(root, state, "echo ready; sleep 1000", level))
    (root / ".envrc").write_text("of the person")
    found = execute(root, state, "true", level)
    (kept,) = root.glob(".envrc.bridle-refused-*")
    assert kept.read_text() == "of the person"
    assert kept.name in found.text


def test_a_change_beside_a_command_that_could_not_make_it_stays(root: Path, state: Path) -> None:
    """In bubblewrap, where files that run by themselves cannot be changed, it was a person's."""
    try:
        probe("bubblewrap")
    except ConfigError as error:
        pytest.skip(error.message)
    (root / ".envrc").write_text("mine")
    bridle = begin(root, state, "echo ready; sleep 1000", "bubblewrap")
    (root / ".envrc").write_text("of the person")
    end(bridle)
    assert execute(root, state, "true", "bubblewrap").text == "(no output)\n[exit code 0]"
    assert (root / ".envrc").read_text() == "of the person"


def test_nothing_empty_stays_of_a_bridle_that_was_killed(
    root: Path, state: Path, level: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setenv("TMPDIR", str(temporary))
    for name in ("hooks", "info"):
        shutil.rmtree(root / ".git" / name)
    lock = "mkdir $TMPDIR/a; touch $TMPDIR/a/b; chmod 0 $TMPDIR/a; "
    other = begin(root, state, "echo ready; sleep 1000", level)
    (used,) = temporary.iterdir()
    end(begin(root, state, lock + "echo ready; sleep 1000", level))
    assert len(list(temporary.iterdir())) == 2
    end(begin(root, state, "echo ready; sleep 1000", level))
    assert len(list(temporary.iterdir())) == 2
    assert used.is_dir()  # somebody uses it
    end(other)
    words = [sys.executable, "-c", DRIVER, str(root), str(state), "true", level]
    subprocess.run(words, check=True)
    assert list(temporary.iterdir()) == []
    assert not {"hooks", "info"} & {path.name for path in (root / ".git").iterdir()}
    assert not any((state / "guarded").iterdir())
