"""Answers as typed values: one question with a whole answer, and answers that fit a JSON Schema.

The API's own JSON Schema mode is used if there is one. Those modes want an object, so another value
is asked for as `{"value": …}` there; what they cannot express is also asked for in words. Every
answer is validated; one that does not fit is sent back once, with what is wrong.
"""

from typing import Any, TypeVar, overload

import msgspec
from msgspec.structs import replace

from bridle.engine.json_schema import compile_schema
from bridle.errors import AgentError, BadReply, ConfigError
from bridle.messages import Message, Text, Transcript, user
from bridle.protocols.json_schema import PydanticType, can_be_closed, uses_pydantic
from bridle.protocols.provider import (
    Provider,
    ProviderInfo,
    Request,
    Response,
    drain,
    retry_policy_of,
)

T = TypeVar("T")


@overload
async def complete(provider: Provider, request: Request) -> Response: ...
@overload
async def complete(provider: Provider, request: Request, *, output: type[T]) -> T: ...
async def complete(provider: Provider, request: Request, *, output: Any = None) -> Any:
    """Return the model's whole reply; with `output`, the value that it wrote as JSON."""
    if output is None:
        return await _reply(provider, request)
    schema = to_schema(output)
    wraps = provider.info.native_schema and schema.get("type") != "object"
    typed = _with_schema(_wrap(schema) if wraps else schema, provider, request)
    reply = await _reply(provider, typed)
    read = _unwrap if wraps else parse
    try:
        return read(reply.content, output)
    except BadReply as problem:
        messages = Transcript.of(typed.messages)
        if reply.content.strip():  # its text only: nothing answers calls here
            messages = messages.plus(Message("assistant", (Text(reply.content),)))
        messages = messages.plus(user(repair(problem)))
        second = await _reply(provider, replace(typed, messages=messages))
        return read(second.content, output)


async def _reply(provider: Provider, request: Request) -> Response:
    """Drain the stream. Ask again as the retry policy says if it breaks off."""
    policy = retry_policy_of(provider)
    tries = None if policy is None else policy.begin()
    while True:
        events = provider.stream(request)
        try:
            return await drain(events)
        except AgentError as error:
            # The provider itself retries a stream that has not begun.
            has_begun = tries is not None and getattr(events, "has_begun", False)
            if tries is None or not has_begun or (retry := tries.after(error)) is None:
                raise
        await retry.wait()


def to_schema(output: Any) -> dict[str, Any]:
    """Return the JSON Schema of a type, without a reference at its root."""
    if uses_pydantic(output):
        schema = PydanticType(output).schema()
        parts = schema.pop("$defs", {})
    else:
        schema, parts = _components(output)
    if set(schema) == {"$ref"}:
        name = schema["$ref"].removeprefix("#/$defs/")
        schema = parts[name]
        if not _refers_to(parts, f"#/$defs/{name}"):
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


def _refers_to(value: Any, ref: str) -> bool:
    """Does the schema refer to this part? A recursive type does."""
    if isinstance(value, dict):
        return value.get("$ref") == ref or any(_refers_to(each, ref) for each in value.values())
    return isinstance(value, list) and any(_refers_to(each, ref) for each in value)


def _wrap(schema: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of an object with the value: no vendor takes another root."""
    inner = {name: each for name, each in schema.items() if name != "$defs"}
    outer = {"type": "object", "properties": {"value": inner}, "required": ["value"]}
    return {**outer, "$defs": schema["$defs"]} if "$defs" in schema else outer


def _unwrap(text: str, output: Any) -> Any:
    """Return the value in the object; models that ignore the schema send it bare."""
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
    """Return the value of a reply: JSON alone, or in a code fence. Raise `BadReply`."""
    text = remove_fence(text)
    try:
        if uses_pydantic(output):
            return PydanticType(output).parse(text)
        return msgspec.json.decode(text, type=output)
    except (msgspec.MsgspecError, ValueError) as error:
        raise BadReply(
            f"the reply does not fit what was asked for: {error}",
            error,
            hint="Ask again, or use a model that can keep to a JSON schema.",
        ) from error


def _with_schema(schema: dict[str, Any], provider: Provider, request: Request) -> Request:
    config = replace(request.config, output_schema=schema)
    if provider.info.native_schema and can_be_closed(schema):
        return replace(request, config=config)
    wanted = msgspec.json.encode(schema).decode()
    rule = f"Answer with one JSON value that fits this JSON Schema, and nothing else:\n{wanted}"
    system = f"{request.system}\n\n{rule}" if request.system else rule
    return replace(request, config=config, system=system)


def repair(problem: BadReply) -> str:
    """Return what the model is told, once, when its answer does not fit."""
    return f"{problem.message}\nSend the corrected JSON value, and nothing else."


def remove_fence(text: str) -> str:
    """Remove the code fence that many models put around JSON."""
    text = text.strip()
    if text.startswith("```") and text.endswith("```"):
        return text.removesuffix("```").partition("\n")[2].strip()
    return text


class AnswerSchema:
    """A JSON Schema, ready to check answers. Raise `ConfigError` for one that is broken."""

    def __init__(self, schema: dict[str, Any]) -> None:
        self.schema = schema
        self._problems = compile_schema(schema)

    def is_native_to(self, info: ProviderInfo) -> bool:
        """Whether the provider's API has a mode of its own that takes this schema."""
        return info.native_schema and can_be_closed(self.schema)

    @property
    def rule(self) -> str:
        """What to tell a model whose API has no mode of its own for this."""
        wanted = msgspec.json.encode(self.schema).decode()
        return (
            "Your last message, the one after which you call no more tools, has to be one JSON "
            f"value that fits this JSON Schema, and nothing else:\n{wanted}"
        )

    def fit(self, text: str) -> Any:
        """Return the value in the answer. Raise `BadReply` with everything that is wrong."""
        try:
            value = msgspec.json.decode(remove_fence(text))
        except (msgspec.DecodeError, UnicodeEncodeError) as error:
            raise _unfit(f"it is not JSON: {error}") from None
        if problems := self._problems(value):
            raise _unfit("; ".join(problems))
        return value

    @staticmethod
    def correction(problem: BadReply) -> Message:
        """The message that asks the model once more, with what was wrong."""
        return user(repair(problem))


def _unfit(problem: str) -> BadReply:
    return BadReply(
        f"the answer does not fit the schema: {problem}",
        hint="Try again, describe the format in the prompt, or use a model that supports schemas.",
    )
