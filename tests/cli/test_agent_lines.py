"""What a person sees of another agent beside what they see of our loop."""

from io import StringIO

import pytest

from bridle.cli import render
from bridle.cli.printer import Printer
from bridle.cli.render import StepCounter, trace_line
from bridle.cli.style import Paint
from bridle.cli.transcript import SessionLines
from bridle.events import (
    AgentActivity,
    AgentResponded,
    ResponseCompleted,
    TextDelta,
    ToolCallReady,
    ToolResultEvent,
    TraceEvent,
    TurnEnded,
    UsageReported,
)
from bridle.messages import Message, Text, ToolCall, ToolOutput
from bridle.protocols.store import Record
from bridle.usage import ExecutionMetrics, Usage

PLAIN = Paint(False)
CALL = ToolCall("c1", "shell", {"command": "ls"})


def screen_with(*events):
    """What they put on the screen beside the answer."""
    err = StringIO()
    screen = Printer(StringIO(), err, live=True, paint=PLAIN)
    for seq, event in enumerate(events, 1):
        screen.feed(Record(seq, "", event))
    return err.getvalue()


@pytest.mark.parametrize("kind", ["new_conversation", "stale_resume", "notice", "ungated"])
def test_what_a_person_has_to_know_is_shown_whole(kind):
    words = "a new one was begun, which knows nothing of what was said before; the log has it"
    lines = trace_line(TraceEvent(kind, {"message": words}), PLAIN, 40).split("\n")
    assert " ".join(line.strip() for line in lines) == f"! {words}"
    assert len(lines) > 1 and all(len(line) <= 40 for line in lines)
    assert [line[:4] for line in lines[1:]] == ["    "] * (len(lines) - 1)


def test_a_call_that_was_not_asked_about_is_said_unless_it_only_looks():
    def line(name):
        return trace_line(TraceEvent("ungated_call", {"name": name}), PLAIN, 80)

    assert line("shell") == "  ! shell ran without asking"
    assert line("read") == ""


def test_a_friendly_sentence_is_no_advice_while_it_is_tried_again():
    """(P6)"""
    said = "The AI service is temporarily unavailable. Please try again in a moment."
    retry = TraceEvent("retry", {"error": said, "seconds": 2.0})
    wanted = "  ↻ The AI service is temporarily unavailable. Retrying in 2.0 s…"
    assert trace_line(retry, PLAIN, 99) == wanted


def test_an_activity_is_shown_once_where_no_call_says_so():
    """(P7) And hostile words in it are made harmless."""
    doing = AgentActivity("search", "for \x1b[31mred")
    assert screen_with(doing, doing, AgentActivity()) == "· search for \\x1b[31mred\n"
    seen = screen_with(ToolCallReady(CALL), AgentActivity("shell", "ls"))
    assert seen == "▸ shell ls\n"
    seen = screen_with(AgentActivity("shell", "ls"), ToolCallReady(CALL), ToolCallReady(CALL))
    assert seen == "· shell ls\n▸ shell ls\n"  # the call that it was, and another one
    over = ToolResultEvent(ToolOutput("c1", "a", name="shell"))
    seen = screen_with(ToolCallReady(CALL), over, AgentActivity("think", ""), TextDelta("hm"))
    assert seen == "▸ shell ls\n  ✓ a\n· think\n"


def test_what_replies_cost_of_which_nobody_said_so_is_unknown_and_not_nothing():
    line = render.usage_line(ExecutionMetrics(), steps=1)
    assert line == "1 step · 0 tokens in · 0 out · cost unknown"
    assert render.usage_line(ExecutionMetrics()) == "0 steps · 0 tokens in · 0 out · $0.00"


def test_the_steps_of_an_agent_are_its_replies_and_the_cost_is_what_it_said():
    asks = ResponseCompleted("tool_use", Message("assistant", (CALL,)))
    grows = ResponseCompleted("tool_use", Message("assistant", (CALL,)), grows=True)
    says = ResponseCompleted("complete", Message("assistant", (Text("done"),)))
    used = UsageReported(Usage(1000, 42), "m", 0.5, priced=True)
    turn = (asks, grows, says, used, AgentResponded("claude-code", 1), TurnEnded(1, "done"))
    steps, story, lines = StepCounter(), SessionLines(PLAIN, 80), []
    for seq, event in enumerate((*turn, *turn), 1):
        steps.add(event)
        lines += story.lines(Record(seq, "", event))
        if seq == len(turn):
            assert steps.count == 2
            steps = StepCounter()
    wanted = "2 steps · 1,000 tokens in · 42 out · $0.50"
    assert [line for line in lines if "steps" in line] == [f"  {wanted} · #6", f"  {wanted} · #12"]
    assert list(story.totals())[-1] == "in all  4 steps · 2,000 tokens in · 84 out · $1.00"
