"""Undo puts back what a turn changed, byte for byte; and an undo can itself be taken back."""

import os
import subprocess

import pytest
from undo_rig import Place, told

from bridle.errors import SessionError
from bridle.events import FileChange, FilesChanged
from bridle.messages import ToolCall
from bridle.workspace.undo.plan import Restored


@pytest.fixture(params=["without git", "with git"])
def place(request, tmp_path):
    place = Place(tmp_path)
    if request.param == "with git":
        run = ["git", "init", "-q", str(place.root)]
        subprocess.run(run, check=True, timeout=240, env={"PATH": os.environ["PATH"]})
    place.put("src/a.py", "a = 1\n")
    place.put("src/deep/b.py", "b = 2\n" * 1000)
    place.put("run.sh", "echo hi\n", 0o755)
    place.put("data.bin", bytes(range(256)) * 10)
    place.put("secret", "x", 0o600)
    (place.root / "link").symlink_to("src/a.py")
    (place.root / "empty").mkdir()
    return place


EVERYTHING = (
    "echo more >> src/a.py; printf 'whole new' > data.bin",
    "rm -r src/deep; rmdir empty; mkdir -p new/inner fresh; echo n > new/inner/n.txt",
    "mv run.sh ran.sh; chmod 400 secret; ln -sfn nowhere link; ln -s / out",
    "mv src/a.py src/c.py; echo other > src/a.py; rm data.bin; mkdir data.bin; echo x > data.bin/y",
)


def test_a_turn_of_edits_deletes_renames_modes_and_links_is_taken_back(place):
    before = place.picture()
    place.sh(*EVERYTHING)
    after = place.picture()
    assert after != before
    assert place.undo.undo("s").done
    assert place.picture() == before
    assert place.undo.redo("s").done
    assert place.picture() == after
    assert place.undo.undo("s").done
    assert place.picture() == before


def test_another_process_takes_it_back_as_well(place):
    before = place.picture()
    place.sh(*EVERYTHING)
    assert place.another().undo("s").done
    assert place.picture() == before


def test_each_call_says_what_it_changed(place):
    changes = place.sh("true", "echo x > src/a.py; rm secret", "mkdir -p p/q; echo y > p/q/r")
    assert changes == [
        None,
        FilesChanged(1, "c1", (FileChange("secret", "deleted"), FileChange("src/a.py"))),
        FilesChanged(1, "c2", (FileChange("p/q/r", "added"),)),
    ]


def test_a_preview_says_it_all_and_changes_nothing(place):
    place.sh("echo x >> src/a.py; rm secret; echo n > new; rmdir empty")
    after = place.picture()
    seen = place.undo.undo("s", preview=True)
    assert not seen.done
    assert seen.files == (
        Restored("empty/", "comes back"),
        Restored("new", "goes"),
        Restored("secret", "comes back"),
        Restored("src/a.py", "changes back"),
    )
    assert place.picture() == after


def test_differences_say_in_words_what_no_diff_can_show(place):
    change = "printf '\\0' >> data.bin; chmod 700 run.sh; ln -sfn nowhere link; rm secret"
    place.sh(change, "printf '\\0' > new.bin; rm -r empty; ln -s src empty")
    differences = place.undo.differences("s")
    assert differences.pop("secret").endswith("+x")
    assert differences == {
        "data.bin": "binary or large: not shown",
        "empty": "a link to src will be a folder again",
        "link": "a link to nowhere will be a link to src/a.py again",
        "new.bin": "binary or large: not shown",
        "run.sh": "mode 700 will be 755 again",
    }


def test_undo_said_again_goes_one_turn_further_back(place):
    states = [place.picture()]
    for command in ("echo 1 >> src/a.py", "true", "echo 2 >> src/a.py", "rm src/a.py"):
        place.sh(command)
        states.append(place.picture())
    assert [place.undo.undo("s").turn, place.picture() == states[3]] == [4, True]
    assert [place.undo.undo("s").turn, place.picture() == states[1]] == [3, True]
    assert [place.undo.undo("s").turn, place.picture() == states[0]] == [1, True]
    with pytest.raises(SessionError, match="nothing to undo"):
        place.undo.undo("s")
    assert [place.undo.redo("s").turn, place.picture() == states[1]] == [1, True]


def test_a_turn_in_the_middle_is_taken_back_where_nothing_overlaps(place):
    place.sh("echo 1 >> src/a.py")
    place.sh("echo 2 >> run.sh")
    assert place.undo.undo("s", 1).done
    assert (place.root / "src/a.py").read_text() == "a = 1\n"
    assert (place.root / "run.sh").read_text() == "echo hi\n2\n"


def test_a_turn_that_a_later_one_built_on_is_refused_by_name(place):
    place.sh("echo 1 >> src/a.py")
    place.sh("echo 2 >> src/a.py")
    after = place.picture()
    outcome = place.undo.undo("s", 1)
    [clash] = outcome.conflicts
    assert (outcome.done, clash.session, clash.turn) == (False, "s", 2)
    assert clash.why == "turn 2 changed it afterwards"
    assert place.picture() == after
    assert place.undo.undo("s", 2).done
    assert place.undo.undo("s", 1).done
    assert (place.root / "src/a.py").read_text() == "a = 1\n"


def test_turns_are_listed_with_what_became_of_them(place):
    place.sh("echo 1 >> src/a.py", "rm secret")
    place.sh("echo 2 >> run.sh", session="other")
    place.undo.undo("s")
    found = [(one.session, one.turn, one.paths, one.undone) for one in place.undo.turns()]
    assert found == [
        ("s", 1, ("src/a.py", "secret"), True),
        ("other", 2, ("run.sh",), False),
    ]
    assert [one.session for one in place.undo.turns("other")] == ["other"]


def test_tools_that_name_their_file_have_only_that_looked_at(place):
    """The rest of the workspace may change meanwhile: it is not theirs."""
    call = ToolCall("c", "write", {"path": "new/deep/f.txt", "content": ""})

    def effect():
        place.put("new/deep/f.txt", "written")
        place.put("somebody.txt", "else")

    [change] = place.calls((call, effect))
    assert told(change) == [("new/deep/f.txt", "added")]
    assert place.undo.undo("s").done
    assert not (place.root / "new").exists()
    assert (place.root / "somebody.txt").exists()


def test_an_edit_through_a_link_puts_back_what_it_leads_to(place):
    call = ToolCall("c", "edit", {"path": "link", "old": "a", "new": "b"})
    [change] = place.calls((call, lambda: place.put("src/a.py", "b = 1\n")))
    assert told(change) == [("src/a.py", "changed")]
    assert place.undo.undo("s").done
    assert (place.root / "src/a.py").read_text() == "a = 1\n"
    assert (place.root / "link").is_symlink()


def test_a_file_that_is_ignored_is_kept_where_a_tool_names_it(place):
    place.put(".gitignore", ".env\n")
    place.put(".env", "KEY=1\n", 0o600)
    call = ToolCall("c", "write", {"path": ".env", "content": ""})
    place.calls((call, lambda: place.put(".env", "KEY=2\n")))
    assert place.undo.undo("s").done
    assert (place.root / ".env").read_text() == "KEY=1\n"


def test_everything_that_is_kept_is_private(place):
    os.umask(0o022)
    place.sh("echo x > src/a.py")
    place.undo.undo("s")
    modes = {(path.stat().st_mode & 0o7777, path.is_dir()) for path in (place.state).rglob("*")}
    assert modes == {(0o700, True), (0o600, False)}


def test_names_that_are_no_text_are_put_back(place):
    (place.root / os.fsdecode(b"\xff\xfe.txt")).write_bytes(b"odd")
    (place.root / "odd link").symlink_to(os.fsdecode(b"\xff"))
    before = place.picture()
    [change] = place.sh("rm ./*.txt 'odd link'")
    assert told(change) == [("odd link", "deleted"), ("\\xff\\xfe.txt", "deleted")]
    assert place.another().undo("s").done
    assert place.picture() == before
