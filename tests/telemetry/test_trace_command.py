"""`bridle trace`: the tree from the log alone, on any terminal and any log."""

import json
import tracemalloc
from pathlib import Path

import pytest
from rig_spans import LOOKS, WRITES, Collected, traced_engine

from bridle.cli import main
from bridle.cli.style import Paint, cells
from bridle.cli.trace_tree import (
    MAX_SPANS,
    Branch,
    Scale,
    TraceReader,
    TreeLines,
    compact_count,
    compact_duration,
)
from bridle.engine.trace import Span
from bridle.events import (
    CallIntended,
    ChildStarted,
    MessageAdded,
    PromptReceived,
    ResponseCompleted,
    SessionStarted,
    ToolResultEvent,
    TurnEnded,
)
from bridle.messages import Message, Text, ToolCall, ToolOutput
from bridle.providers.scripted import Scripted
from bridle.stores.jsonl import JsonlStore
from bridle.stores.reader import SessionFolder
from bridle.tools.session_tools import TaskTool
from rig import call, run

LOGS = Path(__file__).parent.parent / "logs"
OLD = "20260131-103000-0123456789"


@pytest.fixture
def state(tmp_path, monkeypatch):
    """A state folder with an old session in it."""
    put(tmp_path, OLD, LOGS.joinpath("format-1.jsonl").read_bytes())
    monkeypatch.setenv("BRIDLE_STATE", str(tmp_path))
    return tmp_path


def put(state, session_id, data):
    folder = state / "sessions" / session_id
    folder.mkdir(parents=True)
    folder.joinpath("log.jsonl").write_bytes(data)


def told(capsys, *arguments):
    code = main(["trace", *arguments])
    said = capsys.readouterr()
    return code, said.out, said.err


def columns(out):
    """The lines without the bars and the spaces between columns."""
    return [" ".join(line.replace("━", "").replace("┄", "").split()) for line in out.splitlines()]


def test_the_tree_has_names_times_tokens_and_costs_and_no_colour_in_a_pipe(state, capsys):
    code, out, _ = told(capsys, OLD)
    assert code == 0
    assert "\x1b" not in out
    assert columns(out) == [
        f"{OLD} mend the parser",
        "time tokens cost",
        "turn 1 mend the parser failed, agent 20.0s 2.4k $0.0042",
        "step 1 13.0s 2.4k $0.0042",
        "claude-x 8.0s 2.4k $0.0042",
        "read src/a.py 1.0s",
        "approval of shell ls -l refused 1.0s",
        "shell ls -l refused 0ms",
        "step 2 failed 6.0s",
        "anthropic/claude-x failed, agent 6.0s",
        "turn 2 look at this: ä語🙂 4.0s 6 ?",
        "step 1 3.0s 6 ?",
        "gpt-x 3.0s 6 ?",
        "2 turns, 1.0s waiting 23.0s 2.4k $0.0042+?",
    ]


def test_one_turn_and_a_depth_can_be_chosen_and_a_turn_that_is_not_there_is_said(state, capsys):
    assert columns(told(capsys, OLD, "--turn", "2", "--depth", "1")[1])[2:] == [
        "turn 2 look at this: ä語🙂 4.0s 6 ?"
    ]
    for more in ((), ("--json",)):
        code, out, err = told(capsys, OLD, "--turn", "9", *more)
        assert (code, out) == (2, "")
        assert "the session has no turn 9" in err
        assert "Its newest turn is 2." in err


def test_json_is_one_array_of_spans_that_name_their_parents(state, capsys):
    found = json.loads(told(capsys, OLD, "--json")[1])
    ids = [one["id"] for one in found]
    assert len(set(ids)) == len(ids)
    assert {one["parent"] for one in found} <= {*ids, None}
    assert [one["kind"] for one in found].count("tool") == 2
    assert found[-1]["parent"] is None
    assert found[-1]["kind"] == "session"
    assert "mend the parser" not in json.dumps(found)
    some = json.loads(told(capsys, OLD, "--json", "--turn", "1", "--depth", "2")[1])
    assert [one["kind"] for one in some] == ["step", "step", "turn"]


def test_an_unknown_session_is_an_error_with_a_hint_and_no_traceback(state, capsys):
    code, out, err = told(capsys, "nobody")
    assert (code, out) == (2, "")
    assert "there is no session 'nobody'" in err
    assert "Traceback" not in err


def test_a_session_in_which_nothing_happened_says_so(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("BRIDLE_STATE", str(tmp_path))
    first = LOGS.joinpath("format-1.jsonl").read_bytes().splitlines(keepends=True)[0]
    put(tmp_path, OLD, first)
    assert told(capsys, OLD) == (0, "Nothing has happened in this session yet.\n", "")


def test_a_session_that_runs_now_is_shown_as_far_as_it_is(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("BRIDLE_STATE", str(tmp_path))

    async def story():
        store, collected = JsonlStore(tmp_path), Collected()
        rest = {"store": store, "collected": collected, "on_ask": "wait"}
        async with traced_engine([call("write_it")], WRITES, **rest) as engine:
            session = await engine.session()
            await session.send("go")
            while not session.history.pending:
                async for _ in session.subscribe():
                    if session.history.pending:
                        break
            await session._log.settled()
            return told(capsys, session.id)[1]

    lines = columns(run(story()))
    assert lines[2].startswith("turn 1 go running")
    assert any(line.startswith("approval of write_it running") for line in lines)


def test_what_a_task_did_stands_below_its_call_also_when_its_log_is_gone(
    tmp_path, monkeypatch, capsys
):
    monkeypatch.setenv("BRIDLE_STATE", str(tmp_path))
    parts = {"go": [call("task", prompt="dig"), "found"], "dig": [call("look"), "gold"]}

    async def story():
        model = Scripted(lambda asked: parts[asked.messages[0].content].pop(0))
        rest = {"store": JsonlStore(tmp_path), "collected": Collected()}
        async with traced_engine(model, LOOKS, TaskTool(), **rest) as engine:
            session = await engine.session()
            await session.wait(await session.send("go"))
            (child,) = [
                one.event.session_id
                for one in engine.store.read(session.id)
                if isinstance(one.event, ChildStarted)
            ]
        return session.id, child

    parent, child = run(story())
    names = [line.split()[0] for line in columns(told(capsys, parent)[1])[2:]]
    own = ["turn", "step", "scripted", "look", "step", "scripted"]
    assert names == ["turn", "step", "scripted", "task", "task", *own, "step", "scripted", "1"]
    found = json.loads(told(capsys, parent, "--json")[1])
    (root,) = [one for one in found if one["kind"] == "session" and one["session"] == child]
    assert root["parent"].startswith(f"{parent}/task-")
    JsonlStore(tmp_path).delete(child)
    assert "its log cannot be read" in told(capsys, parent)[1]


def test_text_from_elsewhere_is_harmless_and_a_damaged_log_is_read_as_far_as_it_goes(
    tmp_path, monkeypatch, capsys
):
    monkeypatch.setenv("BRIDLE_STATE", str(tmp_path))
    lines = LOGS.joinpath("format-1.jsonl").read_bytes().splitlines(keepends=True)
    hostile = lines[8:] and lines[11].replace(b'"read"', b'"re\\u001b[2Jad\\u202e"')
    broken = [*lines[:11], hostile, b"\x00\xff not a record\n", *lines[12:20], lines[20][:40]]
    put(tmp_path, OLD, b"".join(broken))
    code, out, _ = told(capsys, OLD)
    assert code == 0
    assert "turn 1" in out
    assert "\x1b" not in out
    assert "\u202e" not in out


@pytest.mark.parametrize("width", [20, 40, 63, 64, 99, 100, 200])
@pytest.mark.parametrize("on", [True, False])
def test_a_line_is_never_wider_than_the_terminal_and_a_bar_never_leaves_its_column(width, on):
    lines = TreeLines(Paint(on), width)
    span = Span("tool", "a_tool_with_a_long_name" * 3, start=5, end=3_600_000, status="failed")
    row = lines.row(Branch(span, "rm -rf 語" * 30), 4, Scale(0, 3_600_000))
    bare = row
    for code in ("0", "1", "2", "31", "33", "36"):
        bare = bare.replace(f"\x1b[{code}m", "")
    assert cells(bare) <= width
    assert ("\x1b" in row) == on
    assert ("━" in row) == (width >= 100)


def test_a_label_that_was_cut_leaves_its_row_in_the_columns():
    lines = TreeLines(Paint(False), 80)
    ends = set()
    for label in ("x", "x" * 40, "x" * 200):
        span = Span("tool", label, start=0, end=1000)
        ends.add(lines.row(Branch(span, ""), 0, Scale(0, 1000)).index("1.0s") + 4)
    assert ends == {lines.head().index("time") + 4}


def test_a_bar_shows_where_in_its_turn_something_was():
    scale = Scale(1000, 9000)
    bars = [
        scale.bar(Span("tool", "x", start=a, end=b))
        for a, b in ((1000, 9000), (5000, 9000), (9000, 9000))
    ]
    assert bars == ["━" * 24, " " * 12 + "━" * 12, " " * 23 + "━"]


def test_times_and_counts_are_said_as_people_say_them():
    times = (0, 999, 1000, 59_949, 59_950, 134_000, 3_599_499, 10_920_000, 187_200_000)
    assert [compact_duration(one) for one in times] == [
        *("0ms", "999ms", "1.0s", "59.9s", "1m 00s", "2m 14s", "59m 59s", "3h 02m", "2d 4h")
    ]
    assert [compact_count(one) for one in (0, 999, 1000, 999_949, 999_950)] == [
        "0",
        "999",
        "1.0k",
        "999.9k",
        "1.0M",
    ]


def test_a_turn_of_any_length_is_read_in_bounded_memory_and_says_what_it_leaves_out(tmp_path):
    steps, session_id = 3 * MAX_SPANS, "20260101-000000-aaaaaaaaaa"

    async def write():
        store = JsonlStore(tmp_path, "process")
        log = store.create(session_id)
        log.append(SessionStarted(session_id))
        seq = log.append(PromptReceived("go", 1)).seq
        log.append(MessageAdded(Message("user", (Text("go"),)), seq, 1))
        for number in range(steps):
            asked = ToolCall(f"c{number}", "write", {"content": "x" * 2_000})
            log.append(ResponseCompleted("tool_use", Message("assistant", (asked,))))
            log.append(CallIntended(asked.id, "write"))
            log.append(ToolResultEvent(ToolOutput(asked.id, "y" * 2_000)))
        log.append(TurnEnded(1, "done"))
        await log.close()
        store.close()

    run(write())
    reading = TraceReader(SessionFolder(tmp_path), session_id, 9)
    tracemalloc.start()
    (turn,) = reading.branches()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 16 << 20  # the log has more than 24 MB
    kept = sum(1 + len(one.children) for one in turn.children) + 1
    assert (kept, turn.more) == (MAX_SPANS, steps - len(turn.children))
