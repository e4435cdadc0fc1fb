"""What a log adds up to: the fold of any beginning of a log is a valid request (M4, A8, S5, S7)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridle.engine.history import NOT_RUN, UNKNOWN, History, fold
from bridle.events import (
    ApprovalAnswered,
    ApprovalAsked,
    CallIntended,
    MessageAdded,
    PromptReceived,
    ResponseCompleted,
    Rewound,
    SessionStarted,
    TextDelta,
    TitleChanged,
    Todo,
    TodosChanged,
    ToolResultEvent,
    TurnEnded,
    UsageReported,
)
from bridle.messages import Message, Text, Thinking, ToolCall, ToolOutput, user
from bridle.protocols.codec import decode_data, encode_data
from bridle.protocols.store import Record
from bridle.usage import ExecutionMetrics, Usage
from rig import is_valid


def numbered(events):
    return [Record(seq, f"t{seq}", event) for seq, event in enumerate(events, 1)]


def asks(*ids, text=""):
    parts = ((Text(text),) if text else ()) + tuple(ToolCall(one, "look", {}) for one in ids)
    return ResponseCompleted("tool_use", Message("assistant", parts))


def says(text):
    return ResponseCompleted("complete", Message("assistant", (Text(text),)))


def result(call_id, text="seen"):
    return ToolResultEvent(ToolOutput(call_id, text, name="look"))


ids = st.sampled_from(["a", "b", "c", "d"])
anything = st.one_of(
    st.just(SessionStarted("s")),
    st.builds(PromptReceived, st.text(max_size=5), st.integers(0, 3)),
    st.builds(
        lambda words, seq: MessageAdded(user(words), seq), st.text(max_size=5), st.integers(0, 9)
    ),
    st.builds(asks, ids),
    st.builds(lambda one: MessageAdded(asks(one).message), ids),
    st.builds(lambda one: MessageAdded(Message("tool", (result(one).output,))), ids),
    st.lists(ids, min_size=1, max_size=3, unique=True).map(lambda found: asks(*found)),
    st.builds(says, st.text(min_size=1, max_size=5)),
    st.builds(result, ids, st.text(max_size=5)),
    st.just(ResponseCompleted("error")),
    st.just(ResponseCompleted("complete", Message("assistant"))),
    st.builds(CallIntended, ids, st.just("look")),
    st.builds(TurnEnded, st.integers(0, 3), st.sampled_from(["done", "failed", "interrupted"])),
    st.builds(TextDelta, st.text(max_size=5)),
    st.builds(UsageReported, st.builds(Usage, st.integers(0, 9), st.integers(0, 9))),
)


@given(st.lists(anything, max_size=30))
def test_every_prefix_of_every_log_is_a_valid_request(events):
    """Whatever is in the log, and wherever it was cut: every call is answered once, in place."""
    records = numbered(events)
    history = History()
    for index, record in enumerate(records):
        history.apply(record)
        seen = history.transcript
        assert is_valid(seen)
        assert seen == fold(records[: index + 1]).transcript
        assert {one.call.id for one in history.open_calls} <= {
            one.id.partition("-m")[0] for last in seen[-2:] for one in last.tool_calls
        }


@given(st.lists(anything, max_size=30))
def test_growing_record_by_record_is_the_same_as_from_scratch(events):
    records = numbered(events)
    grown = History()
    for record in records:
        grown.apply(record)
    whole = fold(records)
    assert grown.transcript == whole.transcript
    names = ("title", "turn", "running", "metrics", "todos", "pending", "waiting", "open_calls")
    assert [getattr(grown, name) for name in names] == [getattr(whole, name) for name in names]


@given(st.lists(anything, max_size=30))
def test_a_transcript_that_was_handed_out_never_changes(events):
    history, seen = History(), []
    for record in numbered(events):
        history.apply(record)
        seen.append((history.transcript, tuple(history.transcript)))
    assert all(tuple(kept) == then for kept, then in seen)


def test_an_open_call_gets_a_stand_in_and_the_answered_one_keeps_its_result():
    begun = CallIntended("a", "look")
    events = [MessageAdded(user("go")), asks("a", "b", "c"), begun, result("b")]
    found = fold(numbered(events))
    states = [(one.call.id, one.state) for one in found.open_calls]
    assert states == [("a", "unknown"), ("c", "not started")]
    assert found.transcript[-1].parts == (
        ToolOutput("a", UNKNOWN, True, "look", outcome="unknown"),
        ToolOutput("b", "seen", name="look"),
        ToolOutput("c", NOT_RUN, True, "look", outcome="not_run"),
    )


def test_of_calls_that_were_brought_in_nobody_knows_whether_they_ran():
    brought = MessageAdded(Message("assistant", (ToolCall("a", "look", {}),)))
    assert fold(numbered([brought])).transcript[-1].parts == (
        ToolOutput("a", UNKNOWN, True, "look", outcome="unknown"),
    )


def test_the_first_result_stands_and_a_stray_one_is_ignored():
    events = [asks("a", "b"), result("z"), result("a", "first"), result("a", "second")]
    events += [result("b"), result("b", "late")]
    found = fold(numbered(events))
    assert [one.text for one in found.transcript[-1].tool_results] == ["first", "seen"]
    assert found.open_calls == ()


def test_calls_are_counted_when_they_run():
    refused, ran = asks("a", "b"), CallIntended("b", "look")
    found = fold(numbered([refused, result("a", "not run"), ran, result("b")]))
    assert found.metrics.tool_calls == 1


def test_results_stand_in_the_order_of_their_calls():
    found = fold(numbered([asks("a", "b"), result("b", "2"), result("a", "1")]))
    assert [one.text for one in found.transcript[-1].tool_results] == ["1", "2"]


def test_the_same_id_in_a_later_step_is_another_call():
    """Local servers count from zero in every reply."""
    found = fold(numbered([asks("a"), result("a", "1"), asks("a"), result("a", "2"), asks("a")]))
    outputs = [one.tool_results[0] for one in found.transcript[1::2]]
    assert [(one.call_id, one.text) for one in outputs] == [
        ("a", "1"),
        ("a-m3", "2"),
        ("a-m5", NOT_RUN),
    ]
    assert [one.call.id for one in found.open_calls] == ["a"]


def test_messages_carry_their_record_and_their_time():
    """S2: id and created_at; reasoning and its metadata stay (S7)."""
    thought = Thinking("hm", {"signature": "s"})
    reply = ResponseCompleted("complete", Message("assistant", (thought, Text("yes"))))
    found = fold(numbered([MessageAdded(user("go")), reply])).transcript
    assert [(one.id, one.created_at) for one in found] == [("m1", "t1"), ("m2", "t2")]
    assert (found[1].reasoning, found[1].reasoning_metadata) == ("hm", (thought.meta,))


def test_a_prompt_waits_until_it_enters_the_conversation():
    prompt = PromptReceived("go", 1)
    waits = fold(numbered([SessionStarted("s", workspace="/w"), prompt]))
    enters = fold(numbered([SessionStarted("s"), prompt, MessageAdded(user("go"), 2)]))
    assert (waits.waiting, waits.running, len(waits.transcript)) == ({2: prompt}, 0, 0)
    assert (enters.waiting, enters.running, len(enters.transcript)) == ({}, 1, 1)
    assert (waits.turn, waits.title, waits.workspace) == (1, "go", "/w")


def test_titles_todos_and_questions():
    asked = ApprovalAsked(ToolCall("a", "look", {}), "x")
    events = [
        PromptReceived("first\n  words", 1),
        TitleChanged("A title"),
        TodosChanged((Todo("one"),)),
        asked,
        TodosChanged((Todo("two", "completed"),)),
    ]
    found = fold(numbered(events))
    assert (found.title, found.todos) == ("A title", (Todo("two", "completed"),))
    assert found.pending == {"x": asked}
    assert fold(numbered([*events, ApprovalAnswered("a", True)])).pending == {}
    assert fold(numbered([*events, ApprovalAnswered("a", True, shown="x")])).pending == {}
    assert fold(numbered([*events, TurnEnded(1, "interrupted")])).pending == {}


def test_use_adds_up_and_a_title_says_nothing_of_the_window():
    """M7."""
    turn = UsageReported(Usage(100, 10), cost=0.5)
    title = UsageReported(Usage(7, 1), cost=None, purpose="title")
    found = fold(numbered([turn, title])).metrics
    expected = ExecutionMetrics(107, 11, 2, context_tokens=100, cost=0.5, unpriced=1, tokens=118)
    assert found == expected


def test_a_rewind_leaves_no_count_of_a_conversation_that_is_no_more():
    used = UsageReported(Usage(18_000, 10), cost=0.5)
    found = fold(numbered([used, Rewound(1, messages=(user("hello"),))])).metrics
    assert found == ExecutionMetrics(18_000, 10, 1, cost=0.5, tokens=18_010)


def test_a_question_goes_when_its_call_has_a_result():
    first, second = (ApprovalAsked(ToolCall(one, "look", {}), f"q{one}") for one in "ab")
    story = [asks("a", "b"), first, second, result("a")]
    assert fold(numbered(story)).pending == {"qb": second}
    assert fold(numbered([*story, result("b")])).pending == {}
    assert fold(numbered([*story, says("on")])).pending == {}


def test_an_answer_to_an_older_question_of_the_same_call_id_answers_no_other():
    first, second = ApprovalAsked(ToolCall("a", "x"), "q1"), ApprovalAsked(ToolCall("a", "y"), "q2")
    yes = ApprovalAnswered("a", True, shown="q1")
    story = [asks("a"), first, yes, result("a"), asks("a"), second]
    found = fold(numbered([*story, yes]))
    assert (found.pending, found.answers) == ({"q2": second}, {})


@pytest.mark.parametrize(
    ("allowed", "scope", "count"),
    [
        (True, "session", 1),
        (True, "rule", 1),
        (True, "once", 0),
        (True, "onse", 0),
        ("no", "session", 0),
        (False, "session", 0),
    ],
)
def test_only_a_plain_yes_for_the_session_is_a_grant(allowed, scope, count):
    asked = ApprovalAsked(ToolCall("a", "look"), "q")
    answered = ApprovalAnswered("a", allowed, scope=scope, shown="q")
    assert len(fold(numbered([asks("a"), asked, answered])).grants) == count


def test_reading_in_the_middle_of_a_step_does_not_disturb_what_was_encoded():
    history = fold(numbered([MessageAdded(user("go"))]))
    shelf = history.transcript.encoding_caches
    for record in numbered([asks("a", "b"), CallIntended("a", "look", True), result("a")]):
        before = list(history.transcript)
        history.apply(record)
        assert is_valid(history.transcript)
        assert history.transcript is history.transcript
        assert list(history.transcript) != before
    history.apply(Record(9, "t", result("b")))
    assert history.transcript.encoding_caches is shelf
    assert [one.role for one in history.transcript] == ["user", "assistant", "tool"]
    assert [one.text for one in history.transcript[-1].parts] == ["seen", "seen"]


def test_a_trace_of_an_earlier_log_still_counts():
    """What state is made of is typed in code; in the log it is a trace, as it always was."""
    lines = [
        b'{"type":"event","eventType":"TraceEvent","kind":"interrupt","detail":{"letter":"l1"}}',
        b'{"type":"event","eventType":"TraceEvent","kind":"letter_refused","detail":{"letter":"l2"}}',
        b'{"type":"event","eventType":"TraceEvent","kind":"unknown_call","detail":{"callId":"c"}}',
        b'{"type":"event","eventType":"TraceEvent","kind":"interrupt","detail":"strange"}',
        b'{"type":"event","eventType":"TraceEvent","kind":"retry","detail":{"letter":"l3"}}',
    ]
    events = [decode_data(line) for line in lines]
    found = fold(numbered(events))
    assert (list(found.inbox_ids), found.reported_unknown) == (["l1", "l2"], {"c"})
    assert [encode_data(event) for event in events] == lines
