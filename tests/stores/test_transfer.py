"""Whole logs: forked, exported, brought in and deleted, byte for byte (A8)."""

import fcntl
import io
import resource
import stat
import subprocess
import sys
from contextlib import contextmanager

import pytest

from bridle.errors import SessionError, SessionLocked, StoreFailed, UnknownSession
from bridle.events import Forked, PromptReceived, SessionStarted, TextDelta, TurnEnded
from bridle.protocols.codec import encode_data, encode_line
from bridle.protocols.store import InboxMessage
from bridle.stores.inbox_files import read_messages, send
from bridle.stores.reader import SessionFolder
from bridle.stores.session_index import list_sessions
from bridle.stores.transfer import delete, export_lines, fork, head_of, import_log
from bridle.stores.verify import Head, verify

WHEN = "2026-01-31T10:30:01.000Z"
EVENTS = [
    SessionStarted("s", workspace="/w"),
    PromptReceived("hällo", 1),
    TextDelta("some"),
    TurnEnded(1, "done"),
]


def chain(*events, seq=0, before=""):
    lines = []
    for event in events:
        seq += 1
        line, before = encode_line(seq, WHEN, encode_data(event), before)
        lines.append(line)
    return lines


def put(state, lines, session_id="s"):
    path = state / "sessions" / session_id / "log.jsonl"
    path.parent.mkdir(parents=True)
    path.write_bytes(b"".join(lines))
    return path


def shown(state):
    """Everything in the sessions folder, as a tree of names and bytes."""
    top = state / "sessions"
    return {
        str(path.relative_to(top)): path.read_bytes() for path in top.rglob("*") if path.is_file()
    }


@pytest.fixture
def folder(state):
    return SessionFolder(state)


@pytest.mark.parametrize("at", [None, 1, 3, 4])
def test_a_fork_has_the_same_bytes_and_one_record_more(state, folder, at):
    lines = chain(*EVENTS)
    put(state, lines)
    fork(folder, "s", at, "new")
    copied = folder.path("new").read_bytes()
    upto = at or 4
    assert copied.startswith(b"".join(lines[:upto]))
    records = list(folder.read("new"))
    assert [record.event for record in records] == [*EVENTS[:upto], Forked("s", upto)]
    assert verify(folder.path("new"), Head(upto, records[upto - 1].hash)).findings == ()
    assert folder.path("s").read_bytes() == b"".join(lines)
    assert stat.S_IMODE(folder.path("new").stat().st_mode) == 0o600
    assert stat.S_IMODE(folder.path("new").parent.stat().st_mode) == 0o700
    assert sorted(one.id for one in list_sessions(state)) == ["new", "s"]


def test_a_fork_leaves_a_torn_end_behind(state, folder):
    lines = chain(*EVENTS)
    put(state, [*lines[:3], lines[3][:-5]])
    fork(folder, "s", None, "new")
    assert [record.event for record in folder.read("new")] == [*EVENTS[:3], Forked("s", 3)]
    assert verify(folder.path("new")).ok


def test_a_fork_of_a_log_of_another_program_counts_its_records(state, folder):
    foreign = b'{"timestamp":"2026-01-01T00:00:00Z","data":{"type":"user_prompt","content":"%d"}}\n'
    put(state, [foreign % number for number in range(3)])
    fork(folder, "s", 2, "new")
    assert [record.seq for record in folder.read("new")] == [1, 2, 3]
    assert verify(folder.path("new")).findings == ()


def test_a_session_that_is_held_can_be_forked(state, folder):
    with put(state, chain(*EVENTS)).open("rb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        fork(folder, "s", None, "new")
    assert len(list(folder.read("new"))) == 5


def test_what_cannot_be_forked_leaves_nothing_behind(state, folder):
    put(state, chain(*EVENTS))
    put(state, chain(*EVENTS[:1]), "taken")
    before = shown(state)
    with pytest.raises(SessionError, match="no record 9; nothing was created"):
        fork(folder, "s", 9, "new")
    with pytest.raises(SessionError, match="no record"):
        fork(folder, "s", 0, "new")
    with pytest.raises(StoreFailed, match="there is a session taken already"):
        fork(folder, "s", None, "taken")
    with pytest.raises(UnknownSession):
        fork(folder, "gone", None, "new")
    with pytest.raises(UnknownSession):
        fork(folder, "s", None, "../new")
    assert shown(state) == before
    assert sorted(path.name for path in (state / "sessions").iterdir()) == ["s", "taken"]


def test_the_label_goes_along_with_a_whole_fork(state, folder):
    path = put(state, chain(*EVENTS))
    (path.parent / "label.json").write_bytes(b'{"title":"T"}')
    fork(folder, "s", None, "whole")
    fork(folder, "s", 2, "part")
    assert (folder.path("whole").parent / "label.json").read_bytes() == b'{"title":"T"}'
    assert not (folder.path("part").parent / "label.json").exists()


def test_export_and_import_keep_every_byte(state, folder, tmp_path):
    lines = chain(*EVENTS)
    put(state, lines)
    exported = list(export_lines(folder, "s"))
    assert exported == lines
    other = SessionFolder(tmp_path / "other")
    session_id, report = import_log(other, io.BytesIO(b"".join(exported)), lambda: "unused")
    assert (session_id, report.findings, report.head) == ("s", (), head_of(folder, "s"))
    assert other.path("s").read_bytes().startswith(b"".join(lines))
    assert [one.event for one in other.read("s")] == [*EVENTS, Forked("s", 4)]
    assert verify(other.path("s"), head_of(folder, "s")).findings == ()
    again, _ = import_log(other, io.BytesIO(b"".join(exported)), lambda: "second")
    assert again == "second"
    assert [one.id for one in sorted(list_sessions(tmp_path / "other"))] == ["s", "second"]


def test_an_import_names_what_is_wrong_and_keeps_it(folder):
    lines = chain(*EVENTS)
    data = b"".join([lines[0], lines[1].replace(b"llo", b"LLO"), *lines[2:]])[:-7]
    session_id, report = import_log(folder, io.BytesIO(data), lambda: "unused")
    assert folder.path(session_id).read_bytes().startswith(data + b"\n")
    assert [found.what for found in report.findings] == ["altered", "torn tail"]


@pytest.mark.parametrize("bad", ["", "../../etc", ".hidden", "a/b", "x" * 200])
def test_an_id_that_is_no_name_is_not_taken(folder, bad):
    lines = chain(SessionStarted(bad), TextDelta("x"))
    assert import_log(folder, io.BytesIO(b"".join(lines)), lambda: "fresh")[0] == "fresh"


def test_a_fork_is_imported_under_the_name_that_it_last_had(state, folder):
    put(state, chain(*EVENTS))
    fork(folder, "s", None, "new")
    last = list(folder.read("new"))[-1]
    more = chain(SessionStarted("new", resumed=True), seq=last.seq, before=last.hash)
    data = b"".join([*export_lines(folder, "new"), *more])
    delete(folder, "new")
    assert import_log(folder, io.BytesIO(data), lambda: "unused")[0] == "new"


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "no record"),
        (b"hello\nworld\n", "no record"),
        (b"\0" * 3_000_000, "no record"),
        (b"".join(chain(SessionStarted("s", format=2))), "format 2, which a newer bridle wrote"),
        (
            b'{"timestamp":"t","data":{"type":"session_start","format":"x"}}\n',
            "format x, which a newer",
        ),
    ],
)
def test_what_is_no_log_is_refused_and_nothing_is_left(state, folder, data, words):
    with pytest.raises(StoreFailed, match=words):
        import_log(folder, io.BytesIO(data), lambda: "fresh")
    assert list((state / "sessions").iterdir()) == []


def test_progress_is_told_to_the_end(state, folder):
    put(state, chain(*EVENTS))
    size, seen = folder.path("s").stat().st_size, []
    fork(folder, "s", None, "new", lambda *told: seen.append(told))
    with folder.path("s").open("rb") as source:
        import_log(folder, source, lambda: "fresh", lambda *told: seen.append(told))
    assert seen == [(size, size), (size, size)]


def test_the_head_is_the_newest_whole_record(state, folder):
    lines = chain(*EVENTS, TextDelta("x" * 3_000_000))
    put(state, [*lines, b'{"seq":'])
    assert head_of(folder, "s") == Head(5, lines[-1][-35:-3].decode())
    put(state, [*lines[:2], b"garbage\n"], "t")
    assert head_of(folder, "t") == Head(2, lines[1][-35:-3].decode())
    put(state, [], "empty")
    with pytest.raises(StoreFailed, match="holds no record"):
        head_of(folder, "empty")


def test_a_deleted_session_is_gone_and_nothing_else(state, folder, tmp_path):
    put(state, chain(*EVENTS))
    put(state, chain(*EVENTS), "other")
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "file").write_text("kept")
    (folder.path("s").parent / "inbox").mkdir()
    (folder.path("s").parent / "inbox" / "link").symlink_to(outside)
    (folder.path("s").parent / "link").symlink_to(outside / "file")
    delete(folder, "s")
    assert [path.name for path in (state / "sessions").iterdir()] == ["other"]
    assert (outside / "file").read_text() == "kept"
    with pytest.raises(UnknownSession):
        delete(folder, "s")


HOLDING = """
import fcntl, sys
file = open(sys.argv[1], "rb")
fcntl.flock(file, fcntl.LOCK_EX)
print("held", flush=True)
sys.stdin.read()
"""


def test_a_session_that_another_process_holds_is_not_deleted(state, folder):
    path = put(state, chain(*EVENTS))
    with subprocess.Popen(
        [sys.executable, "-c", HOLDING, str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as holder:
        assert holder.stdout.readline() == b"held\n"
        with pytest.raises(SessionLocked, match="not deleted"):
            delete(folder, "s")
        assert len(list(folder.read("s"))) == 4
        holder.stdin.close()
        assert holder.wait(20) == 0
    delete(folder, "s")
    assert list((state / "sessions").iterdir()) == []


@pytest.mark.parametrize("where", ["log", "folder"])
def test_links_are_not_deleted_through(state, folder, tmp_path, where):
    real = put(tmp_path / "real", chain(*EVENTS))
    link = state / "sessions" / "s"
    link.parent.mkdir(parents=True)
    if where == "folder":
        link.symlink_to(real.parent)
    else:
        link.mkdir()
        (link / "log.jsonl").symlink_to(real)
    with pytest.raises(StoreFailed, match="cannot be deleted"):
        delete(folder, "s")
    assert real.exists()


@contextmanager
def full_disk(size):
    """No file can grow beyond so many bytes: EFBIG, as close to ENOSPC as a test may come."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_disk_that_is_full_leaves_nothing_half_done(state, folder):
    lines = chain(*EVENTS, TextDelta("x" * 100_000))
    path = put(state, lines)
    before = shown(state)
    with full_disk(5000):
        with pytest.raises(StoreFailed, match="the copy cannot be written"):
            fork(folder, "s", None, "new")
        with pytest.raises(StoreFailed, match="the copy cannot be written"):
            import_log(folder, io.BytesIO(b"".join(lines)), lambda: "new")
        with pytest.raises(StoreFailed, match="the message cannot be stored"):
            send(path.parent, InboxMessage("a", "send", content="y" * 10_000))
    assert shown(state) == before
    assert [one.name for one in (state / "sessions").iterdir()] == ["s"]
    fork(folder, "s", None, "new")  # and once there is room again, it works
    send(path.parent, InboxMessage("a", "send", content="y" * 10_000))
    assert len(read_messages(path.parent)) == 1
