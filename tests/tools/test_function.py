"""`@bridle.tool`: typed functions as tools, and tools as objects."""

from __future__ import annotations

import asyncio
import contextvars
import functools
import subprocess
import sys
import threading
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import msgspec
import pytest

import bridle
from bridle.errors import ConfigError, ToolError
from bridle.policy import ToolPolicy
from bridle.protocols.tool import Files, Tool, ToolContext, ToolResult
from bridle.tools.function import as_tool, tool
from bridle.tools.thread_pool import DaemonThreads


class NoFiles:
    """A workspace that no test here touches."""

    root = "/nowhere"


def context(deps: Any = None) -> ToolContext[Any]:
    workspace: Files = NoFiles()
    return ToolContext(workspace, "call-1", deps=deps)


def run(made: Tool, arguments: dict[str, Any], deps: Any = None) -> ToolResult:
    return asyncio.run(made.execute(arguments, context(deps)))


@dataclass
class Point:
    x: int
    y: int = 0


class Box(msgspec.Struct):
    points: list[Point]


@tool
def add(a: int, b: int = 2) -> int:
    """Add two numbers.

    Works for small ones.

    Args:
        a: The first number,
            which may be negative.
        b (int): The second.

    Returns:
        Their sum.
    """
    return a + b


def test_a_tool_describes_itself_from_signature_and_docstring() -> None:
    """(M2)"""
    assert (add.name, add.policy) == ("add", ToolPolicy())
    assert add.description == (
        "Add two numbers.\n\nWorks for small ones.\n\nReturns:\n    Their sum."
    )
    assert add.parameters == {
        "type": "object",
        "properties": {
            "a": {
                "type": "integer",
                "description": "The first number, which may be negative.",
            },
            "b": {"type": "integer", "description": "The second.", "default": 2},
        },
        "required": ["a"],
        "additionalProperties": False,
    }


def test_a_decorated_function_is_still_that_function() -> None:
    assert add(1) == 3
    assert add(1, b=5) == 6
    assert (add.__name__, repr(add)) == ("add", "<tool add>")
    assert bridle.tool is tool


def test_a_plain_function_runs_and_its_value_is_the_result() -> None:
    assert run(add, {"a": 1}) == ToolResult(True, "3", 3)
    assert run(add, {"a": 4.0, "b": 1}) == ToolResult(True, "5", 5)


def test_an_async_function_runs_in_the_event_loop() -> None:
    @tool(name="where", description="Says where.", read_only=True, risk="low")
    async def place() -> str:
        return threading.current_thread().name

    assert run(place, {}) == ToolResult(True, "MainThread", "MainThread")
    assert (place.name, place.description) == ("where", "Says where.")
    assert place.policy == ToolPolicy(read_only=True, risk="low")


def test_flags_refine_the_policy_that_is_given() -> None:
    @tool(policy=ToolPolicy(risk="high"), requires_approval=True)
    def press() -> None:
        """Press."""

    assert press.policy == ToolPolicy(requires_approval=True, risk="high")
    assert run(press, {}) == ToolResult(True, "done", None)


def test_arguments_arrive_in_the_annotated_types() -> None:
    @tool
    def draw(
        box: Box,
        at: Point | None = None,
        mode: Literal["thin", "thick"] = "thin",
        label: Annotated[str, msgspec.Meta(description="Its name", max_length=5)] = "",
        tags: list[str] = ["a"],  # noqa: B006 - what users write
    ) -> str:
        return repr((box, at, mode, label, tags))

    found = run(draw, {"box": {"points": [{"x": 1}]}, "at": {"x": 2, "y": 3}})
    assert found.text == repr((Box([Point(1)]), Point(2, 3), "thin", "", ["a"]))
    properties = draw.parameters["properties"]
    assert properties["label"] == {
        "type": "string",
        "description": "Its name",
        "maxLength": 5,
        "default": "",
    }
    assert properties["mode"] == {"enum": ["thick", "thin"], "default": "thin"}
    assert sorted(draw.parameters["$defs"]) == ["Box", "Point"]
    assert draw.parameters["required"] == ["box"]


def test_arguments_that_do_not_convert_are_a_failure_that_says_why() -> None:
    found = run(add, {"a": "many"})
    assert found == ToolResult.failure(
        "The arguments do not fit: Expected `int`, got `str` - at `$.a`."
    )


def test_the_context_comes_first_and_is_not_in_the_schema() -> None:
    """The caller's own typed things reach the function (A4)."""

    @tool
    async def greet(ctx: ToolContext[Point], name: str, /) -> str:
        return f"{name} at {ctx.deps.x}, {ctx.call_id}"

    @tool
    def plain(ctx: ToolContext) -> str:
        return ctx.call_id

    assert list(greet.parameters["properties"]) == ["name"]
    assert run(greet, {"name": "Ada"}, Point(7)).text == "Ada at 7, call-1"
    assert run(plain, {}).text == "call-1"


def test_a_tool_error_is_a_failure_and_other_errors_are_raised() -> None:
    @tool
    def look(where: str) -> str:
        if where == "nowhere":
            raise ToolError("There is no such place.", hint="Try `here`.")
        return next(iter(()))

    assert run(look, {"where": "nowhere"}) == ToolResult.failure(
        "There is no such place. Try `here`."
    )
    with pytest.raises(RuntimeError, match="StopIteration"):
        run(look, {"where": "here"})


def test_an_exit_inside_a_plain_function_ends_the_call_and_not_the_program() -> None:
    @tool
    def leave() -> None:
        sys.exit("bye")

    with pytest.raises(RuntimeError, match="SystemExit: bye"):
        run(leave, {})


def test_a_result_is_handed_on_as_it_is() -> None:
    @tool
    def no() -> ToolResult:
        return ToolResult.failure("no", {"why": 1})

    assert run(no, {}) == ToolResult.failure("no", {"why": 1})


def test_eight_plain_calls_run_side_by_side() -> None:
    """All eight have to be inside at once for the barrier to open."""
    barrier = threading.Barrier(8, timeout=240)

    @tool
    def meet() -> int:
        return barrier.wait()

    async def scenario() -> list[ToolResult]:
        return await asyncio.gather(*(meet.execute({}, context()) for _ in range(8)))

    assert sorted(found.data for found in asyncio.run(scenario())) == list(range(8))


def test_threads_are_bounded_and_used_again() -> None:
    threads = DaemonThreads(limit=3)
    names = [threads.submit(lambda: threading.current_thread().name) for _ in range(200)]
    assert len({future.result(30) for future in names}) <= 3


def test_context_variables_reach_a_plain_function() -> None:
    variable = contextvars.ContextVar("variable", default="none")

    @tool
    def see() -> str:
        return variable.get()

    variable.set("set")
    assert run(see, {}).text == "set"


def test_a_function_that_never_returns_does_not_hold_the_exit() -> None:
    script = """
import asyncio, threading, bridle
from bridle.protocols.tool import ToolContext
started = threading.Event()
@bridle.tool
def hang() -> None:
    started.set()
    threading.Event().wait()
async def main():
    task = asyncio.create_task(hang.execute({}, ToolContext(None, "1")))
    await asyncio.to_thread(started.wait)
    task.cancel()
asyncio.run(main())
print("out")
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, timeout=240)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"out\n", b"")


def _any_number(*paths: str) -> None: ...
def _any_name(**named: int) -> None: ...
def _bare(path) -> None: ...
def _late(path: str, ctx: ToolContext[None]) -> None: ...
def _odd(path: threading.Lock) -> None: ...
def _unknown(path: Nowhere) -> None: ...  # noqa: F821 - the case


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (_any_number, "`paths` of _any_number takes any number of values"),
        (_any_name, "`named` of _any_name takes any number of values"),
        (_bare, "`path` of _bare has no annotation"),
        (_late, "`ctx` of _late is a ToolContext, but not the first"),
        (_odd, "parameters of _odd cannot be described"),
        (_unknown, "annotations of _unknown cannot be read"),
        (lambda: None, "'<lambda>' cannot be a tool's name"),
    ],
)
def test_a_function_that_cannot_be_described_is_refused_at_once(function: Any, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        tool(function)


class Clock:
    """A tool as a class, without a word of ours in it."""

    name = "clock"
    description = "Says the time."
    parameters: dict[str, Any] = {"type": "object", "properties": {}}
    policy = ToolPolicy(read_only=True)

    async def execute(self, arguments: dict[str, Any], context: ToolContext[Any]) -> ToolResult:
        return ToolResult.success({"time": "noon"})


def test_any_object_of_that_shape_is_a_tool() -> None:
    """(A4)"""
    clock = as_tool(Clock())
    assert run(clock, {}) == ToolResult(True, '{"time":"noon"}', {"time": "noon"})
    assert as_tool(add) is add


def test_a_typed_function_is_taken_as_a_tool() -> None:
    def double(number: int) -> int:
        """Twice as much."""
        return 2 * number

    made = as_tool(double)
    assert (made.name, made.description) == ("double", "Twice as much.")
    assert run(made, {"number": 4}).data == 8


@pytest.mark.parametrize(
    ("thing", "words"),
    [
        (Clock, "Clock is a class"),
        (7, "7 is not a tool: it has no name, description"),
        ("read", "'read' is not a tool"),
    ],
)
def test_what_is_no_tool_is_refused_with_what_is_missing(thing: Any, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        as_tool(thing)


def test_a_partial_is_a_tool_with_the_name_of_its_function_and_without_what_is_bound() -> None:
    def fetch(database: str, user_id: int, title: str) -> str:
        """Fetch a note."""
        return f"{database} {user_id} {title}"

    made = bridle.tool(functools.partial(fetch, "db", user_id=7))
    assert (made.name, made.description) == ("fetch", "Fetch a note.")
    assert list(made.parameters["properties"]) == ["title"]
    assert run(made, {"title": "x"}).text == "db 7 x"


def test_a_method_before_its_object_is_refused_with_what_to_write() -> None:
    class Desk:
        def look(self, place: str) -> str:
            """Look."""
            return f"nothing in {place}"

    with pytest.raises(ConfigError, match="look is a method") as refused:
        bridle.tool(Desk.look)
    assert refused.value.hint == ("Make a tool of the bound method: `bridle.tool(an_object.look)`.")
    made = bridle.tool(Desk().look)
    assert run(made, {"place": "a box"}).text == "nothing in a box"
