"""`bridle sessions replay`: the past against today's tools, in a copy, with its own answers."""

import json
import os
from pathlib import Path

import pytest
from cli_program import Program

from bridle.errors import ConfigError
from bridle.runtime import replay
from bridle.runtime.replay import CopyResult, copy_folder


def call(name: str, **arguments: object) -> dict:
    return {"name": name, "arguments": arguments}


READ = {"calls": [call("read", path="a.txt"), call("glob", pattern="*.txt")]}
SHELL = {"calls": [call("shell", command="touch a.txt; cat a.txt; pwd")]}
WRITE = {"calls": [call("write", path="b.txt", content="b\n")]}


def talked(bridle: Program, *replies: dict | str, lines: str) -> str:
    (bridle.workspace / "a.txt").write_text("hello\n")
    done = bridle.run("repl", "-m", bridle.script(*replies), stdin=lines.encode())
    assert done.returncode == 0
    return bridle.logs()[-1].parent.name


def verdicts(bridle: Program, *arguments: str) -> tuple[int, list[str]]:
    done = bridle.run("sessions", "replay", *arguments, "--yes", "--json")
    turns = json.loads(done.stdout)
    return done.returncode, [one["verdict"] for turn in turns for one in turn["calls"]]


def test_the_same_tools_on_the_same_files_give_the_same(bridle: Program):
    """A command that says where it runs is the same, too: the copy is called by the old name."""
    session = talked(bridle, READ, SHELL, "Said.", SHELL, "No.", lines="look\ny\nagain\nn\n")
    before = bridle.logs()[0].read_bytes()
    assert verdicts(bridle, session) == (0, ["same"] * 4)
    done = bridle.run("sessions", "replay", session, "--yes")
    assert done.stdout.splitlines()[-1] == "✓ 4 calls in 2 turns: 4 the same"
    assert "copied 1 file (6 bytes) from" in done.stderr
    assert bridle.logs()[0].read_bytes() == before and len(bridle.logs()) == 1


def test_what_comes_out_differently_is_shown_line_by_line(bridle: Program):
    session = talked(bridle, READ, "Read.", lines="look\n")
    (bridle.workspace / "a.txt").write_text("hello\nworld\x1b[2J\n")
    done = bridle.run("sessions", "replay", session)
    assert done.returncode == 1 and "\x1b" not in done.stdout
    assert "  ≠ read a.txt  different\n" in done.stdout
    assert "    +     2 world\\x1b[2J\n" in done.stdout
    assert done.stdout.splitlines()[-1] == "≠ 2 calls in 1 turn: 1 the same, 1 different"


def test_nothing_but_the_copy_is_written_to(bridle: Program):
    write = {"calls": [call("write", path=f"{bridle.workspace}/b.txt", content="new\n")]}
    shell = {"calls": [call("shell", command=f"echo more >> {bridle.workspace}/a.txt")]}
    session = talked(bridle, write, shell, "Done.", lines="go\ny\ny\n")
    (bridle.workspace / "b.txt").unlink()
    held = (bridle.workspace / "a.txt").read_text()
    code, found = verdicts(bridle, session)
    assert (code, found) == (0, ["same", "same"])
    assert not (bridle.workspace / "b.txt").exists()
    assert (bridle.workspace / "a.txt").read_text() == held
    kept = bridle.run("sessions", "replay", session, "--yes", "--keep")
    copy = Path(kept.stderr.rpartition("copy is in ")[2].strip())
    assert (copy / "b.txt").read_text() == "new\n"
    assert (copy / "a.txt").read_text() == held + "more\n"


def test_what_nobody_was_asked_about_is_denied_unless_that_is_wanted(bridle: Program):
    (bridle.workspace / "a.txt").write_text("hello\n")
    bridle.run("run", "go", "--yes", "-m", bridle.script(WRITE, SHELL, "Done."))
    (bridle.workspace / "b.txt").unlink()
    session = bridle.logs()[0].parent.name
    assert verdicts(bridle, session) == (1, ["denied", "denied"])
    assert verdicts(bridle, session, "--unasked") == (0, ["same", "same"])
    said = bridle.run("sessions", "replay", session, "--yes").stdout
    assert "it needed no approval then, and would need it now" in said


def test_a_command_that_did_not_finish_then_is_not_run_again(bridle: Program):
    slow = {"calls": [call("shell", command="sleep 600")]}
    with bridle.terminal("run", "go", "--yes", "-m", bridle.script(slow)) as terminal:
        terminal.expect("sleep 600")
        terminal.type("\x03")
        assert terminal.end()[0] == 130
    session = bridle.logs()[0].parent.name
    assert verdicts(bridle, session, "--unasked") == (0, ["skipped"])


def test_commands_run_only_after_a_yes(bridle: Program):
    session = talked(bridle, SHELL, "Said.", lines="look\ny\n")
    unasked = bridle.run("sessions", "replay", session)
    assert unasked.returncode == 2 and "1 recorded command may really run" in unasked.stderr
    with bridle.terminal("sessions", "replay", session) as terminal:
        terminal.expect("Continue? [y/N] ")
        terminal.type("n\n")
        assert terminal.end()[0] == 130


def test_a_folder_that_is_gone_can_be_named_anew(bridle: Program):
    session = talked(bridle, READ, "Read.", lines="look\n")
    bridle.workspace.rename(bridle.home / "moved")
    bridle.workspace.mkdir()
    code, found = verdicts(bridle, session, "--workspace", str(bridle.home / "moved"))
    assert (code, found) == (0, ["same", "same"])
    bridle.workspace.rmdir()
    log = str(bridle.logs()[0].parent.name)
    bridle.workspace = bridle.home
    gone = bridle.run("sessions", "replay", log)
    assert gone.returncode == 2 and "no longer exists" in gone.stderr


def test_a_copy_holds_no_link_that_leads_out(tmp_path: Path):
    source, target = tmp_path / "source", tmp_path / "target"
    (source / "deep").mkdir(parents=True)
    target.mkdir()
    (source / "a").write_text("one")
    (source / "run.sh").write_text("x")
    (source / "run.sh").chmod(0o755)
    (source / "inside").symlink_to(source / "a")
    (source / "deep" / "up").symlink_to("../a")
    (source / "out").symlink_to(tmp_path)
    (source / "deep" / "far").symlink_to("../../target")
    os.mkfifo(source / "pipe")
    assert copy_folder(source, target) == CopyResult(2, 4, 3)
    assert sorted(str(one.relative_to(target)) for one in target.rglob("*")) == [
        *("a", "deep", "deep/up", "inside", "run.sh")
    ]
    assert (target / "inside").resolve() == target / "a"
    assert (target / "deep" / "up").resolve() == target / "a"
    assert os.access(target / "run.sh", os.X_OK)


def test_a_folder_that_is_too_large_is_refused_before_anything_is_copied(
    tmp_path: Path, monkeypatch
):
    source, target = tmp_path / "source", tmp_path / "target"
    source.mkdir()
    target.mkdir()
    with (source / "hole").open("wb") as hole:
        hole.truncate(replay.MOST_BYTES + 1)
    with pytest.raises(ConfigError, match="too large to copy"):
        copy_folder(source, target)
    assert list(target.iterdir()) == []
