"""How records are written: every event comes back as it went, and old shapes never change (A7)."""

import json
from typing import get_args

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bridle import events
from bridle.events import (
    AgentAttached,
    ApprovalAnswered,
    ApprovalAsked,
    CallIntended,
    Checkpoint,
    Compacted,
    InboxMessageRefused,
    InterruptRequested,
    LimitsNarrowed,
    MessageAdded,
    PromptReceived,
    Recorded,
    ResponseCompleted,
    Rewound,
    SessionStarted,
    SettingsChanged,
    StateTrace,
    Streamed,
    TextDelta,
    Todo,
    TodosChanged,
    ToolCallReady,
    ToolResultEvent,
    TraceEvent,
    TurnEnded,
    UnknownCallReported,
    UnknownEvent,
    UsageReported,
)
from bridle.messages import File, Image, Message, Outcome, Text, Thinking, ToolCall, ToolOutput
from bridle.protocols.codec import (
    decode_data,
    encode_data,
    encode_line,
    escape_event,
    line_hash,
    to_record,
)
from bridle.usage import Usage
from rig import SOAK

words = st.text(max_size=12)
plain = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | words,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=3),
    max_leaves=6,
)
arguments = st.dictionaries(words, plain, max_size=3)
tool_calls = st.builds(ToolCall, words, words, arguments)
images = st.builds(Image, words, words, words)
files = st.builds(File, words, words, words)
thinking = st.builds(Thinking, words, st.dictionaries(words, words, max_size=2))
outputs = st.builds(
    ToolOutput,
    words,
    words,
    st.booleans(),
    words,
    plain,
    st.tuples(images | files) | st.just(()),
    st.sampled_from(get_args(Outcome)),
)
parts = st.one_of(st.builds(Text, words), images, files, thinking, tool_calls)
user_messages = st.builds(
    Message, st.sampled_from(["user", "system"]), st.lists(parts, max_size=4).map(tuple)
)
replies = st.builds(Message, st.just("assistant"), st.lists(parts, max_size=4).map(tuple))
usages = st.builds(Usage, *[st.integers(0, 10**9)] * 5, st.booleans())
stops = st.sampled_from(["complete", "tool_use", "max_tokens", "refusal", "interrupted", "error"])


def some(values):
    return st.lists(values, max_size=3).map(tuple)


BY_HAND = {
    ToolCallReady: st.builds(ToolCallReady, tool_calls),
    TraceEvent: st.builds(TraceEvent, words, plain),
    InterruptRequested: st.builds(InterruptRequested.of, words, words),
    InboxMessageRefused: st.builds(InboxMessageRefused.of, words, words, words, words),
    UnknownCallReported: st.builds(UnknownCallReported.of, tool_calls, words),
    SettingsChanged: st.builds(SettingsChanged.of, st.lists(words, max_size=3), words),
    LimitsNarrowed: st.builds(LimitsNarrowed.of, words, arguments),
    PromptReceived: st.builds(
        PromptReceived,
        words,
        st.integers(0, 99),
        words,
        parts=st.lists(parts, max_size=3).map(tuple),
    ),
    MessageAdded: st.builds(MessageAdded, user_messages, st.integers(0, 99)),
    ResponseCompleted: st.builds(
        ResponseCompleted, stops, st.none() | replies, usages, words, words, words
    ),
    ToolResultEvent: st.builds(ToolResultEvent, outputs, st.booleans()),
    ApprovalAsked: st.builds(ApprovalAsked, tool_calls, words, words, words, words, words),
    ApprovalAnswered: st.builds(ApprovalAnswered, words, st.booleans(), words, word=words),
    UsageReported: st.builds(UsageReported, usages, words, st.none() | st.floats(0, 9)),
    TodosChanged: st.builds(TodosChanged, st.lists(st.builds(Todo, words), max_size=3).map(tuple)),
    UnknownEvent: st.builds(
        UnknownEvent, arguments.map(lambda found: {**found, "type": "from_the_future"})
    ),
    TurnEnded: st.builds(TurnEnded, st.integers(0, 9), st.sampled_from(["done", "stuck"]), words),
    Rewound: st.builds(Rewound, st.integers(0, 9), words, some(user_messages | replies)),
    Compacted: st.builds(Compacted, some(user_messages | replies), st.integers(0, 9)),
}
BY_HAND[AgentAttached] = st.builds(AgentAttached, words, words, arguments)
BY_HAND[Checkpoint] = st.builds(
    Checkpoint,
    words,
    some(user_messages | replies),
    words,
    waiting=some(st.tuples(st.integers(1, 9), BY_HAND[PromptReceived])),
    asked=some(BY_HAND[ApprovalAsked]),
    answered=some(BY_HAND[ApprovalAnswered]),
    opened=st.none() | replies,
    outputs=some(outputs),
    intents=some(st.tuples(words, st.booleans())),
    attached=some(BY_HAND[AgentAttached]),
)


def kinds():
    found = [kind for kind in vars(events).values() if isinstance(kind, type)]
    return [
        kind
        for kind in found
        if issubclass(kind, Streamed | Recorded) and kind not in (Streamed, Recorded, StateTrace)
    ]


@pytest.fixture(autouse=True)
def finite():
    """Numbers as JSON has them."""
    st.register_type_strategy(float, st.floats(allow_nan=False, allow_infinity=False))


@pytest.mark.parametrize("kind", kinds(), ids=lambda kind: kind.__name__)
@settings(max_examples=1000 if SOAK else 25)
@given(data=st.data())
def test_every_event_comes_back_as_it_went(kind, data):
    """A7; also those that somebody adds later: the list is taken from the module."""
    event = data.draw(BY_HAND[kind] if kind in BY_HAND else st.from_type(kind))
    line, digest = encode_line(7, "2026-01-31T10:30:00.000Z", encode_data(event), "before")
    record = to_record(line)
    assert (record.seq, record.timestamp, record.hash) == (7, "2026-01-31T10:30:00.000Z", digest)
    assert record.event == event
    assert line.count(b"\n") == 1


def written(event):
    return json.loads(encode_data(event))


def test_the_documented_shapes_word_for_word():
    """A7: these are in people's files."""
    start = written(SessionStarted("abc123", "repl"))
    assert start == {
        "type": "session_start",
        "sessionId": "abc123",
        "mode": "repl",
        "resumed": False,
        "format": 1,
        "workspace": "",
        "model": "",
        "version": "",
    }
    assert written(PromptReceived("hi")) == {"type": "user_prompt", "content": "hi"}
    hello = MessageAdded(Message("user", (Text("hi"),)))
    assert written(hello) == {"type": "message", "role": "user", "content": "hi"}
    assert written(TextDelta("a")) == {"type": "event", "eventType": "TextDelta", "text": "a"}
    call = ToolCall("c1", "read", {"path": "a"})
    reply = ResponseCompleted("tool_use", Message("assistant", (Text("ok"), call)))
    line = written(reply)
    assert {key: line[key] for key in ("type", "role", "content", "toolCalls", "stopReason")} == {
        "type": "message",
        "role": "assistant",
        "content": "ok",
        "toolCalls": [
            {"type": "tool_call", "id": "c1", "name": "read", "arguments": {"path": "a"}}
        ],
        "stopReason": "tool_use",
    }
    assert written(ToolResultEvent(ToolOutput("c1", "words", name="read"))) == {
        "type": "message",
        "role": "tool",
        "callId": "c1",
        "result": {"ok": True, "text": "words", "name": "read"},
    }
    assert written(ResponseCompleted("error")) == {
        "type": "event",
        "eventType": "ResponseCompleted",
        "stopReason": "error",
    }
    assert written(CallIntended("c1", "read", True, "h")) == {
        "type": "intent",
        "callId": "c1",
        "name": "read",
        "readOnly": True,
        "argumentsHash": "h",
    }


def test_parts_are_written_only_where_words_and_calls_do_not_say_it_all():
    simple = Message("assistant", (Text("a"), ToolCall("c", "x", {})))
    assert "parts" not in written(ResponseCompleted("tool_use", simple))
    odd = [
        (Text("a"), Text("b")),
        (ToolCall("c", "x", {}), Text("after")),
        (Thinking("hm"), Text("a")),
        (Text(""),),
        (Text(""), ToolCall("c", "x", {})),
    ]
    for found in odd:
        assert "parts" in written(ResponseCompleted("complete", Message("assistant", found)))


@pytest.mark.parametrize(
    "data",
    [
        {"type": "from_the_future", "x": [1]},
        {"type": "event", "eventType": "Hologram", "depth": 3},
        {"type": "turn_end", "turn": "not a number"},
        {"type": "unknown", "data": {"a": 1}},
        {"type": "message", "role": "wizard", "content": "x"},
        {"no": "type"},
        {},
    ],
)
def test_what_is_not_known_is_kept_as_data(data):
    raw = msgspec.json.encode(data)
    event = decode_data(raw)
    assert event == UnknownEvent(data)
    assert encode_data(event) == raw


@pytest.mark.parametrize("data", [b"7", b'"x"', b"[1]", b"null", b"{", b"\xff"])
def test_what_is_not_an_object_is_no_record(data):
    with pytest.raises((msgspec.DecodeError, UnicodeDecodeError)):
        decode_data(data)


def test_keys_that_a_later_version_adds_are_passed_over():
    """Old readers load new logs as far as they know them."""
    data = b'{"type":"turn_end","turn":3,"reason":"done","mood":"good"}'
    assert decode_data(data) == TurnEnded(3, "done")


def test_each_hash_covers_its_line_and_the_hash_before():
    first, one = encode_line(1, "t", b"{}", "")
    assert encode_line(1, "t", b"{}", "x")[1] != one
    assert encode_line(2, "t", b"{}", "")[1] != one
    body = first[: first.rindex(b',"hash"')]
    assert line_hash(body, "") == one
    assert len(one) == 32


def test_a_hash_of_any_length_can_be_gone_on_from():
    """Somebody edited the file: the chain is broken there, but the session is not."""
    assert len(line_hash(b"x", "y" * 500)) == 32


def test_half_a_surrogate_pair_is_written_out_wherever_it_stands():
    bad = "a\ud800"
    output = ToolOutput("c", bad, name="x", data={bad: [bad, 7]})
    good = ToolOutput("c", "a\\ud800", name="x", data={"a\\ud800": ["a\\ud800", 7]})
    assert escape_event(ToolResultEvent(output)) == ToolResultEvent(good)
    reply = ResponseCompleted("complete", Message("assistant", (Text(bad), ToolCall("c", bad))))
    fine = Message("assistant", (Text("a\\ud800"), ToolCall("c", "a\\ud800")))
    assert escape_event(reply) == ResponseCompleted("complete", fine)
