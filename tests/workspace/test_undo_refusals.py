"""Undo never goes over what a person did since: it refuses, and shows both."""

import asyncio

import pytest
from undo_rig import Place, one_call, told

from bridle.errors import SessionBusy, SessionError, ToolError
from bridle.messages import ToolCall
from bridle.workspace.undo.plan import Conflict, Restored


@pytest.fixture
def place(tmp_path):
    place = Place(tmp_path)
    place.put("a.txt", "one\ntwo\n")
    place.put("b.txt", "bee\n")
    return place


def test_a_file_that_the_person_changed_since_is_shown_and_nothing_is_changed(place):
    place.sh("echo three >> a.txt; echo more >> b.txt")
    place.put("a.txt", "one\ntwo\nthree\nmine\n")
    after = place.picture()
    outcome = place.undo.undo("s")
    diff = "--- as the turn left it\n+++ as it is now\n@@ -2,2 +2,3 @@\n two\n three\n+mine"  # both
    assert outcome.conflicts == (Conflict("a.txt", "it was changed since", diff),)
    assert not outcome.done
    assert place.picture() == after


def test_what_is_shown_of_a_file_cannot_obey_itself_on_a_terminal(place):
    place.sh("echo three > a.txt")
    place.put("a.txt", "\x1b[2Jgone\n")
    [clash] = place.undo.undo("s").conflicts
    assert "\x1b" not in clash.diff
    assert "\\x1b[2Jgone" in clash.diff


def test_keep_going_puts_back_the_rest(place):
    place.sh("echo three >> a.txt; echo more >> b.txt")
    place.put("a.txt", "mine")
    outcome = place.undo.undo("s", keep_going=True)
    assert (outcome.done, outcome.files) == (True, (Restored("b.txt", "changes back"),))
    assert [one.path for one in outcome.conflicts] == ["a.txt"]
    assert (place.root / "a.txt").read_text() == "mine"
    assert (place.root / "b.txt").read_text() == "bee\n"


def test_force_puts_back_all_of_it_and_redo_gives_the_persons_own_back(place):
    place.sh("echo three >> a.txt")
    place.put("a.txt", "mine", 0o640)
    outcome = place.undo.undo("s", force=True)
    assert (outcome.done, outcome.conflicts) == (True, ())
    assert (place.root / "a.txt").read_text() == "one\ntwo\n"
    assert place.undo.redo("s").done
    assert (place.root / "a.txt").read_text() == "mine"
    assert (place.root / "a.txt").stat().st_mode & 0o777 == 0o640


def test_a_changed_mode_a_deletion_and_a_swap_for_a_link_are_changes_of_the_person(place):
    place.put("c.txt", "sea\n")
    place.sh("for f in a b c; do echo x >> $f.txt; done")
    (place.root / "a.txt").chmod(0o600)
    (place.root / "b.txt").unlink()
    (place.root / "c.txt").unlink()
    (place.root / "c.txt").symlink_to("/etc/hostname")
    outcome = place.undo.undo("s")
    assert [(one.path, one.diff) for one in outcome.conflicts] == [
        ("a.txt", "its mode is 600, and was left 644"),
        ("b.txt", "--- as the turn left it\n+++ as it is now\n@@ -1,2 +0,0 @@\n-bee\n-x"),
        ("c.txt", "left as a file, and now a link to /etc/hostname"),
    ]
    assert not outcome.done


def test_a_person_who_changes_a_file_between_two_calls_of_a_turn_is_asked(place):
    place.turn += 1
    recorder = place.undo.record_turn("s", 1)

    async def work():
        await one_call(recorder, ToolCall("1", "shell"), lambda: place.put("a.txt", "call one"))
        place.put("a.txt", "the person")
        await one_call(recorder, ToolCall("2", "shell"), lambda: place.put("a.txt", "call two"))

    asyncio.run(work())
    [clash] = place.undo.undo("s").conflicts
    assert clash.why == "somebody else changed it in the middle of it"
    assert (place.root / "a.txt").read_text() == "call two"


def test_what_the_person_already_put_back_is_no_conflict(place):
    place.sh("echo three >> a.txt; rm b.txt")
    place.put("b.txt", "bee\n")
    outcome = place.undo.undo("s")
    assert (outcome.done, outcome.files) == (True, (Restored("a.txt", "changes back"),))


def test_a_folder_of_the_turn_stays_where_somebody_put_something_into_it(place):
    place.sh("mkdir -p new/inner; echo x > new/inner/x")
    place.put("new/mine.txt", "mine")
    outcome = place.undo.undo("s")
    assert (outcome.done, outcome.left) == (True, ("new",))
    assert sorted(place.picture()) == ["a.txt", "b.txt", "new", "new/mine.txt"]


def test_a_link_planted_on_the_way_leads_nowhere(place, tmp_path):
    place.put("sub/x.txt", "x")
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "x.txt").write_text("theirs")
    place.sh("rm sub/x.txt")
    (place.root / "sub").rmdir()
    (place.root / "sub").symlink_to(outside)
    for force in (False, True):
        with pytest.raises(ToolError, match="everything is as it was"):
            place.undo.undo("s", force=force)
    assert (outside / "x.txt").read_text() == "theirs"
    assert [one.name for one in outside.iterdir()] == ["x.txt"]
    assert (place.root / "sub").is_symlink()


def test_what_fails_half_way_is_taken_back_as_a_whole(place, tmp_path):
    place.put("sub/x.txt", "x")
    place.sh("echo x >> a.txt; rm b.txt; echo new > c.txt; chmod 700 .; rm sub/x.txt")
    (place.root / "sub").rmdir()
    (place.root / "sub").symlink_to(tmp_path)
    after = place.picture()
    with pytest.raises(ToolError, match="could not be put back"):
        place.undo.undo("s")
    assert place.picture() == after
    (place.root / "sub").unlink()
    (place.root / "sub").mkdir()
    assert place.undo.undo("s").done
    assert (place.root / "sub/x.txt").read_text() == "x"


def test_what_lay_below_something_that_stays_stays_away_with_it(place):
    place.put("z/last.txt", "z")
    place.sh("echo x >> a.txt; rm -r z")
    place.put("z", "a file where a folder has to be")
    outcome = place.undo.undo("s", keep_going=True)
    assert [one.path for one in outcome.conflicts] == ["z", "z/last.txt"]
    assert (outcome.done, outcome.files) == (True, (Restored("a.txt", "changes back"),))
    assert (place.root / "z").read_text() == "a file where a folder has to be"


def test_content_that_was_damaged_is_said_and_never_put_back(place):
    place.sh("rm a.txt; rm b.txt")
    for path in place.state.glob("undo/*/objects/*/*"):
        if path.read_bytes() == b"one\ntwo\n":
            path.write_bytes(b"rotten")
    outcome = place.undo.undo("s")
    assert outcome.uncovered == ("a.txt cannot be restored: its kept content is damaged",)
    assert outcome.files == (Restored("b.txt", "comes back"),)
    assert not (place.root / "a.txt").exists()


def test_a_turn_that_is_still_at_work_is_not_taken_back(place):
    recorder = place.undo.record_turn("s", 1)
    asyncio.run(recorder.before(ToolCall("1", "shell")))
    place.put("a.txt", "half done")
    place.sh("true")
    with pytest.raises(SessionError):
        place.another().undo("s", 7)
    asyncio.run(recorder.before(ToolCall("2", "shell")))
    with pytest.raises(SessionBusy, match="turn 1 is still running"):
        place.another().undo("s", 1)


def test_a_call_whose_end_nobody_told_counts_when_the_next_one_begins(place):
    """An interrupt may come between the effect and its end."""
    before = place.picture()
    recorder = place.undo.record_turn("s", 1)
    asyncio.run(recorder.before(ToolCall("1", "shell")))
    place.put("a.txt", "half done")
    place.turn = 1
    [change] = place.sh("echo x > c.txt")
    assert told(change) == [("c.txt", "added")]
    assert place.undo.undo("s").turn == 2
    assert [one.path for one in place.undo.undo("s").conflicts] == ["a.txt"]
    outcome = place.undo.undo("s", force=True)
    assert (outcome.turn, outcome.done) == (1, True)
    assert outcome.uncovered == (
        "the call was cut off: what changed until now is counted as its doing",
    )
    assert place.picture() == before


def test_a_call_that_is_cancelled_before_its_effect_leaves_nothing(place):
    async def cancelled():
        task = asyncio.create_task(recorder.before(ToolCall("1", "shell")))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    recorder = place.undo.record_turn("s", 1)
    with place.undo._detector.folder.lock():  # so that it cannot have begun
        asyncio.run(cancelled())
    place.put("a.txt", "the person's")
    place.turn = 1
    place.sh("echo x > c.txt")
    assert [(one.turn, one.paths) for one in place.undo.turns()] == [(2, ("c.txt",))]


def test_where_something_cannot_be_replaced_all_that_was_done_before_is_taken_back(place):
    place.sh("echo 2 > a.txt; echo n > n.txt; mkdir q; echo z > q/z; rm b.txt")
    (place.root / "a.txt").unlink()
    place.put("a.txt/mine", "mine")
    place.put("q/mine", "mine")
    (place.root / "n.txt").unlink()
    (place.root / "n.txt").symlink_to("/etc/hostname")
    after = place.picture()
    with pytest.raises(ToolError, match=r"Directory not empty\); everything is as it was$"):
        place.undo.undo("s", force=True)
    assert place.picture() == after
    (place.root / "a.txt/mine").unlink()
    assert place.undo.undo("s", force=True).done
    assert (place.root / "b.txt").read_text() == "bee\n"


def test_what_cannot_be_taken_back_after_a_failure_is_named_and_the_rest_is_as_it_was(place):
    place.sh("echo 2 > a.txt; echo n > n.txt; echo z > z.txt")
    (place.root / "a.txt").unlink()
    place.put("a.txt/mine", "mine")
    with (place.root / "n.txt").open("wb") as file:
        file.truncate(10_000_001)  # too large to be kept, so that it cannot come back
    after = place.picture()
    with pytest.raises(ToolError) as caught:
        place.undo.undo("s", force=True)
    assert caught.value.message == (
        "`a.txt` could not be put back (Directory not empty), "
        "and this is not as it was any more: n.txt"
    )
    assert caught.value.hint.startswith("`bridle undo --redo` brings back")
    assert place.picture() == {path: one for path, one in after.items() if path != "n.txt"}
