"""Records folded into blocks: what a person sees of a session, without a screen (S10)."""

from hypothesis import example, given
from hypothesis import strategies as st

from bridle.events import (
    ApprovalAnswered,
    ApprovalAsked,
    CallIntended,
    FileChange,
    FilesChanged,
    MessageAdded,
    ModeChanged,
    PromptReceived,
    PromptWithdrawn,
    ReplyDiscarded,
    ResponseCompleted,
    Rewound,
    TextDelta,
    ThinkingDelta,
    Todo,
    TodosChanged,
    ToolCallReady,
    ToolCallStarted,
    ToolOutputDelta,
    ToolResultEvent,
    TraceEvent,
    TurnEnded,
    Undone,
    UsageReported,
)
from bridle.messages import Message, Text, Thinking, ToolCall, ToolOutput, user
from bridle.presentation.blocks import Call, Notice, Prompt, Removed, Reply, Thought, TurnEnd
from bridle.presentation.fold import Fold
from bridle.protocols.store import Record
from bridle.tui.slash.screen import last_answer
from bridle.usage import Usage


def folded(*events):
    fold = Fold()
    for seq, event in enumerate(events, 1):
        fold.apply(Record(seq, f"2026-01-01T00:00:{seq:02}Z", event))
    return fold


def a_call(call_id="c1", name="shell", **arguments):
    return ToolCall(call_id, name, arguments or {"command": "make"})


def a_result(text="ok\n[exit code 0]", call_id="c1", name="shell", **more):
    return ToolResultEvent(ToolOutput(call_id, text, name=name, **more))


def replied(*parts):
    return ResponseCompleted("complete", Message("assistant", parts))


def test_a_turn_is_a_prompt_a_thought_an_answer_and_an_end():
    """S10"""
    fold = folded(
        PromptReceived("mend it", turn=1),
        ThinkingDelta("Let me "),
        ThinkingDelta("see."),
        TextDelta("It is "),
        TextDelta("mended."),
        replied(Thinking("Let me see."), Text("It is mended.")),
        UsageReported(Usage(1200, 300), cost=0.14),
        TurnEnded(1, "done"),
    )
    assert fold.blocks == [
        Prompt("mend it"),
        Thought(["Let me see."], True),
        Reply(["It is mended."], True),
        TurnEnd("", "7.0 s · 1.5k tokens · $0.14"),
    ]
    assert (fold.state.busy, fold.state.turn, fold.state.used.cost) == (False, 1, 0.14)


def test_an_answer_of_which_no_piece_came_stands_there_once():
    fold = folded(PromptReceived("hi", turn=1), replied(Thinking("Hm."), Text("Hello.")))
    assert fold.blocks[1:] == [Thought(["Hm."], True), Reply(["Hello."], True)]


def test_a_call_is_followed_from_the_wish_to_its_one_result():
    """S10"""
    fold = folded(ToolCallStarted("c1", "shell"), ToolCallReady(a_call()))
    (call,) = fold.blocks
    assert (call.state, call.subject) == ("ready", "make")
    fold.apply(Record(3, "", CallIntended("c1", "shell")))
    fold.apply(Record(4, "", ToolOutputDelta("c1", "one\n")))
    assert (call.state, call.output, list(fold.state.calls)) == ("running", "one\n", ["c1"])
    fold.apply(Record(5, "", a_result("one\ntwo\n[exit code 0]")))
    assert (call.state, call.summary, call.output) == ("done", "two (2 lines)", "")
    assert fold.state.calls == {}


def test_an_id_that_comes_again_is_another_call():
    fold = folded(
        ToolCallReady(a_call()), a_result(), ToolCallReady(a_call(command="make test")), a_result()
    )
    assert [call.subject for call in fold.blocks] == ["make", "make test"]
    assert [call.state for call in fold.blocks] == ["done", "done"]


def test_a_question_shows_at_its_call_and_so_does_the_answer():
    asked = ApprovalAsked(a_call(), "hash", reason="it writes")
    fold = folded(ToolCallReady(a_call()), asked)
    assert (fold.blocks[0].state, list(fold.state.asked)) == ("asked", ["hash"])
    fold.apply(Record(3, "", ApprovalAnswered("c1", False, by="ada", shown="hash", word="not now")))
    assert (fold.blocks[0].state, fold.blocks[0].note) == ("refused", "denied by ada: not now")
    assert fold.state.asked == {}


def test_a_call_without_a_result_at_the_end_of_its_turn_is_unknown_or_was_not_run():
    fold = folded(
        PromptReceived("x", turn=1),
        ToolCallReady(a_call("c1")),
        CallIntended("c1", "shell"),
        ToolCallReady(a_call("c2")),
        TurnEnded(1, "interrupted"),
    )
    assert [one.state for one in fold.blocks if isinstance(one, Call)] == ["unknown", "refused"]
    assert fold.blocks[-1].reason == "stopped"


def test_an_edit_carries_its_diff_and_no_output_is_called_no_output():
    diff = "--- a\n+++ a\n@@ -1 +1 @@\n-x\n+y\n"
    fold = folded(
        ToolCallReady(a_call("c1", "edit", path="a")),
        a_result("edited a:", "c1", "edit", data={"path": "a", "diff": diff}),
        ToolCallReady(a_call("c2")),
        a_result("(no output)\n[exit code 0]", "c2"),
        ToolCallReady(a_call("c3", "read", path="b")),
        a_result("only", "c3", "read"),
    )
    assert (fold.blocks[0].diff, fold.blocks[0].summary) == (diff, "edited a")
    assert [one.summary for one in fold.blocks[1:]] == ["no output", "only"]


def test_a_prompt_that_waits_stands_in_the_queue_until_it_reaches_the_model():
    fold = folded(PromptReceived("one", turn=1), PromptReceived("two", turn=2, when="queue"))
    assert [one.content for one in fold.state.waiting.values()] == ["two"]
    assert len(fold.blocks) == 1
    fold.apply(Record(3, "", TurnEnded(1, "done")))
    fold.apply(Record(4, "", MessageAdded(user("two"), prompt=2, turn=2)))
    assert (fold.blocks[-1], fold.state.waiting, fold.state.busy) == (Prompt("two"), {}, True)


def test_a_prompt_that_was_taken_back_is_in_no_queue():
    fold = folded(PromptReceived("two", turn=2, when="queue"), PromptWithdrawn(1, 2, "ada"))
    assert (fold.state.waiting, type(fold.blocks[-1])) == ({}, Notice)


def test_one_that_oneself_took_back_or_held_needs_no_line_of_its_own():
    fold = folded(PromptReceived("two", turn=2, when="queue"), PromptWithdrawn(1, 2))
    assert (fold.state.waiting, fold.blocks) == ({}, [])


def test_a_prompt_that_steers_says_so_and_begins_no_turn():
    fold = folded(
        PromptReceived("one", turn=1),
        PromptReceived("left", turn=1, when="next_step"),
        MessageAdded(user("left"), prompt=2, turn=1),
    )
    assert fold.blocks[-1] == Prompt("left", steers=True)


def test_todos_files_and_modes_are_kept_beside():
    """S10, P4"""
    todos = (Todo("a", "completed"), Todo("b"))
    fold = folded(
        PromptReceived("x", turn=1),
        TodosChanged(todos),
        FilesChanged(1, files=(FileChange("a.py", "added"), FileChange("b.py"))),
        FilesChanged(1, files=(FileChange("a.py", "changed"),)),
        ModeChanged("plan"),
        Undone(1, files=("b.py",)),
    )
    assert fold.state.todos == todos
    assert fold.state.files == {"a.py": "added"}
    assert fold.state.mode == "plan"
    said = [one.text for one in fold.blocks if isinstance(one, Notice)]
    assert "Mode: plan" in said


def test_what_was_drawn_is_not_drawn_again():
    fold = folded(PromptReceived("x", turn=1), TextDelta("a"))
    assert fold.take_changes() == {0, 1}
    fold.apply(Record(3, "", TextDelta("b")))
    assert fold.take_changes() == {1}
    assert fold.take_changes() == set()


_EVENTS = st.one_of(
    st.builds(TextDelta, st.text(max_size=8)),
    st.builds(ThinkingDelta, st.text(max_size=8)),
    st.sampled_from(
        [
            PromptReceived("p", turn=1),
            PromptReceived("q", turn=2, when="queue"),
            MessageAdded(user("q"), prompt=2),
            ToolCallStarted("c1", "shell"),
            ToolCallReady(a_call()),
            ApprovalAsked(a_call(), "h"),
            ApprovalAnswered("c1", True, shown="h"),
            CallIntended("c1", "shell"),
            ToolOutputDelta("c1", "x"),
            a_result(),
            replied(Text("whole"), a_call()),
            ResponseCompleted("error"),
            TurnEnded(1, "interrupted"),
            TurnEnded(1, "done"),
        ]
    ),
)


@given(st.lists(_EVENTS, max_size=40))
@example([replied(Text("whole"), a_call()), TurnEnded(1, "interrupted")])
def test_any_order_of_records_folds_and_blocks_only_grow(events):
    fold, count = Fold(), 0
    for seq, event in enumerate(events, 1):
        fold.apply(Record(seq, "", event))
        assert len(fold.blocks) >= count
        count = len(fold.blocks)
        assert all(0 <= place < count for place in fold.take_changes())
    if events and isinstance(events[-1], TurnEnded):
        assert not any(isinstance(one, Call) and one.is_open for one in fold.blocks)


def test_what_was_taken_back_is_gone_and_what_holds_stays():
    fold = folded(
        PromptReceived("one", turn=1),
        replied(Text("First.")),
        TurnEnded(1, "completed"),
        PromptReceived("two", turn=2),
        replied(Text("Second.")),
        ModeChanged("edits"),
        TurnEnded(1, "completed"),
        PromptReceived("three", turn=3),
        Rewound(3),
    )
    kinds = [type(one) for one in fold.blocks]
    assert kinds == [Prompt, Reply, TurnEnd, Removed, Removed, Notice, Removed, Removed, Notice]
    assert fold.blocks[-1].text == (
        "taken back: “two” and 1 prompt after it; what was done in files and commands stays"
    )


def test_the_block_of_a_record_is_found_or_the_nearest_before_it():
    fold = folded(
        PromptReceived("one", turn=1),
        replied(Text("First.")),
        TurnEnded(1, "completed"),
        PromptReceived("two", turn=2),
        Rewound(3),
    )
    assert [fold.find_block(seq, "") for seq in (1, 2, 4, 99)] == [0, 1, 2, 4]
    assert fold.find_block(4, "prompt") == 0  # its own is gone
    assert fold.find_block(2, "prompt") == 0
    assert Fold().find_block(7) is None


def test_a_reply_that_broke_off_is_said_to_be_discarded_and_the_next_one_is_another():
    whole = ResponseCompleted("complete", Message("assistant", (Text("A whole one."),)))
    fold = folded(
        PromptReceived("go", turn=1),
        TextDelta("Half a sen"),
        ToolCallStarted("c", "write"),
        ReplyDiscarded("cut"),
        TextDelta("A whole"),
        whole,
    )
    kinds = [type(block) for block in fold.blocks]
    assert kinds == [Prompt, Reply, Call, Notice, Reply]
    _, half, call, notice, said = fold.blocks
    assert (half.text, said.text, call.is_open) == ("Half a sen", "A whole one.", False)
    assert notice.text == "the reply above broke off and is discarded"


def retry(attempt, error="overloaded. Wait."):
    return TraceEvent("retry", {"attempt": attempt, "seconds": 12.0, "error": error})


def test_the_attempts_of_a_request_are_one_row_that_ends_as_they_did():
    fold = folded(PromptReceived("go", turn=1), retry(2), UsageReported(Usage()), retry(3))
    assert fold.blocks[1:] == [Notice("overloaded. Retrying in 12 s, attempt 3…", "↻", "warn")]
    fold.apply(Record(5, "", TextDelta("Here")))
    assert fold.blocks[1:] == [Notice("overloaded. Attempt 3 got through.", "↻"), Reply(["Here"])]


def test_attempts_that_came_to_nothing_say_so():
    gave_up = folded(PromptReceived("go", turn=1), retry(2), TurnEnded(1, "error", "overloaded"))
    assert gave_up.blocks[1] == Notice("overloaded. Gave up after 2 attempts.", "↻", "bad")
    stopped = folded(PromptReceived("go", turn=1), retry(2), TurnEnded(1, "interrupted"))
    assert stopped.blocks[1] == Notice("overloaded. Stopped while waiting to retry.", "↻", "warn")


def test_each_reply_that_broke_off_is_marked_and_is_not_the_last_answer():
    events = [PromptReceived("go", turn=1)]
    for half in ("Half a sen", "Half a sen", "Hal"):
        events += [ThinkingDelta("Hm."), TextDelta(half), ReplyDiscarded("cut"), retry(2, "cut")]
    fold = folded(*events, TextDelta("All of it."))
    kinds = [type(block) for block in fold.blocks]
    assert kinds == [Prompt, *[Thought, Reply, Notice, Notice] * 3, Reply]
    halves = [block for block in fold.blocks if isinstance(block, Reply | Thought)]
    assert [block.discarded for block in halves] == [True] * 6 + [False]
    whole = fold.blocks[-1]
    fold.apply(Record(99, "", ReplyDiscarded("cut")))
    assert (whole.discarded, last_answer(fold.blocks)) == (True, "")


def test_of_a_reply_that_broke_off_before_anything_came_there_is_nothing_to_mark():
    fold = folded(PromptReceived("go", turn=1), ReplyDiscarded("cut"), retry(2, "cut"))
    assert [type(block) for block in fold.blocks] == [Prompt, Notice]
    assert "discarded" not in fold.blocks[1].text
