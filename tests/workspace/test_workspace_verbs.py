"""What a workspace does besides reading and writing: other roots, removing, renaming, listing."""

import itertools
import os
import stat
import threading
from pathlib import Path

import pytest

from bridle.errors import ConfigError, OutsideWorkspace, ToolError
from bridle.workspace import workspace
from bridle.workspace.workspace import Workspace


@pytest.fixture
def base(tmp_path: Path) -> Path:
    for folder in ("ws/src", "lib/deep", "lib-evil"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "ws/src/a.py").write_bytes(b"1")
    (tmp_path / "lib/deep/b.py").write_bytes(b"2")
    (tmp_path / "lib-evil/c").write_bytes(b"3")
    return tmp_path


@pytest.fixture
def files(base: Path) -> Workspace:
    return Workspace(base / "ws", also=[base / "lib"])


def test_another_root_is_reached_by_absolute_paths(files: Workspace, base: Path) -> None:
    """(A6)"""
    lib = f"{base}/lib"
    assert files.roots == (f"{base}/ws", lib)
    assert files.relative(f"{lib}/deep/../deep/b.py") == f"{lib}/deep/b.py"
    assert files.relative(lib) == lib
    assert files.resolve(f"{lib}/deep/b.py") == f"{lib}/deep/b.py"
    assert files.read(f"{lib}/deep/b.py") == b"2"
    files.write(f"{lib}/new/c.py", b"3")
    assert (base / "lib/new/c.py").read_bytes() == b"3"
    assert files.names(lib) == ["deep/", "new/"]
    for path in (f"{lib}-evil/c", f"{lib}/../lib-evil/c", "../lib/deep/b.py", f"{base}", "/"):
        assert files.resolve_path(path) is None
    with pytest.raises(OutsideWorkspace, match="is protected"):
        files.write(f"{lib}/.git/config", b"x")


def test_links_may_lead_from_one_root_into_the_other(files: Workspace, base: Path) -> None:
    (base / "ws/abs").symlink_to(base / "lib/deep")
    (base / "ws/rel").symlink_to("../lib/deep")
    (base / "ws/src/rel").symlink_to("../../lib/deep/../deep/b.py")
    (base / "lib/back").symlink_to("../ws/src")
    (base / "ws/over").symlink_to("../lib/../lib-evil")
    (base / "ws/through").symlink_to("../lib/back/a.py")
    assert [files.read(one) for one in ("abs/b.py", "rel/b.py", "src/rel", "through")] == [
        b"2",
        b"2",
        b"2",
        b"1",
    ]
    assert files.resolve("rel/b.py") == f"{base}/lib/deep/b.py"
    assert files.resolve_path("over/c") is None
    assert Workspace(base / "ws").resolve_path("abs/b.py") is None
    assert Workspace(base / "ws").resolve_path("rel/b.py") is None


def test_another_root_must_be_a_folder(base: Path) -> None:
    with pytest.raises(ConfigError, match="is not a folder"):
        Workspace(base / "ws", also=[base / "none"])


def test_a_file_is_removed_and_nothing_else(files: Workspace, base: Path) -> None:
    files.remove("src/a.py")
    assert files.names("src") == []
    os.mkfifo(base / "ws/pipe")
    for path, words in {
        "src": "is not a regular file",
        ".": "is not a regular file",
        "pipe": "is not a regular file",
        "none": "does not exist",
        "none/deep": "does not exist",
        "../lib-evil/c": "outside the workspace",
    }.items():
        with pytest.raises(ToolError, match=words):
            files.remove(path)
    assert (base / "lib-evil/c").exists()


def test_a_file_is_renamed_where_nothing_is_yet(files: Workspace, base: Path) -> None:
    (base / "ws/src/run").write_bytes(b"run")
    (base / "ws/src/run").chmod(0o750)
    files.rename("src/run", "bin/deep/run")
    moved = base / "ws/bin/deep/run"
    assert (moved.read_bytes(), stat.S_IMODE(moved.stat().st_mode)) == (b"run", 0o750)
    for path, to, words in [
        ("src/a.py", "bin/deep/run", "exists already"),
        ("src/a.py", "bin", "exists already"),
        ("src/a.py", ".", "exists already"),
        ("src", "lib", "is not a regular file"),
        ("none", "x", "`none` does not exist"),
        ("src/a.py", "../x", "outside the workspace"),
        ("src/a.py", ".git/hooks/x", "is protected"),
        ("src/a.py", "src/a.py/x", "not a folder"),
    ]:
        with pytest.raises(ToolError, match=words):
            files.rename(path, to)
    assert files.read("src/a.py") == b"1"
    assert not (base / "ws/.git").exists()


def test_a_refused_write_makes_no_folder(files: Workspace, base: Path) -> None:
    with pytest.raises(OutsideWorkspace, match="is protected"):
        files.write("new/.bridle/policy.yaml", b"x")
    assert not (base / "ws/new").exists()


def test_a_long_list_is_cut_and_says_so(files: Workspace, base: Path) -> None:
    """(A13)"""
    for number in range(50):
        (base / "ws/src" / f"f{number:02}").write_bytes(b"")
    names = files.names("src", 20)
    assert (len(names), names.cut, sorted(names)) == (20, True, names)
    everything = files.entries("src")
    assert (len(everything), everything.cut) == (51, False)
    exact = files.entries("src", 51)
    assert (len(exact), exact.cut) == (51, False)


def test_names_that_are_no_text_are_listed_and_read(files: Workspace, base: Path) -> None:
    odd = [b"\xff\xfe", b"tab\there", b"\x1b[2J", b"\xe2\x80\xae"]
    for name in odd:
        Path(os.fsdecode(os.path.join(os.fsencode(base / "ws/src"), name))).write_bytes(name)  # noqa: PTH118 - bytes
    names = files.names("src")
    assert sorted(map(os.fsencode, names)) == sorted([*odd, b"a.py"])
    assert [files.read(f"src/{os.fsdecode(name)}") for name in odd] == odd


def test_a_write_parts_a_hard_link(files: Workspace, base: Path) -> None:
    """The other name keeps what it had: what is outside does not change."""
    os.link(base / "lib-evil/c", base / "ws/linked")
    files.write("linked", b"new")
    assert ((base / "ws/linked").read_bytes(), (base / "lib-evil/c").read_bytes()) == (b"new", b"3")


def test_a_file_that_grows_while_it_is_read_is_read(files: Workspace, base: Path) -> None:
    log = base / "ws/log"
    log.write_bytes(b"0" * 100_000)
    over = threading.Event()

    def grow() -> None:
        with log.open("ab", buffering=0) as file:
            while not over.is_set() and file.tell() < 50_000_000:
                file.write(b"0" * 1000)

    thread = threading.Thread(target=grow)
    thread.start()
    try:
        sizes = [len(files.read("log", 60_000_000)) for _ in range(20)]
    finally:
        over.set()
        thread.join()
    assert sizes == sorted(sizes)
    assert sizes[0] >= 100_000


@pytest.mark.parametrize(("changes", "expected"), [(1, b"later"), (2, b"later"), (3, None)])
def test_a_file_that_changes_while_it_is_read_is_read_again(
    files: Workspace,
    base: Path,
    monkeypatch: pytest.MonkeyPatch,
    changes: int,
    expected: bytes | None,
) -> None:
    """After three times it is said that the file does not rest."""
    file = base / "ws/data"
    file.write_bytes(b"early")
    left = itertools.count(changes, -1)
    read = os.read

    def meddled(handle: int, size: int) -> bytes:
        data = read(handle, size)
        if data and (number := next(left)) > 0:
            file.write_bytes(b"later")
            os.utime(file, (number, number))
        return data

    monkeypatch.setattr(workspace.os, "read", meddled)
    if expected is None:
        with pytest.raises(ToolError, match="changes while it is being read"):
            files.read("data")
    else:
        assert files.read("data") == expected


def test_what_replaces_a_file_is_on_the_disk_first(
    files: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[str] = []
    sync, rename = os.fsync, os.rename
    monkeypatch.setattr(workspace.os, "fsync", lambda handle: (done.append("sync"), sync(handle)))
    monkeypatch.setattr(
        workspace.os,
        "rename",
        lambda *names, **rest: (done.append("rename"), rename(*names, **rest)),
    )
    files.write("src/a.py", b"new")
    assert done == ["sync", "rename"]


def test_a_folder_is_listed_like_it_is_read_and_written(files: Workspace, base: Path) -> None:
    assert files.list() == files.names() == ["src/"]
    assert files.list("src") == ["a.py"]
    with pytest.raises(OutsideWorkspace):
        files.list("..")
