"""A long session, written as a log: many turns of the same small story. For tests and pictures."""

import itertools
from datetime import UTC, datetime, timedelta

from bridle import events
from bridle.messages import Message, Text, ToolCall, ToolOutput
from bridle.protocols.codec import encode_data, encode_line
from bridle.usage import Usage

BEGAN = datetime(2026, 11, 2, 9, 0, tzinfo=UTC)
SESSION = "20261102-090000-0123456789"


def turn(number):
    """One turn: a prompt, thoughts, a call with its output, an answer."""
    call = ToolCall(f"c{number}", "shell", {"command": f"pytest -q tests/test_{number}.py"})
    ask = f"Prompt {number}: look at module {number}."
    steps = f"- read `m{number}.py`\n- ran its tests"
    answer = f"Module {number} is **sound**.\n\n{steps}\n\nNothing to mend."
    yield events.PromptReceived(ask, turn=number)
    yield events.MessageAdded(Message("user", (Text(ask),)), turn=number)
    for piece in ("I will ", "run ", "its ", "tests."):
        yield events.TextDelta(piece)
    yield events.ToolCallReady(call)
    yield events.UsageReported(Usage(900, 40), "scripted", 0.0033)
    yield events.ResponseCompleted(
        "tool_use", Message("assistant", (Text("I will run its tests."), call))
    )
    yield events.CallIntended(call.id, call.name)
    yield events.ToolOutputDelta(call.id, f"{number} passed\n")
    yield events.ToolResultEvent(ToolOutput(call.id, f"{number} passed", name="shell"))
    for piece in answer.split(" "):
        yield events.TextDelta(f"{piece} ")
    yield events.ResponseCompleted(
        "complete", Message("assistant", (Text(answer),)), model="scripted"
    )
    yield events.TurnEnded(number, "done")


def story(count, workspace):
    """So many records at least, the last turn whole."""
    yield events.SessionStarted(
        SESSION, "serve", workspace=str(workspace), model="scripted/scripted"
    )
    yield events.TitleChanged("A long day of small steps")
    said = 2
    for number in itertools.count(1):
        for event in turn(number):
            said += 1
            yield event
        if said >= count:
            return


def write(state, workspace, count):
    """The session's log below the state folder; how many turns it has."""
    folder = state / "sessions" / SESSION
    folder.mkdir(parents=True, mode=0o700)
    lines, hashed, turns = [], "", 0
    for seq, event in enumerate(story(count, workspace), 1):
        at = (BEGAN + timedelta(seconds=seq)).strftime("%Y-%m-%dT%H:%M:%S.000Z")
        line, hashed = encode_line(seq, at, encode_data(event), hashed)
        lines.append(line)
        turns += isinstance(event, events.TurnEnded)
    (folder / "log.jsonl").write_bytes(b"".join(lines))
    return turns
