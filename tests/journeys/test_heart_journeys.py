"""Stories through the public verbs, with real tools, real files and real processes."""

import asyncio
import signal
import subprocess
from contextlib import aclosing

import pytest

import bridle
from bridle.engine.history import UNKNOWN, fold
from bridle.errors import ConfigError, UnknownApproval
from bridle.events import ApprovalAsked, TodosChanged, ToolOutputDelta, TurnEnded
from bridle.providers.scripted import Scripted
from bridle.stores.jsonl import JsonlStore
from bridle.workspace.sandbox import probe
from rig import PYTHON, a_mark, call, is_valid, marked, run, until

BROKEN = "def add(a, b):\n    return a - b\n"
TEST = "from sums import add\nassert add(2, 2) == 4\nprint('all is well')\n"


def mending():
    """A model that reads, plans, mends, runs the test and is done."""
    return [
        {"text": "Let me look.", **call("read", path="sums.py")},
        call("todo_write", todos=[{"content": "mend add", "status": "in_progress"}]),
        call("edit", path="sums.py", old="a - b", new="a + b"),
        call("shell", command="python3 -B check.py"),
        "add subtracted; now it adds.",
    ]


async def answer_everything(session, yes):
    """A face of its own: watches, and answers each question as it comes."""
    asked = []
    async with aclosing(session.subscribe()) as records:
        async for record in records:
            if isinstance(record.event, ApprovalAsked):
                question = record.event
                asked.append(question.call.name)
                await session.answer(question.call.id, yes, shown=question.shown, by="phone")
            elif isinstance(record.event, TurnEnded):
                return asked
    raise AssertionError("the session ended before the turn did")


def test_a_bug_is_mended_while_a_person_answers_from_elsewhere_and_later_goes_on(tmp_path, state):
    """M4, A1, A4, A8: read, edit, run, each effect asked about; resumed by another engine."""
    (tmp_path / "sums.py").write_text(BROKEN)
    (tmp_path / "check.py").write_text(TEST)

    async def first():
        model = Scripted(mending())
        async with bridle.build_engine(
            model, workspace=tmp_path, state=state, on_ask="wait"
        ) as engine:
            session = await engine.session()
            turn = await session.send("the test fails")
            asked = await answer_everything(session, yes=True)
            return session.id, asked, await session.wait(turn), model.requests[-1].messages

    async def second(found):
        model = Scripted(["You are welcome."])
        async with bridle.build_engine(model, workspace=tmp_path, state=state) as engine:
            result = await engine.run("thanks", session=found)
            return result, model.requests[0].messages, list(engine.store.read(found))

    found, asked, result, seen = run(first())
    assert asked == ["edit", "shell"]
    assert (result.reason, result.text) == ("done", "add subtracted; now it adds.")
    assert (tmp_path / "sums.py").read_text() == BROKEN.replace("a - b", "a + b")
    assert "all is well" in seen[-1].tool_results[0].text
    result, sent, records = run(second(found))
    assert (result.turn, result.text) == (2, "You are welcome.")
    assert list(sent)[: len(seen)] == list(seen)
    assert is_valid(sent)
    assert [one.seq for one in records] == list(range(1, len(records) + 1))
    assert any(isinstance(one.event, TodosChanged) for one in records)
    assert fold(records).metrics.tool_calls == 4


def test_a_no_leaves_the_file_as_it_is_and_the_model_is_told(tmp_path, state):
    (tmp_path / "sums.py").write_text(BROKEN)
    change = call("edit", path="sums.py", old="a - b", new="a + b")
    script = [call("read", path="sums.py"), change, "Then not."]

    async def story():
        model = Scripted(script)
        async with bridle.build_engine(
            model, workspace=tmp_path, state=state, on_ask="wait"
        ) as engine:
            session = await engine.session()
            turn = await session.send("mend it")
            await answer_everything(session, yes=False)
            return await session.wait(turn), model.requests[2].messages[-1].tool_results[0]

    result, told = run(story())
    assert (result.text, told.is_error) == ("Then not.", True)
    assert told.text == "not run: approval was denied"
    assert (tmp_path / "sums.py").read_text() == BROKEN


@pytest.mark.parametrize("level", ["bubblewrap", "landlock", "none"])
def test_an_interrupt_ends_the_command_and_its_children(tmp_path, state, level):
    """M6, S9: no process is left, and the next prompt is answered."""
    skip_without(level)
    mark = a_mark()
    script = [call("shell", command=f"sleep {mark} & sleep {mark} & echo up; wait"), "fine"]
    root = tmp_path / "project"  # beside the state, which Landlock could not hide inside
    root.mkdir()
    options = {"workspace": root, "state": state, "mode": "auto", "sandbox": level}

    async def story():
        async with bridle.build_engine(Scripted(script), **options) as engine:
            session = await engine.session()
            turn = await session.send("wait for ever")
            said = await until(session, lambda event: isinstance(event, ToolOutputDelta))
            ran = marked(mark)
            await session.interrupt()
            first = await session.wait(turn)
            left = marked(mark)
            second = await session.wait(await session.send("still there?"))
            return said.event.text, len(ran) >= 3, first.reason, left, second.text

    assert run(story()) == ("up\n", True, "interrupted", [], "fine")


def skip_without(level):
    try:
        probe(level)
    except ConfigError as error:
        pytest.skip(error.message)


CRASHING = """
import asyncio, sys
import bridle
from bridle.providers.scripted import Scripted

@bridle.tool
async def launch() -> str:
    "Launch it."
    with open(sys.argv[2], "a") as file:
        file.write("launched\\n")
    print(session.id, flush=True)
    await asyncio.Event().wait()

async def main():
    global session
    model = Scripted([{"calls": [{"name": "launch"}]}])
    engine = bridle.build_engine(model, tools=[launch], state=sys.argv[1], mode="auto")
    session = await engine.session()
    await session.wait(await session.send("go"))

asyncio.run(main())
"""


def test_an_effect_is_not_repeated_after_a_crash_and_the_model_is_told_the_truth(tmp_path, state):
    """Killed in the middle of a call: intent without result is *unknown*, never run again."""
    count = tmp_path / "count"
    command = [PYTHON, "-c", CRASHING, str(state), str(count)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
        found = child.stdout.readline().strip()
        child.send_signal(signal.SIGKILL)

    async def story():
        model = Scripted(["I see."])
        async with bridle.build_engine(
            model, tools=[], workspace=tmp_path, store=JsonlStore(state)
        ) as engine:
            result = await engine.run("what happened?", session=found)
            return result, model.requests[0].messages

    result, sent = run(story())
    assert (result.turn, result.text) == (2, "I see.")
    assert is_valid(sent)
    assert sent[2].tool_results[0].text == UNKNOWN
    assert count.read_text() == "launched\n"


def test_two_faces_one_question_one_answer(tmp_path, state):
    """Both see it at once; the first answer wins, the other is told so."""
    script = [call("write", path="a.txt", content="hi"), "done"]

    async def face(session, by):
        record = await until(session, lambda event: isinstance(event, ApprovalAsked))
        question = record.event
        try:
            await session.answer(question.call.id, True, shown=question.shown, by=by)
        except UnknownApproval:
            return "too late"
        return "heard"

    async def story():
        engine = bridle.build_engine(
            Scripted(script), workspace=tmp_path, state=state, on_ask="wait"
        )
        async with engine:
            session = await engine.session()
            turn = await session.send("write it")
            said = await asyncio.gather(face(session, "terminal"), face(session, "browser"))
            await session.wait(turn)
            return sorted(said)

    assert run(story()) == ["heard", "too late"]
    assert (tmp_path / "a.txt").read_text() == "hi"
