"""What undo does not cover is said, and never harmed."""

import contextlib
import os
import socket
import subprocess
import sys
import tempfile

import pytest
from undo_rig import HERE, Place, told

from bridle.messages import ToolCall
from bridle.workspace.undo.plan import Restored
from bridle.workspace.undo.snapshot import Limits


@pytest.fixture
def place(tmp_path):
    return Place(tmp_path)


def test_what_git_ignores_is_left_alone_and_said(place):
    place.put(".gitignore", "*.log\nbuild/\n")
    place.put("a.log", "old")
    place.put("build/out.o", "old")
    place.put("a.txt", "a")
    place.put("sub/.gitignore", "!b.log\n/c\n")
    place.put("sub/b.log", "kept")
    place.put("sub/c", "ignored")
    [change] = place.sh(
        "for f in a.log build/out.o a.txt sub/b.log sub/c new.log; do echo x > $f; done"
    )
    assert told(change) == [("a.txt", "changed"), ("sub/b.log", "changed")]
    [word] = change.uncovered
    assert word.startswith("what git ignores is not kept: ")
    assert sorted(word.partition(": ")[2].split(" and ")[0].split(", ")) <= sorted(
        ["a.log", "build/", "new.log", "sub/c"]
    )
    outcome = place.undo.undo("s")
    assert (outcome.done, outcome.uncovered) == (True, (word,))
    assert (place.root / "a.txt").read_text() == "a"
    assert (place.root / "sub/b.log").read_text() == "kept"
    assert (place.root / "a.log").read_text() == "x\n"


def test_an_ignore_file_that_the_turn_writes_hides_nothing_from_undo(place):
    place.put("a.txt", "a")
    place.put("src/b.txt", "b")
    before = place.picture()
    place.sh("echo '*' > .gitignore", "rm -r a.txt src; echo c > c.txt")
    assert place.undo.undo("s").done
    left = place.picture()
    assert left.pop("c.txt")  # made when it was ignored already
    assert left == before


def test_what_stops_being_ignored_in_a_turn_was_there_before_it(place):
    place.put(".gitignore", "*.key\nvault/\n")
    place.put("my.key", "precious")
    place.put("vault/x", "precious")
    place.sh("rm .gitignore", "echo x > y.key; echo z > vault/z")
    assert place.undo.undo("s").done
    assert (place.root / "my.key").read_text() == "precious"
    assert (place.root / "vault/x").read_text() == "precious"
    assert not (place.root / "y.key").exists()


def test_the_repository_itself_is_not_touched_and_that_is_said(place):
    place.put("a.txt", "a")
    git = "git -c user.name=n -c user.email=e -c init.defaultBranch=main"
    place.run(f"{git} init -q; {git} add .; {git} commit -qm one")
    [change] = place.sh(f"echo b > a.txt; {git} commit -qam two")
    assert told(change) == [("a.txt", "changed")]
    assert change.uncovered == ("commits, branches and what is staged (.git) are not kept",)
    assert place.undo.undo("s").done
    assert (place.root / "a.txt").read_text() == "a"
    said = subprocess.run(
        ["git", "log", "--format=%s"], cwd=place.root, capture_output=True, check=True, timeout=240
    )
    assert said.stdout == b"two\none\n"


def test_a_file_that_is_too_large_is_noticed_and_said(tmp_path):
    place = Place(tmp_path, Limits(file=1000))
    place.put("large", b"x" * 1001)
    place.put("small", "s")
    [change] = place.sh("echo y >> large; echo s >> small; head -c 2000 /dev/zero > made")
    assert told(change) == [("large", "changed"), ("made", "added"), ("small", "changed")]
    assert change.uncovered == ("large is too large to be kept", "made is too large to be kept")
    outcome = place.undo.undo("s")
    assert (outcome.done, outcome.files) == (True, (Restored("small", "changes back"),))
    assert (place.root / "made").stat().st_size == 2000
    assert (place.root / "large").stat().st_size == 1003


def test_a_small_file_that_was_made_large_comes_back_by_force_alone(tmp_path):
    place = Place(tmp_path, Limits(file=1000))
    place.put("a", "small")
    place.sh("head -c 2000 /dev/zero > a")
    assert place.undo.undo("s", preview=True).files == ()
    outcome = place.undo.undo("s", force=True)
    assert outcome.files == (Restored("a", "changes back"),)
    assert (place.root / "a").read_text() == "small"


def test_special_files_are_neither_opened_nor_removed(place):
    os.mkfifo(place.root / "pipe")
    with socket.socket(socket.AF_UNIX) as server:
        with contextlib.chdir(place.root):  # a socket's whole path may be too long for it
            server.bind("socket")
        place.put("a", "a")
        [change] = place.sh("echo b > a; mkfifo another; rm pipe; echo file > pipe")
    assert told(change) == [("a", "changed"), ("another", "added"), ("pipe", "changed")]
    assert change.uncovered == (
        "another is a device, a pipe or a socket",
        "pipe is a device, a pipe or a socket",
    )
    assert place.undo.undo("s").files == (Restored("a", "changes back"),)
    assert (place.root / "pipe").read_text() == "file\n"


def test_a_link_to_elsewhere_is_kept_as_a_link(place, tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "theirs.txt").write_text("theirs")
    (place.root / "out").symlink_to(outside)
    (place.root / "loop").symlink_to("loop")
    [change] = place.sh("echo changed > out/theirs.txt; rm out loop; mkdir out; echo x > out/x")
    assert told(change) == [("loop", "deleted"), ("out", "changed"), ("out/x", "added")]
    assert place.undo.undo("s").done
    assert (place.root / "out").readlink() == outside
    assert str((place.root / "loop").readlink()) == "loop"
    assert (outside / "theirs.txt").read_text() == "changed\n"
    assert not any(b"theirs" in path.read_bytes() for path in place.state.rglob("objects/*/*"))


def test_a_tree_with_too_many_files_is_covered_as_far_as_it_goes(tmp_path):
    place = Place(tmp_path, Limits(entries=20))
    for at in range(5):
        place.put(f"few/{at}", "few")
    for at in range(50):
        place.put(f"many/{at}", "many")
    [change] = place.sh("echo x > few/1; echo x > many/1; rm many/2; echo x > many/new")
    assert told(change) == [("few/1", "changed")]
    assert change.uncovered == ("many/ was not looked at: there are too many files",)
    assert place.undo.undo("s").done
    assert (place.root / "few/1").read_text() == "few"
    assert (place.root / "many/new").exists()


def test_files_for_which_there_was_no_room_are_said_and_kept_the_next_time(tmp_path):
    place = Place(tmp_path, Limits(max_seconds=0))
    place.put("a", "a")
    [change] = place.sh("echo b > a")
    assert change.uncovered == ("a was not kept: there was too much to keep",)
    assert place.undo.undo("s").files == ()
    place.limits = Limits()
    place.undo = place.another()
    place.sh("echo c > a")
    assert place.undo.undo("s").done
    assert (place.root / "a").read_text() == "b\n"


def test_a_state_folder_inside_the_workspace_is_not_looked_into(tmp_path):
    place = Place(tmp_path)
    place.state = place.root / "state"
    place.undo = place.another()
    place.put("a", "a")
    [change] = place.sh("echo b > a")
    assert told(change) == [("a", "changed")]
    assert place.undo.undo("s").done


def test_a_store_that_cannot_be_written_stops_no_turn_and_is_said(tmp_path):
    place = Place(tmp_path)
    place.state.write_text("a file where the folder has to be")
    [change] = place.sh("echo b > a")
    assert told(change) == []
    [word] = change.uncovered
    assert word.startswith("nothing was kept for undo: ")


UNREADABLE = """
import os, sys
sys.path.insert(0, sys.argv[2])
from undo_rig import Place
place = Place(sys.argv[1])
os.setgroups([]); os.setgid(65534); os.setuid(65534)
[change] = place.sh("echo b > a; rm -f closed")
print([(one.path, one.how) for one in change.files])
print(change.uncovered)
print(place.undo.undo("s").done, (place.root / "a").read_text())
"""


@pytest.mark.skipif(os.getuid() != 0, reason="needs a user who may become another")
def test_what_may_not_be_read_is_said_and_the_rest_is_covered():
    with tempfile.TemporaryDirectory() as folder:
        place = Place(folder)
        place.put("a", "a", 0o666)
        place.put("closed", "closed", 0o000)
        place.put("shut/x", "x")
        (place.root / "shut").chmod(0o000)
        for path in (place.root.parent, place.root):
            path.chmod(0o777)
        code = [sys.executable, "-c", UNREADABLE, folder, HERE]
        done = subprocess.run(code, capture_output=True, text=True, timeout=240, check=False)
    assert (done.stderr, done.stdout.splitlines()) == (
        "",
        [
            "[('a', 'changed'), ('closed', 'deleted')]",
            "('closed may not be read', 'shut/ may not be read')",
            "True a",
        ],
    )


def test_a_file_in_another_folder_is_not_kept_and_that_is_said(place, tmp_path):
    path = str(tmp_path / "other" / "x.txt")
    [change] = place.calls((ToolCall("c", "write", {"path": path, "content": ""}), lambda: None))
    assert (told(change), change.uncovered) == ([], (f"{path} lies outside the workspace",))


@pytest.mark.parametrize("worktree", [False, True])
def test_what_git_keeps_track_of_is_covered_whatever_is_ignored(tmp_path, worktree):
    place = Place(tmp_path)
    git = "git -c user.name=n -c user.email=e -c init.defaultBranch=main"
    place.put(".gitignore", "*.log\nbuild/\n")
    for name in ("kept.log", "build/deep/Makefile", "a.txt"):
        place.put(name, "old\n")
    place.run(f"{git} init -q; {git} add -f .; {git} commit -qm one")
    if worktree:
        place.run(f"{git} worktree add -q ../tree")
        place = Place(tmp_path, name="tree")
    for name in ("other.log", "build/out.o", "build/deep/out.o"):
        place.put(name, "old\n")
    for _ in range(2):  # the second time what is ignored is known, and not asked again
        before = place.picture()
        [change] = place.sh(
            "for f in kept.log other.log build/deep/Makefile build/out.o build/deep/out.o a.txt; "
            "do echo new >> $f; done; chmod 700 build"
        )
        files = [one for one, _ in told(change)]
        assert files == ["a.txt", "build/deep/Makefile", "kept.log"]
        assert change.uncovered == (
            "what git ignores is not kept: other.log, build/out.o, build/deep/out.o",
        )
        assert place.undo.undo("s").done
        changed = {path for path, seen in place.picture().items() if seen != before[path]}
        assert changed == {"other.log", "build/out.o", "build/deep/out.o"}
        place = Place(tmp_path, name=place.root.name)
