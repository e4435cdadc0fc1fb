"""The workspace: nothing leads out of it, whatever the path says and whoever moves the links."""

import itertools
import os
import socket
import stat
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bridle.errors import ConfigError, OutsideWorkspace, ToolError
from bridle.protocols.tool import Files
from bridle.workspace.workspace import Workspace

SECRET = b"the secret"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A workspace `ws` with a file, beside a folder `ws-evil` with a secret."""
    (tmp_path / "ws-evil").mkdir()
    (tmp_path / "ws-evil" / "secret").write_bytes(SECRET)
    (tmp_path / "ws" / "src").mkdir(parents=True)
    (tmp_path / "ws" / "src" / "a.py").write_bytes(b"print(1)\n")
    return tmp_path / "ws"


@pytest.fixture
def files(root: Path) -> Workspace:
    return Workspace(root)


def test_files_are_read_and_written_inside(files: Workspace, root: Path) -> None:
    """(A6)"""
    promise: Files = files
    assert promise.read("src/a.py") == b"print(1)\n"
    promise.write("new/deep/b.txt", b"hello")
    assert (root / "new/deep/b.txt").read_bytes() == b"hello"
    assert promise.names() == ["new/", "src/"]
    assert promise.names("src") == ["a.py"]
    assert [promise.exists(p) for p in ("src/a.py", "src", "none", "src/a.py/x")] == [
        True,
        True,
        False,
        False,
    ]
    assert [promise.is_folder(p) for p in (".", "src", "src/a.py")] == [True, True, False]


def test_an_absolute_path_inside_is_made_relative(files: Workspace, root: Path) -> None:
    """(A6)"""
    assert files.relative(f"{root}/src/a.py") == "src/a.py"
    assert files.relative(f"/{root}/src/../src/a.py") == "src/a.py"
    assert files.read(f"{root}/src/a.py") == b"print(1)\n"
    assert files.relative(str(root)) == "."
    assert files.resolve_path("src/../src/a.py") == f"{root}/src/a.py"


@pytest.mark.parametrize(
    "path",
    [
        "..",
        "../ws-evil/secret",
        "src/../../ws-evil/secret",
        "./.././ws-evil/secret",
        "/etc/passwd",
        "/",
        "//etc/passwd",
        "{root}-evil/secret",
        "{root}/../ws-evil/secret",
        "{root}/src/../../ws-evil/secret",
        "/proc/self/root/etc/passwd",
        "/proc/self/cwd",
    ],
)
def test_words_that_lead_out_are_refused(files: Workspace, root: Path, path: str) -> None:
    """(A6)"""
    path = path.format(root=root)
    verbs: list[Any] = [files.read, files.names, files.exists, files.is_folder, files.relative]
    for verb in verbs:
        with pytest.raises(OutsideWorkspace, match="is outside the workspace"):
            verb(path)
    with pytest.raises(OutsideWorkspace):
        files.write(path, b"x")
    assert files.resolve_path(path) is None
    assert not files.is_path_safe(path)
    assert (root.parent / "ws-evil" / "secret").read_bytes() == SECRET


@pytest.mark.parametrize(
    ("link", "target", "path"),
    [
        ("out", "../ws-evil/secret", "out"),
        ("out", "{root}-evil/secret", "out"),
        ("out", "../ws-evil", "out/secret"),
        ("out", "{root}-evil", "out/secret"),
        ("src/out", "../../ws-evil", "src/out/secret"),
        ("out", "/proc/self/root", "out{root}-evil/secret"),
        ("out", "/proc/self/cwd", "out/x"),
        ("out", "/dev/zero", "out"),
        ("out", "{root}/../ws-evil", "out/secret"),
        ("out", "src/../../ws-evil", "out/secret"),
        ("out", "/", "out/etc/passwd"),
        ("out", "nothing/../../ws-evil/secret", "out"),
        ("out", "../ws-evil/new", "out"),
    ],
)
def test_links_that_lead_out_are_not_followed(
    files: Workspace, root: Path, link: str, target: str, path: str
) -> None:
    """(A6)"""
    (root / link).symlink_to(target.format(root=root))
    path = path.format(root=root)
    with pytest.raises(OutsideWorkspace):
        files.read(path)
    with pytest.raises(OutsideWorkspace):
        files.exists(path)
    assert files.resolve_path(path) is None
    assert not files.is_path_safe(path)
    if "nothing" not in target:
        with pytest.raises(OutsideWorkspace):
            files.write(path, b"overwritten")
    assert beside(root) == ["secret"]
    assert (root.parent / "ws-evil" / "secret").read_bytes() == SECRET


@pytest.mark.parametrize("target", ["src/a.py", "{root}/src/a.py", "./src/../src/a.py", "chain"])
def test_links_that_stay_inside_are_followed(files: Workspace, root: Path, target: str) -> None:
    """(A6)"""
    (root / "chain").symlink_to("folder/a.py")
    (root / "folder").symlink_to("src")
    (root / "in").symlink_to(target.format(root=root))
    assert files.read("in") == b"print(1)\n"
    assert files.resolve_path("in") == f"{root}/src/a.py"
    files.write("in", b"changed")
    assert (root / "in").is_symlink()
    assert (root / "src" / "a.py").read_bytes() == b"changed"


def test_a_link_to_a_file_that_is_not_there_yet_can_be_written_through(
    files: Workspace, root: Path
) -> None:
    (root / "later").symlink_to("made/now.txt")
    assert files.exists("later") is False
    files.write("later", b"x")
    assert (root / "made" / "now.txt").read_bytes() == b"x"


def test_links_in_a_circle_are_said(files: Workspace, root: Path) -> None:
    (root / "a").symlink_to("b")
    (root / "b").symlink_to("a")
    (root / "me").symlink_to("me/x")
    for path in ("a", "b/c", "me"):
        with pytest.raises(ToolError, match="Too many links"):
            files.read(path)
        assert files.resolve_path(path) is None


@contextmanager
def over_and_over(step: Callable[[], None]) -> Iterator[None]:
    """Another thread does it again and again, as an attacker would."""
    over = threading.Event()

    def work() -> None:
        while not over.is_set():
            step()

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def test_a_folder_swapped_for_a_link_while_opening_never_leads_out(
    files: Workspace, root: Path
) -> None:
    """A real race: what is read is the harmless file, or nothing (A6)."""
    honest, trap, door = root / "honest", root / "trap", root / "door"
    honest.mkdir()
    (honest / "secret").write_bytes(b"harmless")
    trap.symlink_to(root.parent / "ws-evil")

    def swap() -> None:
        honest.rename(door)
        door.rename(honest)
        trap.rename(door)
        door.rename(trap)

    seen = set()
    with over_and_over(swap):
        for _ in range(1500):
            try:
                seen.add(files.read("door/secret"))
            except ToolError:
                seen.add(b"refused")
    assert seen <= {b"harmless", b"refused"}
    assert b"refused" in seen


def test_a_link_turned_while_writing_never_writes_outside(files: Workspace, root: Path) -> None:
    """A real race: the link `door` points in and out by turns, and is never missing (A6)."""
    (root / "door").symlink_to("src")
    targets = itertools.cycle(["src", str(root.parent / "ws-evil")])

    def turn() -> None:
        (root / "next").symlink_to(next(targets))
        (root / "next").rename(root / "door")

    written = 0
    with over_and_over(turn):
        for number in range(1000):
            try:
                files.write(f"door/w{number % 3}", b"w")
                written += 1
            except OutsideWorkspace:
                continue
    assert written > 0
    assert beside(root) == ["secret"]


def beside(root: Path) -> list[str]:
    """What lies in the folder that nobody may reach."""
    return [path.name for path in (root.parent / "ws-evil").iterdir()]


def open_handles() -> int:
    """How many this process holds, where the system can say."""
    folder = Path("/dev/fd")
    return len(list(folder.iterdir())) if folder.exists() else 0


def test_devices_pipes_and_sockets_are_refused_without_waiting(
    files: Workspace, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    os.mkfifo(root / "pipe")
    with socket.socket(socket.AF_UNIX) as listener:
        monkeypatch.chdir(root)  # a socket's path may only be short
        listener.bind("socket")
        for path in ("pipe", "socket"):
            with pytest.raises(ToolError, match="a device, a pipe or a socket"):
                files.read(path)
            with pytest.raises(ToolError, match="not a regular file"):
                files.write(path, b"x")


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("", "The path is empty"),
        ("a\0b", "contains a NUL"),
        ("\ud800", "not valid text"),
        ("x" * 300, "is too long a name"),
        ("x/" * 3000, "The path is too long"),
        ("missing", "`missing` does not exist"),
        ("missing/deeper", "`missing/deeper` does not exist"),
        ("src", "`src` is a folder, not a file"),
        ("src/a.py/b", "is not a folder, or lies below a file"),
        ("\x1b[2J\u202e", r"`\\x1b\[2J\\u202e` does not exist"),
    ],
)
def test_an_impossible_path_gets_a_sentence(files: Workspace, path: str, words: str) -> None:
    with pytest.raises(ToolError, match=words):
        files.read(path)


def test_odd_names_are_names_like_any_other(files: Workspace) -> None:
    for name in ("日本.txt", "with space", "tab\there", "-rf", "new\nline", "~", "a\\b", "*"):
        files.write(f"odd/{name}", name.encode())
        assert files.read(f"odd/{name}") == name.encode()
    assert len(files.names("odd")) == 8


def test_writing_keeps_the_mode_and_leaves_nothing_behind(files: Workspace, root: Path) -> None:
    script = root / "run.sh"
    script.write_text("old")
    script.chmod(0o750)
    files.write("run.sh", b"new")
    assert (script.read_bytes(), stat.S_IMODE(script.stat().st_mode)) == (b"new", 0o750)
    with pytest.raises(ToolError, match="not a regular file"):
        files.write("src", b"x")
    with pytest.raises(ToolError, match="is a folder"):
        files.write(".", b"x")
    assert files.names() == ["run.sh", "src/"]


def test_a_new_file_follows_the_umask(files: Workspace, root: Path) -> None:
    before = os.umask(0o027)
    try:
        files.write("fresh", b"x")
    finally:
        os.umask(before)
    assert stat.S_IMODE((root / "fresh").stat().st_mode) == 0o640


def test_a_huge_file_is_refused_or_read_in_part(files: Workspace, root: Path) -> None:
    """(A13)"""
    with (root / "huge").open("wb") as file:
        file.truncate(10 * 1024**3)
    with pytest.raises(ToolError, match="more than 64 MB"):
        files.read("huge")
    assert files.read("huge", 5) == b"\0" * 5


def test_a_root_below_a_link_is_resolved_once(root: Path) -> None:
    alias = root.parent / "alias"
    alias.symlink_to(root)
    (root / "abs").symlink_to(alias / "src" / "a.py")
    files = Workspace(alias)
    assert files.root == str(root)
    assert files.relative(f"{alias}/src/a.py") == "src/a.py"
    assert files.read("abs") == b"print(1)\n"


def test_a_root_that_is_gone_or_no_folder_is_said(root: Path) -> None:
    with pytest.raises(ConfigError, match="is not a folder"):
        Workspace(root / "src" / "a.py")
    files = Workspace(root / "src")
    (root / "src" / "a.py").unlink()
    (root / "src").rmdir()
    with pytest.raises(ToolError, match="The workspace itself is gone"):
        files.read("a.py")
    assert files.resolve_path("a.py") is None


def test_a_file_that_may_not_be_read_is_said() -> None:
    """Root may read everything, so root becomes nobody for the moment."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        Path(folder, "locked").write_text("x")
        Path(folder, "locked").chmod(0)
        Path(folder, "open").write_text("y")
        files = Workspace(folder)
        before = os.geteuid()
        os.seteuid(65534 if before == 0 else before)
        try:
            assert files.read("open") == b"y"
            with pytest.raises(ToolError, match="`locked` may not be accessed: permission"):
                files.read("locked")
        finally:
            os.seteuid(before)


def test_no_handle_is_left_open(files: Workspace, root: Path) -> None:
    (root / "out").symlink_to("/etc")
    (root / "in").symlink_to("src")
    before = open_handles()
    for path in ("src/a.py", "in/a.py", "out/passwd", "none/none", "src", "in/a.py/x"):
        for verb in (files.read, files.names, files.exists, files.resolve_path):
            try:
                verb(path)
            except ToolError:
                continue
    after = open_handles()
    assert after == before


PARTS = st.sampled_from(["..", ".", "", "src", "a.py", "in", "out", "up", "loop", "new", "~"])


@given(parts=st.lists(PARTS, min_size=1, max_size=8), absolute=st.booleans())
@settings(
    max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_what_is_resolved_is_always_inside(root: Path, parts: list[str], absolute: bool) -> None:
    """(A6)"""
    for name, target in {"in": "src", "out": "..", "up": "src/..", "loop": "loop"}.items():
        if not (root / name).is_symlink():
            (root / name).symlink_to(target)
    path = "/".join(parts)
    found = Workspace(root).resolve_path(f"{root}/{path}" if absolute else path)
    if found is not None:
        real = os.path.realpath(found)
        assert real == found
        assert Path(real).is_relative_to(root)
