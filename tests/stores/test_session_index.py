"""Lists of sessions: at once, without the codec, with titles and tags as they are now."""

import os
import stat
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridle.errors import StoreFailed
from bridle.events import PromptReceived, SessionStarted, TagsChanged, TextDelta, TitleChanged
from bridle.protocols.codec import encode_data, encode_line
from bridle.stores.reader import SessionFolder
from bridle.stores.session_index import (
    Label,
    SessionEntry,
    count_sessions,
    find_sessions,
    list_sessions,
    read_label,
    write_label,
)

WHEN = "2026-01-31T10:30:01.000Z"
NOW = 1_770_000_000


def put(state, session_id, *events, age=0):
    """A session with these events, last changed so many seconds ago."""
    path = state / "sessions" / session_id / "log.jsonl"
    path.parent.mkdir(parents=True)
    before, lines = "", []
    for seq, event in enumerate(events, 1):
        line, before = encode_line(seq, WHEN, encode_data(event), before)
        lines.append(line)
    path.write_bytes(b"".join(lines))
    os.utime(path, (NOW - age, NOW - age))
    return path


def titles(found):
    return [one.title for one in found]


def ids(found):
    return [one.id for one in found]


def test_a_list_shows_what_the_head_of_a_log_says(state):
    start = SessionStarted("s", workspace='/w "ä" \\ x', model="m1")
    again = SessionStarted("s", resumed=True, workspace="/other", model="m2")
    prompt = PromptReceived('say "hi"\nto\x1b ünïcödé', 1)
    path = put(state, "s", start, prompt, TextDelta("x"), again)
    expected = SessionEntry(
        "s",
        WHEN,
        "2026-02-02T02:40:00.000Z",
        'say "hi"\nto\x1b ünïcödé',
        '/w "ä" \\ x',
        "m2",
        path.stat().st_size,
        (),
    )
    (found,) = list_sessions(state)
    assert found[:8] == expected[:8]
    assert path.read_bytes().endswith(found.end) and found.file[1] == path.stat().st_ino
    (summary,) = SessionFolder(state).sessions()
    assert (summary.title, summary.workspace, summary.tags) == (expected[3], expected[4], ())


def test_the_newest_title_and_tags_in_the_head_count(state):
    put(
        state,
        "s",
        SessionStarted("s"),
        PromptReceived("first", 1),
        TitleChanged("One"),
        TagsChanged(("a", "ü]")),
        TitleChanged('Two "words"'),
    )
    assert titles(list_sessions(state)) == ['Two "words"']
    put(state, "t", SessionStarted("t"), TagsChanged(("a", "b c")), TitleChanged("T"), age=5)
    assert [(one.title, one.tags) for one in list_sessions(state)][1:] == [("T", ("a", "b c"))]


def test_a_label_is_preferred_and_a_broken_one_is_no_loss(state):
    path = put(state, "s", SessionStarted("s"), PromptReceived("first", 1))
    write_label(path.parent, "Läter", ["x", "y"])
    assert [(one.title, one.tags) for one in list_sessions(state)] == [("Läter", ("x", "y"))]
    assert stat.S_IMODE((path.parent / "label.json").stat().st_mode) == 0o600
    write_label(path.parent, "", ["z"])
    assert [(one.title, one.tags) for one in list_sessions(state)] == [("first", ("z",))]
    for broken in ("", "[]", '{"title":7,"tags":"x"}', "{", "[" * 60_000):
        (path.parent / "label.json").write_text(broken)
        assert [(one.title, one.tags) for one in list_sessions(state)] == [("first", ())]
    assert sorted(one.name for one in path.parent.iterdir()) == ["label.json", "log.jsonl"]


def test_a_label_goes_through_no_link_and_into_no_folder_that_is_gone(state, tmp_path):
    with pytest.raises(StoreFailed, match="is in its log"):
        write_label(tmp_path / "gone", "T", [])
    path = put(state, "s", SessionStarted("s"), PromptReceived("first", 1))
    secret = tmp_path / "secret"
    secret.write_text('{"title":"secret"}')
    (path.parent / "label.json").symlink_to(secret)
    assert titles(list_sessions(state)) == ["first"]
    write_label(path.parent, "T", [])  # replaces the link, not what it leads to
    assert (titles(list_sessions(state)), secret.read_text()) == (["T"], '{"title":"secret"}')


@given(
    st.text(st.characters(exclude_categories=("Cs",))),
    st.lists(st.text(st.characters(exclude_categories=("Cs",)), max_size=20), max_size=4),
)
def test_any_title_and_tags_come_back(tmp_path_factory, title, tags):
    folder = tmp_path_factory.mktemp("s")
    write_label(folder, title, tags)
    assert read_label(str(folder)) == Label(title, tuple(tags))


def test_the_newest_come_first_and_a_limit_opens_no_more(state):
    for number in range(5):
        put(state, f"s{number}", SessionStarted("s"), PromptReceived(f"p{number}", 1), age=number)
    (state / "sessions" / "s0" / "log.jsonl").write_bytes(b"garbage")  # newest, and no log
    assert titles(list_sessions(state))[1:] == ["p1", "p2", "p3", "p4"]
    assert titles(list_sessions(state, 3))[1:] == ["p1", "p2"]
    assert (list_sessions(state, 0), count_sessions(state)) == ([], 5)


def test_what_is_no_session_is_passed_over(state):
    assert (list_sessions(state), count_sessions(state), find_sessions(state, "s")) == ([], 0, [])
    put(state, "s", SessionStarted("s"), PromptReceived("p", 1))
    (state / "sessions" / "empty").mkdir()
    (state / "sessions" / "file").write_text("x")
    put(state, ".new-1", SessionStarted("s"))
    assert (ids(list_sessions(state)), count_sessions(state)) == (["s"], 1)


def replaced(state, session_id, make):
    path = put(state, session_id, SessionStarted(session_id), PromptReceived("p", 1))
    content = path.read_bytes()
    path.unlink()
    make(path, content)


IN_PLACE = {
    "link": (
        lambda path, _: path.symlink_to("/dev/zero"),
        "(the log cannot be read: it is a symlink)",
    ),
    "folder": (lambda path, _: path.mkdir(), "(the log cannot be read: it is a folder)"),
    "fifo": (lambda path, _: os.mkfifo(path), "(the log cannot be read: it is a FIFO)"),
    "empty": (lambda path, _: path.touch(), "(the log is empty)"),
    "noise": (
        lambda path, _: path.write_bytes(b"\x8f\x00garbage"),
        "(damaged; bridle sessions verify noise)",
    ),
    "zeros": (
        lambda path, content: path.write_bytes(bytes(10_000) + b"\n" + content),
        "(damaged; bridle sessions verify zeros)",
    ),
    "junk": (
        lambda path, content: path.write_bytes(b"junk\n" * 3000 + content),
        "(damaged; bridle sessions verify junk)",
    ),
}


@pytest.mark.parametrize("kind", IN_PLACE)
def test_a_session_whose_log_is_damaged_or_replaced_is_listed_and_says_so(kind, state):
    make, note = IN_PLACE[kind]
    replaced(state, kind, make)
    assert [(one.id, one.title, one.tags) for one in list_sessions(state)] == [(kind, note, ())]
    assert (count_sessions(state), ids(find_sessions(state, kind[:3]))) == (1, [kind])
    write_label(state / "sessions" / kind, "a title", ["tag"])
    assert [(one.title, one.tags) for one in list_sessions(state)] == [(note, ("tag",))]


def test_a_session_whose_folder_is_a_link_is_listed_and_says_so(state, tmp_path):
    put(state, "s", SessionStarted("s"), PromptReceived("p", 1))
    (state / "sessions" / "s").rename(tmp_path / "away")
    (state / "sessions" / "s").symlink_to(tmp_path / "away")
    assert titles(list_sessions(state)) == ["(the log cannot be read: its folder is a symlink)"]


def test_a_first_line_that_is_longer_than_a_head_is_no_damage(state):
    path = put(state, "foreign")
    line = '{"timestamp":"","data":{"type":"user_prompt","content":"' + "long " * 9000 + '"}}\n'
    path.write_text(line)
    assert titles(list_sessions(state)) == ["long " * 40]


def test_a_log_of_another_program_and_a_very_long_prompt_have_titles(state):
    path = put(state, "foreign")
    path.write_text(
        '{"timestamp": "2026-01-01T00:00:00Z", "data": {"type": "session_start", "model": "x"}}\n'
        '{"timestamp": "2026-01-01T00:00:01Z", "data": {"type": "user_prompt", "content": "hé"}}\n'
    )
    put(state, "long", SessionStarted("long"), PromptReceived("ä\x1b" * 9000, 1), age=9**9)
    found = {one.id: one for one in list_sessions(state)}
    assert (found["foreign"].title, found["foreign"].model) == ("hé", "x")
    assert found["long"].title.startswith("ä\x1bä\x1b")


def test_a_session_is_found_by_the_beginning_of_its_id_or_title(state):
    put(state, "20260131-aaa1", SessionStarted("s"), PromptReceived("Mend the  parser", 1), age=1)
    put(state, "20260131-aab2", SessionStarted("s"), PromptReceived("mend it", 1), age=2)
    put(state, "20260201-ccc3", SessionStarted("s"), PromptReceived("20260131 was", 1), age=3)
    assert ids(find_sessions(state, "20260131-aaa1")) == ["20260131-aaa1"]
    assert ids(find_sessions(state, "20260131")) == ["20260131-aaa1", "20260131-aab2"]
    assert ids(find_sessions(state, "aa")) == ["20260131-aaa1", "20260131-aab2"]
    assert ids(find_sessions(state, "mend THE p")) == ["20260131-aaa1"]
    assert ids(find_sessions(state, "20260131 w")) == ["20260201-ccc3"]
    assert (
        find_sessions(state, ""),
        find_sessions(state, "nothing"),
        find_sessions(state, " "),
    ) == ([], [], [])


def test_a_list_needs_no_codec_and_no_event_loop():
    code = "import sys, bridle.stores.session_index; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=240
    )
    heavy = {"msgspec", "asyncio", "bridle.protocols.codec", "bridle.events", "hashlib", "random"}
    assert heavy & set(done.stdout.split()) == set()
