"""One question, one whole answer, typed where a type is asked for (M1)."""

import asyncio
import contextlib

import msgspec
import pytest

from bridle import complete
from bridle.engine.structured_output import to_schema
from bridle.errors import BadReply, Overloaded, StreamCutShort
from bridle.messages import user
from bridle.protocols.provider import ProviderInfo, Request, RequestConfig, Response
from bridle.providers.retry import Retrying, RetryPolicy
from bridle.providers.scripted import Scripted
from bridle.usage import Usage


class City(msgspec.Struct):
    name: str
    people: int


class Country(msgspec.Struct):
    capital: City
    cities: list[City] = []


PARIS = '{"name": "Paris", "people": 2}'
ASK = Request([user("the capital?")], system="be brief")
NATIVE = ProviderInfo("scripted", "m", native_schema=True)


def ask(*replies, info=None, output=City, request=ASK):
    model = Scripted(replies, info=info)
    return model, asyncio.run(complete(model, request, output=output))


def test_the_stream_drained():
    reply = {"text": "Paris", "usage": {"inputTokens": 3, "outputTokens": 1}}
    _, found = ask(reply, output=None)
    assert isinstance(found, Response)
    assert (found.content, found.usage, found.stop_reason) == ("Paris", Usage(3, 1), "complete")


def test_a_typed_answer_from_an_api_that_keeps_to_a_schema():
    model, found = ask(PARIS, info=NATIVE)
    assert found == City("Paris", 2)
    (request,) = model.requests
    assert request.config.output_schema == to_schema(City)
    assert request.system == "be brief"


def test_a_typed_answer_from_one_that_does_not():
    model, found = ask(PARIS)
    assert found == City("Paris", 2)
    (request,) = model.requests
    assert request.system.startswith("be brief\n\nAnswer with one JSON value")
    assert '"people"' in request.system
    assert ask(PARIS, request=Request([user("?")]))[0].requests[0].system.startswith("Answer")


@pytest.mark.parametrize(
    "text",
    [
        f"```json\n{PARIS}\n```",
        f"```\n{PARIS}\n```",
        f"\n\n  {PARIS}\n",
        f"  ```json\n{PARIS}```  ",
    ],
)
def test_json_in_a_fence_is_taken_out(text):
    assert ask(text)[1] == City("Paris", 2)


@pytest.mark.parametrize("bad", ["Paris!", '{"name": "Paris"}', '{"name": 1, "people": 2}', ""])
def test_one_that_does_not_fit_is_sent_back_once_with_what_is_wrong(bad):
    model, found = ask(bad, PARIS)
    assert found == City("Paris", 2)
    first, second = model.requests
    assert list(second.messages)[: len(first.messages)] == list(first.messages)
    said = [(one.role, one.content) for one in second.messages][1:-1]
    assert said == ([("assistant", bad)] if bad else [])
    assert "does not fit" in second.messages[-1].content
    assert second.system == first.system


def test_after_the_second_it_is_an_error():
    with pytest.raises(BadReply) as caught:
        ask("no", "still no")
    assert caught.value.hint
    assert not caught.value.retryable


def test_what_a_provider_raises_is_raised():
    with pytest.raises(Overloaded):
        ask({"error": {"status": 529}})


def test_settings_of_the_request_are_kept():
    request = Request([user("?")], config=RequestConfig(max_tokens=7, temperature=0.5))
    model, _ = ask(PARIS, request=request)
    config = model.requests[0].config
    assert (config.max_tokens, config.temperature) == (7, 0.5)


def test_a_schema_has_no_reference_at_its_root():
    schema = to_schema(Country)
    assert schema["type"] == "object"
    assert schema["$defs"]["City"]["required"] == ["name", "people"]
    assert to_schema(int) == {"type": "integer"}
    assert to_schema(list[int]) == {"type": "array", "items": {"type": "integer"}}


class Node(msgspec.Struct):
    kids: list["Node"] = []


def test_a_type_that_holds_itself_keeps_its_definition():
    schema = to_schema(Node)
    assert schema["properties"]["kids"]["items"] == {"$ref": "#/$defs/Node"}
    assert set(schema["$defs"]) == {"Node"}


def test_a_schema_mode_is_asked_for_an_object_that_holds_the_value():
    """No vendor's mode takes another root; a model that sends the bare value is understood."""
    for reply in ('{"value": [1, 2]}', "[1, 2]"):
        model, found = ask(reply, info=NATIVE, output=list[int])
        assert found == [1, 2]
        assert model.requests[0].config.output_schema == {
            "type": "object",
            "properties": {"value": {"type": "array", "items": {"type": "integer"}}},
            "required": ["value"],
        }
    model, found = ask('{"value": "x"}', '{"value": 7}', info=NATIVE, output=int)
    assert found == 7
    assert "$.value" in model.requests[1].messages[-1].content


def test_parts_of_a_wrapped_value_stay_at_the_root():
    model, found = ask(f'{{"value": [{PARIS}]}}', info=NATIVE, output=list[City])
    assert found == [City("Paris", 2)]
    schema = model.requests[0].config.output_schema
    assert schema["properties"]["value"] == {"type": "array", "items": {"$ref": "#/$defs/City"}}
    assert set(schema["$defs"]) == {"City"}


@pytest.mark.parametrize("output", [dict[str, int], list[Node], tuple[int, str]])
def test_what_no_schema_mode_can_say_is_also_asked_for_in_words(output):
    model = Scripted(["{}", "{}"], info=NATIVE)
    with contextlib.suppress(BadReply):
        asyncio.run(complete(model, ASK, output=output))
    assert "fits this JSON Schema" in model.requests[0].system


def test_other_types_than_structs():
    assert ask("[1, 2]", output=list[int])[1] == [1, 2]
    assert ask('{"a": 1}', output=dict[str, int])[1] == {"a": 1}


@pytest.mark.parametrize("output", [None, City])
def test_a_reply_that_breaks_off_is_asked_for_again(output):
    """(M5): nobody has seen the half of it. Without a policy it is raised."""

    async def at_once(seconds):
        """Nobody waits in a test."""

    half = {"text": PARIS[:9], "cut": True}
    wanted = {} if output is None else {"output": output}

    async def asked(*replies, **options):
        model = Retrying(Scripted(replies), RetryPolicy(pause=at_once, **options))
        return await complete(model, Request([user("?")]), **wanted), model.provider.requests

    found, requests = asyncio.run(asked(half, {"error": {"status": 529}}, half, PARIS))
    assert (getattr(found, "content", PARIS), len(requests)) == (PARIS, 4)
    with pytest.raises(StreamCutShort):
        asyncio.run(asked(half, PARIS, retries=0))
