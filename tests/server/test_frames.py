"""Records as server-sent events (A10): names, data and positions."""

import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridle.events import (
    ApprovalAnswered,
    ApprovalAsked,
    CallIntended,
    MessageAdded,
    PromptReceived,
    ResponseCompleted,
    SessionStarted,
    TextDelta,
    ThinkingDelta,
    ToolCallArgsDelta,
    ToolCallReady,
    ToolCallStarted,
    ToolResultEvent,
    TraceEvent,
    TurnEnded,
    TurnParked,
    UnknownEvent,
    UsageReported,
)
from bridle.messages import Message, Text, ToolCall, ToolOutput
from bridle.protocols.codec import encode_data, encode_line
from bridle.protocols.store import Record
from bridle.server.sse import event_bytes, line_frame, position_bytes, to_frame
from bridle.service.records import record_line
from bridle.usage import Usage

CALL = ToolCall("c1", "shell", {"command": "ls\n"})
WHEN = "2026-01-02T03:04:05.678Z"
TABLE = [
    (TextDelta("a"), "text_delta"),
    (ThinkingDelta("a"), "thinking_delta"),
    (ToolCallStarted("c1", "shell"), "trace"),
    (ToolCallArgsDelta("c1", "{"), "trace"),
    (ToolCallReady(CALL), "tool_call"),
    (CallIntended("c1", "shell"), "trace"),
    (ToolResultEvent(ToolOutput("c1", "text_delta")), "tool_result"),
    (ApprovalAsked(CALL, "h"), "approval_required"),
    (ApprovalAnswered("c1", True), "approval_answered"),
    (UsageReported(Usage()), "usage"),
    (ResponseCompleted("complete", Message("assistant", (Text("a"),))), "trace"),
    (ResponseCompleted("error"), "trace"),
    (TurnEnded(1, "done"), "completed"),
    (TurnEnded(1, "failed", "done"), "error"),
    (TurnEnded(1, "interrupted"), "error"),
    (TurnEnded(1, "budget"), "error"),
    (TraceEvent("error", {"type": "usage"}), "trace"),
    (TurnParked(1), "trace"),
    (MessageAdded(Message("user", (Text("a"),))), "trace"),
    (PromptReceived("a"), "trace"),
    (SessionStarted("s"), "trace"),
    (UnknownEvent({"type": "of_tomorrow", "eventType": "TextDelta"}), "trace"),
]


@pytest.mark.parametrize(("event", "name"), TABLE, ids=lambda one: str(one)[:40])
def test_an_event_is_called_as_the_table_says_live_and_from_disk_alike(event, name):
    """(A10) The names of the table of contracts."""
    record = Record(7, WHEN, event)
    line, _ = encode_line(7, WHEN, encode_data(event), "before")
    live, read = to_frame(record), to_frame(line[:-1])
    assert live == read
    data = json.loads(encode_data(event))
    assert (live.seq, live.name) == (7, name)
    assert json.loads(live.data) == {"seq": 7, "timestamp": WHEN, "data": data}


def test_an_id_is_given_only_to_what_would_survive():
    frame = to_frame(Record(7, WHEN, TextDelta("a")))
    body = record_line(Record(7, WHEN, TextDelta("a")))
    assert frame.encoded(7) == b"id: 7\nevent: text_delta\ndata: %b\n\n" % body
    assert frame.encoded(6) == b"event: text_delta\ndata: %b\n\n" % body


def test_a_position_dispatches_nothing():
    assert position_bytes(12) == b"id: 12\n\n"


def test_what_is_no_record_may_carry_a_position():
    assert event_bytes("resync", {"after": 3}, 2) == b'id: 2\nevent: resync\ndata: {"after":3}\n\n'
    assert event_bytes("stopping", {}) == b"event: stopping\ndata: {}\n\n"


def parsed(frame):
    """One event, as the specification of server-sent events reads it."""
    text = frame.decode()
    for end in ("\r\n", "\r"):
        text = text.replace(end, "\n")
    assert text.endswith("\n\n")
    lines = text[:-2].split("\n")
    assert "" not in lines
    return [line.partition(": ")[::2] for line in lines]


TEXT = st.text(st.characters(exclude_categories=("Cs",)))


@given(TEXT)
def test_no_text_breaks_a_frame(text):
    frame = to_frame(Record(1, WHEN, TraceEvent(text, {"a": text, text: [text]})))
    (_, seq), (_, name), (_, data) = parsed(frame.encoded(1))
    found = json.loads(data)["data"]
    assert (seq, name) == ("1", "trace")
    assert (found["kind"], found["detail"]) == (text, {"a": text, text: [text]})


SPACE = st.text(" \t\r\n", max_size=5)


@given(TEXT, SPACE, SPACE)
def test_a_line_of_another_hand_with_breaks_between_its_values_is_still_one_frame(text, one, two):
    words = msgspec.json.encode(text).decode()
    body = f'{{"seq":{one}3,{two}"data":{{"type":{one}"note","text":{words}}}{two}}}'
    frame = line_frame(body.encode())
    fields = parsed(frame.encoded(0))
    assert [field for field, _ in fields] == ["event", "data"]
    assert json.loads(fields[1][1]) == {"seq": 3, "data": {"type": "note", "text": text}}
    assert (frame.seq, frame.name) == (3, "trace")
