"""Globs, .gitignore and the walk over a workspace."""

import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridle.workspace.ignore import FileTree, compile_glob, expand_braces, parse_ignore
from bridle.workspace.workspace import Workspace


@pytest.mark.parametrize(
    ("pattern", "yes", "no"),
    [
        ("*.py", ["a.py", "x/y/a.py"], ["a.pyc", "a.py/x"]),
        ("/*.py", ["a.py"], ["x/a.py"]),
        ("src/*.py", ["src/a.py"], ["a/src/a.py", "src/x/a.py"]),
        ("**/*.py", ["a.py", "x/y/a.py"], ["a.md"]),
        ("src/**", ["src/a", "src/x/y"], ["src", "other/src/a"]),
        ("src/**/test_*", ["src/test_a", "src/x/y/test_b"], ["src/x/a"]),
        ("**", ["a", "x/y"], []),
        ("a?c", ["abc", "x/abc"], ["ac", "a/c"]),
        ("[!a]b", ["cb"], ["ab"]),
        ("*.{py,md}", ["a.py", "b.md"], ["c.txt"]),
        (r"\*.py", ["*.py"], ["a.py"]),
        ("./src/*", ["src/a"], ["a"]),
        ("{a", ["{a"], ["a"]),
    ],
)
def test_a_glob_fits_what_it_says(pattern: str, yes: list[str], no: list[str]) -> None:
    fits = compile_glob(pattern)
    assert [path for path in yes + no if fits(path)] == yes


def test_braces_are_bounded() -> None:
    assert expand_braces("{a,b}{1,2}") == ["a1", "a2", "b1", "b2"]
    with pytest.raises(ValueError, match="more than 64 alternatives"):
        compile_glob("{a,b}" * 10)


@given(st.text("a*?[]!/{},\\b", max_size=40))
def test_no_pattern_hangs(pattern: str) -> None:
    try:
        fits = compile_glob(pattern)
    except ValueError:
        return
    assert fits("a" * 200 + "/" + "ab" * 100) in (True, False)


def test_a_hostile_pattern_is_answered() -> None:
    assert not compile_glob("*a" * 100 + "b")("a" * 255)
    assert not compile_glob("**/a/" * 50 + "b")("a/" * 500 + "c")
    with pytest.raises(ValueError, match="more than 4096 characters"):
        compile_glob("{" + "," * 100_000)


def test_a_hostile_gitignore_is_read_in_no_time() -> None:
    began = time.process_time()
    rules = parse_ignore(" " * 200_000 + "x\n" + "{" + "," * 200_000 + "\n*.log")
    assert time.process_time() - began < 1
    assert [fits("a.log") for fits, _, _ in rules] == [True]


@pytest.mark.parametrize(
    ("line", "ignored"),
    [("{a,b}", ["{a,b}"]), ("a  ", ["a"]), ("a\\  ", ["a "]), ("a b", ["a b"])],
)
def test_a_line_of_gitignore_means_what_git_takes_it_for(line: str, ignored: list[str]) -> None:
    ((fits, _, _),) = parse_ignore(line)
    assert [name for name in ("{a,b}", "a", "b", "a ", "a b", "[b") if fits(name)] == ignored


def make(root: Path, *paths: str) -> Workspace:
    for path in paths:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text("x")
    return Workspace(root)


def test_the_walk_honours_gitignore_at_every_level(tmp_path: Path) -> None:
    files = make(
        tmp_path,
        ".git/config",
        "a.py",
        "a.pyc",
        "keep.pyc",
        "build/out.txt",
        "src/build/inner.txt",
        "src/b.py",
        "src/b.log",
        "src/deep/c.log",
        "src/deep/d.py",
        "top.txt",
        "src/top.txt",
        ".hidden",
        "#note",
    )
    (tmp_path / ".gitignore").write_text(
        "# comment\n*.pyc\n!keep.pyc\n/build/\n/top.txt\n\\#note\n"
    )
    (tmp_path / "src" / ".gitignore").write_text("*.log\ndeep/d.py\n")
    (tmp_path / "link").symlink_to("src")
    (tmp_path / "filelink").symlink_to("a.py")
    assert list(FileTree(files)) == [
        ".gitignore",
        ".hidden",
        "a.py",
        "keep.pyc",
        "src/.gitignore",
        "src/b.py",
        "src/top.txt",
        "src/build/inner.txt",
    ]
    assert list(FileTree(files, "src/build")) == ["src/build/inner.txt"]
    assert list(FileTree(files, "src/deep")) == []


def test_a_folder_that_is_ignored_is_not_entered_again(tmp_path: Path) -> None:
    files = make(tmp_path, "out/a.txt", "out/b.txt", "c.txt")
    (tmp_path / ".gitignore").write_text("out/\n!out/a.txt\n")
    assert list(FileTree(files)) == [".gitignore", "c.txt"]


def test_a_walk_that_is_too_long_stops_and_says_so(tmp_path: Path) -> None:
    files = make(tmp_path, *(f"d{number}/f" for number in range(10)))
    tree = FileTree(files, most=15)
    assert len(list(tree)) == 5
    assert tree.stopped == "more than 15 entries; the rest was not looked at"


def test_a_walk_does_not_leave_through_a_link(tmp_path: Path) -> None:
    """(A6)"""
    make(tmp_path, "outside/secret", "ws/a")
    (tmp_path / "ws" / "out").symlink_to(tmp_path / "outside")
    assert list(FileTree(Workspace(tmp_path / "ws"))) == ["a"]
