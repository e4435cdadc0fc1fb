"""What waits for a person, over all sessions, found from the ends of their logs."""

import json
import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridle.engine.history import fold
from bridle.events import (
    ApprovalAnswered,
    ApprovalAsked,
    Forked,
    Rewound,
    SessionStarted,
    TextDelta,
    ToolResultEvent,
    TurnEnded,
    TurnParked,
)
from bridle.messages import ToolCall, ToolOutput
from bridle.protocols.codec import encode_data, encode_line
from bridle.protocols.session_catalog import PendingApproval
from bridle.protocols.store import InboxMessage
from bridle.stores.inbox_files import send
from bridle.stores.pending_approvals import pending_approvals
from bridle.stores.reader import SessionFolder

WHEN = "2026-01-31T10:30:01.000Z"
LATER = "9999-01-01T00:00:00Z"


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


def ask(number, expires=LATER, **arguments):
    return ApprovalAsked(
        ToolCall(f"c{number}", "shell", arguments), f"shown{number}", expires=expires
    )


def answer(number, shown=None):
    return ApprovalAnswered(f"c{number}", True, shown=f"shown{number}" if shown is None else shown)


def shown(folder):
    return [(one.session_id, one.asked.shown, one.seq) for one in pending_approvals(folder)]


def test_open_questions_are_found_and_answered_ones_are_not(state):
    put(state, "done", SessionStarted("done"), ask(1), answer(1), TurnEnded(1, "done"))
    put(state, "over", SessionStarted("over"), ask(1), TurnEnded(1, "interrupted"), age=1)
    put(state, "open", SessionStarted("open"), ask(1), ask(2), answer(1), TurnParked(1), age=2)
    folder = put(state, "old", ask(8), TurnEnded(1, "done"), ask(9), age=3)
    assert pending_approvals(folder) == [
        PendingApproval("open", ask(2), 3, WHEN),
        PendingApproval("old", ask(9), 3, WHEN),
    ]


def test_a_fork_and_a_rewind_leave_nothing_to_answer(state):
    put(state, "fork", ask(1), Forked("other", 1))
    put(state, "rewind", ask(1), Rewound(0))
    folder = put(state, "after", ask(1), Rewound(0), ask(2))
    assert shown(folder) == [("after", "shown2", 3)]


def test_what_is_past_its_time_is_marked_and_not_hidden(state):
    folder = put(
        state, "s", ask(1, "2020-01-01T00:00:00Z"), ask(2, LATER), ask(3, ""), ask(4, "soon")
    )
    assert [one.expired for one in pending_approvals(folder)] == [True, False, False, False]


def test_an_answer_that_waits_in_the_inbox_is_told(state):
    folder = put(state, "s", ask(1), ask(2))
    send(state / "sessions" / "s", InboxMessage("a", "answer", shown="shown2", allowed=True))
    assert [(one.asked.shown, one.posted) for one in pending_approvals(folder)] == [
        ("shown1", False),
        ("shown2", True),
    ]


def test_early_answers_named_the_call_alone(state):
    folder = put(state, "s", ask(1), ask(2), answer(1, ""), answer(7, "other"))
    assert shown(folder) == [("s", "shown2", 2)]


@pytest.mark.parametrize("size", [1, 8191, 8192, 8193, 100_000, 5_000_000])
def test_a_question_is_found_however_much_was_said_since(state, size):
    before = [TextDelta("x" * 9000), ask(1)]
    folder = put(state, "s", TurnEnded(1, "done"), *before, TextDelta("y" * size), TextDelta("z"))
    assert shown(folder) == [("s", "shown1", 3)]


def test_what_is_torn_broken_or_empty_is_passed_over(state):
    put(state, "empty")
    put(state, "foreign", rest=b"hello\n\0\0\n")
    put(state, "torn", rest=b"x" * 20_000)
    line, _ = encode_line(2, WHEN, encode_data(TurnEnded(1, "done")), "")
    folder = put(state, "s", ask(1), rest=b"\n\n{}\n" + line[:-1])
    assert shown(folder) == [("s", "shown1", 1)]
    assert pending_approvals(SessionFolder(state / "nowhere")) == []


FAKES = [
    {"data": {"type": "turn_end", "turn": 1}},
    {"seq": 9, "timestamp": WHEN, "data": {"type": "turn_end"}},
    {"data": {"type": "rewind", "to": 0}},
    {"data": {"type": "approval_answered", "callId": "c1", "allowed": True, "shown": "shown1"}},
    {"data": {"type": "approval_asked", "shown": "fake"}},
]


@pytest.mark.parametrize("fake", FAKES)
def test_content_that_looks_like_a_record_is_content(state, fake):
    text = "\n" + json.dumps(fake, separators=(",", ":")) + "\n"
    folder = put(
        state,
        "s",
        ask(1, **fake),
        ToolResultEvent(ToolOutput("c0", text, data=fake)),
        TextDelta(text),
    )
    assert shown(folder) == [("s", "shown1", 1)]


numbers = st.integers(1, 4)
EVENTS = st.one_of(
    st.builds(ask, numbers),
    st.builds(answer, numbers),
    st.builds(TurnEnded, numbers, st.just("done")),
    st.builds(TextDelta, st.sampled_from(["x", "y" * 5000])),
    st.just(Rewound(0)),
    st.just(Forked("o", 1)),
    st.just(SessionStarted("s", resumed=True)),
)


@given(st.lists(EVENTS, max_size=25))
def test_the_end_of_a_log_tells_the_same_as_all_of_it(tmp_path_factory, events):
    state = tmp_path_factory.mktemp("state")
    folder = put(state, "s", *events)
    whole = fold(folder.read("s"))
    assert [one.asked for one in pending_approvals(folder)] == list(whole.pending.values())
