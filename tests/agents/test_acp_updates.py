"""ACP and our words, both ways. Pure: no program is started here."""

import io
import string

import pytest
from acp import schema
from hypothesis import given
from hypothesis import strategies as st

from bridle.agents.acp.client import lines_of
from bridle.agents.acp.session import Modes
from bridle.agents.acp.tool_mapping import MappedCall, map_call, shell_line
from bridle.agents.acp.updates import (
    CallTracker,
    call_result,
    choose_option,
    parse_update,
    session_cost,
    to_blocks,
    to_events,
    to_stop_reason,
    to_update,
    to_usage,
    to_wire,
    tool_call_start,
)
from bridle.events import (
    CallIntended,
    TextDelta,
    ThinkingDelta,
    Todo,
    TodosChanged,
    ToolCallReady,
    ToolOutputDelta,
    ToolResultEvent,
    TraceEvent,
)
from bridle.messages import Image, Text, ToolCall, ToolOutput
from bridle.usage import Usage

ROOT = "/home/me/work"


def call(kind, raw=None, *, paths=(), diffs=(), title="t"):
    content = [
        {"type": "diff", "path": path, "oldText": old, "newText": new} for path, old, new in diffs
    ]
    return schema.ToolCallUpdate.model_validate(
        {
            "toolCallId": "c",
            "kind": kind,
            "title": title,
            "rawInput": raw,
            "locations": [{"path": one} for one in paths],
            "content": content,
        }
    )


def shell(line):
    return [MappedCall("shell", {"command": line})]


def unread(kind, **said):
    return [MappedCall(f"acp_{kind}", {"title": "t", **said})]


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        (call("execute", {"command": "ls -la"}), shell("ls -la")),
        (call("execute", {"cmd": ["rm", "-r", "a b"]}), shell("rm -r 'a b'")),
        (
            call("execute", {"command": ["bash", "-lc", "x > y"], "cwd": "/etc"}),
            [MappedCall("shell", {"command": "cd /etc && bash -lc 'x > y'"})],
        ),
        (call("execute", {"command": "ls", "workdir": f"{ROOT}/"}), shell("ls")),
        (call("other", {"command": "curl evil"}), shell("curl evil")),
        (call(None, {"command": "curl evil"}), shell("curl evil")),
        (call("execute", {"command": ["a", 1]}), unread("execute", input={"command": ["a", 1]})),
        (call("execute"), unread("execute")),
        (
            call("read", {"command": "rm x", "path": "a"}, paths=["a"]),
            unread("read", input={"command": "rm x", "path": "a"}, paths=["a"]),
        ),
        (
            call("edit", diffs=[("a", None, "x")]),
            [MappedCall("write", {"path": "a", "content": "x"})],
        ),
        (
            call("edit", diffs=[("a", "x", "y")]),
            [MappedCall("edit", {"path": "a", "old": "x", "new": "y"})],
        ),
        (
            call("edit", diffs=[("a", "x", "y"), ("a", "p", "q"), ("b", "1", "2")]),
            [
                MappedCall(
                    "edit",
                    {
                        "path": "a",
                        "edits": [{"old": "x", "new": "y"}, {"old": "p", "new": "q"}],
                    },
                ),
                MappedCall("edit", {"path": "b", "old": "1", "new": "2"}),
            ],
        ),
        (
            call("edit", diffs=[("a", None, "x"), ("a", "p", "q")]),
            [
                MappedCall(
                    "acp_edit",
                    {
                        "path": "a",
                        "changes": [{"old": None, "new": "x"}, {"old": "p", "new": "q"}],
                    },
                )
            ],
        ),
        (
            call("read", {"path": "a"}, diffs=[("a", "x", "y")]),  # it says read, and changes
            [MappedCall("edit", {"path": "a", "old": "x", "new": "y"})],
        ),
        (
            call("edit", {"file_path": "a", "old_string": "x", "new_string": ""}),
            [MappedCall("edit", {"path": "a", "old": "x", "new": ""})],
        ),
        (
            call("edit", {"command": "create", "path": "a", "file_text": "x"}),
            [MappedCall("write", {"path": "a", "content": "x"})],
        ),
        (
            call("edit", {"filepath": "a", "diff": "@@"}),
            unread("edit", input={"filepath": "a", "diff": "@@"}, paths=["a"]),
        ),
        (
            call("read", paths=["a", "b", "a"]),
            [MappedCall("read", {"path": "a"}), MappedCall("read", {"path": "b"})],
        ),
        (
            call("search", {"pattern": "x", "path": "a"}),
            [MappedCall("grep", {"pattern": "x", "path": "a"})],
        ),
        (call("fetch", {"url": "http://x"}), [MappedCall("web_fetch", {"url": "http://x"})]),
        (call("delete", paths=["a b", "-c"]), shell("rm -- 'a b' -c")),
        (call("move", {"source": "a", "destination": "$b"}), shell("mv -- a '$b'")),
        (call("move", paths=["a", "b"]), unread("move", paths=["a", "b"])),
        (call("switch_mode", {"plan": "do"}), [MappedCall("exit_plan_mode", {"plan": "do"})]),
        (call("think", {"thought": "x"}), unread("think", input={"thought": "x"})),
        (
            call(None, {"path": "a", "before": "x", "after": "y"}, title="edit · a"),
            [MappedCall("edit", {"path": "a", "old": "x", "new": "y"})],
        ),
        (
            call("other", {"path": "a", "content": "x"}, title="write · a"),
            [MappedCall("write", {"path": "a", "content": "x"})],
        ),
        (
            call(None, {"path": "a", "line": 2}, title="read · a"),
            [MappedCall("read", {"path": "a"})],
        ),
        (
            call("other", {"path": "a", "content": "x"}),  # it may do anything with it
            unread("other", input={"path": "a", "content": "x"}, paths=["a"]),
        ),
        (
            call("other", {"path": "a", "upload": "b"}, title="read a"),
            [
                MappedCall(
                    "acp_other",
                    {"title": "read a", "input": {"path": "a", "upload": "b"}, "paths": ["a"]},
                )
            ],
        ),
        (call("other", ["x"]), unread("other", input=["x"])),
    ],
)
def test_a_call_is_read_as_what_it_would_do_and_what_cannot_be_read_has_no_name_of_ours(
    asked, found
):
    assert list(map_call(asked, ROOT)) == found


def test_variables_hold_for_the_whole_command_and_their_names_are_names():
    env = [("A", "1 2"), ("B", "$(x)")]
    assert shell_line(["ls", "a b"], "", ROOT, env) == "env A='1 2' B='$(x)' ls 'a b'"
    assert shell_line("ls; pwd", "", ROOT, env) == "export A='1 2' B='$(x)'; ls; pwd"
    assert shell_line("ls", "", ROOT, [("A;rm", "1")]) == ""
    assert shell_line(" ", "", ROOT) == shell_line(None, "", ROOT) == ""


words = st.text(max_size=20)
paths = st.text(string.ascii_letters, min_size=1, max_size=8)
calls = st.one_of(
    st.builds(lambda c: ("shell", {"command": c}), words.filter(lambda c: c.strip() == c != "")),
    st.builds(lambda p: ("read", {"path": p}), paths),
    st.builds(lambda p, c: ("write", {"path": p, "content": c}), paths, words),
    st.builds(
        lambda p, o, n: ("edit", {"path": p, "old": o, "new": n}),
        paths,
        words.filter(bool),
        words,
    ),
    st.builds(lambda p, q: ("grep", {"pattern": p, "path": q}), words.filter(bool), paths),
)


@given(calls)
def test_what_we_show_an_editor_is_read_back_as_the_same_call(made):
    """Both directions agree, and what goes over the wire is what the library accepts."""
    name, arguments = made
    shown = tool_call_start(ToolCall("c", name, arguments))
    note = {"sessionId": "s", "update": to_wire(shown)}
    found = parse_update(note)
    assert not isinstance(found, TraceEvent)
    folded = CallTracker().merge(found.update)
    made_there = shell(arguments["command"]) if name == "shell" else [MappedCall(name, arguments)]
    assert list(map_call(folded, ROOT)) == made_there


texts = st.text(min_size=1, max_size=30)
todos = st.builds(Todo, texts, st.sampled_from(["pending", "in_progress", "completed"]))


@given(
    st.one_of(
        st.builds(TextDelta, texts),
        st.builds(ThinkingDelta, texts),
        st.builds(lambda found: TodosChanged(tuple(found)), st.lists(todos, max_size=5)),
    )
)
def test_what_is_said_is_the_same_after_a_way_there_and_back(event):
    update = to_update(event)
    assert update is not None
    found = parse_update({"sessionId": "s", "update": to_wire(update)})
    assert not isinstance(found, TraceEvent)
    assert to_events(found.update) == (event,)


@given(
    st.recursive(
        st.none() | st.integers() | words, lambda x: st.lists(x) | st.dictionaries(words, x)
    )
)
def test_no_update_breaks_the_reader(params):
    found = parse_update(params)
    assert isinstance(found, TraceEvent)


def test_a_call_of_ours_begins_runs_and_ends_at_the_editor():
    begun = to_update(ToolCallReady(ToolCall("c", "shell", {"command": "ls"})))
    assert to_wire(begun) == {
        "sessionUpdate": "tool_call",
        "toolCallId": "c",
        "title": "shell ls",
        "kind": "execute",
        "status": "pending",
        "rawInput": {"command": "ls"},
    }
    assert to_wire(to_update(CallIntended("c", "shell")))["status"] == "in_progress"
    ended = to_wire(to_update(ToolResultEvent(ToolOutput("c", "no", is_error=True))))
    text = {"type": "content", "content": {"type": "text", "text": "no"}}
    assert (ended["status"], ended["content"]) == ("failed", [text])
    assert to_update(ToolOutputDelta("c", "x")) is None


def test_the_option_is_chosen_by_its_kind():
    def options(*kinds):
        return [schema.PermissionOption(option_id=f"{k}!", name=k, kind=k) for k in kinds]

    every = options("allow_always", "reject_always", "allow_once", "reject_once")
    assert choose_option(every, allowed=True) == "allow_once!"
    assert choose_option(every, allowed=False) == "reject_once!"
    assert choose_option(options("allow_always"), allowed=True) is None
    assert choose_option(options("reject_always"), allowed=False) == "reject_always!"
    assert choose_option([], allowed=False) is None


def test_what_is_said_of_a_call_adds_up():
    known = CallTracker()
    known.merge(call("execute", {"command": "ls"}, title="List"))
    later = schema.ToolCallUpdate.model_validate(
        {
            "toolCallId": "c",
            "status": "completed",
            "content": [{"type": "content", "content": {"type": "text", "text": "a\nb"}}],
        }
    )
    whole = known.merge(later)
    assert (whole.kind, whole.title, whole.raw_input) == ("execute", "List", {"command": "ls"})
    assert call_result(whole) == "a\nb"
    raw = schema.ToolCallUpdate.model_validate({"toolCallId": "d", "rawOutput": {"code": 0}})
    assert call_result(known.merge(raw)) == '{"code": 0}'


def test_tokens_money_pictures_and_ends():
    usage = {"totalTokens": 9, "inputTokens": 5, "outputTokens": 4, "thoughtTokens": 2}
    response = {"stopReason": "end_turn", "usage": usage}
    assert to_usage(schema.PromptResponse.model_validate(response)) == Usage(
        5, 4, thinking_tokens=2
    )
    assert to_usage(schema.PromptResponse(stop_reason="end_turn")) is None
    cost = {
        "sessionUpdate": "usage_update",
        "used": 1,
        "size": 2,
        "cost": {"amount": 1.5, "currency": "EUR"},
    }
    found = parse_update({"sessionId": "s", "update": cost})
    assert not isinstance(found, TraceEvent)
    money = session_cost(found.update)
    assert money is not None
    assert (money.amount, money.currency) == (1.5, "EUR")
    picture = Image("image/png", "aGk=")
    seen = {"type": "image", "data": "aGk=", "mimeType": "image/png"}
    assert to_blocks((Text("a"), picture), images=True) == [{"type": "text", "text": "a"}, seen]
    assert to_blocks((picture,), images=False)[0]["type"] == "text"
    ends = ("done", "interrupted", "budget")
    assert [to_stop_reason(one) for one in ends] == ["end_turn", "cancelled", "max_turn_requests"]


@pytest.mark.parametrize(
    ("modes", "asks", "plans"),
    [
        (("default", "acceptEdits", "plan", "bypassPermissions"), "default", "plan"),
        (("auto", "approve", "smart_approve", "chat"), "approve", "approve"),
        (("read-only", "auto", "full-access"), "read-only", "read-only"),
        (("https://x/modes#agent", "https://x/modes#plan"), "", "https://x/modes#plan"),
        (("build", "plan"), "", "plan"),
        ((), "", ""),
    ],
)
def test_the_mode_is_one_that_asks_or_plans_where_there_is_one(modes, asks, plans):
    found = Modes(modes)
    assert (found.mode_for("auto"), found.mode_for("ask"), found.mode_for("plan")) == (
        asks,
        asks,
        plans,
    )


@given(st.text("a\n\r", max_size=20), st.integers(0, 6), st.none() | st.integers(0, 6))
def test_lines_are_those_of_the_file(text, line, limit):
    kept = list(io.StringIO(text, newline="\n"))
    start = max(line - 1, 0)
    assert lines_of(text, line, limit) == "".join(
        kept[start:][: len(kept) if limit is None else limit]
    )
