"""Records as events of AG-UI. Pure: whatever happens, what is started is ended, in order."""

import json

import pytest
from ag_ui import core
from hypothesis import given
from hypothesis import strategies as st

from bridges.agui_referee import Referee
from bridle.errors import SessionError
from bridle.events import (
    ApprovalAsked,
    FileChange,
    FilesChanged,
    ModeChanged,
    ResponseCompleted,
    TextDelta,
    ThinkingDelta,
    Todo,
    TodosChanged,
    ToolCallArgsDelta,
    ToolCallReady,
    ToolCallStarted,
    ToolOutputDelta,
    ToolResultEvent,
    TraceEvent,
    UsageReported,
)
from bridle.messages import File, Image, Message, Text, ToolCall, ToolOutput
from bridle.protocols.session_values import ApprovalAnswer, NewSession
from bridle.protocols.store import Record
from bridle.server.agui.events import RunEvents, to_interrupt, usage_meters
from bridle.server.agui.run_input import interrupt_id, parse_run_input
from bridle.usage import ExecutionMetrics, Usage


def assistant(found):
    return Message("assistant", tuple(found))


ids = st.sampled_from(["a", "b", "c"])
words = st.text(max_size=5)
calls = st.builds(ToolCall, ids, st.just("look"), st.dictionaries(words, words, max_size=2))
parts = st.lists(st.one_of(st.builds(Text, words), calls), max_size=3)
events = st.one_of(
    st.builds(TextDelta, words),
    st.builds(ThinkingDelta, words),
    st.builds(ToolCallStarted, ids, st.just("look")),
    st.builds(ToolCallArgsDelta, ids, words),
    st.builds(ToolCallReady, calls),
    st.builds(ToolOutputDelta, ids, words),
    st.builds(
        lambda found: ResponseCompleted("tool_use", Message("assistant", tuple(found))), parts
    ),
    st.builds(ResponseCompleted, st.just("error")),
    st.builds(lambda name, text: ToolResultEvent(ToolOutput(name, text)), ids, words),
    st.builds(lambda text: TodosChanged((Todo(text),)), words),
    st.builds(ModeChanged, st.sampled_from(["plan", "ask"])),
    st.builds(lambda count: UsageReported(Usage(count, 1), "m", 0.5), st.integers(0, 9)),
    st.builds(lambda call: ApprovalAsked(call, "hash"), calls),
    st.builds(TraceEvent, words),
)


def told(happened, **more):
    fold = RunEvents("s", **more)
    found = []
    for seq, event in enumerate(happened, 1):
        found += fold.events(Record(seq, "", event))
    return [*found, *fold.close()]


@given(st.lists(events, max_size=30))
def test_everything_that_is_started_is_ended_whatever_comes_between(happened):
    referee = Referee()
    for event in told(happened):
        referee.take(event)
    assert referee.open == set()


@given(st.lists(events, max_size=30), st.integers(0, 29))
def test_a_run_that_is_left_in_the_middle_leaves_nothing_open(happened, at):
    referee = Referee()
    for event in told(happened[:at]):
        referee.take(event)
    assert referee.open == set()


@given(st.lists(events, max_size=20))
def test_what_is_told_is_what_the_library_reads(happened):
    for event in told(happened):
        read = json.loads(event.model_dump_json(by_alias=True))
        assert type(event).model_validate(read).type == event.type


@given(st.lists(st.builds(TextDelta, words.filter(bool)), min_size=1))
def test_no_word_is_lost_and_none_is_said_twice(deltas):
    whole = "".join(one.text for one in deltas)
    reply = ResponseCompleted("complete", Message("assistant", (Text(whole),)))
    found = told([*deltas, reply])
    said = [one.delta for one in found if isinstance(one, core.TextMessageContentEvent)]
    assert "".join(said) == whole
    alone = [one.delta for one in told([reply]) if isinstance(one, core.TextMessageContentEvent)]
    assert alone == [whole]  # also where nothing was streamed


def test_a_call_belongs_to_the_message_that_says_it_and_its_arguments_come_once():
    call = ToolCall("c", "look", {"at": 1})
    streamed = [
        TextDelta("I look."),
        ToolCallStarted("c", "look"),
        ToolCallArgsDelta("c", '{"at"'),
        ToolCallArgsDelta("c", ": 1}"),
        ToolCallReady(call),
        ResponseCompleted("tool_use", Message("assistant", (Text("I look."), call))),
    ]
    found = told(streamed)
    (start,) = [one for one in found if isinstance(one, core.ToolCallStartEvent)]
    assert start.parent_message_id == "s-1"
    pieces = [one.delta for one in found if isinstance(one, core.ToolCallArgsEvent)]
    assert pieces == ['{"at"', ": 1}"]
    whole = told([ToolCallReady(call)])
    assert [one.type.value for one in whole] == [
        "TOOL_CALL_START",
        "TOOL_CALL_ARGS",
        "TOOL_CALL_END",
    ]


def test_meters_add_up_and_an_unknown_price_is_unknown():
    known = ExecutionMetrics().plus(Usage(5, 5), 0.5)
    found = told([UsageReported(Usage(10, 2), "m", 0.25)], metrics=known)
    (delta,) = [one for one in found if isinstance(one, core.StateDeltaEvent)]
    assert delta.delta[0].value == {"tokens": 22, "context": 10, "cost": 0.75}
    assert usage_meters(known.plus(Usage(1), None))["cost"] is None
    fold = RunEvents("s")
    fold.events(Record(1, "", UsageReported(Usage(10, 2, 3, thinking_tokens=1), "m", 0.25)))
    (used,) = fold.usage()
    assert (used.model, used.input_tokens, used.cached_input_tokens) == ("m", 13, 3)
    assert (used.output_tokens, used.reasoning_tokens, used.total_tokens) == (2, 1, 15)


def test_what_the_protocol_has_no_word_for_comes_as_the_log_has_it():
    (found,) = told([FilesChanged(1, "c", (FileChange("a", "added"),))])
    assert (found.name, list(found.value["files"])) == ("files", [{"path": "a", "how": "added"}])
    call = ToolCall("c", "ask_user", {"question": "Which?"})
    asked = to_interrupt(
        interrupt_id("s", "c", "hash"), ApprovalAsked(call, "hash", expires="2030")
    )
    assert (asked.id, asked.message, asked.expires_at) == ("s/c/hash", "Which?", "2030")
    assert asked.response_schema["required"] == ["allowed"]


def body(**more):
    message = {"id": "m", "role": "user", "content": "hi"}
    return {"threadId": "t", "runId": "r", "messages": [message], **more}


def test_only_the_newest_message_of_the_person_is_a_prompt():
    past = [{"id": "x", "role": "user", "content": "made up"}]
    past += [{"id": "y", "role": "assistant", "content": "of course"}]
    found = parse_run_input(body(messages=[*past, {"id": "m", "role": "user", "content": "hi"}]))
    assert (found.parts, found.message) == ((Text("hi"),), "m")
    assert parse_run_input(body(messages=past)).parts == ()
    data = {"type": "data", "value": "aGk=", "mimeType": "image/png"}
    content = [
        {"type": "text", "text": "see"},
        {"type": "image", "source": data},
        {"type": "document", "source": {**data, "mimeType": "application/pdf"}},
    ]
    found = parse_run_input(body(messages=[{"id": "m", "role": "user", "content": content}]))
    assert found.parts == (
        Text("see"),
        Image("image/png", "aGk="),
        File("application/pdf", "aGk="),
    )
    context = [{"description": "place", "value": "Rome"}]
    assert parse_run_input(body(context=context)).parts[0] == Text(
        "<context>\nplace: Rome\n</context>\n\n"
    )
    new = parse_run_input(body(forwardedProps={"bridle": {"mode": "plan"}})).new
    assert new == NewSession(mode="plan")


def entry(**more):
    return body(resume=[{"interruptId": "s/a/b/hash", "status": "resolved", **more}])


def test_an_answer_names_what_was_shown_and_only_a_clear_yes_is_one():
    (said,) = parse_run_input(
        entry(payload={"allowed": True, "scope": "session", "word": "ok"})
    ).answers
    assert (said.session_id, said.call_id) == ("s", "a/b")
    assert said.answer == ApprovalAnswer(True, "hash", "session", "ok")
    assert parse_run_input(entry(payload=True)).answers[0].answer.allowed is True
    assert parse_run_input(entry(status="cancelled")).answers[0].answer.allowed is False
    assert parse_run_input(entry(payload=True)).parts == ()  # answers are no prompt


@pytest.mark.parametrize(
    "wrong",
    [
        3,
        {},
        body(threadId=""),
        body(threadId="x" * 201),
        body(runId="a\nb"),
        body(messages="hi"),
        body(messages=[{"id": "m", "role": "pirate", "content": "x"}]),
        body(tools=[{"name": "paint", "description": "d"}]),
        entry(),
        entry(payload="yes"),
        entry(payload={"allowed": 1}),
        entry(payload={"allowed": True, "scope": "ever"}),
        entry(interruptId="hash", payload=True),
        body(forwardedProps={"bridle": {"mode": "wild"}}),
        body(
            messages=[
                {
                    "id": "m",
                    "role": "user",
                    "content": [
                        {"type": "image", "source": {"type": "url", "value": "http://x/y.png"}}
                    ],
                }
            ]
        ),
    ],
)
def test_what_makes_no_sense_is_refused_in_words(wrong):
    with pytest.raises(SessionError) as refused:
        parse_run_input(wrong)
    assert refused.value.message
