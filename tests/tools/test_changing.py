"""Changing files: what was not read, or has changed since, is not touched; forms are kept."""

import os
from pathlib import Path
from typing import Any

import pytest
from desk import Desk
from hypothesis import given
from hypothesis import strategies as st

from bridle.errors import ToolError
from bridle.protocols.tool import Tool, ToolResult
from bridle.tools.apply_patch import ApplyPatch
from bridle.tools.edit import Edit
from bridle.tools.encoding import decode, replace_bad_bytes
from bridle.tools.grep import Grep
from bridle.tools.list import List
from bridle.tools.read import Read
from bridle.tools.write import Write
from bridle.workspace.workspace import Workspace


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


PATCH = "--- a/f.txt\n+++ b/f.txt\n@@ -1 +1 @@\n-one\n+two\n"
CHANGES: list[tuple[Tool, dict[str, Any]]] = [
    (Write(), {"path": "f.txt", "content": "two\n"}),
    (Edit(), {"path": "f.txt", "old": "one", "new": "two"}),
    (ApplyPatch(), {"patch": PATCH}),
]
EACH = pytest.mark.parametrize(("tool", "arguments"), CHANGES, ids=lambda each: "")
UNREAD = "`f.txt` exists and has not been read in this session. Nothing was changed; read it first."
CHANGED = "`f.txt` has changed on disk since you read it. Nothing was changed; read it again."


@EACH
def test_a_file_has_to_be_read_before_it_is_changed(
    desk: Desk, tool: Tool, arguments: dict[str, Any]
) -> None:
    """(A4)"""
    file = desk.put("f.txt", "one\n", read=False)
    assert desk.refused(tool, **arguments) == UNREAD
    assert file.read_text() == "one\n"
    desk.run(Read(), path="f.txt", limit=1)
    assert desk.run(tool, **arguments).ok
    assert file.read_text() == "two\n"


@EACH
def test_a_file_that_has_changed_since_has_to_be_read_again(
    desk: Desk, tool: Tool, arguments: dict[str, Any]
) -> None:
    file = desk.put("f.txt", "one\n")
    before = file.stat()
    file.write_text("one\nmore\n")
    assert desk.refused(tool, **arguments) == CHANGED
    file.write_text("One\n")
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))  # nor does the clock deceive
    assert desk.refused(tool, **arguments) == CHANGED
    assert file.read_text() == "One\n"
    file.write_text("one\n")  # what it was, whoever wrote it
    assert desk.run(tool, **arguments).ok


@EACH
def test_what_our_own_tools_wrote_is_known(
    desk: Desk, tool: Tool, arguments: dict[str, Any]
) -> None:
    desk.run(Write(), path="f.txt", content="one\n")
    desk.run(tool, **arguments)
    desk.run(Edit(), path="f.txt", old="two", new="three")
    assert desk.run(Write(), path="f.txt", content="four\n").ok


def test_another_session_has_read_nothing(desk: Desk) -> None:
    desk.put("f.txt", "one\n")
    other = Desk(desk.root)
    assert other.refused(Write(), path="f.txt", content="x") == UNREAD


def test_a_binary_file_that_was_looked_at_may_be_replaced(desk: Desk) -> None:
    file = desk.put("f.txt", b"\0\1", read=False)
    assert desk.refused(Write(), path="f.txt", content="x") == UNREAD
    assert "is a binary file" in desk.refused(Read(), path="f.txt")
    said = desk.run(Write(), path="f.txt", content="text\n").text
    assert said == "Wrote `f.txt` (1 line; it was a binary file)."
    assert file.read_bytes() == b"text\n"


def test_a_link_and_its_file_are_one(desk: Desk) -> None:
    (desk.root / "to").symlink_to("f.txt")
    desk.put("f.txt", "one\n")
    assert desk.run(Edit(), path="to", old="one", new="two").ok
    assert desk.run(Edit(), path="./f.txt", old="two", new="three").ok
    assert (desk.root / "to").is_symlink()


def test_several_edits_are_made_in_order(desk: Desk) -> None:
    file = desk.put("a.py", "x = 1\ny = 2\nx = 1\n")
    edits = [
        {"old": "x = 1", "new": "z = 1", "all": True},
        {"old": "z = 1\ny = 2", "new": "both = 3"},
    ]
    found = desk.run(Edit(), path="a.py", edits=edits)
    diff = "--- a/a.py\n+++ b/a.py\n@@ -1,3 +1,2 @@\n-x = 1\n-y = 2\n-x = 1\n+both = 3\n+z = 1"
    assert found == ToolResult(
        True, f"Changed `a.py` at 3 places:\n{diff}", {"path": "a.py", "diff": diff}
    )
    assert file.read_text() == "both = 3\nz = 1\n"


def test_all_edits_are_made_or_none(desk: Desk) -> None:
    file = desk.put("a.py", "x = 1\n")
    edits = [{"old": "x", "new": "y"}, {"old": "x = 1", "new": "gone"}]
    said = desk.refused(Edit(), path="a.py", edits=edits)
    assert said.startswith("Edit 2 of 2: `old` is not in `a.py` exactly like this.")
    assert said.endswith("Nothing was changed.")
    assert file.read_text() == "x = 1\n"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({}, "Give `old` and `new`"),
        ({"old": "a"}, "Give `old` and `new`"),
        ({"old": "a", "edits": [{"old": "a", "new": "b"}]}, "either `edits` or `old`"),
        ({"edits": [{"old": "a", "new": "b"}, {"old": "", "new": "b"}]}, "Edit 2 of 2: `old` is"),
        ({"old": "a", "new": "\udcff"}, "a lone surrogate"),
    ],
)
def test_an_edit_that_says_too_much_or_too_little_is_refused(
    desk: Desk, arguments: dict[str, Any], words: str
) -> None:
    file = desk.put("f", b"a\xff")
    assert words in desk.refused(Edit(), path="f", **arguments)
    assert file.read_bytes() == b"a\xff"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (b"one\r\ntwo\r\n", b"1\r\n2\r\ntwo\r\n"),
        (b"\xef\xbb\xbfone\n", b"\xef\xbb\xbf1\n2\n"),
        (
            b"\xff\xfe" + "oneé\r\n".encode("utf-16-le"),
            b"\xff\xfe" + "1\r\n2é\r\n".encode("utf-16-le"),
        ),
        ("one ü\n".encode("latin-1"), "1\n2 ü\n".encode("latin-1")),
        ("one ü\n".encode() + b"\xff", "1\n2 ü\n".encode() + b"\xff"),
        (b"a\r\none\nb\r\n", b"a\r\n1\r\n2\nb\r\n"),
    ],
)
def test_edit_keeps_encoding_and_line_ends(desk: Desk, before: bytes, after: bytes) -> None:
    file = desk.put("f", before)
    desk.run(Edit(), path="f", old="one", new="1\n2")
    assert file.read_bytes() == after


@given(st.one_of(st.binary(max_size=60), st.text(max_size=30).map(str.encode)))
def test_what_is_read_as_text_is_written_back_byte_for_byte(data: bytes) -> None:
    try:
        text, coding = decode("f", data)
    except ToolError as error:
        assert "is a binary file" in error.message or "starts as utf-16" in error.message
        return
    assert coding.encode(text, "f") == data
    assert len(replace_bad_bytes(text).encode()) >= len(text)  # and it can be said


def test_what_an_encoding_cannot_write_is_refused(desk: Desk) -> None:
    file = desk.put("f", "one ü\n".encode("latin-1"))
    said = desk.refused(Edit(), path="f", old="one", new="€")
    assert said.startswith("`f` is encoded as latin-1, which has no € (U+20AC).")
    assert file.read_bytes() == "one ü\n".encode("latin-1")


@pytest.mark.parametrize(
    ("before", "content", "note"),
    [
        (b"a\r\nb\r\n", "a\nb\n", "; line ends changed from CRLF to LF"),
        (b"a\n", "a\r\n", "; line ends changed from LF to CRLF"),
        (b"a\r\n", "a", ""),
        (b"\xef\xbb\xbfa\n", "b\n", "; it was UTF-8 with a byte order mark, and is UTF-8 now"),
        (b"\xff\n", "b\n", "; it was latin-1, and is UTF-8 now"),
    ],
)
def test_write_says_what_of_the_form_has_changed(
    desk: Desk, before: bytes, content: str, note: str
) -> None:
    file = desk.put("f", before)
    lines = "2 lines" if content.count("\n") == 2 else "1 line"
    assert desk.run(Write(), path="f", content=content).text == f"Wrote `f` ({lines}{note})."
    assert file.read_bytes() == content.encode()


def test_write_keeps_the_mode_and_leaves_nothing_beside(desk: Desk) -> None:
    file = desk.put("run.sh", "#!/bin/sh\n")
    file.chmod(0o750)
    desk.run(Read(), path="run.sh")
    desk.run(Write(), path="run.sh", content="#!/bin/sh\ntrue\n")
    assert file.stat().st_mode & 0o7777 == 0o750
    assert [entry.name for entry in desk.root.iterdir()] == ["run.sh"]


def test_a_difference_is_bounded(desk: Desk) -> None:
    """(A13)"""
    desk.put("f", "".join(f"{n}\n" for n in range(9000)))
    found = desk.run(Write(), path="f", content="".join(f"{-n}\n" for n in range(9000)))
    assert len(found.data["diff"]) <= 20_000
    assert "are left out here" in found.data["diff"]
    desk.put("g", "x\n" * 200_000)
    found = desk.run(Write(), path="g", content="y\n")
    assert found.data["diff"] == "(too large to compare: 200,000 and 1 lines)"


def test_a_folder_that_the_person_added_is_worked_in_as_well(
    desk: Desk, tmp_path_factory: pytest.TempPathFactory
) -> None:
    other = tmp_path_factory.mktemp("other")
    (other / "sub").mkdir()
    file = other / "sub/f.txt"
    file.write_text("one\n")
    path = str(file)
    assert "is outside" in desk.refused(Read(), path=path)
    desk.workspace = Workspace(desk.root, also=[other])
    assert "has not been read" in desk.refused(Edit(), path=path, old="one", new="two")
    assert desk.run(Read(), path=path).text == "     1\tone"
    assert desk.run(Edit(), path=path, old="one", new="two").ok
    patch = f"--- {path}\n+++ {path}\n@@ -1 +1 @@\n-two\n+three\n"
    assert ApplyPatch().touched({"patch": patch}) == (path,)
    assert desk.run(ApplyPatch(), patch=patch).ok
    assert file.read_text() == "three\n"
    assert desk.run(List(), path=str(other)).text == "sub/\n  f.txt  6 B"
    for ripgrep in (True, False):
        found = desk.run(Grep(ripgrep=ripgrep), pattern="three", path=str(other))
        assert found.text == f"{path}:1:three"


@EACH
def test_a_folder_or_a_pipe_is_no_file_to_change(
    desk: Desk, tool: Tool, arguments: dict[str, Any]
) -> None:
    os.mkfifo(desk.root / "f.txt")
    assert "pipe" in desk.refused(tool, **arguments) or "regular file" in desk.refused(
        tool, **arguments
    )
    (desk.root / "f.txt").unlink()
    (desk.root / "f.txt").mkdir()
    assert "is a folder" in desk.refused(tool, **arguments)
