"""The same journey whoever carries it: prompt, gated edit, approval, result, resume.

Our own loop, `LoopAgent`, the real Claude Code, a program that speaks ACP and fifteen lines of
somebody's code leave logs that fold to one and the same view.
"""

import subprocess
import time

import pytest
import same_agents
from same_agents import ASK, DID, EDIT, LOOK, RUN, WAS, WILL, engine_of

from bridle.engine.history import fold
from bridle.events import (
    ApprovalAnswered,
    ApprovalAsked,
    CallIntended,
    FilesChanged,
    ToolResultEvent,
    TurnEnded,
)
from bridle.protocols.session import Answer
from bridle.workspace.undo.undo import Undo
from rig import PYTHON, a_mark, is_valid, marked, run, until

CHANGE = {"path": "a.txt", "old": "one", "new": "two"}
WANTED = {
    "messages": [
        ("user", EDIT, [], []),
        ("assistant", LOOK, [("read", {"path": "a.txt"})], []),
        ("tool", "", [], [("read", True)]),
        ("assistant", WILL, [("edit", CHANGE)], []),
        ("tool", "", [], [("edit", True)]),
        ("assistant", DID, [], []),
        ("user", ASK, [], []),
        ("assistant", WAS, [], []),
    ],
    "asked": [("edit", CHANGE)],
    "answered": [(True, "tester")],
    "order": ["intent", "result", "asked", "answered", "intent", "files", "result", "end", "end"],
    "files": [(1, "a.txt", "changed")],
    "ends": [(1, "done", ""), (2, "done", "")],
    "mode": "",
    "turn": 2,
    "open": ((), {}, False),
}
_ORDER = {
    CallIntended: "intent",
    ToolResultEvent: "result",
    ApprovalAsked: "asked",
    ApprovalAnswered: "answered",
    FilesChanged: "files",
    TurnEnded: "end",
}


def view(records, root):
    """What a log adds up to.

    Left out: ids, numbers and times; the wording of results, which is each tool's own; deltas,
    activity, use and cost, which are each agent's own; arguments that are their default, and where
    a path inside the workspace is written out whole.
    """
    records = list(records)
    history, said = fold(records), [one.event for one in records]
    asked, answered, changed, ended = (
        [one for one in said if isinstance(one, kind)]
        for kind in (ApprovalAsked, ApprovalAnswered, FilesChanged, TurnEnded)
    )
    return {
        "messages": [_message(one, root) for one in history.transcript],
        "asked": [_call(one.call, root) for one in asked],
        "answered": [(one.allowed, one.by) for one in answered],
        "order": [_ORDER[type(one)] for one in said if type(one) in _ORDER],
        "files": [(one.turn, file.path, file.how) for one in changed for file in one.files],
        "ends": [(one.turn, one.reason, one.detail) for one in ended],
        "mode": history.mode or "",
        "turn": history.turn,
        "open": (history.open_calls, history.pending, history.parked),
    }


def _message(message, root):
    calls = [_call(one, root) for one in message.tool_calls]
    results = [(one.name, not one.is_error) for one in message.tool_results]
    return message.role, message.content, calls, results


def _call(call, root):
    given = {name: value for name, value in call.arguments.items() if value is not False}
    if isinstance(path := given.get("path"), str):
        given["path"] = path.removeprefix(f"{root}/")
    return call.name, given


def journey(kind, folder):
    """Two turns in two engines, and the log they leave."""
    root = folder / "work"
    root.mkdir()
    (root / "a.txt").write_text("one\n")
    questions = []

    async def approve(asked):
        questions.append(asked)
        assert (root / "a.txt").read_text() == "one\n"  # nothing before the answer
        return Answer(True, by="tester")

    async def one(prompt, session_id=None):
        async with engine_of(kind, folder, prompt, approver=approve) as engine:
            session = await engine.session(session_id)
            result = await session.wait(await session.send(prompt))
            assert is_valid(session.history.transcript)
            return session.id, result.text, list(engine.store.read(session.id))

    session_id, first, _ = run(one(EDIT))
    assert (root / "a.txt").read_text() == "two\n"
    _, second, records = run(one(ASK, session_id))
    assert (first, second) == (DID, WAS)
    return session_id, questions, records


@pytest.mark.parametrize("kind", ["plain", "loop", "claude", "acp", "own"])
def test_the_same_journey_folds_to_the_same_view(kind, tmp_path):
    """(P1, P7, P8) And what was changed can be undone."""
    session_id, (asked,), records = journey(kind, tmp_path)
    assert view(records, tmp_path / "work") == WANTED
    assert asked.reason == "edit changes files"
    Undo(str(tmp_path / "work"), tmp_path / "state").undo(session_id)
    assert (tmp_path / "work" / "a.txt").read_text() == "one\n"


def killed(kind, folder, prompt, mode="ask"):
    """A process that carries the turn, killed when it has got so far; the session's id."""
    root = folder / "work"
    root.mkdir()
    (root / "a.txt").write_text("one\n")
    words = [PYTHON, same_agents.__file__, kind, str(folder), prompt, mode]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
        try:
            session_id = process.stdout.readline().strip()
            while mode == "auto" and not marked(f"sleep\0{prompt.split()[1]}"):
                time.sleep(0.01)  # the command is another process, and nobody tells of it
            return session_id
        finally:
            process.kill()


def gone(mark):
    """Whoever outlives its bridle for a moment is ended by its supervisor."""
    for _ in range(1500):
        if not marked(mark):
            return
        time.sleep(0.02)
    raise AssertionError("a command has outlived its bridle")


@pytest.mark.parametrize("kind", ["plain", "loop", "claude", "acp", "runner"])
def test_killed_while_a_person_is_asked_the_question_waits_and_the_call_is_made_once(
    kind, tmp_path
):
    """(P8) In the next process the answer has our tool run exactly what was shown."""
    prompt, ran = f"{RUN} 0", tmp_path / "work" / "ran.txt"
    session_id = killed(kind, tmp_path, prompt)
    assert not ran.exists()

    async def go_on():
        async with engine_of(kind, tmp_path, ASK, on_ask="wait") as engine:
            session = await engine.session(session_id)
            assert session.is_parked
            (asked,) = session.history.pending.values()
            answer = Answer(True, by="tester")
            await session.answer(asked.call.id, answer, shown=asked.shown, by="tester")
            await until(session, lambda event: isinstance(event, TurnEnded))
            assert is_valid(session.history.transcript)
            return list(engine.store.read(session_id))

    found = view(run(go_on()), tmp_path / "work")
    call = ("shell", same_agents.command(prompt))
    assert found == {
        "messages": [
            ("user", prompt, [], []),
            ("assistant", LOOK, [call], []),
            ("tool", "", [], [("shell", True)]),
            ("assistant", WAS, [], []),
        ],
        "asked": [call],
        "answered": [(True, "tester")],
        "order": ["asked", "answered", "intent", "files", "result", "end"],
        "files": [(1, "ran.txt", "added")],
        "ends": [(1, "done", "")],
        "mode": "",
        "turn": 1,
        "open": ((), {}, False),
    }
    assert ran.read_text() == "once\n"


@pytest.mark.parametrize("kind", ["plain", "loop", "claude", "runner"])
def test_killed_in_the_middle_of_a_command_it_is_unknown_and_not_run_again(kind, tmp_path):
    """(P8) The command ends with its bridle; the next prompt is answered."""
    mark = a_mark()
    session_id = killed(kind, tmp_path, f"{RUN} {mark}", "auto")

    async def go_on():
        async with engine_of(kind, tmp_path, ASK, mode="auto") as engine:
            session = await engine.session(session_id)
            result = await session.wait(await session.send(ASK))
            assert (result.reason, result.text) == ("done", WAS)
            assert is_valid(session.history.transcript)
            return list(engine.store.read(session_id))

    found = view(run(go_on()), tmp_path / "work")
    ran = ("shell", same_agents.command(f"{RUN} {mark}"))
    assert found["messages"] == [
        ("user", f"{RUN} {mark}", [], []),
        ("assistant", LOOK, [ran], []),
        ("tool", "", [], [("shell", False)]),
        ("user", ASK, [], []),
        ("assistant", WAS, [], []),
    ]
    assert [reason for _, reason, _ in found["ends"]] == ["interrupted", "done"]
    assert found["open"] == ((), {}, False)
    assert (tmp_path / "work" / "ran.txt").read_text() == "once\n"
    gone(mark)
