"""Which commands are hooks: none that runs what a call may have written."""

import os
from pathlib import Path

import pytest

from bridle.config.hooks import CommandLine
from bridle.errors import ConfigError
from bridle.protocols.hooks import HookEvent, HookResult
from bridle.runtime.hooks import as_hooks
from rig import run

BEFORE = HookEvent("before_turn")


def script(path: Path, text: str = "exit 0") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


@pytest.fixture
def root(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    root = tmp_path / "ws"
    for path in (root / "check", root / ".bridle/check", root / ".bridle/sub/deep"):
        script(path)
    (tmp_path / "mine").mkdir()
    return root


def hooks(root, command, origin):
    line = CommandLine(("before_turn",), command, origin=f"{root / origin}:1")
    return as_hooks([line], str(root))


THEIRS, MINE = ".bridle/hooks.yaml", "../mine/hooks.yaml"


@pytest.mark.parametrize(
    ("origin", "command"),
    [
        (MINE, ("ROOT/check",)),
        (MINE, ("ROOT/not-there-yet",)),
        (MINE, ("sh", "-c", "true; ROOT/check")),
        (MINE, "true && ROOT/check"),
        (MINE, 'sh "$BRIDLE_WORKSPACE/check"'),
        (MINE, "cd ${BRIDLE_WORKSPACE} && ./check"),
        (MINE, "cd $BRIDLE_WORKSPACE && sh check"),
        (MINE, "cd $BRIDLE_WORKSPACE && make lint"),
        (MINE, ("make", "-C", "ROOT", "lint")),
        (MINE, ("../ws/check",)),
        (MINE, ("./linked",)),
        (THEIRS, ("../check",)),
        (THEIRS, ("sub/deep",)),
        (THEIRS, "npm test"),
        (THEIRS, ("make", "lint")),
        ("hooks.yaml", ("true",)),
        ("aside/hooks.yaml", ("./check",)),
    ],
)
def test_a_command_that_runs_what_a_call_may_write_is_refused_at_the_start(root, origin, command):
    (root / "../mine/linked").symlink_to(root / "check")
    (root / "aside").symlink_to(root)
    words = [command] if isinstance(command, str) else command
    words = tuple(one.replace("ROOT", str(root)) for one in words)
    with pytest.raises(ConfigError, match=":1: it is refused: it") as caught:
        hooks(root, words[0] if isinstance(command, str) else words, origin)
    assert "Keep the script beside the file of hooks" in caught.value.hint


@pytest.mark.parametrize(
    ("origin", "command"),
    [
        (THEIRS, ("./check",)),
        (THEIRS, "./check && true"),
        (MINE, ("./own", "--fast")),
        (MINE, "cd $BRIDLE_WORKSPACE && test -d .bridle"),
        (MINE, ("test", "-d", "ROOT")),
    ],
)
def test_a_script_beside_the_file_of_hooks_is_run(root, origin, command):
    script(root / "../mine/own")
    words = [command] if isinstance(command, str) else command
    words = tuple(one.replace("ROOT", str(root)) for one in words)
    found = hooks(root, words[0] if isinstance(command, str) else words, origin)
    assert run(found.run(BEFORE)) == HookResult()


def test_a_file_that_comes_later_is_seen_before_it_runs(root):
    found = hooks(root, "cd $BRIDLE_WORKSPACE && ./later", MINE)
    script(root / "later", "touch ran")
    said = run(found.run(BEFORE))
    assert said.deny.endswith("broke: it is refused: it names ./later, which a call may change")
    assert not (root / "ran").exists()


def test_a_build_file_of_the_workspace_is_not_found_by_a_command_of_mine(root):
    (root / "Makefile").write_text("lint:\n\ttouch ran\n")
    assert run(hooks(root, ("make", "lint"), MINE).run(BEFORE)).deny
    assert not (root / "ran").exists()


def test_a_program_of_the_workspace_is_not_found_by_its_name(root, monkeypatch):
    script(root / ".venv/bin/own-linter", f"touch {root}/ran")
    monkeypatch.setenv("PATH", f"{root}/.venv/bin:{os.environ['PATH']}")
    assert "exit code 127" in run(hooks(root, ("own-linter",), MINE).run(BEFORE)).deny
    assert not (root / "ran").exists()


def test_one_that_is_from_no_file_runs_where_nothing_lies(root):
    line = CommandLine(("before_turn",), 'test "$PWD" = / && exit 2')
    assert run(as_hooks([line], str(root)).run(BEFORE)) == HookResult(deny="it gave no reason")
