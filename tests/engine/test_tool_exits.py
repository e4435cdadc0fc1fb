"""A tool that asks for the exit, or cancels itself, has failed: neither turn nor host ends (A4)."""

import asyncio
import sys

import pytest

from bridle.protocols.tool import ToolResult
from bridle.tools.function import tool
from rig import Thing, call, calls, one_turn, results, run


async def _exit(arguments, context):
    sys.exit(3)


async def _keyboard(arguments, context):
    raise KeyboardInterrupt


async def _cancelled(arguments, context):
    raise asyncio.CancelledError


async def _cancelled_inside(arguments, context):
    work = asyncio.create_task(asyncio.Event().wait())
    work.cancel()
    await work


class _OfItsOwn(BaseException):
    pass


async def _odd(arguments, context):
    raise _OfItsOwn("odd")


@pytest.mark.parametrize(
    ("execute", "said"),
    [
        (_exit, "thing failed: SystemExit: 3"),
        (_keyboard, "thing failed: KeyboardInterrupt: "),
        (_cancelled, "thing failed: CancelledError: "),
        (_cancelled_inside, "thing failed: CancelledError: "),
        (_odd, "thing failed: _OfItsOwn: odd"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_a_tool_that_wants_to_leave_has_failed_and_the_turn_goes_on(execute, said):
    engine, found, result = run(one_turn([call("thing"), "ok"], Thing(execute)))
    assert results(engine, found) == [("call_1", said, True)]
    assert (result.text, result.reason) == ("ok", "done")


@pytest.mark.parametrize("execute", [_exit, _keyboard, _cancelled, _cancelled_inside])
def test_side_by_side_the_others_are_not_disturbed(execute):
    async def fine(arguments, context):
        await asyncio.sleep(0)
        return ToolResult.success("k")

    asked = calls(("thing", {}), ("fine", {}))
    engine, found, result = run(one_turn([asked, "ok"], Thing(execute), Thing(fine, "fine")))
    said = {one: (text[:12], failed) for one, text, failed in results(engine, found)}
    assert said == {"call_1": ("thing failed", True), "call_2": ("k", False)}
    assert result.reason == "done"


def test_a_function_that_wants_to_leave_has_failed():
    @tool(read_only=True)
    async def leave() -> str:
        sys.exit("bye")

    @tool(read_only=True)
    def stop() -> str:
        sys.exit("bye")

    @tool(read_only=True)
    def cancel() -> str:
        raise asyncio.CancelledError

    asked = [call("leave"), call("stop"), call("cancel"), "ok"]
    engine, found, result = run(one_turn(asked, leave, stop, cancel))
    assert [(text, failed) for _, text, failed in results(engine, found)] == [
        ("leave failed: SystemExit: bye", True),
        ("stop failed: RuntimeError: the function raised SystemExit: bye", True),
        ("cancel failed: CancelledError: ", True),
    ]
    assert result.reason == "done"
