"""Child sessions where a person looks: a line each, their progress, and lists that say whose."""

import io
import json

from cli_program import Program

from bridle.cli.commands.sessions.list import session_lines
from bridle.cli.printer import Printer
from bridle.cli.render import notice_lines
from bridle.cli.session_state import SessionState
from bridle.cli.style import Paint
from bridle.events import (
    ChildEnded,
    ChildOf,
    ChildStarted,
    Forked,
    PromptReceived,
    SessionStarted,
    ToolCallReady,
    ToolOutputDelta,
)
from bridle.messages import ToolCall
from bridle.protocols.codec import encode_data, encode_line
from bridle.protocols.store import Record
from bridle.stores.session_index import list_sessions
from bridle.usage import ExecutionMetrics

PLAIN = Paint(False)
WHEN = "2026-01-31T10:30:01.000Z"


def test_a_task_is_a_line_when_it_begins_and_one_when_it_ends():
    begun = ChildStarted("1", "s2", "loop", "count\nthe \x1b[31mtests", "ask")
    other = ChildStarted("1", "s2", "claude-code", "x" * 100, "ask")
    used = ExecutionMetrics(invocations=2, cost=0.012)
    for event, line in (
        (begun, "  ▸ task count the \\x1b[31mtests (session s2)"),
        (other, f"  ▸ task {'x' * 59}… by claude-code (session s2)"),
        (ChildEnded("1", "s2", "done", used), "  ✓ task done · $0.012 (session s2)"),
        (ChildEnded("1", "s2", "budget"), "  ✗ task stopped at a limit · $0.00 (session s2)"),
        (ChildOf("s1", "1"), "  ↳ subagent of session s1"),
    ):
        assert notice_lines(event, PLAIN) == [line]


def test_what_a_child_does_is_seen_line_by_line_and_other_tools_are_not():
    out, err = io.StringIO(), io.StringIO()
    screen = Printer(out, err, live=False, paint=PLAIN)
    calls = [
        ToolCall("1", "task", {"prompt": "p", "description": "count"}),
        ToolCall("2", "shell", {"command": "ls"}),
    ]
    said = [
        ToolCallReady(calls[0]),
        ToolOutputDelta("1", "▸ shell ls\nfound \x1b[31mit\n"),
        ToolCallReady(calls[1]),
        ToolOutputDelta("2", "a.txt\n"),
        ToolOutputDelta("1", "done\n"),
    ]
    for seq, event in enumerate(said, 1):
        screen.feed(Record(seq, WHEN, event))
    assert err.getvalue().splitlines() == [
        "▸ task count",
        "    ▸ shell ls",
        "    found \\x1b[31mit",
        "▸ shell ls",
        "    count: done",
    ]


def put(state, session_id, *events):
    path = state / "sessions" / session_id / "log.jsonl"
    path.parent.mkdir(parents=True)
    before, lines = "", []
    for seq, event in enumerate(events, 1):
        line, before = encode_line(seq, WHEN, encode_data(event), before)
        lines.append(line)
    path.write_bytes(b"".join(lines))


def test_a_list_says_which_session_is_a_task_and_whose(state):
    start = SessionStarted("s", workspace="/w", model="m")
    prompt = PromptReceived("say", 1)
    put(state, "s1", start, prompt)
    put(state, "s2", start, ChildOf("s1", "call_1"), prompt)
    put(state, "s3", start, ChildOf("s1", "call_1"), prompt, Forked("s2", 3))
    found = sorted(list_sessions(state), key=lambda one: one.id)
    assert [(one.id, one.parent) for one in found] == [("s1", ""), ("s2", "s1"), ("s3", "")]
    does = {one.id: SessionState() for one in found}
    lines = list(session_lines(found, PLAIN, 80, does))
    assert [line.rpartition("  ")[2] for line in lines] == ["say", "↳ say", "say"]


def test_a_run_whose_task_waits_for_a_person_says_so_and_is_no_success(bridle: Program):
    """(P8): the parent goes on without the result; the exit code says that something waits."""
    write = {"calls": [{"name": "write", "arguments": {"path": "a.txt", "content": "x\n"}}]}
    task = {"calls": [{"name": "task", "arguments": {"prompt": "write it"}}]}
    model = bridle.script(task, task, write, "Not yet.", "Done.")
    done = bridle.run("run", "go", "--on-ask", "park", "--model", model)
    assert (done.returncode, done.stdout.splitlines()[-1]) == (3, "Done.")
    (waiting,) = json.loads(bridle.run("approvals", "list", "--json").stdout)
    assert f"a subagent needs approval, in session {waiting['session']};" in done.stderr
    assert f"`bridle run --resume {waiting['session']}`" in done.stderr
    assert not (bridle.workspace / "a.txt").exists()
