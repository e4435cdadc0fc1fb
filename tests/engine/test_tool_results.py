"""Whatever a tool does, its call has exactly one result (M2, A4, A13)."""

import asyncio
import threading

import pytest

from bridle.engine.budget import Limits
from bridle.errors import ToolError
from bridle.events import CallIntended, ToolResultEvent
from bridle.messages import Image
from bridle.protocols.tool import ToolResult
from bridle.providers.scripted import Scripted
from bridle.tools.function import tool
from rig import (
    Thing,
    call,
    calls,
    events,
    one_turn,
    results,
    run,
)


def test_arguments_that_do_not_fit_go_back_to_the_model():
    """M2: execute never sees them."""

    @tool
    def add(a: int, b: int) -> int:
        raise AssertionError("never run")

    engine, found, result = run(one_turn([call("add", a="x"), "ok"], add, mode="auto"))
    ((_, text, failed),) = results(engine, found)
    assert failed
    assert text.startswith("these arguments are not valid: ")
    assert "`a`" in text
    assert "b" in text
    assert result.text == "ok"
    assert events(engine, found, CallIntended) == []


def test_an_unknown_tool_is_a_failure_that_names_the_known_ones():
    """A4."""

    @tool
    def add(a: int) -> int:
        return a

    engine, found, result = run(one_turn([call("sub"), "ok"], add, mode="auto"))
    said = "there is no tool named 'sub'; there are: add"
    assert results(engine, found) == [("call_1", said, True)]
    assert result.ok


async def _raise(arguments, context):
    raise ValueError("boom")


async def _refuse(arguments, context):
    raise ToolError("there is no such file")


async def _time_out(arguments, context):
    raise TimeoutError("the far side was slow")


async def _none(arguments, context):
    return None


async def _number(arguments, context):
    return {"n": 7}


async def _textless(arguments, context):
    return ToolResult(True, 5)


async def _wrong_media(arguments, context):
    return ToolResult(True, "x", media=("picture",))


async def _surrogate(arguments, context):
    return ToolResult.success("a\udcffb")


@pytest.mark.parametrize(
    ("execute", "said"),
    [
        (_raise, ("thing failed: ValueError: boom", True)),
        (_refuse, ("there is no such file", True)),
        (_time_out, ("thing failed: TimeoutError: the far side was slow", True)),
        (_none, ("done", False)),
        (_number, ('{"n":7}', False)),
        (_textless, ("thing failed: TypeError: the text of its result is int, not str", True)),
        (
            _wrong_media,
            ("thing failed: TypeError: the media of its result are not images or files", True),
        ),
        (_surrogate, ("a\\udcffb", False)),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_whatever_a_tool_does_its_call_has_one_result(execute, said):
    """A4: tools never raise out; garbage is a failure, and the turn goes on."""
    engine, found, result = run(one_turn([call("thing"), "ok"], Thing(execute)))
    assert [(text, failed) for _, text, failed in results(engine, found)] == [said]
    assert result.text == "ok"


def test_data_that_cannot_be_written_down_is_left_out():
    endless = []
    endless.append(endless)

    async def odd(arguments, context):
        return ToolResult.success(endless, text="fine")

    engine, found, _ = run(one_turn([call("thing"), "ok"], Thing(odd)))
    (said,) = events(engine, found, ToolResultEvent)
    assert (said.output.text, said.output.data) == ("fine", None)


def test_a_hundred_megabytes_are_cut_to_what_a_model_can_read():
    """A13: beginning and end, and how much is missing; nothing of it in the log."""
    text = "x" * 100_000_000

    async def huge(arguments, context):
        return ToolResult.success(text)

    async def listed(arguments, context):
        return ToolResult.success([text], text="short")

    tools = Thing(huge, "huge"), Thing(listed, "listed")
    engine, found, result = run(one_turn([calls(("huge", {}), ("listed", {})), "ok"], *tools))
    one, two = events(engine, found, ToolResultEvent)
    assert len(one.output.text) <= Limits().output_chars
    assert "characters" in one.output.text
    assert one.output.data is None
    assert (two.output.text, two.output.data) == ("short", None)
    assert result.ok


def test_no_limit_on_output_is_no_limit():
    async def long(arguments, context):
        return ToolResult.success("y" * 100_000)

    work = one_turn([call("thing"), "ok"], Thing(long), limits=Limits(output_chars=0))
    engine, found, _ = run(work)
    assert results(engine, found) == [("call_1", "y" * 100_000, False)]


def test_media_reach_the_model():
    """S2: tool results have text, error and media."""
    picture = Image("image/png", "aGk=")

    async def paint(arguments, context):
        return ToolResult(True, "here", media=(picture,))

    engine, found, _ = run(one_turn([call("thing"), "ok"], Thing(paint)))
    (said,) = events(engine, found, ToolResultEvent)
    assert said.output.media == (picture,)


def test_a_tool_that_never_returns_ends_at_its_limit():
    """A13: also a plain function in a thread; the turn goes on."""
    release = threading.Event()

    @tool(read_only=True)
    async def hang() -> str:
        await asyncio.Event().wait()
        return "never"

    @tool(read_only=True)
    def block() -> str:
        release.wait(30)
        return "never"

    asked = calls(("hang", {}), ("block", {}))
    work = one_turn([asked, "ok"], hang, block, limits=Limits(tool_seconds=0.1))
    try:
        engine, found, result = run(work)
    finally:
        release.set()
    assert sorted(results(engine, found)) == [
        ("call_1", "hang did not finish within 0.1 seconds", True),
        ("call_2", "block did not finish within 0.1 seconds", True),
    ]
    assert result.text == "ok"


def test_each_of_several_calls_ends_at_its_own_limit():
    @tool(read_only=True)
    async def hang() -> str:
        await asyncio.Event().wait()
        return "never"

    @tool(read_only=True)
    async def quick() -> str:
        return "done"

    asked = calls(("hang", {}), ("quick", {}), ("hang", {}))
    work = one_turn([asked, "ok"], hang, quick, limits=Limits(tool_seconds=0.1))
    engine, found, result = run(work)
    assert sorted(results(engine, found)) == [
        ("call_1", "hang did not finish within 0.1 seconds", True),
        ("call_2", "done", False),
        ("call_3", "hang did not finish within 0.1 seconds", True),
    ]
    assert result.text == "ok"


def test_the_same_failing_call_over_and_over_is_stuck():
    """The turn stops with a clear reason instead of burning money."""
    model = Scripted([call("thing")], loop=True)
    engine, found, result = run(one_turn(model, Thing(_raise)))
    assert result.reason == "stuck"
    assert result.detail == "thing failed 3 times in the same way: thing failed: ValueError: boom"
    assert len(results(engine, found)) == 3


def test_a_success_in_between_is_not_stuck():
    async def fine(arguments, context):
        return ToolResult.success("k")

    model = Scripted([call("thing"), call("fine")] * 4 + ["ok"])
    _, _, result = run(one_turn(model, Thing(_raise), Thing(fine, "fine")))
    assert result.reason == "done"


def test_a_tool_whose_schema_is_broken_is_a_failure_and_not_a_crash():
    async def fine(arguments, context):
        return ToolResult.success("k")

    bad = Thing(fine, parameters={"type": 7})
    engine, found, result = run(one_turn([call("thing"), "ok"], bad))
    ((_, text, failed),) = results(engine, found)
    assert failed
    assert text.startswith("not run: it could not be judged: ")
    assert result.ok
