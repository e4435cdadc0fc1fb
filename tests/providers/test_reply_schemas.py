"""Structured output: the schemas that go to the vendors are ones that they take (M1)."""

import asyncio
import datetime
import json
from collections.abc import Callable
from typing import Annotated, Any, Literal

import msgspec
import pytest

from bridle import complete
from bridle.engine.structured_output import to_schema
from bridle.messages import user
from bridle.protocols.json_schema import can_be_closed
from bridle.protocols.provider import Provider, Request, RequestConfig
from bridle.providers.anthropic import Anthropic
from bridle.providers.encoding_cache import closed_schema, strict_schema
from bridle.providers.openai_chat import OpenAIChat
from bridle.providers.openai_responses import OpenAIResponses
from bridle.testing import FakeAnthropic, FakeOpenAI, FakeServer
from rig import Later

anthropic = Later("anthropic")


class Room(msgspec.Struct):
    name: Annotated[str, msgspec.Meta(min_length=1, max_length=9, pattern="^[a-z]+$")]
    floor: Annotated[int, msgspec.Meta(ge=0, le=9, description="from the street")] = 0


class Dog(msgspec.Struct, tag="dog"):
    pass


class Cat(msgspec.Struct, tag="cat"):
    lives: int = 9


class House(msgspec.Struct):
    rooms: Annotated[list[Room], msgspec.Meta(min_length=1, max_length=5)]
    pet: Dog | Cat
    kind: Literal["old", "new"] = "old"
    built: datetime.date | None = None
    note: str | None = None
    spare: Annotated[list[float], msgspec.Meta(min_length=2)] | None = None


class Node(msgspec.Struct):
    kids: list["Node"] = []


class Free(msgspec.Struct):
    names: dict[str, int]


HOUSE = House([Room("hall", 1)], Cat(), note="x")
BY_HAND = {
    "type": "object",
    "title": "T",
    "description": "all of it",
    "properties": {
        "a": {"oneOf": [{"type": "string", "format": "uri"}, {"const": 7}]},
        "b": {"allOf": [{"type": "integer", "multipleOf": 2}]},
        "c": {"type": "string", "format": "phone"},
        "d": {"enum": ["x", None]},
        "e": {"type": "object", "properties": {}, "additionalProperties": True},
    },
    "required": ["a"],
    "not": {"required": ["b"]},
}


@pytest.mark.parametrize("schema", [to_schema(House), to_schema(Room), BY_HAND])
def test_the_official_sdk_makes_the_same_schema_for_anthropic(schema: dict[str, Any]) -> None:
    asked = msgspec.json.decode(msgspec.json.encode(schema))
    assert can_be_closed(asked)
    assert closed_schema(asked) == anthropic.transform_schema(asked)


def test_a_list_of_types_becomes_a_choice() -> None:
    assert closed_schema({"type": ["string", "null"], "minLength": 2, "description": "d"}) == {
        "anyOf": [{"type": "string", "description": "{minLength: 2}"}, {"type": "null"}],
        "description": "d",
    }


@pytest.mark.parametrize("output", [dict[str, int], Node, Free, Any, tuple[int, str], list[Any]])
def test_free_keys_tuples_any_value_and_types_that_hold_themselves_cannot_be_closed(
    output: Any,
) -> None:
    schema = to_schema(output)
    assert not can_be_closed(schema)
    assert strict_schema(schema) is None


def test_a_strict_schema_requires_every_key_and_names_every_type() -> None:
    found = strict_schema(to_schema(House))
    assert found is not None
    assert found["required"] == ["rooms", "pet", "kind", "built", "note", "spare"]
    assert found["properties"]["kind"] == {
        "enum": ["new", "old"],
        "type": "string",
        "description": "{default: old}",
    }
    assert found["$defs"]["Cat"]["required"] == ["type", "lives"]


Make = Callable[[str], Provider]
VENDORS: list[tuple[Callable[..., FakeServer], Make]] = [
    (FakeAnthropic, lambda url: Anthropic("m", api_key="k", base_url=url)),
    (FakeOpenAI, lambda url: OpenAIResponses("m", api_key="k", base_url=url)),
    (FakeOpenAI, lambda url: OpenAIChat("m", api_key="k", base_url=url)),
]


def answered(
    fake: Callable[..., FakeServer], make: Make, reply: str, output: Any
) -> tuple[Any, dict[str, Any]]:
    """What `complete` gives, and the body of the request."""

    async def main() -> tuple[Any, dict[str, Any]]:
        async with fake([reply]) as server:
            provider = make(server.url)
            try:
                found = await complete(provider, Request([user("go")]), output=output)
            finally:
                await provider.close()
            return found, server.requests[0].body

    return asyncio.run(main())


@pytest.mark.parametrize(("fake", "make"), VENDORS)
def test_every_vendor_takes_the_schema_and_the_value_is_typed(
    fake: Callable[..., FakeServer], make: Make
) -> None:
    wrapped: list[tuple[Any, Any]] = [(House, HOUSE), (Room, Room("a"))]
    for output, value in wrapped:
        said = msgspec.json.encode(value).decode()
        found, body = answered(fake, make, said, output)
        assert found == value
        assert "additionalProperties" in json.dumps(body)
    for output, value in ((int, 7), (list[Room], [Room("a")]), (Dog | Cat, Cat(3)), (str, "x")):
        said = msgspec.json.encode({"value": value}).decode()
        found, body = answered(fake, make, said, output)
        assert found == value
        assert '"value"' in json.dumps(body)


@pytest.mark.parametrize(("fake", "make"), VENDORS)
def test_what_a_vendor_cannot_say_is_still_answered(
    fake: Callable[..., FakeServer], make: Make
) -> None:
    found, body = answered(fake, make, '{"a": 1}', dict[str, int])
    assert found == {"a": 1}
    assert "fits this JSON Schema" in json.dumps(body)
    assert answered(fake, make, '{"kids": [{}]}', Node)[0] == Node([Node()])


@pytest.mark.parametrize(("fake", "make"), VENDORS)
def test_a_root_that_is_no_object_never_makes_a_request_that_is_refused(
    fake: Callable[..., FakeServer], make: Make
) -> None:
    """Settings may hold any schema: `--output-schema` takes a person's own."""
    config = RequestConfig(output_schema={"type": "array", "items": {"type": "integer"}})

    async def main() -> str:
        async with fake(["[1]"]) as server:
            provider = make(server.url)
            try:
                return (await complete(provider, Request([user("go")], config=config))).content
            finally:
                await provider.close()

    assert asyncio.run(main()) == "[1]"
