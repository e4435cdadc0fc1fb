"""Models of pydantic as arguments, results and answers; a program without them does not load it."""

import asyncio
import dataclasses
import subprocess
import sys
from typing import Annotated, Any

import pydantic
import pytest
from pydantic import BaseModel, Field

import bridle
from bridle.engine.json_schema import compile_schema
from bridle.errors import BadReply, ConfigError
from bridle.messages import user
from bridle.protocols.provider import ProviderInfo, Request
from bridle.protocols.tool import ToolResult
from bridle.testing import Scripted
from rig import call, run


class Line(BaseModel):
    """One line of an order."""

    item: str
    count: int = Field(gt=0, description="how many")


class Order(BaseModel):
    customer: str
    lines: list[Line] = []

    @pydantic.field_validator("customer")
    @classmethod
    def _is_known(cls, value: str) -> str:
        if value != "Ann":
            raise ValueError("only Ann may order")
        return value


@dataclasses.dataclass
class Box:
    order: Order


def turn(tmp_path, replies, *tools):
    """The result of one prompt, and the requests it took."""
    model = Scripted(replies)

    async def story():
        options = {"tools": tools, "state": tmp_path, "mode": "auto"}
        async with bridle.build_engine(model, **options) as engine:
            return await engine.run("go")

    return run(story()), model.requests


def answered(requests):
    """What the model read as the result of its last call."""
    (output,) = requests[-1].messages[-1].tool_results
    return output


def test_a_model_as_an_argument_reaches_the_function_as_one(tmp_path):
    got: list[Any] = []

    @bridle.tool
    def place(order: Order, rush: bool = False, note: Line | None = None) -> str:
        """Place an order.

        Args:
            order: what is wanted
        """
        got.extend((order, rush, note))
        return "placed"

    schema = place.parameters
    assert schema["properties"]["order"]["description"] == "what is wanted"
    assert schema["$defs"]["Line"]["properties"]["count"]["exclusiveMinimum"] == 0
    assert schema["required"] == ["order"]
    arguments = {"customer": "Ann", "lines": [{"item": "saddle", "count": 2}]}
    result, _ = turn(tmp_path, [call("place", order=arguments), "Done."], place)
    assert (result.ok, result.text) == (True, "Done.")
    order = Order(customer="Ann", lines=[Line(item="saddle", count=2)])
    assert got == [order, False, None]


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        ({"customer": "Bob"}, "only Ann may order"),
        ({"customer": "Ann", "lines": [{"item": "bit", "count": 0}]}, "count"),
        ({}, "customer"),
    ],
)
def test_what_pydantic_refuses_is_told_to_the_model(tmp_path, arguments, why):
    @bridle.tool
    def place(order: Order) -> str:
        raise AssertionError("it must not run")

    _, requests = turn(tmp_path, [call("place", order=arguments), "Sorry."], place)
    output = answered(requests)
    assert output.is_error
    assert why in output.text
    assert "pydantic" not in output.text


@pytest.mark.parametrize(
    ("value", "text", "data"),
    [
        (
            Order(customer="Ann", lines=[Line(item="bit", count=1)]),
            '{"customer":"Ann","lines":[{"item":"bit","count":1}]}',
            {"customer": "Ann", "lines": [{"item": "bit", "count": 1}]},
        ),
        (
            [Line(item="bit", count=1)],
            '[{"item":"bit","count":1}]',
            [{"item": "bit", "count": 1}],
        ),
        (
            {"first": Box(Order(customer="Ann"))},
            '{"first":{"order":{"customer":"Ann","lines":[]}}}',
            {"first": {"order": {"customer": "Ann", "lines": []}}},
        ),
    ],
)
def test_a_model_as_a_result_is_json_for_the_model_and_in_the_log(tmp_path, value, text, data):
    @bridle.tool(read_only=True)
    def look() -> Any:
        return value

    _, requests = turn(tmp_path, [call("look"), "ok"], look)
    assert (answered(requests).text, answered(requests).data) == (text, data)
    assert ToolResult.success(value, text="short") == ToolResult(True, "short", data)


def test_descriptions_and_bounds_in_annotations_are_kept():
    @bridle.tool
    def book(
        seats: Annotated[int, Field(description="how many seats", ge=1, le=9)],
        name: Annotated[str, "who comes"],
        day: Annotated[str, "the day"] = "today",
        tags: Annotated[list[str] | None, Field(description="marks")] = None,
    ) -> str:
        """Book a table."""
        return f"{seats} {name} {day} {tags}"

    found = book.parameters["properties"]
    assert found["seats"] == {
        "type": "integer",
        "minimum": 1,
        "maximum": 9,
        "description": "how many seats",
    }
    assert found["name"] == {"type": "string", "description": "who comes"}
    assert found["day"] == {"type": "string", "description": "the day", "default": "today"}
    assert found["tags"]["description"] == "marks"
    assert book.parameters["required"] == ["seats", "name"]
    check = compile_schema(book.parameters)
    (problem,) = check({"seats": 0, "name": "Ann"})
    assert problem.startswith("`seats`: must be at least 1, got 0")
    result = asyncio.run(book.execute({"seats": 2, "name": "Ann"}, None))
    assert result.text == "2 Ann today None"


def test_a_field_as_a_default_is_refused_with_what_to_write():
    def book(seats: int = Field(ge=1)) -> str:
        return ""

    with pytest.raises(ConfigError, match="is a Field of pydantic") as refused:
        bridle.tool(book)
    assert "Annotated" in refused.value.hint


ASK = Request([user("the order?")])
GOOD = '{"customer": "Ann", "lines": []}'


NATIVE = ProviderInfo("scripted", "m", native_schema=True)
LINES, LINE = '[{"item": "bit", "count": 1}]', Line(item="bit", count=1)


@pytest.mark.parametrize(
    ("info", "output", "reply", "value"),
    [
        (None, Order, GOOD, Order(customer="Ann")),
        (NATIVE, Order, GOOD, Order(customer="Ann")),
        (None, list[Line], LINES, [LINE]),
        (NATIVE, list[Line], LINES, [LINE]),
        (NATIVE, list[Line], f'{{"value": {LINES}}}', [LINE]),
    ],
)
def test_a_model_as_the_whole_answer(info, output, reply, value):
    model = Scripted([reply], info=info)
    assert asyncio.run(bridle.complete(model, ASK, output=output)) == value


def test_an_answer_that_pydantic_refuses_is_sent_back_once_with_what_is_wrong():
    model = Scripted(['{"customer": "Bob"}', GOOD])
    assert asyncio.run(bridle.complete(model, ASK, output=Order)) == Order(customer="Ann")
    assert "only Ann may order" in model.requests[1].messages[-1].content
    with pytest.raises(BadReply, match="only Ann may order"):
        asyncio.run(bridle.complete(Scripted(['{"customer": "Bob"}'] * 2), ASK, output=Order))


def test_a_type_that_nobody_can_describe_is_refused_with_what_to_use():
    class Odd:
        def __init__(self, value: int) -> None: ...

    with pytest.raises(ConfigError, match="cannot be described") as refused:
        asyncio.run(bridle.complete(Scripted([]), ASK, output=Odd))
    assert "pydantic" in refused.value.hint


def test_pydantic_is_not_loaded_for_a_program_that_does_not_use_it(tmp_path):
    program = """
import sys, bridle, asyncio
from bridle.testing import Scripted
from dataclasses import dataclass
@dataclass
class Point:
    x: int
@bridle.tool(read_only=True)
def move(to: Point) -> Point:
    return to
reply = {"calls": [{"name": "move", "arguments": {"to": {"x": 1}}}]}
async def main():
    async with bridle.build_engine(Scripted([reply, "ok"]), tools=[move], state=sys.argv[1]) as one:
        assert (await one.run("go")).ok
asyncio.run(main())
print([name for name in sys.modules if name.startswith("pydantic")])
"""
    done = subprocess.run(
        [sys.executable, "-c", program, tmp_path], capture_output=True, text=True, check=False
    )
    assert (done.stdout, done.stderr) == ("[]\n", "")
