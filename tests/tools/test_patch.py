"""`apply_patch`: git's own diffs, hunks that are off, all or nothing, and every path told."""

import difflib
import resource
import subprocess
from pathlib import Path

import pytest
from desk import Desk
from hypothesis import given
from hypothesis import strategies as st

from bridle.errors import OutsideWorkspace, ToolError
from bridle.protocols.tool import ToolResult
from bridle.tools.apply_patch import ApplyPatch
from bridle.tools.read import Read
from bridle.tools.unified_diff import FilePatch, Hunk, apply_hunks, occurrences, parse_patch


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


def test_a_patch_over_several_files_is_applied_at_once(desk: Desk) -> None:
    """(A4)"""
    desk.put("a.py", "one\ntwo\nthree\n")
    desk.put("old.txt", "gone\n")
    patch = """\
--- a/a.py
+++ b/a.py
@@ -1,3 +1,3 @@
 one
-two
+2
 three
--- /dev/null
+++ b/new/b.py
@@ -0,0 +1,2 @@
+first
+second
--- a/old.txt
+++ /dev/null
@@ -1 +0,0 @@
-gone
"""
    assert ApplyPatch().touched({"patch": patch}) == ("a.py", "new/b.py", "old.txt")
    found = desk.run(ApplyPatch(), patch=patch)
    assert found == ToolResult(
        True,
        "Patched 3 files:\nchanged `a.py` (+1 -1)\nadded `new/b.py` (+2 -0)\n"
        "deleted `old.txt` (+0 -1)",
        {
            "files": [
                {"path": "a.py", "how": "changed"},
                {"path": "new/b.py", "how": "added"},
                {"path": "old.txt", "how": "deleted"},
            ],
            "diff": "--- a/a.py\n+++ b/a.py\n@@ -1,3 +1,3 @@\n one\n-two\n+2\n three\n"
            "--- a/new/b.py\n+++ b/new/b.py\n@@ -0,0 +1,2 @@\n+first\n+second\n"
            "--- a/old.txt\n+++ b/old.txt\n@@ -1 +0,0 @@\n-gone",
        },
    )
    assert (desk.root / "a.py").read_text() == "one\n2\nthree\n"
    assert (desk.root / "new/b.py").read_text() == "first\nsecond\n"
    assert not (desk.root / "old.txt").exists()


LINES = st.lists(st.text("ab\t é", max_size=3), max_size=12)


@given(LINES, LINES, st.booleans(), st.booleans(), st.integers(0, 3))
def test_what_difflib_writes_makes_the_new_text(
    before: list[str], after: list[str], ends: bool, windows: bool, context: int
) -> None:
    if before == after:
        return
    context = context or 1
    body = list(difflib.unified_diff(before, after, "a/f", "b/f", lineterm="", n=context))
    (patch,) = parse_patch("\n".join(body) + ("\n" if ends else ""))
    assert patch.paths == ("f",)
    end = "\r\n" if windows and before else "\n"
    old, new = ("".join(line + end for line in lines) for lines in (before, after))
    try:
        assert apply_hunks(old, patch.hunks) == new
    except ToolError as error:  # lines are added where no line stands around them
        assert "without any line of the file" in error.message


@given(st.text("ab", max_size=40), st.text("ab", min_size=1, max_size=4))
def test_every_place_is_found(text: str, wanted: str) -> None:
    places = [at for at in range(len(text)) if text.startswith(wanted, at)]
    assert list(occurrences(text, wanted)) == places


def git(root: Path, *words: str) -> str:
    flags = ["-c", "user.name=x", "-c", "user.email=x", "-c", "core.hooksPath=/dev/null"]
    done = subprocess.run(
        ["git", *flags, *words], cwd=root, capture_output=True, text=True, check=True
    )
    return done.stdout


def test_what_git_writes_is_understood(tmp_path: Path) -> None:
    """Changed, new, empty, deleted, renamed, executable, without a last line end, odd names."""
    here, there = tmp_path / "here", tmp_path / "there"
    here.mkdir()
    files = {
        "a.txt": "".join(f"{n}\n" for n in range(60)),
        "gone.txt": "x\ny\n",
        "moved.txt": "".join(f"line {n}\n" for n in range(20)),
        "open.txt": "no end",
        "run.sh": "#!/bin/sh\n",
        "with space ä.txt": "one\n",
        "empty": "",
    }
    for name, text in files.items():
        (here / name).write_text(text)
    git(here, "init", "-q")
    git(here, "add", ".")
    git(here, "commit", "-qm", "x")
    subprocess.run(["cp", "-r", here, there], check=True)
    (here / "a.txt").write_text(files["a.txt"].replace("5\n", "five\n").replace("50\n", ""))
    (here / "gone.txt").unlink()
    (here / "empty").unlink()
    (here / "sub").mkdir()
    (here / "moved.txt").rename(here / "sub/moved.txt")
    (here / "sub/moved.txt").write_text(files["moved.txt"].replace("line 7", "line seven"))
    (here / "open.txt").write_text("an end\n")
    (here / "run.sh").chmod(0o755)
    (here / "with space ä.txt").write_text("one\ntwo")
    (here / "new.bin.txt").write_text("new\n")
    (here / "hollow").touch()
    git(here, "add", "-A")
    patch = git(here, "diff", "--cached", "-M")
    desk = Desk(there)
    for name in files:
        desk.run(Read(), path=name)
    assert "rename to sub/moved.txt" in patch and '"a/with space' in patch
    assert set(ApplyPatch().touched({"patch": patch})) == {
        *files,
        "sub/moved.txt",
        "new.bin.txt",
        "hollow",
    }
    desk.run(ApplyPatch(), patch=patch)
    git(there, "add", "-A")
    assert git(there, "diff", "--cached", "-M") == patch


def hunk(*lines: str, start: int = 1) -> Hunk:
    return Hunk(start, tuple((line[0], line[1:]) for line in lines))


def test_a_hunk_is_found_where_its_number_is_off() -> None:
    text = "".join(f"{n}\n" for n in range(100))
    far = hunk(" 40", "-41", "+x", start=7)
    after = hunk(" 60", "-61", "+y", start=27)
    assert apply_hunks(text, [far, after]) == text.replace("41\n", "x\n").replace("61\n", "y\n")


def test_a_hunk_that_fits_twice_is_taken_only_where_it_says() -> None:
    text = "a\nb\nc\na\nb\n"
    assert apply_hunks(text, [hunk(" a", "-b", start=4)]) == "a\nb\nc\na\n"
    with pytest.raises(ToolError, match=r"fits at 2 places \(lines 1, 4\), but not at its"):
        apply_hunks(text, [hunk(" a", "-b", start=3)])


def test_hunks_with_wrong_counts_are_read_all_the_same() -> None:
    patch = "--- a/f\n+++ b/f\n@@ -1,9 +1,1 @@\n a\n-b\n+c\n@@ ... @@\n x\n\n-y\n"
    patch += "--- a/g\n+++ b/g\n@@\n-z\n"
    assert parse_patch(patch) == (
        FilePatch("f", "f", (hunk(" a", "-b", "+c"), hunk(" x", " ", "-y", start=0))),
        FilePatch("g", "g", (hunk("-z", start=0),)),
    )


@pytest.mark.parametrize(
    ("patch", "words"),
    [
        ("", "There is no file in the patch"),
        ("hello", "Line 1 of the patch cannot be understood: `hello`"),
        ("*** Begin Patch\n*** Update File: f\n", "Line 1 of the patch cannot be understood"),
        ("--- a/f\n+++ b/g\n@@ -1 +1 @@\n-a\n+b\n", "has another name than the next (`g`)"),
        ("--- /dev/null\n+++ /dev/null\n@@ -1 +1 @@\n-a\n", "names no file"),
        ("--- a/f\n+++ b/f\n@@ -1 +1 @@\n", "should belong to a hunk"),
        ("--- a/f\n+++ b/f\n@@ -1 +1 @@\n-a\n+b\nrm -rf\n", "Line 6 of the patch cannot"),
        ("diff --git a/f b/f\nnew file mode 120000\n", "is about a link or a submodule"),
        ("diff --git a/f b/f\nGIT binary patch\n", "is of a kind that is not supported"),
        ("diff --git a/f b/g\ncopy from f\ncopy to g\n", "is of a kind that is not supported"),
        ("diff --git a/f b/g\nrename from f\n", "comes after half of a rename"),
        ("diff --git a/f b/g\n", "has two names and no `rename`"),
        (
            "diff --git a/f b/g\nrename from f\nrename to g\n--- a/f\n+++ b/h\n@@ -1 +1 @@\n-a\n",
            "names that differ",
        ),
        ('--- "a/f\n+++ b/f\n@@ -1 +1 @@\n-a\n', "a quoted name that does not end"),
    ],
)
def test_what_cannot_be_understood_is_refused_with_its_line(patch: str, words: str) -> None:
    with pytest.raises(ToolError) as caught:
        ApplyPatch().touched({"patch": patch})
    assert words in caught.value.message


@given(st.text(st.sampled_from('-+ @ab/\n\\"\t1,')), st.booleans())
def test_no_text_breaks_the_reader(text: str, header: bool) -> None:
    patch = ("--- a/f\n+++ b/f\n@@ -1,2 +1,2 @@\n" if header else "") + text
    try:
        paths = ApplyPatch().touched({"patch": patch})
    except ToolError:
        return
    assert paths and all(paths)


@pytest.mark.parametrize(
    ("second", "words"),
    [
        ("--- a/b\n+++ b/b\n@@ -1,2 +1,2 @@\n x\n-q\n+r\n", "the file has no line `q`"),
        ("--- a/b\n+++ b/b\n@@ -1,2 +1,2 @@\n y\n-x\n+r\n", "line 1 of the file is `x`, but"),
        ("--- /dev/null\n+++ b/b\n@@ -0,0 +1 @@\n+x\n", "`b` exists already"),
        ("--- a/nope\n+++ b/nope\n@@ -1 +1 @@\n-x\n+y\n", "`nope` does not exist."),
        ("--- a/b\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n", "does not name all of its lines"),
        ("--- a/./a\n+++ b/./a\n@@ -1 +1 @@\n-1\n+3\n", "is in the patch twice"),
        ("--- a/b\n+++ b/b\n@@ -1,0 +2 @@\n+x\n", "without any line of the file around"),
        ("--- a/b\n+++ b/b\n@@ -1 +1 @@\n-x\n+x\n", "changes nothing in `b`"),
        ("--- a/b\n+++ b/b\n@@ -1 +1 @@\n-x\n+\ud800\n", "a lone surrogate"),
    ],
)
def test_one_file_that_does_not_fit_keeps_all_from_being_changed(
    desk: Desk, second: str, words: str
) -> None:
    desk.put("a", "1\n")
    desk.put("b", "x\ny\n")
    first = "--- a/a\n+++ b/a\n@@ -1 +1 @@\n-1\n+2\n"
    assert words in desk.refused(ApplyPatch(), patch=first + second)
    assert {file.name: file.read_text() for file in desk.root.iterdir()} == {
        "a": "1\n",
        "b": "x\ny\n",
    }


def test_what_was_written_is_put_back_when_writing_fails_midway(desk: Desk) -> None:
    desk.put("a", "1\n").chmod(0o640)
    desk.put("gone", "x\n")
    big = "".join(f"+{n}\n" for n in range(30_000))
    patch = (
        "diff --git a/a b/a\nold mode 100644\nnew mode 100755\n"
        "--- a/a\n+++ b/a\n@@ -1 +1 @@\n-1\n+2\n"
        "--- /dev/null\n+++ b/small\n@@ -0,0 +1 @@\n+s\n"
        "--- a/gone\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n"
        f"--- /dev/null\n+++ b/big\n@@ -0,0 +1,30000 @@\n{big}"
    )
    desk.run(Read(), path="a")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, hard))
    try:
        said = desk.refused(ApplyPatch(), patch=patch)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert said.startswith("The patch could not be written: `big` ")
    assert said.endswith("What had been written was restored.")
    assert {f.name: (f.read_text(), f.stat().st_mode & 0o777) for f in desk.root.iterdir()} == {
        "a": ("1\n", 0o640),
        "gone": ("x\n", (desk.root / "gone").stat().st_mode & 0o777),
    }


@pytest.mark.parametrize("path", ["../out", "/etc/passwd", "x/../../out", "link/f"])
def test_no_path_leads_out(desk: Desk, path: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    """(A6)"""
    outside = tmp_path_factory.mktemp("outside")
    (desk.root / "link").symlink_to(outside)
    patch = f"--- /dev/null\n+++ b/{path}\n@@ -0,0 +1 @@\n+x\n"
    assert ApplyPatch().touched({"patch": patch}) == (path,)
    with pytest.raises(OutsideWorkspace):
        desk.run(ApplyPatch(), patch=patch)
    assert list(outside.iterdir()) == []


def test_line_ends_and_encoding_stay(desk: Desk) -> None:
    file = desk.put("w", "ü\r\ntwo\r\nthree".encode("latin-1"))
    patch = "--- a/w\n+++ b/w\n@@ -1,3 +1,4 @@\n ü\n-two\n+2\n+2½\n three\n"
    desk.run(ApplyPatch(), patch=patch)
    assert file.read_bytes() == "ü\r\n2\r\n2½\r\nthree".encode("latin-1")


def test_a_large_patch_of_like_lines_takes_no_time() -> None:
    lines = "same\n" * 100_000
    many = Hunk(1, (*((" ", "same"),) * 50_000, ("-", "other")))
    with pytest.raises(ToolError, match="the file has no line `other`"):
        apply_hunks(lines, [many])
