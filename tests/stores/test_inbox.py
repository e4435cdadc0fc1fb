"""The inbox: letters that are whole, private, in order and durable; and the bell."""

import logging
import os
import stat
import subprocess
import sys
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from bridle.errors import StoreFailed
from bridle.messages import Image, Text
from bridle.protocols.store import InboxMessage
from bridle.stores.inbox_files import Notifier, discard, read_messages, send


@pytest.fixture
def folder(tmp_path):
    made = tmp_path / "sessions" / "s"
    made.mkdir(parents=True)
    return made


def modes(folder):
    return {stat.S_IMODE(path.lstat().st_mode) for path in folder.iterdir()}


def untimed(found):
    """The letters without the time at which they were posted."""
    return [replace(letter, at=0.0) for letter in found]


def test_a_letter_says_when_it_was_posted_and_no_time_before_it_was_there(folder):
    before = time.time() - 1  # the clock of files is a little coarser
    send(folder, InboxMessage("a", "interrupt"))
    send(folder, InboxMessage("b", "interrupt", at=1.0))
    send(folder, InboxMessage("c", "interrupt", at=9e9))
    first, second, third = (letter.at for letter in read_messages(folder))
    assert before <= first <= time.time() and before <= second <= time.time()
    assert third == 9e9


def test_letters_come_out_as_they_went_in_and_in_order(folder):
    sent = [
        InboxMessage("b", "send", "anna", 'héllo\n"quoted"', when="next_step"),
        InboxMessage(
            "a", "answer", call_id="c1", shown="h", allowed=True, scope="session", word="go"
        ),
        InboxMessage("c", "send", parts=(Text("look"), Image("image/png", "aGk="))),
        InboxMessage("d", "interrupt", "ben"),
    ]
    assert read_messages(folder) == []
    for letter in sent:
        send(folder, letter)
    assert untimed(read_messages(folder)) == sent
    discard(folder, sent[1])
    assert untimed(read_messages(folder)) == [sent[0], *sent[2:]]
    discard(folder, sent[1])  # twice is once
    assert untimed(read_messages(folder)) == [sent[0], *sent[2:]]


def test_what_is_written_is_private_and_nothing_else_is_left(folder):
    send(folder, InboxMessage("a", "interrupt"))
    inbox = folder / "inbox"
    assert stat.S_IMODE(inbox.stat().st_mode) == 0o700
    assert modes(inbox) == {0o600}
    assert [path.name[20:] for path in inbox.iterdir()] == ["-a.json"]


def test_a_clock_that_jumps_back_changes_no_order(folder, monkeypatch):
    send(folder, InboxMessage("a", "interrupt"))
    monkeypatch.setattr(time, "time_ns", lambda: 5)
    send(folder, InboxMessage("b", "interrupt"))
    send(folder, InboxMessage("c", "interrupt"))
    assert [letter.id for letter in read_messages(folder)] == ["a", "b", "c"]


@pytest.mark.parametrize("bad", ["", "../x", "a/b", ".hidden", "a\n", "ä", "x" * 65, "a.b", "-a"])
def test_an_id_that_is_no_name_is_refused(folder, bad):
    with pytest.raises(StoreFailed, match="cannot be the id of a message"):
        send(folder, InboxMessage(bad, "interrupt"))
    assert list(folder.iterdir()) == []


def test_what_is_no_letter_is_left_alone_and_mentioned_once(folder, caplog):
    send(folder, InboxMessage("good", "interrupt"))
    inbox = folder / "inbox"
    (inbox / "00000000000000000001-broken.json").write_text('{"id":"broken","verb":"se')
    (inbox / "00000000000000000002-other.json").write_text('{"id":"good","verb":"interrupt"}')
    (inbox / "00000000000000000003-verb.json").write_text('{"id":"verb","verb":"format_disk"}')
    (inbox / "note.txt").write_text("hello")
    (inbox / "00000000000000000004-folder.json").mkdir()
    os.mkfifo(inbox / "00000000000000000005-pipe.json")
    (inbox / "00000000000000000006-good.json").symlink_to(inbox / "note.txt")
    (inbox / ".half").write_text("{")
    before = sorted(path.name for path in inbox.iterdir())
    with caplog.at_level(logging.WARNING):
        assert untimed(read_messages(folder)) == [InboxMessage("good", "interrupt")]
        assert untimed(read_messages(folder)) == [InboxMessage("good", "interrupt")]
    assert len(caplog.records) == 7
    assert sorted(path.name for path in inbox.iterdir()) == before


@pytest.mark.parametrize("where", ["inbox", "session"])
def test_a_link_where_a_folder_should_be_is_not_followed(folder, tmp_path, where):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    if where == "inbox":
        (folder / "inbox").symlink_to(elsewhere)
    else:
        folder.rmdir()
        folder.symlink_to(elsewhere)
    with pytest.raises(StoreFailed, match="cannot be stored"):
        send(folder, InboxMessage("a", "interrupt"))
    assert list(elsewhere.iterdir()) == []


def test_without_the_session_nothing_is_made(tmp_path):
    with pytest.raises(StoreFailed):
        send(tmp_path / "gone", InboxMessage("a", "interrupt"))
    assert list(tmp_path.iterdir()) == []
    assert read_messages(tmp_path / "gone") == []
    discard(tmp_path / "gone", InboxMessage("a", "interrupt"))


def test_text_that_cannot_be_stored_is_refused_with_a_sentence(folder):
    with pytest.raises(StoreFailed, match="nothing was sent"):
        send(folder, InboxMessage("a", "send", content="\ud800"))
    assert read_messages(folder) == []


@given(st.lists(st.text(st.characters(exclude_categories=("Cs",))), max_size=5))
def test_any_text_comes_through(tmp_path_factory, texts):
    folder = tmp_path_factory.mktemp("s")
    sent = [InboxMessage(f"l{number}", "send", content=text) for number, text in enumerate(texts)]
    for letter in sent:
        send(folder, letter)
    assert untimed(read_messages(folder)) == sent


POSTING = """
import sys
from pathlib import Path
from bridle.protocols.store import InboxMessage
from bridle.stores.inbox_files import Notifier, send
folder, who = Path(sys.argv[1]), sys.argv[2]
for number in range(25):
    send(folder, InboxMessage(f"{who}-{number:02}", "send", who, str(number)))
    Notifier(folder).notify()
"""


def test_many_processes_post_and_none_is_lost_and_each_keeps_its_order(folder):
    at_work = [
        subprocess.Popen([sys.executable, "-c", POSTING, str(folder), who]) for who in "abcd"
    ]
    assert [one.wait(50) for one in at_work] == [0] * 4
    found = read_messages(folder)
    for who in "abcd":
        assert [one.content for one in found if one.by == who] == [str(n) for n in range(25)]
    assert len(found) == Notifier(folder).count() == 100


def test_the_bell_grows_and_is_private(tmp_path):
    notifier = Notifier(tmp_path)
    assert notifier.count() == 0
    notifier.notify()
    Notifier(tmp_path).notify()
    assert notifier.count() == 2
    assert modes(tmp_path) == {0o600}


def test_a_bell_that_is_a_link_does_not_ring(tmp_path):
    (tmp_path / "other").write_text("x")
    (tmp_path / "bell").symlink_to(tmp_path / "other")
    with pytest.raises(StoreFailed, match="the message is stored"):
        Notifier(tmp_path).notify()
    assert (Notifier(tmp_path).count(), (tmp_path / "other").read_text()) == (0, "x")
