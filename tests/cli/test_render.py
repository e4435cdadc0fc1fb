"""What happened, as lines: pure functions, and the screen that is fed records."""

import io
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridle.cli import render
from bridle.cli.approval_prompt import full_text, parse_answer
from bridle.cli.printer import Printer
from bridle.cli.render import trace_line
from bridle.cli.style import Paint, cells, cut, paint_for
from bridle.events import (
    ApprovalAnswered,
    ApprovalAsked,
    Event,
    ResponseCompleted,
    TextDelta,
    ThinkingDelta,
    Todo,
    TodosChanged,
    ToolCallReady,
    ToolResultEvent,
    TraceEvent,
    TurnEnded,
)
from bridle.messages import Message, Text, ToolCall, ToolOutput
from bridle.protocols.codec import encode_data, encode_line
from bridle.protocols.session import Answer
from bridle.protocols.store import Record
from bridle.usage import ExecutionMetrics

PLAIN = Paint(False)
EVIL = "a\x1b]52;c;x\x07\u202eb"


class Tty(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("name", "arguments", "line"),
    [
        ("shell", {"command": "ls -l\nrm x", "timeout": 5}, "▸ shell ls -l rm x"),
        ("read", {"path": "a.py"}, "▸ read a.py"),
        ("grep", {"pattern": "x+", "path": "src"}, "▸ grep x+ in src"),
        ("todo_write", {"todos": [{}, {}]}, "▸ todo_write 2 items"),
        ("odd", {"n": 1}, '▸ odd {"n":1}'),
        ("none", {}, "▸ none"),
        ("sh\x1bell", {"command": EVIL}, r"▸ sh\x1bell a\x1b]52;c;x\x07\u202eb"),
    ],
)
def test_a_call_is_one_harmless_line(name: str, arguments: dict[str, Any], line: str):
    assert render.call_line(ToolCall("1", name, arguments), PLAIN, 100) == line


@pytest.mark.parametrize(
    ("output", "line"),
    [
        (ToolOutput("1", "done"), "  ✓ done"),
        (ToolOutput("1", ""), "  ✓ no output"),
        (ToolOutput("1", "a\nb\n\nc", name="read"), "  ✓ 3 lines"),
        (ToolOutput("1", "a\nb\nOK\n[exit code 0]", name="shell"), "  ✓ OK (3 lines)"),
        (ToolOutput("1", "(no output)\n[exit code 0]", name="shell"), "  ✓ no output"),
        (ToolOutput("1", "a\nb\n[exit code 1]", True, "shell"), "  ✗ exit code 1 · b (2 lines)"),
        (ToolOutput("1", "not run: no", True, "shell"), "  ✗ not run: no"),
        (ToolOutput("1", "Changed `a`:\nx\ny", name="edit"), "  ✓ Changed `a`"),
        (ToolOutput("1", "no such file", True), "  ✗ no such file"),
        (ToolOutput("1", "exit 1\nx\ny", True), "  ✗ exit 1 (+2 lines)"),
        (ToolOutput("1", "x" * 100), "  ✓ " + "x" * 35 + "…"),
    ],
)
def test_a_result_is_the_line_that_says_most(output: ToolOutput, line: str):
    assert render.result_lines(output, PLAIN, 40) == [line]


@pytest.mark.parametrize(
    ("metrics", "line"),
    [
        (ExecutionMetrics(1200, 30, 1, cost=0.0312), "1 step · 1,200 tokens in · 30 out · $0.031"),
        (
            ExecutionMetrics(10, 3, 2, 4, tool_calls=1, cost=12.5),
            "2 steps · 1 call · 10 tokens in · 4 cached · 3 out · $12.50",
        ),
        (ExecutionMetrics(10, 3, 2, unpriced=2), "2 steps · 10 tokens in · 3 out · cost unknown"),
        (
            ExecutionMetrics(10, 3, 2, cost=0.5, unpriced=1),
            "2 steps · 10 tokens in · 3 out · $0.50 + unknown",
        ),
        (ExecutionMetrics(10, 3, 1), "1 step · 10 tokens in · 3 out · $0.00"),
    ],
)
def test_an_unknown_price_is_said_to_be_unknown(metrics: ExecutionMetrics, line: str):
    assert render.usage_line(metrics) == line


def test_another_try_and_another_model_are_said():
    retry = TraceEvent("retry", {"attempt": 2, "seconds": 0.512, "error": "busy"})
    moved = TraceEvent("fallback", {"from": "a/b", "to": "c/d", "error": "busy"})
    assert trace_line(retry, PLAIN, 99) == "  ↻ busy. Retrying in 0.5 s, attempt 2…"
    assert trace_line(moved, PLAIN, 99) == "  ↻ busy; asking c/d"
    assert trace_line(TraceEvent("parse_error", "x"), PLAIN, 99) == ""
    changed = TraceEvent("guarded_change", {"message": "the command changed .env"})
    assert trace_line(changed, PLAIN, 99) == "  ! the command changed .env"


def test_a_long_error_does_not_hide_when_the_request_is_retried():
    error = "api.example.com answered 429: Number of requests has exceeded your rate limit"
    retry = TraceEvent("retry", {"attempt": 2, "seconds": 12, "error": error})
    lines = trace_line(retry, PLAIN, 60).split("\n")
    assert all(len(line) <= 60 for line in lines)
    assert " ".join(line.strip() for line in lines) == f"↻ {error}. Retrying in 12 s, attempt 2…"


def test_the_lines_of_a_retry_are_replaced_as_a_whole(monkeypatch: pytest.MonkeyPatch):
    class Tty(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setenv("TERM", "xterm")
    err = Tty()
    screen = Printer(io.StringIO(), err, live=True, paint=PLAIN)
    error = "you have sent too many requests " * 7
    screen.feed(Record(1, "", TraceEvent("retry", {"attempt": 2, "seconds": 1, "error": error})))
    rows = err.getvalue().count("\n")
    assert rows > 1
    screen.feed(Record(2, "", TraceEvent("retry", {"attempt": 3, "seconds": 2, "error": "busy"})))
    assert err.getvalue().count("\x1b[1A\x1b[K") == rows


def test_a_record_is_written_as_it_stands_in_the_log():
    event = TextDelta("hé\x1b")
    line, digest = encode_line(7, "2026-01-01T00:00:00.000Z", encode_data(event), "before")
    assert render.json_line(Record(7, "2026-01-01T00:00:00.000Z", event, digest)) == line


@given(st.text(max_size=50), st.integers(1, 30))
def test_a_cut_text_takes_at_most_its_columns(text: str, width: int):
    short = cut(text, width)
    assert cells(short) <= width
    assert short == text or short.endswith("…")


def test_colour_needs_a_terminal_and_no_refusal():
    assert paint_for(Tty(), {"TERM": "xterm"}).on
    assert not paint_for(Tty(), {"TERM": "xterm", "NO_COLOR": "1"}).on
    assert not paint_for(Tty(), {"TERM": "dumb"}).on
    assert not paint_for(io.StringIO(), {"TERM": "xterm"}).on


def asked(name: str, arguments: dict[str, Any]) -> ApprovalAsked:
    return ApprovalAsked(ToolCall("1", name, arguments), "hash", "it may change things", cwd="/w")


def test_a_question_shows_the_exact_command_with_everything_visible():
    text = full_text(
        [asked("shell", {"command": f"echo {EVIL}\nrm -rf x", "timeout": 9})],
        PLAIN,
        200,
        lambda _: None,
    )
    assert text.splitlines() == [
        "? Run this command?",
        "  why: it may change things",
        "  in:  /w",
        r"  │ $ echo a\x1b]52;c;x\x07\u202eb",
        "  │ $ rm -rf x",
        '  │ {"timeout":9}',
    ]


@pytest.mark.parametrize(
    ("arguments", "before", "lines"),
    [
        ({"path": "a", "old": "x\ny", "new": "z"}, None, ["a", "- x", "- y", "+ z"]),
        ({"path": "a", "old": "x\n", "new": "z\n"}, None, ["a", "- x", "+ z"]),
        ({"path": "a", "old": "x\n", "new": "x"}, None, ["a", "- x", "- ", "+ x"]),
        ({"path": "a", "content": "x\ny\n"}, None, ["a", "+ x", "+ y"]),
        ({"path": "a", "content": "x"}, None, ["a", "+ x", "(the last line has no end)"]),
        ({"path": "a", "content": ""}, None, ["a"]),
        (
            {"path": "a", "content": "x\ny\n"},
            "x\nz\n",
            ["a", "@@ -1,2 +1,2 @@", " x", "-z", "+y"],
        ),
        ({"path": "a", "content": "x"}, "x\n", ["a", "@@ -1,2 +1 @@", " x", "-"]),
        ({"path": "a", "content": "x\r"}, "x", ["a", "@@ -1 +1 @@", "-x", r"+x\r"]),
        ({"path": "a", "content": "x\n"}, "x\n", ["a", "(the same as it is now)"]),
    ],
)
def test_a_question_shows_the_change_that_a_call_would_make(arguments, before, lines):
    text = full_text([asked("edit", arguments)], PLAIN, 200, lambda _: before)
    assert [line.removeprefix("  │ ") for line in text.splitlines()[3:]] == lines


def test_a_long_line_of_a_question_is_folded_and_cannot_pose_as_the_question():
    text = full_text(
        [asked("shell", {"command": "true" + " " * 20 + "[y/s/N] y"})], PLAIN, 26, lambda _: None
    )
    assert text.splitlines()[4:] == ["  │ $ true" + " " * 14, "  │ ↪       [y/s/N] y"]
    assert text.splitlines()[1:4] == ["  why: it may change ", "  ↪ things", "  in:  /w"]


def test_a_long_change_is_shown_whole():
    content = "\n".join(f"line {number}" for number in range(5000))
    text = full_text(
        [asked("write", {"path": "a", "content": content})], PLAIN, 200, lambda _: None
    )
    assert "line 0\n" in text and "line 2500\n" in text and "+ line 4999\n" in text


@pytest.mark.parametrize(
    ("line", "answer"),
    [
        ("y", Answer(True)),
        (" YES ", Answer(True)),
        ("s", Answer(True, "session")),
        ("a", Answer(True, "session")),  # as it was once
        ("n", Answer(False)),
        ("", Answer(False)),
        (None, Answer(False)),
        ("use a copy", Answer(False, word="use a copy")),
        ("no, use a copy", Answer(False, word="use a copy")),
        ("yup", Answer(False, word="yup")),
    ],
)
def test_anything_but_a_clear_yes_is_no(line: str | None, answer: Answer):
    assert parse_answer(asked("shell", {"command": "x"}), line) == answer


CALL = ToolCall("1", "read", {"path": "a"})
TURN: list[Event] = [
    ThinkingDelta("hmm"),
    TextDelta("Let me "),
    TextDelta("look."),
    ToolCallReady(CALL),
    ResponseCompleted("tool_use", Message("assistant", (Text("Let me look."), CALL))),
    ToolResultEvent(ToolOutput("1", "x", name="read")),
    TodosChanged((Todo("look", "completed"), Todo("mend", "in_progress"), Todo("test"))),
    TextDelta("It is "),
    TextDelta(EVIL),
    ResponseCompleted("complete", Message("assistant", (Text("It is x"),))),
    TurnEnded(1, "done"),
]


def shown(events: list[Event], out: io.StringIO, err: io.StringIO, **options: Any) -> None:
    screen = Printer(out, err, paint=PLAIN, **options)
    for number, event in enumerate(events, 1):
        screen.feed(Record(number, "", event))


def test_in_a_pipe_the_answer_alone_goes_to_standard_output():
    out, err = io.StringIO(), io.StringIO()
    shown(TURN, out, err)
    assert out.getvalue() == "It is a\\x1b]52;c;x\\x07\\u202eb\n"
    assert err.getvalue().splitlines() == [
        "Let me look.",
        "▸ read a",
        "  ✓ x",
        "    ✓ look",
        "    ◐ mend",
        "    ☐ test",
    ]


def test_at_a_terminal_the_text_streams_and_lines_begin_where_lines_begin():
    screen = Tty()
    shown(TURN, screen, screen)
    assert screen.getvalue().splitlines() == [
        "Let me look.",
        "▸ read a",
        "  ✓ x",
        "    ✓ look",
        "    ◐ mend",
        "    ☐ test",
        "",
        r"It is a\x1b]52;c;x\x07\u202eb",
    ]


def test_thinking_is_shown_when_it_is_asked_for():
    screen = Tty()
    events = [ThinkingDelta("hmm"), TextDelta("Yes."), ResponseCompleted("complete")]
    shown(events, screen, screen, thinking=True)
    assert screen.getvalue() == "hmm\nYes.\n"


def test_quiet_shows_the_answer_alone():
    out, err = io.StringIO(), io.StringIO()
    shown(TURN, out, err, quiet=True)
    assert (out.getvalue(), err.getvalue()) == ("It is a\\x1b]52;c;x\\x07\\u202eb\n", "")


def test_a_reply_that_failed_is_not_an_answer():
    out, err = io.StringIO(), io.StringIO()
    shown([TextDelta("It i"), ResponseCompleted("error")], out, err)
    assert (out.getvalue(), err.getvalue()) == ("", "It i\n")


def test_results_of_several_calls_say_whose_they_are():
    err = io.StringIO()
    calls = [ToolCall(str(number), "read", {"path": f"f{number}"}) for number in (1, 2)]
    events: list[Event] = [ToolCallReady(call) for call in calls]
    events += [ToolResultEvent(ToolOutput(call.id, "x", name="read")) for call in calls]
    shown(events, io.StringIO(), err)
    assert err.getvalue().splitlines()[2:] == ["  ✓ read f1: x", "  ✓ read f2: x"]


def test_who_refused_and_why_is_said():
    err = io.StringIO()
    answer = ApprovalAnswered("1", False, "ada", word="not now")
    shown([asked("shell", {"command": "ls"}), answer], io.StringIO(), err)
    assert err.getvalue().splitlines() == [
        "  ? it may change things",
        "  ✗ denied by ada: not now",
    ]


@pytest.mark.parametrize(
    ("by", "word"), [("nobody", "nobody is here"), ("expiry", "no one answered in time")]
)
def test_a_no_that_nobody_said_is_told_once_and_is_nobodys(by: str, word: str):
    err = io.StringIO()
    answer = ApprovalAnswered("1", False, by, word=word)
    over = ToolOutput("1", f"not run: approval was denied: {word}", True, name="shell")
    question = asked("shell", {"command": "ls"})
    shown([question, answer, ToolResultEvent(over)], io.StringIO(), err)
    assert err.getvalue().splitlines() == ["  ? it may change things", f"  ✗ not run: {word}"]


def test_a_list_is_shown_by_its_first_entries():
    output = ToolOutput("1", "a.py\nb.py\n[exit code 0]", name="shell")
    line = render.result_lines(output, PLAIN, 80, command="ls")
    assert line == ["  ✓ 2 lines: a.py, b.py"]
