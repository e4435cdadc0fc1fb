"""What an editor is told and asked. Pure, but for files that are looked at."""

import pytest
from acp import schema
from hypothesis import example, given
from hypothesis import strategies as st

from bridle.agents.acp.updates import parse_update, to_wire
from bridle.events import (
    ApprovalAsked,
    MessageAdded,
    ResponseCompleted,
    Rewound,
    TextDelta,
    Todo,
    TodosChanged,
    ToolOutputDelta,
    ToolResultEvent,
    TraceEvent,
)
from bridle.messages import File, Image, Message, Text, Thinking, ToolCall, ToolOutput, user
from bridle.protocols.session import NO, YES, Answer
from bridle.protocols.store import Record
from bridle.server.acp.file_changes import file_changes
from bridle.server.acp.permissions import parse_answer, permission_options, permission_request
from bridle.server.acp.replay import read_replay
from bridle.server.acp.session import parse_blocks, parse_command
from bridle.server.acp.updates import Calls, Change, fenced
from bridle.workspace.workspace import Workspace

RENAMED = "diff --git a/a b/b\nrename from a\nrename to b\n"
WRITE = ToolCall("c", "write", {"path": "a", "content": "x"})


def said(asked, option=None):
    outcome = {"outcome": "selected", "optionId": option} if option else {"outcome": "cancelled"}
    return parse_answer({"outcome": outcome}, asked)


def test_only_a_clear_yes_that_was_offered_is_one():
    asked = ApprovalAsked(WRITE, "hash", proposal="allow: write(a)")
    names = [(one.option_id, one.kind, one.name) for one in permission_options(asked)]
    assert names == [
        ("allow_once", "allow_once", "Allow once"),
        ("allow_session", "allow_always", "Allow for this session"),
        ("allow_rule", "allow_always", "Always allow: write(a)"),
        ("reject_once", "reject_once", "Deny"),
    ]
    build = ApprovalAsked(ToolCall("c", "shell", {"command": "make"}), "hash", covers="builds")
    assert [one.name for one in permission_options(build)] == [
        "Allow once",
        "Allow for this session: tests and builds in this folder",
        "Deny",
    ]
    assert said(asked, "allow_once") == YES
    assert said(asked, "allow_session") == Answer(True, "session")
    assert said(asked, "allow_rule") == Answer(True, "rule")
    assert said(asked, "reject_once") == said(asked, "made up") == said(asked) == NO
    assert parse_answer({"outcome": 3}, asked) == parse_answer(None, asked) == NO


def test_a_yes_that_may_not_last_is_offered_once_and_taken_once():
    asked = ApprovalAsked(WRITE, "hash", proposal="allow: write(a)", once_only=True)
    assert [one.option_id for one in permission_options(asked)] == ["allow_once", "reject_once"]
    assert said(asked, "allow_session") == said(asked, "allow_rule") == NO


def test_a_question_of_the_models_own_has_its_answers_to_choose_from():
    given = {"question": "Which?", "options": ["left", "right"]}
    asked = ApprovalAsked(ToolCall("c", "ask_user", given), "hash")
    assert [one.name for one in permission_options(asked)] == ["left", "right", "Leave unanswered"]
    assert said(asked, "answer_1") == Answer(True, word="right")
    assert said(asked, "answer_2") == NO


def test_all_of_a_long_command_is_in_the_question_and_so_is_the_reason():
    line = "echo " + "x" * 500 + "\u202e"
    call = ToolCall("c", "shell", {"command": line})
    asked = ApprovalAsked(call, "hash", reason="nobody knows it")
    begun = Calls("/w").start(call, ())
    fields = {name: getattr(begun, name) for name in begun.model_fields_set - {"session_update"}}
    question = to_wire(permission_request(asked, "s", schema.ToolCallUpdate(**fields)))
    texts = [one["content"]["text"] for one in question["toolCall"]["content"]]
    assert texts == [fenced(line), "nobody knows it"]
    assert "x" * 500 + r"\u202e" in texts[0]
    assert question["_meta"] == {"bridle": {"shown": "hash", "expires": ""}}


def test_output_comes_as_it_is_said_and_a_change_stays_to_be_seen():
    calls = Calls("/w")
    shell = ToolCall("s", "shell", {"command": "make"})
    calls.start(shell, ())
    calls.update(ToolOutputDelta("s", "a\n"))
    running = to_wire(calls.update(ToolOutputDelta("s", "b\n")))
    assert (running["status"], running["content"][0]["content"]["text"]) == (
        "in_progress",
        "a\nb\n",
    )
    ended = to_wire(calls.update(ToolResultEvent(ToolOutput("s", "all"))))
    assert (ended["status"], ended["content"][0]["content"]["text"]) == ("completed", "all")
    begun = to_wire(calls.start(WRITE, (Change("a", None, "x"),)))
    assert begun["content"] == [{"type": "diff", "path": "/w/a", "newText": "x"}]
    ended = to_wire(calls.update(ToolResultEvent(ToolOutput("c", "written"))))
    assert (ended["status"], "content" in ended) == ("completed", False)
    calls.start(WRITE, (Change("a", None, "x"),))
    failed = to_wire(calls.update(ToolResultEvent(ToolOutput("c", "no", True))))
    assert (failed["status"], failed["content"][0]["content"]["text"]) == ("failed", "no")


@pytest.mark.parametrize(
    ("name", "arguments", "found"),
    [
        ("write", {"path": "a", "content": "x"}, (Change("a", "one\ntwo\n", "x"),)),
        ("write", {"path": "new", "content": "x"}, (Change("new", None, "x"),)),
        ("write", {"path": "../a", "content": "x"}, (Change("../a", None, "x"),)),
        ("write", {"path": 3}, ()),
        (
            "edit",
            {"path": "a", "old": "two", "new": "2"},
            (Change("a", "one\ntwo\n", "one\n2\n"),),
        ),
        ("edit", {"path": "a", "old": "none", "new": "2"}, (Change("a", "none", "2"),)),
        ("edit", {"path": "gone", "old": "x", "new": "y"}, (Change("gone", "x", "y"),)),
        (
            "edit",
            {"path": "a", "edits": [{"old": "one", "new": "1"}, {"old": "two", "new": "2"}]},
            (Change("a", "one\ntwo\n", "1\n2\n"),),
        ),
        ("edit", {"path": "a", "edits": "all"}, ()),
        (
            "apply_patch",
            {"patch": f"{RENAMED}--- a/a\n+++ b/b\n@@ -1,2 +1,2 @@\n-one\n+1\n two\n"},
            (Change("a", "one\ntwo\n", ""), Change("b", None, "1\ntwo\n")),
        ),
        ("apply_patch", {"patch": "nonsense"}, ()),
        ("shell", {"command": "ls"}, ()),
    ],
)
def test_a_change_is_shown_as_whole_files_where_it_fits_and_as_asked_otherwise(
    tmp_path, name, arguments, found
):
    (tmp_path / "a").write_text("one\ntwo\n")
    assert file_changes(ToolCall("c", name, arguments), Workspace(tmp_path)) == found


def block(**fields):
    whole = {"sessionId": "s", "prompt": [fields]}
    return schema.PromptRequest.model_validate(whole).prompt


def test_a_prompt_holds_text_pictures_files_and_mentions():
    assert parse_blocks(block(type="text", text="hi"), "/w") == (Text("hi"),)
    picture = block(type="image", data="aGk=", mimeType="image/png")
    assert parse_blocks(picture, "/w") == (Image("image/png", "aGk="),)
    link = block(type="resource_link", uri="file:///w/src/a%20b.py", name="a b.py")
    assert parse_blocks(link, "/w") == (Text("src/a b.py"),)
    away = block(type="resource_link", uri="https://example.com/x", name="x")
    assert parse_blocks(away, "/w") == (Text("[x](https://example.com/x)"),)
    text = block(type="resource", resource={"uri": "file:///w/a.py", "text": "print()"})
    assert parse_blocks(text, "/w") == (Text("\n<file name='a.py'>\nprint()\n</file>\n"),)
    held = {"uri": "file:///w/a.pdf", "blob": "aGk=", "mimeType": "application/pdf"}
    assert parse_blocks(block(type="resource", resource=held), "/w") == (
        File("application/pdf", "aGk=", "a.pdf"),
    )
    with pytest.raises(Exception, match="cannot hold audio"):
        parse_blocks(block(type="audio", data="aGk=", mimeType="audio/wav"), "/w")
    assert parse_command((Text("/rename a title "),)) == ("rename", "a title")
    assert parse_command((Text("see /tmp"),)) == parse_command(()) == ("", "")


def test_what_was_shortened_is_told_whole_and_what_was_taken_back_is_not():
    call = ToolCall("c", "read", {"path": "a"})
    happened = [
        MessageAdded(user("lost")),
        ResponseCompleted("complete", Message("assistant", (Text("lost, too"),))),
        Rewound(0),
        MessageAdded(user("go")),
        TodosChanged((Todo("one"),)),
        TextDelta("I r"),
        ResponseCompleted("tool_use", Message("assistant", (Thinking("hm"), Text("I r"), call))),
        ToolResultEvent(ToolOutput("c", "held")),
        TextDelta("and "),
        TextDelta("now"),
        TextDelta("never told: it comes live"),
    ]
    records = [Record(seq, "", event) for seq, event in enumerate(happened, 1)]
    found = [to_wire(one) for one in read_replay(records, 10).updates("/w")]
    kinds = [(one["sessionUpdate"], one.get("content")) for one in found]

    def text(words):
        return {"type": "text", "text": words}

    assert kinds == [
        ("user_message_chunk", text("go")),
        ("agent_thought_chunk", text("hm")),
        ("agent_message_chunk", text("I r")),
        ("tool_call", None),
        ("tool_call_update", [{"type": "content", "content": text("held")}]),
        ("agent_message_chunk", text("and ")),
        ("agent_message_chunk", text("now")),
        ("plan", None),
    ]


words = st.text(max_size=5)
anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=10),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=8,
)
names = st.sampled_from(
    ["write", "edit", "apply_patch", "shell", "ask_user", "exit_plan_mode", "x"]
)
keys = st.sampled_from(["path", "content", "old", "new", "edits", "patch", "command", "plan"])


@given(names, st.dictionaries(keys, anything))
@example("edit", {"path": "a", "edits": True})
@example("edit", {"path": "a", "edits": "0"})
@example("edit", {"path": "a", "edits": ["0", {"old": 1, "new": None}]})
def test_whatever_a_model_asks_for_can_be_shown_and_asked(tmp_path_factory, name, arguments):
    """The schema of the library takes it, and nothing breaks."""
    call = ToolCall("c", name, arguments)
    found = file_changes(call, Workspace(tmp_path_factory.getbasetemp()))
    begun = Calls("/w").start(call, found)
    note = parse_update({"sessionId": "s", "update": to_wire(begun)})
    assert not isinstance(note, TraceEvent)
    asked = ApprovalAsked(call, "hash")
    question = permission_request(asked, "s", Calls("/w").refresh(call, found))
    assert schema.RequestPermissionRequest.model_validate(to_wire(question)).options
