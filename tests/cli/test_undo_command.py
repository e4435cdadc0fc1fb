"""`bridle undo`: shows, asks, puts back, tells the log; refuses where the person changed a file."""

import asyncio
import fcntl
import json
import os

import pytest

from bridle.messages import ToolCall
from bridle.workspace.undo.undo import Undo


class Story:
    """A session of the real program, and turns that changed its workspace."""

    def __init__(self, bridle):
        self.bridle = bridle
        self.root = bridle.workspace
        (self.root / "a.txt").write_text("one\n")
        (self.root / "gone.txt").write_text("gone\n")
        done = bridle.run("run", "hello", "--model", bridle.script("hi"))
        assert done.returncode == 0, done.stderr
        self.session = bridle.logs()[0].parent.name

    def turn(self, number, effect, session=None):
        recorder = Undo(self.root, self.bridle.state).record_turn(session or self.session, number)
        call = ToolCall("c", "shell")

        async def work():
            await recorder.before(call)
            effect()
            await recorder.after(call)

        asyncio.run(work())

    def change(self):
        (self.root / "a.txt").write_text("two\n")
        (self.root / "gone.txt").unlink()
        (self.root / "new.txt").write_text("new\n")

    def files(self):
        return {path.name: path.read_text() for path in self.root.iterdir()}

    def records(self, kind):
        lines = (json.loads(line) for line in self.bridle.logs()[0].read_text().splitlines())
        return [line["data"] for line in lines if line["data"]["type"] == kind]


@pytest.fixture
def story(bridle):
    story = Story(bridle)
    story.turn(1, story.change)
    return story


BEFORE = {"a.txt": "one\n", "gone.txt": "gone\n"}
AFTER = {"a.txt": "two\n", "new.txt": "new\n"}


def test_a_preview_lists_what_comes_goes_and_changes(story):
    done = story.bridle.run("undo", "--preview")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == [
        f"undo turn 1 of {story.session}",
        "  ~ a.txt  is changed back",
        "  + gone.txt  is restored",
        "  - new.txt  is deleted",
    ]
    assert story.files() == AFTER


def test_undo_puts_back_and_tells_the_log_and_redo_brings_it_back(story):
    done = story.bridle.run("undo", "--yes", USER="ada")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[-2:] == [
        "restored 3 files",
        "  → bridle undo --redo   reverts this",
    ]
    assert story.files() == BEFORE
    [undone] = story.records("undo")
    assert undone.pop("undo")
    assert undone == {
        "type": "undo",
        "turn": 1,
        "by": "ada",
        "files": ["a.txt", "gone.txt", "new.txt"],
    }
    done = story.bridle.run("undo", "--redo", "--yes")
    assert (done.returncode, done.stderr) == (0, "")
    assert story.files() == AFTER


def test_at_a_terminal_it_asks_and_a_no_changes_nothing(story):
    with story.bridle.terminal("undo") as terminal:
        terminal.expect("Restore 3 files? [y/N] ")
        terminal.type("n\n")
        assert terminal.end()[0] == 1
    assert story.files() == AFTER
    with story.bridle.terminal("undo") as terminal:
        terminal.expect("Restore 3 files? [y/N] ")
        terminal.type("y\n")
        terminal.expect("restored 3 files")
        assert terminal.end()[0] == 0
    assert story.files() == BEFORE


def test_without_a_terminal_nobody_is_asked_and_nothing_is_changed(story):
    done = story.bridle.run("undo")
    assert done.returncode == 2
    assert "add --yes" in done.stderr
    assert story.files() == AFTER


def test_a_file_that_the_person_changed_is_shown_both_ways_and_refused(story):
    (story.root / "a.txt").write_text("mine\n")
    done = story.bridle.run("undo", "--yes")
    assert done.returncode == 1
    assert done.stderr.splitlines() == [
        "bridle: nothing was changed, because a.txt changed since",
        "  → --keep-going leaves these files and restores the rest, --force restores all of them.",
    ]
    assert done.stdout.splitlines()[-6:] == [
        "  ! a.txt: it was changed since",
        "      --- as the turn left it",
        "      +++ as it is now",
        "      @@ -1 +1 @@",
        "      -two",
        "      +mine",
    ]
    assert story.files() == AFTER | {"a.txt": "mine\n"}
    assert story.bridle.run("undo", "--yes", "--keep-going").returncode == 0
    assert story.files() == BEFORE | {"a.txt": "mine\n"}


def test_force_goes_over_it_and_keeps_what_was_there(story):
    (story.root / "a.txt").write_text("mine\n")
    assert story.bridle.run("undo", "--yes", "--force").returncode == 0
    assert story.files() == BEFORE
    assert story.bridle.run("undo", "--yes", "--redo").returncode == 0
    assert story.files() == AFTER | {"a.txt": "mine\n"}


def test_json_says_it_all(story):
    done = story.bridle.run(
        "undo", story.session.rpartition("-")[2], "--turn", "1", "--yes", "--json"
    )
    said = json.loads(done.stdout)
    assert said.pop("undo")
    assert said == {
        "session": story.session,
        "turn": 1,
        "kind": "undo",
        "done": True,
        "files": [
            {"path": "a.txt", "how": "changes back"},
            {"path": "gone.txt", "how": "comes back"},
            {"path": "new.txt", "how": "goes"},
        ],
        "conflicts": [],
        "uncovered": [],
        "left": [],
        "logged": True,
    }


def test_turns_are_listed(story):
    story.turn(2, lambda: (story.root / "b.txt").write_text("b"))
    story.bridle.run("undo", "--yes")
    done = story.bridle.run("undo", "--list", "--json")
    listed = json.loads(done.stdout)
    assert [(one["turn"], one["paths"], one["undone"]) for one in listed] == [
        (1, ["a.txt", "gone.txt", "new.txt"], False),
        (2, ["b.txt"], True),
    ]
    lines = story.bridle.run("undo", "--list").stdout.splitlines()
    assert [line.endswith("undone") for line in lines] == [False, True]


def test_a_later_turn_is_named(story):
    story.turn(2, lambda: (story.root / "a.txt").write_text("three\n"))
    done = story.bridle.run("undo", story.session, "--turn", "1", "--yes")
    assert done.returncode == 1
    assert "! a.txt: turn 2 changed it afterwards" in done.stdout
    assert f"Undo that first: bridle undo {story.session} --turn 2." in done.stderr


def test_a_session_whose_log_is_gone_is_put_back_all_the_same(story):
    story.turn(7, lambda: (story.root / "b.txt").write_text("b"), session="nobody")
    done = story.bridle.run("undo", "--yes")
    assert done.returncode == 0
    assert "the files are restored, but this is not in the session's log" in done.stderr
    assert not (story.root / "b.txt").exists()


def test_a_session_that_another_process_holds_is_put_back_and_that_is_said(story):
    with story.bridle.logs()[0].open("rb") as log:
        fcntl.flock(log, fcntl.LOCK_EX)
        done = story.bridle.run("undo", "--yes")
    assert done.returncode == 0
    assert "the files are restored, but this is not in the session's log" in done.stderr
    assert story.files() == BEFORE
    assert story.records("undo") == []


def test_what_a_run_of_the_program_did_is_taken_back(bridle):
    (bridle.workspace / "a.txt").write_text("one\n")
    command = {"command": "rm a.txt && mkdir new && echo b > new/b.txt"}
    script = bridle.script({"calls": [{"name": "shell", "arguments": command}]}, "done")
    done = bridle.run("run", "--yes", "--model", script, "go")
    assert done.returncode == 0, done.stderr
    assert [path.name for path in bridle.workspace.iterdir()] == ["new"]
    done = bridle.run("undo", "--yes")
    assert (done.returncode, done.stderr) == (0, "")
    assert [path.name for path in bridle.workspace.iterdir()] == ["a.txt"]
    assert (bridle.workspace / "a.txt").read_text() == "one\n"


def test_where_nothing_changed_there_is_nothing_to_undo(bridle):
    done = bridle.run("undo")
    assert done.returncode == 2
    assert done.stderr.splitlines() == [
        f"bridle: there is nothing to undo in {os.path.realpath(bridle.workspace)}",
        "  → `bridle undo --list` shows the turns that changed something here.",
    ]
    assert bridle.run("undo", "--list").stdout == "No turn has changed anything here.\n"
    assert not (bridle.state / "undo").exists()


def test_names_that_obey_themselves_on_a_terminal_are_shown_harmless(story):
    story.turn(2, lambda: (story.root / "\x1b[2Jx").write_text("b"))
    done = story.bridle.run("undo", "--preview")
    assert "\x1b" not in done.stdout
    assert "- \\x1b[2Jx" in done.stdout


def test_old_things_are_thrown_away_when_it_is_said(story):
    done = story.bridle.run("undo", "--prune", "--older-than", "0", "--yes", "--json")
    assert json.loads(done.stdout)["calls"] == 1
    assert story.bridle.run("undo", "--list").stdout == "No turn has changed anything here.\n"
    assert story.files() == AFTER
