"""Files, undo, modes, grants and hooks, each as a line in a story and on a screen."""

import io
from typing import Any

import pytest

from bridle.cli.printer import Printer
from bridle.cli.render import notice_lines, trace_line
from bridle.cli.style import Paint
from bridle.events import (
    Event,
    FileChange,
    FilesChanged,
    GrantRevoked,
    ModeChanged,
    PromptWithdrawn,
    ToolCallReady,
    TraceEvent,
    Undone,
)
from bridle.messages import ToolCall
from bridle.presentation.calls import call_subject
from bridle.protocols.store import Record

PLAIN = Paint(False)
MANY = tuple(FileChange(f"{number}.py") for number in range(8))


@pytest.mark.parametrize(
    ("event", "lines"),
    [
        (
            FilesChanged(
                1, "1", (FileChange("a"), FileChange("b", "added"), FileChange("c", "deleted"))
            ),
            ["  ± 3 files changed: a, b (new), c (deleted)"],
        ),
        (
            FilesChanged(1, "1", MANY),
            ["  ± 8 files changed: 0.py, 1.py, 2.py, 3.py, 4.py, 5.py and 2 more"],
        ),
        (FilesChanged(1, "1", (), ("x: too large",)), ["  ! undo does not cover it: x: too large"]),
        (FilesChanged(1, "1"), []),
        (Undone(3, "ann", ("a", "b")), ["  ↶ turn 3 was undone by ann: 2 files put back: a, b"]),
        (
            ModeChanged("ask", reason="the plan was agreed"),
            ["  ◆ Mode: ask (the plan was agreed)"],
        ),
        (GrantRevoked("g", "ann"), ["  ✗ one approval for the session revoked by ann"]),
        (PromptWithdrawn(7, 2, "ann"), ["  ✗ a queued prompt was withdrawn by ann"]),
        (GrantRevoked(), ["  ✗ all approvals for the session revoked"]),
    ],
)
def test_what_the_person_holds_in_hand_is_told_in_a_line(event: Event, lines: list[str]):
    assert notice_lines(event, PLAIN) == lines


@pytest.mark.parametrize(
    ("detail", "line"),
    [
        (
            {"moment": "before_tool", "tool": "write", "deny": "no licence"},
            "  ⚑ a hook (write) refused: no licence",
        ),
        (
            {"moment": "after_tool", "tool": "shell", "deny": "bad"},
            "  ⚑ a hook (shell) objects: bad",
        ),
        ({"moment": "before_turn", "word": "be brief"}, "  ⚑ a hook says: be brief"),
        (
            {"moment": "before_tool", "tool": "write", "arguments": {"path": "b"}},
            '  ⚑ a hook (write) changed the arguments to {"path":"b"}',
        ),
        ({"moment": "before_prompt", "prompt": "x"}, '  ⚑ a hook changed the prompt to "x"'),
    ],
)
def test_what_a_hook_did_is_told_in_a_line(detail: dict[str, Any], line: str):
    assert trace_line(TraceEvent("hook", detail), PLAIN, 99) == line


@pytest.mark.parametrize(
    ("tool", "told"), [("shell", True), ("edit", False), ("apply_patch", False)]
)
def test_files_are_named_once_where_the_result_names_them(tool: str, told: bool):
    err = io.StringIO()
    screen = Printer(io.StringIO(), err, paint=PLAIN)
    changed = FilesChanged(1, "1", (FileChange("a"),), ("b: too large",))
    for event in (ToolCallReady(ToolCall("1", tool, {})), changed):
        screen.feed(Record(1, "", event))
    assert ("± 1 file changed: a" in err.getvalue()) is told
    assert "! undo does not cover it: b: too large" in err.getvalue()


def test_a_patch_and_a_plan_are_known_by_what_they_are_about():
    patch = "--- a/x.py\n+++ b/x.py\n@@ -1 +1 @@\n-1\n+2\n"
    patch += "--- /dev/null\n+++ b/y.py\n@@ -0,0 +1 @@\n+1\n"
    assert call_subject(ToolCall("1", "apply_patch", {"patch": patch})) == "x.py, y.py"
    assert call_subject(ToolCall("1", "exit_plan_mode", {"plan": "\n# A\nb"})) == "A"
