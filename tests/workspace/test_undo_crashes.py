"""Undo after a crash, beside other sessions, and what is thrown away by command alone."""

import asyncio
import gc
import os
import signal
import subprocess
import sys
import time

import pytest
from undo_rig import HERE, Place, one_call, told

from bridle.messages import ToolCall
from bridle.workspace.undo.journal import PendingEntry
from bridle.workspace.undo.snapshot import Limits
from bridle.workspace.undo.undo import PruneResult, Undo, prune
from rig import seeds


@pytest.fixture
def place(tmp_path):
    place = Place(tmp_path)
    place.put("a.txt", "a")
    place.put("sub/b.txt", "b")
    return place


KILLED = """
import asyncio, os, signal, sys
sys.path.insert(0, sys.argv[2])
from undo_rig import Place, one_call
from bridle.messages import ToolCall
place = Place(sys.argv[1])
recorder = place.undo.record_turn("s", 1)
name, arguments = sys.argv[3], {"path": "a.txt", "content": ""}

def effect():
    place.put("a.txt", "changed")
    if name == "shell":
        place.run("rm -r sub; mkdir new; echo n > new/n")
    os.kill(os.getpid(), signal.SIGKILL)

asyncio.run(one_call(recorder, ToolCall("c", name, arguments), effect))
"""


@pytest.mark.parametrize("tool", ["write", "shell"])
def test_what_a_killed_process_was_changing_is_taken_back(place, tmp_path, tool):
    before = place.picture()
    code = [sys.executable, "-c", KILLED, str(tmp_path), HERE, tool]
    done = subprocess.run(code, timeout=240, check=False)
    assert done.returncode == -signal.SIGKILL
    assert place.picture() != before
    outcome = place.undo.undo("s", force=tool == "shell")  # whose doing that was nobody can tell
    assert outcome.done
    assert outcome.uncovered == (
        "the call was cut off: what changed until now is counted as its doing",
    )
    assert place.picture() == before


UNSURE = "the call was cut off, so that this may be somebody else's work"


def test_what_a_person_did_after_a_crash_is_not_taken_back_with_it_unless_they_say_so(
    place, tmp_path
):
    code = [sys.executable, "-c", KILLED, str(tmp_path), HERE, "shell"]
    subprocess.run(code, timeout=240, check=False)
    place.put("a.txt", "a day of my own work\n")
    stands = place.picture()
    outcome = place.undo.undo("s")
    assert not outcome.done
    assert place.picture() == stands
    found = {one.path: one for one in outcome.conflicts}
    assert sorted(found) == ["a.txt", "new", "new/n", "sub", "sub/b.txt"]
    assert {one.why for one in outcome.conflicts} == {UNSURE}
    assert found["a.txt"].diff.splitlines()[:2] == ["--- as it was before", "+++ as it is now"]
    assert "+a day of my own work" in found["a.txt"].diff


def test_what_a_person_did_after_a_crash_elsewhere_than_the_call_named_stays(place, tmp_path):
    code = [sys.executable, "-c", KILLED, str(tmp_path), HERE, "write"]
    subprocess.run(code, timeout=240, check=False)
    place.put("sub/b.txt", "mine")
    assert place.undo.undo("s").done
    assert (place.root / "sub/b.txt").read_text() == "mine"


def test_what_a_later_turn_changes_is_not_counted_to_one_that_died(place, tmp_path):
    code = [sys.executable, "-c", KILLED, str(tmp_path), HERE, "shell"]
    subprocess.run(code, timeout=240, check=False)
    place.turn = 1
    place.sh("echo later > later.txt")
    assert [(one.turn, one.paths) for one in place.undo.turns()] == [
        (1, ("a.txt", "new", "new/n", "sub", "sub/b.txt")),
        (2, ("later.txt",)),
    ]


MANY = """
import sys
sys.path.insert(0, sys.argv[2])
from undo_rig import Place
place = Place(sys.argv[1])
print(flush=True)
for turn in range(1000):
    place.sh(f"echo {turn} > a.txt; echo x > new1", "rm -f new0; echo y > a.txt", "mv new1 new0")
"""


@pytest.mark.parametrize("seed", seeds(40))
def test_killed_at_any_moment_what_was_kept_can_be_used(place, tmp_path, seed):
    """Turn after turn is taken back until everything is as it was at first."""
    before = place.picture()
    code = [sys.executable, "-c", MANY, str(tmp_path), HERE]
    with subprocess.Popen(code, stdout=subprocess.PIPE) as process:
        process.stdout.readline()
        time.sleep(0.05 + seed * 0.037)  # the moment is what is tried, nothing waits for it
        process.kill()
        process.stdout.read()  # until its last command has ended, too
    while any(not one.undone for one in place.undo.turns()):
        outcome = place.undo.undo("s")
        if not outcome.done:  # the call that was cut off, and no other
            assert {one.why for one in outcome.conflicts} == {UNSURE}
            outcome = place.undo.undo("s", force=True)
        assert (outcome.done, outcome.conflicts) == (True, ())
    assert place.picture() == before


def test_an_undo_that_died_half_way_is_finished_by_saying_it_again(place):
    """What was put back already stands as it was: that is no conflict."""
    before = place.picture()
    place.sh("echo x > a.txt; echo y > sub/b.txt")
    journal = place.undo._detector.journal
    states = (("a.txt", place.undo._detector.state("a.txt")),)
    os.close(journal.open(PendingEntry("dead", time.time(), "s", 1, "undo", states=states)))
    place.put("a.txt", "a")
    assert place.undo.undo("s").done
    assert place.picture() == before


def test_damaged_files_of_the_store_cost_no_more_than_they_held(place):
    place.sh("echo x > a.txt")
    [shelf] = place.state.glob("undo/*")
    with (shelf / "journal.jsonl").open("ab") as file:
        file.write(b'{"token":"torn')
    (shelf / "index").write_bytes(b"rubbish")
    (shelf / "open" / "zz.json").write_bytes(b"rubbish")
    place.undo = place.another()
    place.sh("echo y > a.txt")
    assert [place.undo.undo("s").done for _ in range(2)] == [True, True]
    assert (place.root / "a.txt").read_text() == "a"


def test_two_sessions_have_what_each_of_them_changed(place):
    """The second changes a file while a command of the first runs: it is not the first's."""
    other = place.another()
    first, second = place.undo.record_turn("one", 1), other.record_turn("two", 1)

    async def work():
        await first.before(ToolCall("1", "shell"))
        place.put("one.txt", "one")
        edit = ToolCall("2", "write", {"path": "two.txt", "content": ""})
        theirs = await one_call(second, edit, lambda: place.put("two.txt", "two"))
        return theirs, await first.after(ToolCall("1", "shell"))

    theirs, mine = asyncio.run(work())
    assert (told(theirs), told(mine)) == ([("two.txt", "added")], [("one.txt", "added")])
    assert theirs.uncovered == (
        "another session was at work here at the same time: its changes may be counted in",
    )
    assert place.undo.undo("one").done
    assert (place.root / "two.txt").read_text() == "two"
    assert place.undo.undo("two").done
    assert sorted(place.picture()) == ["a.txt", "sub", "sub/b.txt"]


BESIDE = """
import sys
sys.path.insert(0, sys.argv[2])
from undo_rig import Place
place = Place(sys.argv[1])
me = sys.argv[3]
for turn in range(8):
    place.sh(f"echo {turn} >> {me}.txt; sleep 0.01; echo x > {me}{turn}", session=me)
"""


def test_two_processes_side_by_side_break_nothing(place, tmp_path):
    code = [sys.executable, "-c", BESIDE, str(tmp_path), HERE]
    both = [subprocess.Popen([*code, name]) for name in ("one", "two")]
    assert [process.wait(60) for process in both] == [0, 0]
    found = {(one.session, one.turn) for one in place.undo.turns()}
    assert found >= {(name, turn) for name in ("one", "two") for turn in range(1, 9)}
    assert place.undo.undo("one", 8, keep_going=True).done
    assert not (place.root / "one7").exists()


def test_a_file_that_changes_within_one_tick_of_the_clock_is_noticed(place):
    """The same size and the same times: only a second reading tells."""
    for turn in range(20):
        data = f"{turn:04}"
        [change] = place.effects(lambda data=data: place.put("a.txt", data))
        assert told(change) == [("a.txt", "changed")]
    assert place.undo.undo("s").done
    assert (place.root / "a.txt").read_text() == "0018"


def test_what_is_unchanged_is_not_read_again(place):
    old = time.time() - 100
    for path in ("a.txt", "sub/b.txt"):
        os.utime(place.root / path, (old, old))
    tree = place.undo.snapshot()
    again = place.undo.snapshot()
    while again is not tree:  # their change times have to be older than a tick of the clock
        tree, again = again, place.undo.snapshot()
    [shelf] = place.state.glob("undo/*")
    stamp = (shelf / "index").stat().st_ino
    assert place.another().snapshot() == tree
    assert (shelf / "index").stat().st_ino == stamp


def test_old_things_are_thrown_away_by_command_alone(place):
    place.sh("echo one > a.txt")
    place.sh("echo two > a.txt")
    state = place.state
    assert prune(state, time.time() + 1).busy == (str(place.root),)
    place.undo = None  # the session is over
    gc.collect()
    assert prune(state, 0.0) == PruneResult()
    assert [one.turn for one in place.another().turns()] == [1, 2]
    assert prune(state, time.time() + 1, preview=True).calls == 2
    assert [one.turn for one in place.another().turns()] == [1, 2]
    done = prune(state, time.time() + 1)
    assert (done.calls, done.busy) == (2, ())
    assert done.freed == len("a" + "b" + "one\n" + "two\n")
    assert place.another().turns() == []
    place.undo = place.another()
    place.sh("echo three > a.txt")
    assert place.undo.undo("s").done
    assert (place.root / "a.txt").read_text() == "two\n"


def test_limits_are_what_the_pages_say():
    assert Limits() == Limits(10_000_000, 50_000, 1_000_000_000, 10.0)
    assert Undo("/", "/nowhere").turns() == []
