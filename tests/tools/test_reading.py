"""The tool `read`: encodings, ranges, and files that are odd, huge or changing."""

import os
import shutil
import socket
import threading
import tracemalloc
from pathlib import Path

import pytest
from desk import Desk
from hypothesis import given
from hypothesis import strategies as st

from bridle.protocols.tool import ToolResult
from bridle.tools.list import List
from bridle.tools.read import MAX_LINE, LineWindow, Read
from bridle.tools.write import Write
from rig import SOAK


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


@pytest.mark.parametrize(
    ("data", "text"),
    [
        ("é".encode(), "     1\té"),
        (b"\xef\xbb\xbfhi\n", "     1\thi"),
        ("hé\n".encode("utf-16-le"), None),
        (b"\xff\xfe" + "hé\n".encode("utf-16-le"), "     1\thé\n[the file is UTF-16]"),
        (b"\xfe\xff" + "hé\n".encode("utf-16-be"), "     1\thé\n[the file is UTF-16]"),
        (
            "Grüße\n".encode("latin-1"),
            "     1\tGrüße\n[the file is not valid UTF-8 (byte 2); it is read as Latin-1]",
        ),
        (
            "é\n".encode() + b"\xff\n",
            (
                "     1\té\n     2\t�\n"
                "[the file is not valid UTF-8 (byte 3); bad bytes are shown as �]"
            ),
        ),
        (b"\0\1\2", None),
    ],
)
def test_what_a_file_is_written_in_is_said(desk: Desk, data: bytes, text: str | None) -> None:
    desk.put("f", data, read=False)
    if text is None:
        assert "is a binary file" in desk.refused(Read(), path="f")
    else:
        assert desk.run(Read(), path="f").text == text


def test_a_file_of_utf_16_that_is_none_is_refused(desk: Desk) -> None:
    desk.put("f", b"\xff\xfe\x00", read=False)
    assert (
        desk.refused(Read(), path="f")
        == "`f` starts as utf-16-le, but is not valid utf-16-le (byte 0)."
    )


def naive(text: str, first: int, count: int) -> list[str]:
    lines = text.split("\n")
    lines = lines if lines[-1] else lines[:-1]
    shown = []
    for number, line in list(enumerate(lines, 1))[first - 1 : first - 1 + count]:
        line = line.removesuffix("\r")
        if len(line) > MAX_LINE:
            line = f"{line[:MAX_LINE]}[… the line has {len(line):,} characters]"
        shown.append(f"{number:>6}\t{line}")
    return shown


PIECES = st.lists(
    st.one_of(
        st.text("ab\r\n", max_size=12),
        st.integers(MAX_LINE - 2, MAX_LINE + 3).map(lambda n: "x" * n),
    ),
    max_size=8,
)


@given(PIECES, st.integers(1, 6), st.integers(1, 4))
def test_lines_are_the_same_however_the_text_is_cut(
    pieces: list[str], first: int, count: int
) -> None:
    window = LineWindow(first, count)
    for piece in pieces:
        window.add(piece)
    window.end()
    text = "".join(pieces)
    assert window.lines == naive(text, first, count)
    assert window.number == len(text.split("\n")) - (text.endswith("\n") or not text)


def test_a_huge_file_is_read_in_bounded_memory(desk: Desk) -> None:
    """(A13) 10 GB, most of which is not there."""
    with (desk.root / "huge").open("wb") as file:
        file.write(b"top line\n" * 5000)
        file.truncate(10 * 1024**3)
    tracemalloc.start()
    found = desk.run(Read(), path="huge", limit=2)
    end = desk.refused(Read(), path="huge", offset=90_000)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert found == ToolResult(
        True,
        "     1\ttop line\n     2\ttop line\n"
        "[lines 1-2 of a file of 10,737,418,240 bytes; continue with offset=3]",
        {"path": "huge", "from": 1, "to": 2, "lines": None},
    )
    assert end.startswith("`huge` has 5,000 lines; line 90,000 is beyond its end.")
    assert "[binary data begins at byte 45,000]" in end
    assert most < 20_000_000


def test_a_line_of_a_large_file_is_found_far_inside(desk: Desk) -> None:
    with (desk.root / "large").open("wb") as file:
        for thousand in range(2500):
            file.write(b"".join(b"%09d\n" % (thousand * 1000 + n + 1) for n in range(1000)))
    found = desk.run(Read(), path="large", offset=2_400_000, limit=1)
    assert found.text.splitlines() == [
        "2400000\t002400000",
        "[lines 2400000-2400000 of a file of 25,000,000 bytes; continue with offset=2400001]",
    ]
    assert desk.run(Read(), path="large", offset=2_500_000).data["lines"] == 2_500_000
    assert desk.run(Write(), path="large", content="small now\n").ok


def test_one_endless_line_is_shown_by_its_beginning(desk: Desk) -> None:
    """(A13)"""
    desk.put("wide", b"y" * 3_000_000 + b"\nend\n", read=False)
    found = desk.run(Read(), path="wide").text
    assert found == f"     1\t{'y' * MAX_LINE}[… the line has 3,000,000 characters]\n     2\tend"


@pytest.mark.parametrize("kind", ["fifo", "device", "socket"])
def test_what_is_no_file_is_refused_at_once(desk: Desk, kind: str) -> None:
    if kind == "fifo":
        os.mkfifo(desk.root / "odd")
    elif kind == "socket":
        with socket.socket(socket.AF_UNIX) as made:
            made.bind(str(desk.root / "odd"))
    elif os.geteuid() == 0:
        os.mknod(desk.root / "odd", 0o20600, os.makedev(1, 3))
    else:
        pytest.skip("only root makes devices")
    assert "a device, a pipe or a socket" in desk.refused(Read(), path="odd")


def test_a_file_that_changes_while_it_is_read_is_not_taken_for_known(desk: Desk) -> None:
    file = desk.put("log", "first line\n" * 1_000_000, read=False)
    begun, over = threading.Event(), threading.Event()

    def grow() -> None:
        with file.open("ab", buffering=0) as more:
            while not over.is_set():
                more.write(b"\n")
                begun.set()

    writer = threading.Thread(target=grow)
    writer.start()
    begun.wait()
    found = desk.run(Read(), path="log", limit=1)
    over.set()
    writer.join()
    said = "[the file changed while it was read: read it again before you change it]"
    assert found.text.splitlines()[-1] == said
    assert "has not been read" in desk.refused(Write(), path="log", content="new\n")
    assert said not in desk.run(Read(), path="log", limit=1).text
    assert desk.run(Write(), path="log", content="new\n").ok


def test_names_with_control_characters_are_written_out(desk: Desk) -> None:
    name = "a\x1b]0;x\x07\n\u202eb"
    desk.put(name, "text\n", read=False)
    shown = r"a\x1b]0;x\x07 \u202eb"
    assert desk.run(Read(), path=".").text == shown
    assert desk.run(Read(), path=name).text == "     1\ttext"
    desk.put(name, b"\0", read=False)
    assert desk.refused(Read(), path=name).startswith(f"`{shown}` is a binary file (1 bytes)")


def test_a_folder_without_bounds_is_listed_within_them(desk: Desk) -> None:
    """(A13) 20,000 entries, a million in a soak."""
    count = 1_000_000 if SOAK else 20_000
    folder = desk.root / "many"
    folder.mkdir()
    handle = os.open(folder, os.O_RDONLY)
    try:
        for number in range(count):
            os.mknod(f"{number:07}", dir_fd=handle)
    finally:
        os.close(handle)
    tracemalloc.start()
    found = desk.run(Read(), path="many").text.splitlines()
    tree = desk.run(List(), path="many").text.splitlines()
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    shutil.rmtree(folder)  # pytest would keep it for the next three runs
    assert most < (20_000_000 if SOAK else 2_000_000)
    more = "and more: the folder has over 100,000 entries" if SOAK else f"and {count - 1000:,} more"
    assert found[1000:] == [f"[… {more}; use glob]"]
    if not SOAK:
        assert found[:2] == ["0000000", "0000001"]
        assert tree[0] == "0000000  0 B"
    assert tree[1000:] == [f"[… and {'over 100,000' if SOAK else f'{count - 1000:,}'} more]"]


def test_lone_surrogates_in_a_path_are_an_answer(desk: Desk) -> None:
    for tool in (Read(), List(), Write()):
        rest = {"content": "x"} if tool.name == "write" else {}
        assert "is not valid text" in desk.refused(tool, path="a\ud800", **rest)
