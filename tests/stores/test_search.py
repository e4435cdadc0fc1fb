"""Search over all sessions: what was said is found, once, however JSON spells it."""

import json
import os
import re

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from bridle.errors import SessionError
from bridle.events import (
    ApprovalAnswered,
    Checkpoint,
    Compacted,
    MessageAdded,
    PromptReceived,
    ResponseCompleted,
    Rewound,
    SessionStarted,
    TagsChanged,
    TextDelta,
    TitleChanged,
    Todo,
    TodosChanged,
    ToolCallReady,
    ToolResultEvent,
    TurnEnded,
)
from bridle.messages import Message, Text, Thinking, ToolCall, ToolOutput, user
from bridle.protocols.codec import encode_data, encode_line
from bridle.stores import search as module
from bridle.stores.reader import SessionFolder
from bridle.stores.search import Hit, find_ripgrep, needle_for, needle_in, search

WHEN = "2026-01-31T10:30:01.000Z"


def put(state, session_id, *events, rest=b"", age=0):
    path = state / "sessions" / session_id / "log.jsonl"
    path.parent.mkdir(parents=True)
    before, lines = "", []
    for seq, event in enumerate(events, 1):
        line, before = encode_line(seq, WHEN, encode_data(event), before)
        lines.append(line)
    path.write_bytes(b"".join(lines) + rest)
    os.utime(path, (10**9 - age, 10**9 - age))
    return SessionFolder(state)


def found(folder, words, **how):
    """The matches, each once by each scanner, which must agree."""
    hits = list(search(folder, words, ripgrep=False, **how))
    assert list(search(folder, words, **how)) == hits
    return [(hit.session_id, hit.seq, hit.kind, hit.text[hit.start : hit.end]) for hit in hits]


@pytest.fixture(autouse=True)
def small_logs_too(monkeypatch):
    """ripgrep is asked however little there is to search."""
    assert find_ripgrep() is not None
    monkeypatch.setattr(module, "_USE_RIPGREP", 0)


CALL = ToolCall("c", "write", {"path": "a/Zebra.py", "edits": [{"text": 'x = "zebra"\n'}], "n": 7})
STORY = [
    SessionStarted("s", workspace="/zebra"),
    PromptReceived("a zebra?", 1),
    MessageAdded(user("a zebra?"), 2),
    TextDelta("the zebra"),
    ToolCallReady(CALL),
    ResponseCompleted(
        "tool_use", Message("assistant", (Thinking("zebra…"), Text("The ZEBRA is"), CALL))
    ),
    ToolResultEvent(ToolOutput("c", "wrote\nzebra")),
    Compacted((user("zebra"),)),
    Checkpoint("", (user("zebra"),)),
    Rewound(0, messages=(user("zebra"),)),
    TitleChanged("Zebras"),
    TagsChanged(("x", "zebra")),
    TodosChanged((Todo("feed the zebra"),)),
    ApprovalAnswered("c", False, word="no zebra"),
    TurnEnded(1, "failed", "zebra lost"),
]


def test_everything_that_was_said_is_found_once_and_named(state):
    folder = put(state, "s", *STORY)
    assert found(folder, "zebra") == [
        ("s", 2, "prompt", "zebra"),
        ("s", 6, "thinking", "zebra"),
        ("s", 6, "answer", "ZEBRA"),
        ("s", 6, "call", "Zebra"),
        ("s", 6, "call", "zebra"),
        ("s", 7, "tool result", "zebra"),
        ("s", 11, "title", "Zebra"),
        ("s", 12, "tag", "zebra"),
        ("s", 13, "todo", "zebra"),
        ("s", 14, "approval", "zebra"),
        ("s", 15, "end", "zebra"),
    ]
    assert found(folder, "Zebra", ignore_case=False) == [
        ("s", 6, "call", "Zebra"),
        ("s", 11, "title", "Zebra"),
    ]


def test_a_hit_has_its_surroundings_and_its_place(state):
    text = "x" * 500 + "needle" + "y" * 500
    folder = put(
        state,
        "s",
        PromptReceived(text, 1),
        ResponseCompleted("tool_use", Message("assistant", (CALL,))),
    )
    assert list(search(folder, "NEEDLE")) == [
        Hit("s", 1, WHEN, "prompt", "x" * 80 + "needle" + "y" * 160, 80, 86)
    ]
    (hit,) = search(folder, "a/z")
    assert (hit.text, hit.start, hit.end) == ("write path: a/Zebra.py", 12, 15)


def test_the_newest_session_comes_first_and_a_limit_is_kept(state):
    for number in range(4):
        folder = put(state, f"s{number}", *[PromptReceived("hello", 1)] * 3, age=number)
    assert [one[:2] for one in found(folder, "hello", limit=4)] == [
        ("s0", 1),
        ("s0", 2),
        ("s0", 3),
        ("s1", 1),
    ]
    assert {one[0] for one in found(folder, "hello", sessions={"s1", "s3"})} == {"s1", "s3"}
    assert (found(folder, "hello", limit=0), found(folder, "nothing")) == ([], [])
    assert found(SessionFolder(state / "nowhere"), "x") == []


@pytest.mark.parametrize(
    "words",
    ['say "hi"', "one\ntwo", "tab\there", "c:\\temp\\x", "a/b", "ünïcödé", "ÜNÏ", "привет", "ΛΌΓΟΣ",
     "日本語", "😀", "\x1b[31m", '"', "\\", "x", "ß"],
)  # fmt: skip
@pytest.mark.parametrize("ascii_only", [False, True])
def test_whatever_json_escapes_is_found(state, words, ascii_only):
    text = 'I say "hi" one\ntwo tab\there c:\\temp\\x a/b ünïcödé привет λόγος 日本語 😀 \x1b[31m ß'
    data = {"type": "user_prompt", "content": text}
    line = json.dumps({"timestamp": WHEN, "data": data}, ensure_ascii=ascii_only)
    put(state, "foreign", rest=line.replace("a/b", "a\\/b").encode() + b"\n", age=1)
    folder = put(state, "ours", PromptReceived(text, 1))
    hits = found(folder, words)
    assert [one[:3] for one in hits] == [("ours", 1, "prompt"), ("foreign", 1, "prompt")]
    assert all(re.fullmatch(re.escape(words), one[3], re.IGNORECASE) for one in hits)


def test_a_log_of_another_program_is_numbered_and_its_prompt_told_once(state):
    lines = [
        {"type": "session_start", "sessionId": "f"},
        {"type": "user_prompt", "content": "hello there"},
        {"type": "message", "role": "user", "content": "hello there"},
        {"type": "message", "role": "assistant", "content": "hello you"},
    ]
    data = "".join(json.dumps({"timestamp": WHEN, "data": line}) + "\n" for line in lines)
    folder = put(state, "f", rest=data.encode())
    assert found(folder, "hello") == [("f", 2, "prompt", "hello"), ("f", 4, "answer", "hello")]


@pytest.mark.parametrize(
    ("pattern", "matches"),
    [
        (r"ze.ra", ["zebra"]),
        (r"^the z\w+", ["The zebra"]),
        (r"(lion|zebra)s?", ["zebra"]),
        (r"zebraa*", ["zebra"]),
        (r"colou?r", ["color"]),
        (r"x{2}y", ["xxy"]),
        (r"a\.b[c]", ["a.bc"]),
        (r"lionx?|zebra", ["zebra"]),
        (r"nothing here", []),
    ],
)
def test_regular_expressions_find_what_they_mean(state, pattern, matches):
    folder = put(state, "s", PromptReceived("first\nThe zebra has no color xxy a.bc", 1))
    assert [one[3] for one in found(folder, pattern, regex=True)] == matches


def test_what_cannot_be_searched_for_is_said(state):
    folder = SessionFolder(state)
    with pytest.raises(SessionError, match="is not a regular expression"):
        search(folder, "(", regex=True)
    with pytest.raises(SessionError, match="nothing to search for"):
        search(folder, "")


def test_long_lines_torn_ends_and_broken_lines_do_not_stop_a_search(state):
    folder = put(
        state,
        "s",
        PromptReceived("hello", 1),
        ToolResultEvent(ToolOutput("c", "x" * 9_000_000 + " hello")),
        rest=b'hello\n\0hello\0\n{"seq":3,"hello',
    )
    assert [one[1] for one in found(folder, "hello")] == [1, 2]
    seen = []
    list(search(folder, "hello", progress=lambda *told: seen.append(told)))
    size = folder.path("s").stat().st_size
    assert seen == [(size, size), (size, size)]


TEXT = st.text(st.characters(exclude_categories=("Cs",)), max_size=30)


@given(TEXT, TEXT, TEXT, st.booleans(), st.booleans())
def test_the_needle_is_in_every_line_with_the_words(before, words, after, fold, ascii_only):
    assume(words)
    said = before + (words.swapcase() if fold else words) + after
    assume(re.search(re.escape(words), said, re.IGNORECASE if fold else 0))
    assume(not fold or not re.search("[kK\u212asS\u017f]", words))  # two letters of another age
    line = json.dumps({"x": said}, ensure_ascii=ascii_only).encode() + b"\n"
    needle = needle_for(words)
    assert needle is None or needle.lower() in line.lower()
    assert fold or needle is None or needle in line


SIMPLE = st.sampled_from(
    ["abc", "d", "e*", "f?", "gh+", "i{2}", "j{0,1}", ".", r"\w", "[kl]", " ", "mno", "^", "$"]
)


@given(st.lists(SIMPLE, min_size=1, max_size=6), TEXT)
def test_the_needle_of_an_expression_is_in_every_match(parts, noise):
    pattern = "".join(parts)
    said = re.sub(r"[*+?^$]|\{2\}|\{0,1\}|\[kl\]|\\w", "", pattern).replace(".", "n")
    for text in (said, noise + said, said * 2, noise):
        match = re.search(pattern, text)
        needle = needle_in(pattern)
        if match and needle is not None:
            assert needle in text.encode()


@pytest.mark.parametrize("pattern", ["(a+)+$", "(x+x+)+y", r"(\w+|\d)*!", "(.*)*z", "(a|a)*b"])
def test_an_expression_that_may_take_for_ever_is_refused_at_once(pattern, state):
    with pytest.raises(SessionError, match="may take forever") as caught:
        search(SessionFolder(state), pattern, regex=True)
    assert caught.value.hint


@pytest.mark.parametrize(
    "pattern", [".*needle", r"\bfoo\w*bar", "a|b|c", r"^\s*def \w+\(.*\):", "x*", r"(\d+\.)+\d+"]
)
def test_an_expression_that_is_of_use_is_not_refused(pattern, state):
    assert list(search(SessionFolder(state), pattern, regex=True)) == []
