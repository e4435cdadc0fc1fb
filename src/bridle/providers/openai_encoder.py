"""How OpenAI's Responses API is written to: messages as input items, requests as bytes.

Pure: values in, bytes out. The API has no stop sequences, so `stop` is not sent.
"""

from collections.abc import Mapping
from typing import Any

import msgspec

from bridle.messages import (
    File,
    Image,
    Message,
    Part,
    Text,
    Thinking,
    ToolCall,
    ToolOutput,
    says_something,
)
from bridle.protocols.provider import ProviderInfo, Request, RequestConfig, known_limit
from bridle.providers.encoding_cache import EncodedMessage
from bridle.providers.json_schemas import strict
from bridle.providers.wire_names import fit_name

API = "openai"
_LONGEST = 64  # characters of an id, and of a name
encode = msgspec.json.Encoder(enc_hook=str).encode
_ROLES = {"user": "user", "system": "developer", "assistant": "assistant", "tool": "user"}


class ResponsesScript:
    """Writes messages for one model: only its own reasoning can go back to it."""

    closing = b""
    forewords: Mapping[bytes, bytes] = {}

    def __init__(self, model: str) -> None:
        self.key = f"{API}/{model}"
        self._model = model

    def write(self, message: Message, thinking: bool) -> EncodedMessage:
        """The message as input items, in the order of its parts."""
        items: list[dict[str, Any]] = []
        said: list[Part] = []
        thinks = False
        thinking = thinking and says_something(message)  # a thought alone leads to nothing
        for part in message.parts:
            if isinstance(part, Text | Image | File):
                said.append(part)
                continue
            item = _item(part) or (self._thought(part) if thinking else None)
            if item is not None:
                thinks = thinks or isinstance(part, Thinking)
                items += [*_spoken(message.role, said), item]
                said = []
        items += _spoken(message.role, said)
        return EncodedMessage(b"", b",".join(map(encode, items)), thinks)

    def _thought(self, part: Part) -> dict[str, Any] | None:
        if not isinstance(part, Thinking):
            return None
        meta = part.meta
        if meta.get("api") != API or meta.get("model") != self._model:
            return None
        if "encrypted_content" not in meta:
            return None
        return {
            "type": "reasoning",
            "id": meta.get("id", ""),
            "summary": [{"type": "summary_text", "text": part.text}] if part.text else [],
            "encrypted_content": meta["encrypted_content"],
        }


def _item(part: Part) -> dict[str, Any] | None:
    if isinstance(part, ToolCall):
        arguments = encode(part.arguments).decode()
        named = {"call_id": fit_name(part.id, _LONGEST), "name": fit_name(part.name, _LONGEST)}
        return {"type": "function_call", **named, "arguments": arguments}
    if isinstance(part, ToolOutput):
        output: Any = part.text
        if part.media:
            output = [_content(Text(part.text)), *map(_content, part.media)]
        call_id = fit_name(part.call_id, _LONGEST)
        return {"type": "function_call_output", "call_id": call_id, "output": output}
    return None


def _spoken(role: str, parts: list[Part]) -> list[dict[str, Any]]:
    """What was said between calls, as at most one item."""
    if role == "assistant":
        text = "".join(part.text for part in parts if isinstance(part, Text))
        return [{"role": "assistant", "content": text}] if text else []
    content = [_content(part) for part in parts if not (isinstance(part, Text) and not part.text)]
    return [{"role": _ROLES[role], "content": content}] if content else []


def _content(part: Part) -> dict[str, Any]:
    if isinstance(part, Image):
        return {"type": "input_image", "detail": "auto", "image_url": data_url(part)}
    if isinstance(part, File):
        name = part.name or "file"
        return {"type": "input_file", "filename": name, "file_data": data_url(part)}
    return {"type": "input_text", "text": part.text if isinstance(part, Text) else ""}


def data_url(part: Image | File) -> str:
    """The picture or document as one URL."""
    if isinstance(part, Image) and part.url:
        return part.url
    return f"data:{part.media_type};base64,{part.data}"


def head(model: str, info: ProviderInfo, request: Request) -> bytes:
    """Everything of a request but its messages: an object that is left open in their array."""
    fields: dict[str, Any] = {
        "model": model,
        "stream": True,
        # The conversation stays here, so reasoning comes back to us, encrypted. It does so by
        # itself: asking for it (`include`) is refused by models that do not reason.
        "store": False,
        **_settings(request.config, known_limit(request.config, info)),
    }
    if request.system:
        fields["instructions"] = request.system
    if request.tools:
        fields["tools"] = [
            {
                "type": "function",
                "name": tool.name,
                "description": tool.description,
                "parameters": tool.parameters,
                "strict": False,
            }
            for tool in request.tools
        ]
    return encode(fields)[:-1] + b',"input":['


def _settings(config: RequestConfig, limit: int) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    if limit:
        fields["max_output_tokens"] = limit
    if config.temperature is not None:
        fields["temperature"] = config.temperature
    if config.effort:
        summary = {} if config.effort == "none" else {"summary": "auto"}
        fields["reasoning"] = {"effort": config.effort, **summary}
    if config.tool_choice in ("auto", "none", "required"):
        fields["tool_choice"] = config.tool_choice
    elif config.tool_choice:
        fields["tool_choice"] = {"type": "function", "name": config.tool_choice}
    if config.output_schema is not None and (schema := reply_schema(config.output_schema)):
        fields["text"] = {"format": {"type": "json_schema", **schema}}
    return fields


def reply_schema(schema: dict[str, Any]) -> dict[str, Any] | None:
    """A schema as both of OpenAI's APIs take it; strict where the strict mode can say it.

    None where they would refuse it: the reply has to be an object.
    """
    if schema.get("type") != "object":
        return None
    found = strict(schema)
    return {"name": "reply", "schema": found or schema, "strict": found is not None}
