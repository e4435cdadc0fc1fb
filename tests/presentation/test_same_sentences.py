"""Terminal, plain lines, `sessions show`, REPL, editor and page say the same about a call."""

import io
import json
import subprocess
from pathlib import Path

import pytest

from bridle.cli.approval_prompt import answer_prompt, full_text
from bridle.cli.printer import Printer
from bridle.cli.style import Paint
from bridle.cli.transcript import SessionLines
from bridle.events import (
    ApprovalAsked,
    CallIntended,
    PromptReceived,
    ResponseCompleted,
    ToolCallReady,
    ToolResultEvent,
)
from bridle.messages import Message, ToolCall, ToolOutput
from bridle.presentation.approvals import approval_choices, approval_title, plan_choices
from bridle.presentation.calls import call_line, call_subject, result_summary
from bridle.presentation.fold import Fold
from bridle.presentation.notices import progress_text
from bridle.protocols.store import Record
from bridle.server.acp.permissions import permission_options
from bridle.tui.model.approval_views import CallView, PlanView
from bridle.tui.session_backend import Asked
from node import rig
from tui.test_blocks_drawn import drawn

ROOT = Path(__file__).parent.parent.parent
PATCH = "--- a/x.py\n+++ b/x.py\n@@ -1 +1 @@\n-1\n+2\n--- /dev/null\n+++ b/new.py\n"


def result(text, *, name, failed=False, **data):
    return ToolOutput("c", text, is_error=failed, name=name, data=data or None)


# A call, and what came of it.
CASES = {
    "read": (
        ToolCall("c", "read", {"path": "notes.md"}),
        result("one\ntwo\nthree", name="read"),
    ),
    "grep in a folder": (
        ToolCall("c", "grep", {"pattern": "x+", "path": "src"}),
        result("src/a.py:1: x", name="grep"),
    ),
    "glob": (
        ToolCall("c", "glob", {"pattern": "*.py"}),
        result("a.py\nb.py", name="glob", count=2),
    ),
    "list": (
        ToolCall("c", "list", {"path": "."}),
        result("a.py  1.2 KB\nsrc/", name="list", entries=2),
    ),
    "edit": (
        ToolCall("c", "edit", {"path": "basket.py", "old": "1", "new": "2"}),
        result("edited basket.py:\n-1\n+2", name="edit"),
    ),
    "patch": (
        ToolCall("c", "apply_patch", {"patch": PATCH}),
        result("changed 2 files", name="apply_patch"),
    ),
    "command": (
        ToolCall("c", "shell", {"command": "pytest -q"}),
        result("..\n2 passed\n[exit code 0]", name="shell", exit_code=0, output="..\n2 passed\n"),
    ),
    "silent command": (
        ToolCall("c", "shell", {"command": "true"}),
        result("(no output)\n[exit code 0]", name="shell", exit_code=0, output=""),
    ),
    "failed command": (
        ToolCall("c", "shell", {"command": "make"}),
        result("one\nit broke\n[exit code 2]", name="shell", failed=True),
    ),
    "listing command": (
        ToolCall("c", "shell", {"command": "cd src && git ls-files 'a b'"}),
        result("a\nb\nc\n[exit code 0]", name="shell", exit_code=0, output="a\nb\nc\n"),
    ),
    "text command": (
        ToolCall("c", "shell", {"command": "git log | cat"}),
        result("a\nb\n[exit code 0]", name="shell", exit_code=0, output="a\nb\n"),
    ),
    "background": (
        ToolCall("c", "shell", {"command": "make serve"}),
        result("[job-1 runs …]", name="shell", job="job-1"),
    ),
    "task": (
        ToolCall("c", "task", {"description": "Look around", "prompt": "Look at all files."}),
        result("session 7\n\nThere are 3 files.\nThat is all.", name="task"),
    ),
    "error": (
        ToolCall("c", "read", {"path": "nosuch"}),
        result("there is no file nosuch\nLook with list.", name="read", failed=True),
    ),
    "plan": (
        ToolCall("c", "exit_plan_mode", {"plan": "# Speed it up\n\n1. Measure"}),
        result("agreed", name="exit_plan_mode"),
    ),
    "question": (
        ToolCall("c", "ask_user", {"question": "Which one?", "options": ["a", "b"]}),
        result("a", name="ask_user"),
    ),
    "another tool": (
        ToolCall("c", "weather", {"days": 3}),
        result("rain", name="weather"),
    ),
    "without arguments": (
        ToolCall("c", "skills", {}),
        result("", name="skills"),
    ),
}
APPROVALS = {
    "command": ApprovalAsked(CASES["command"][0], "h", proposal="allow: shell(pytest *)"),
    "build": ApprovalAsked(CASES["command"][0], "h", covers="builds"),
    "edit": ApprovalAsked(CASES["edit"][0], "h"),
    "once": ApprovalAsked(CASES["read"][0], "h", once_only=True, proposal="allow: read"),
    "another tool": ApprovalAsked(CASES["another tool"][0], "h"),
}


def command_of(call):
    return str(call.arguments.get("command", ""))


def records(call, output):
    events = (
        PromptReceived("go", turn=1),
        ToolCallReady(call),
        ResponseCompleted("tool_use", Message("assistant", (call,))),
        CallIntended(call.id, call.name),
        ToolResultEvent(output),
    )
    return [Record(seq, "", event) for seq, event in enumerate(events, 1)]


def on_the_screen(call, output):
    fold = Fold()
    for record in records(call, output):
        fold.apply(record)
    blocks = [block for block in fold.blocks if getattr(block, "id", "") == call.id]
    return " ".join(drawn(blocks[0], 200))


def in_plain_output(call, output):
    err = io.StringIO()
    printer = Printer(None, err, paint=Paint(False))
    for record in records(call, output):
        printer.feed(record)
    return err.getvalue()


def in_sessions_show(call, output):
    transcript = SessionLines(Paint(False), 200)
    return "\n".join(line for record in records(call, output) for line in transcript.lines(record))


@pytest.mark.parametrize("name", CASES)
def test_every_interface_says_the_same_about_a_call(name):
    call, output = CASES[name]
    subject = " ".join(call_subject(call).split())
    summary = result_summary(output, command_of(call))
    screen = on_the_screen(call, output)
    for text in (screen, in_plain_output(call, output), in_sessions_show(call, output)):
        assert f"{call.name} {subject}".strip() in text
        assert summary in text
    assert progress_text(ToolCallReady(call)) == " ".join(call_line(call).split())


def page_says():
    """What the page's own modules say about all cases, from one run of Node.js."""
    calls = [
        {
            "name": call.name,
            "arguments": call.arguments,
            "result": {"ok": not output.is_error, "text": output.text, "data": output.data},
            "command": command_of(call),
        }
        for call, output in CASES.values()
    ]
    requests = [
        {
            "call": {"name": asked.call.name, "arguments": asked.call.arguments},
            "covers": asked.covers,
            "proposal": asked.proposal,
            "lasting": asked.once_only,
        }
        for asked in APPROVALS.values()
    ]
    program = f"""
        import {{ callSubject, resultSummary }} from "{ROOT}/web/src/text/calls.ts";
        import * as approvals from "{ROOT}/web/src/text/approvals.ts";
        const {{ calls, requests }} = JSON.parse(process.argv[1]);
        console.log(JSON.stringify({{
          calls: calls.map((one) => [
            callSubject(one), resultSummary(one.name, one.result, one.command)
          ]),
          titles: [...calls, ...requests.map((one) => one.call)].map(approvals.approvalTitle),
          choices: requests.map(approvals.approvalChoices),
          plan: approvals.PLAN_CHOICES,
        }}));
    """
    line = [rig.node(), "--input-type=module", "-e", program]
    given = json.dumps({"calls": calls, "requests": requests})
    done = subprocess.run([*line, given], capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_the_page_says_the_same_as_the_terminal():
    page = page_says()
    ours = [
        [call_subject(call), result_summary(output, command_of(call))]
        for call, output in CASES.values()
    ]
    assert dict(zip(CASES, page["calls"], strict=True)) == dict(zip(CASES, ours, strict=True))
    calls = [*(call for call, _ in CASES.values()), *(asked.call for asked in APPROVALS.values())]
    assert page["titles"] == [approval_title(call) for call in calls]
    for asked, choices in zip(APPROVALS.values(), page["choices"], strict=True):
        assert choices == {choice.key: choice.label for choice in approval_choices(asked)}
    assert page["plan"] == {choice.key: choice.label for choice in plan_choices()}


@pytest.mark.parametrize("name", APPROVALS)
def test_every_interface_asks_for_approval_in_the_same_words(name):
    asked = APPROVALS[name]
    title = approval_title(asked.call)
    labels = {choice.key: choice.label for choice in approval_choices(asked)}
    view = CallView(Asked(session_id="s", title="", asked=asked))
    assert (view.title, {one.key: one.label for one in view.choices}) == (title, labels)
    plain = full_text([asked], Paint(False), 200, lambda _: None) + answer_prompt(asked, 200)
    assert f"? {title}" in plain
    assert all(f"[{key}] {label}" in plain for key, label in labels.items() if key != "w")
    editor = [option.name for option in permission_options(asked)]
    ruled = {"r": f"Always {asked.proposal}"} if "r" in labels else {}
    assert editor == [{**labels, **ruled}[key] for key in "ysrn" if key in labels]


def test_a_plan_is_asked_for_in_the_same_words():
    asked = ApprovalAsked(CASES["plan"][0], "h")
    view = PlanView(Asked(session_id="s", title="", asked=asked), is_here=False)
    labels = {choice.key: choice.label for choice in plan_choices()}
    assert {one.key: one.label for one in view.choices} == labels
    assert [option.name for option in permission_options(asked)] == [labels["y"], labels["n"]]
    assert full_text([asked], Paint(False), 80).startswith(f"? {view.title}\n")
