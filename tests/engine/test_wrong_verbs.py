"""What makes no sense is refused with a typed error, and leaves no trace in the log."""

import asyncio

import pytest

import bridle
from bridle.engine import turn_runner
from bridle.engine.budget import Limits
from bridle.engine.history import NOT_RUN
from bridle.engine.tool_calls import NOT_STOPPED
from bridle.errors import ConfigError, SessionError
from bridle.events import ApprovalAsked, ToolResultEvent, TraceEvent, TurnEnded
from bridle.protocols.tool import ToolResult
from bridle.providers.scripted import Scripted
from bridle.tools.function import tool
from rig import Thing, call, calls, endings, events, is_valid, make_engine, one_turn, results, until


def run(work):
    return asyncio.run(asyncio.wait_for(work, 240))


@pytest.mark.parametrize(
    ("prompt", "options", "words"),
    [
        ("x", {"when": "bogus"}, "`when` cannot be 'bogus'"),
        ("x", {"when": None}, "`when` cannot be None"),
        (None, {}, "None is not a prompt"),
        (5, {}, "5 is not a prompt"),
        ([5], {}, "a prompt cannot contain int values"),
        (b"x", {}, "a prompt cannot contain int values"),
    ],
)
def test_a_prompt_that_is_none_is_refused(prompt, options, words):
    async def work():
        async with make_engine(["ok"]) as engine:
            session = await engine.session()
            with pytest.raises(SessionError, match=words) as refused:
                await session.send(prompt, **options)
            assert refused.value.hint
            assert session.seq == 0
            return (await session.wait(await session.send("x"))).text

    assert run(work()) == "ok"


def test_an_answer_that_is_none_is_refused_and_the_question_stays_open():
    ran = []

    @tool
    def change() -> str:
        ran.append(1)
        return "changed"

    async def work():
        async with make_engine([call("change"), "ok"], change, on_ask="wait") as engine:
            session = await engine.session()
            turn = await session.send("go")
            asked = (await until(session, lambda one: isinstance(one, ApprovalAsked))).event
            for odd in ("perhaps", None, 1):
                with pytest.raises(SessionError, match="is not a valid answer"):
                    await session.answer(asked.call.id, odd, shown=asked.shown, by="me")
            await session.answer(asked.call.id, False, shown=asked.shown, by="me")
            return (await session.wait(turn)).reason

    assert run(work()) == "done"
    assert ran == []


@pytest.mark.parametrize("options", [{"limits": {"steps": 1}}, {"config": {}}, {"limits": None}])
def test_settings_of_the_wrong_kind_are_refused_when_the_engine_is_built(options, tmp_path):
    (key,) = options
    with pytest.raises(ConfigError, match=f"^{key} cannot be a value of type ") as refused:
        bridle.build_engine(Scripted([]), tools=[], workspace=tmp_path, state=tmp_path, **options)
    assert f"{key}=" in refused.value.hint


def test_a_call_beyond_the_limit_is_not_counted():
    @tool(read_only=True)
    async def look(n: int = 0) -> int:
        return n

    asked = calls(*(("look", {"n": n}) for n in range(3)))
    _, _, result = run(one_turn([asked, "ok"], look, limits=Limits(max_tool_calls=2)))
    assert (result.reason, result.metrics.tool_calls) == ("budget", 2)


class Stubborn:
    """A tool that hears a cancel and stays, until it is let go."""

    def __init__(self):
        self.began, self.let_go = asyncio.Event(), asyncio.Event()

    async def __call__(self, arguments, context):
        self.began.set()
        while not self.let_go.is_set():
            try:
                await self.let_go.wait()
            except asyncio.CancelledError:
                continue
        context.say("late words")
        return ToolResult.success("late")


@pytest.mark.parametrize("read_only", [True, False])
def test_an_interrupt_does_not_wait_for_ever_for_a_tool(monkeypatch, read_only):
    """A13: one that ignores the cancel is left to itself, and that is said."""
    monkeypatch.setattr(turn_runner, "INTERRUPT_SECONDS", 0.05)
    later = []

    async def note(arguments, context):
        later.append(1)
        return ToolResult.success("noted")

    async def work():
        stubborn = Stubborn()
        tools = Thing(stubborn, "stubborn", read_only), Thing(note, "note", False)
        script = [calls(("stubborn", {}), ("note", {})), "after"]
        async with make_engine(script, *tools, mode="auto") as engine:
            session = await engine.session()
            turn = await session.send("go")
            await stubborn.began.wait()
            left = asyncio.all_tasks()
            await asyncio.gather(session.interrupt(), session.interrupt())
            result = await session.wait(turn)
            assert result.reason == "interrupted"
            assert result.detail.startswith("stubborn did not stop within 0.05 seconds")
            assert not session.is_busy
            seq = session.seq
            stubborn.let_go.set()
            await asyncio.wait([task for task in left if task.get_name().startswith("bridle-turn")])
            assert session.seq == seq  # it has no say any more
            assert is_valid(session.history.transcript)
            again = await session.wait(await session.send("go on"))
            assert (again.reason, again.text) == ("done", "after")
            return engine, session.id

    engine, found = run(work())
    assert results(engine, found) == [("call_1", NOT_STOPPED, True), ("call_2", NOT_RUN, True)]
    assert endings(engine, found) == ["interrupted", "done"]
    kinds = [one.kind for one in events(engine, found, TraceEvent)]
    assert kinds == ["interrupt", "not_stopped"]
    assert later == []


def test_side_by_side_only_the_one_that_stays_is_given_up(monkeypatch):
    monkeypatch.setattr(turn_runner, "INTERRUPT_SECONDS", 0.05)

    async def fine(arguments, context):
        return ToolResult.success("k")

    async def work():
        stubborn = Stubborn()
        async with make_engine(
            [calls(("fine", {}), ("stubborn", {}))],
            Thing(fine, "fine"),
            Thing(stubborn, "stubborn"),
        ) as engine:
            session = await engine.session()
            await session.send("go")
            await stubborn.began.wait()
            await until(session, lambda one: isinstance(one, ToolResultEvent))
            await session.close()
            stubborn.let_go.set()
            return results(engine, session.id), events(engine, session.id, TurnEnded)

    found, ended = run(work())
    assert found == [("call_1", "k", False), ("call_2", NOT_STOPPED, True)]
    assert len(ended) == 1
