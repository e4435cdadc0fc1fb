"""One question, one whole answer: the stream, drained; with `output`, as a typed value.

The API's own JSON-schema mode is used where there is one. Those modes want an object, so another
value is asked for as `{"value": …}` there; what they cannot say at all is also asked for in words.
In any case the answer is validated, and one that does not fit is sent back once with what is wrong.
"""

from typing import Any, TypeVar, overload

import msgspec
from msgspec.structs import replace

from bridle.errors import AgentError, BadReply, ConfigError
from bridle.messages import Message, Text, Transcript, user
from bridle.promises.provider import Provider, Request, Response, drain, retry_policy_of
from bridle.promises.pydantic_types import PydanticType, uses_pydantic
from bridle.promises.schema import can_be_closed

T = TypeVar("T")


@overload
async def complete(provider: Provider, request: Request) -> Response: ...
@overload
async def complete(provider: Provider, request: Request, *, output: type[T]) -> T: ...
async def complete(provider: Provider, request: Request, *, output: Any = None) -> Any:
    """The model's whole reply; with `output`, the value that it wrote as JSON."""
    if output is None:
        return await _reply(provider, request)
    schema = to_schema(output)
    wraps = provider.info.native_schema and schema.get("type") != "object"
    asked = _asking_for(_wrapped(schema) if wraps else schema, provider, request)
    reply = await _reply(provider, asked)
    read = _unwrap if wraps else parse
    try:
        return read(reply.content, output)
    except BadReply as problem:
        again = Transcript.of(asked.messages)
        if reply.content.strip():  # its words alone: nobody answers calls here
            again = again.plus(Message("assistant", (Text(reply.content),)))
        again = again.plus(user(repair(problem)))
        second = await _reply(provider, replace(asked, messages=again))
        return read(second.content, output)


async def _reply(provider: Provider, request: Request) -> Response:
    """The stream, drained. One that breaks off is asked for again as the provider's policy says."""
    policy = retry_policy_of(provider)
    tries = None if policy is None else policy.begin()
    while True:
        events = provider.stream(request)
        try:
            return await drain(events)
        except AgentError as error:
            # One that has not begun was tried again by the provider itself.
            begun = tries is not None and getattr(events, "has_begun", False)
            if tries is None or not begun or (retry := tries.after(error)) is None:
                raise
        await retry.wait()


def to_schema(output: Any) -> dict[str, Any]:
    """The JSON Schema of a type, without a reference at its root."""
    if uses_pydantic(output):
        schema = PydanticType(output).schema()
        parts = schema.pop("$defs", {})
    else:
        schema, parts = _components(output)
    if set(schema) == {"$ref"}:
        name = schema["$ref"].removeprefix("#/$defs/")
        schema = parts[name]
        if not _names(parts, f"#/$defs/{name}"):
            del parts[name]
    return {**schema, "$defs": parts} if parts else schema


def _components(output: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    try:
        (schema,), parts = msgspec.json.schema_components([output], ref_template="#/$defs/{name}")
    except TypeError as error:
        raise ConfigError(
            f"an answer of type {getattr(output, '__name__', output)} cannot be described: {error}",
            error,
            hint="Use plain types, dataclasses, TypedDicts, msgspec Structs or pydantic models.",
        ) from error
    return schema, parts


def _names(value: Any, ref: str) -> bool:
    """Is this part referred to? A type that holds itself is."""
    if isinstance(value, dict):
        return value.get("$ref") == ref or any(_names(each, ref) for each in value.values())
    return isinstance(value, list) and any(_names(each, ref) for each in value)


def _wrapped(schema: dict[str, Any]) -> dict[str, Any]:
    """An object that holds the value: no vendor's schema mode takes another root."""
    inner = {name: each for name, each in schema.items() if name != "$defs"}
    outer = {"type": "object", "properties": {"value": inner}, "required": ["value"]}
    return {**outer, "$defs": schema["$defs"]} if "$defs" in schema else outer


def _unwrap(text: str, output: Any) -> Any:
    """The value in an object that holds it; models that ignore the schema send it bare."""
    pydantic = uses_pydantic(output)  # only its own parser knows its types
    kind = msgspec.Raw if pydantic else output
    holder = msgspec.defstruct("Value", [("value", kind)], forbid_unknown_fields=True)
    try:
        value = parse(text, holder).value
        return parse(bytes(value).decode(), output) if pydantic else value
    except BadReply as problem:
        try:
            return parse(text, output)
        except BadReply:
            raise problem from problem.cause


def parse(text: str, output: Any) -> Any:
    """The value in a reply: JSON alone, or in a fence. Raise `BadReply`."""
    found = unfenced(text)
    try:
        if uses_pydantic(output):
            return PydanticType(output).parse(found)
        return msgspec.json.decode(found, type=output)
    except (msgspec.MsgspecError, ValueError) as error:
        raise BadReply(
            f"the reply does not fit what was asked for: {error}",
            error,
            hint="Ask again, or use a model that can keep to a JSON schema.",
        ) from error


def _asking_for(schema: dict[str, Any], provider: Provider, request: Request) -> Request:
    config = replace(request.config, output_schema=schema)
    if provider.info.native_schema and can_be_closed(schema):
        return replace(request, config=config)
    wanted = msgspec.json.encode(schema).decode()
    rule = f"Answer with one JSON value that fits this JSON Schema, and nothing else:\n{wanted}"
    system = f"{request.system}\n\n{rule}" if request.system else rule
    return replace(request, config=config, system=system)


def repair(problem: BadReply) -> str:
    """What the model is told once when its answer does not fit."""
    return f"{problem.message}\nSend the corrected JSON value, and nothing else."


def unfenced(text: str) -> str:
    """Without the fence that many models put around JSON."""
    text = text.strip()
    if text.startswith("```") and text.endswith("```"):
        return text.removesuffix("```").partition("\n")[2].strip()
    return text
