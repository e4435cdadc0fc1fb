"""How the Chat Completions API is written to, by OpenAI and by everybody who copied it.

Pure: values in, bytes out. A tool's pictures cannot be said in this API; the text says so.
"""

from base64 import b64decode
from collections.abc import Mapping
from typing import Any

import msgspec

from bridle.messages import File, Image, Message, Part, Text, Thinking, ToolCall, ToolOutput
from bridle.protocols.provider import ProviderInfo, Request, RequestConfig, known_limit
from bridle.providers.encoding_cache import EncodedMessage
from bridle.providers.openai_encoder import data_url, reply_schema
from bridle.providers.wire_names import fit_name

API = "openai-chat"
_LONGEST_ID = 40
_LONGEST_NAME = 64
encode = msgspec.json.Encoder(enc_hook=str).encode


class ChatScript:
    """Writes messages for one model.

    Reasoning goes back under the name it came with (`reasoning_content`, `reasoning`), inside the
    turn in progress: some servers demand it there, and those that never send it never get it.
    """

    closing = b""
    forewords: Mapping[bytes, bytes] = {}

    def __init__(self, model: str) -> None:
        self.key = f"{API}/{model}"
        self._model = model

    def write(self, message: Message, thinking: bool) -> EncodedMessage:
        """The message as one entry, or as one for each tool's output."""
        if message.role == "assistant":
            thoughts = self._thoughts(message) if thinking else {}
            said = _answer(message)
            return EncodedMessage(
                b"", encode({**said, **thoughts}) if said else b"", bool(thoughts)
            )
        entries = [_tool(part) for part in message.parts if isinstance(part, ToolOutput)]
        content = _content([part for part in message.parts if not isinstance(part, ToolOutput)])
        if content:
            role = "system" if message.role == "system" else "user"
            entries.append({"role": role, "content": content})
        return EncodedMessage(b"", b",".join(map(encode, entries)))

    def _thoughts(self, message: Message) -> dict[str, str]:
        found: dict[str, str] = {}
        for part in message.parts:
            if not isinstance(part, Thinking):
                continue
            meta = part.meta
            if meta.get("api") == API and meta.get("model") == self._model and "field" in meta:
                found[meta["field"]] = found.get(meta["field"], "") + part.text
        return found


def _answer(message: Message) -> dict[str, Any]:
    calls = [
        {"id": fit_name(part.id, _LONGEST_ID), "type": "function", "function": _function(part)}
        for part in message.parts
        if isinstance(part, ToolCall)
    ]
    text = message.content
    if not text and not calls:
        return {}
    said = {"role": "assistant", "content": text or None}
    return {**said, "tool_calls": calls} if calls else said


def _function(call: ToolCall) -> dict[str, str]:
    name = fit_name(call.name, _LONGEST_NAME)
    return {"name": name, "arguments": encode(call.arguments).decode()}


def _tool(output: ToolOutput) -> dict[str, Any]:
    text = output.text
    if output.media:
        kinds = ", ".join(part.media_type or "a link" for part in output.media)
        text += f"\n[left out, because this API takes none here: {kinds}]"
    return {"role": "tool", "tool_call_id": fit_name(output.call_id, _LONGEST_ID), "content": text}


def _content(parts: list[Part]) -> str | list[dict[str, Any]]:
    """One text as it is, which every server takes; anything more as a list."""
    parts = [part for part in parts if not isinstance(part, Thinking) and part != Text("")]
    if len(parts) == 1 and isinstance(parts[0], Text):
        return parts[0].text
    return [found for part in parts if (found := _piece(part))]


def _piece(part: Part) -> dict[str, Any] | None:
    if isinstance(part, Text):
        return {"type": "text", "text": part.text}
    if isinstance(part, Image):
        return {"type": "image_url", "image_url": {"url": data_url(part)}}
    if isinstance(part, File):
        if part.media_type.startswith("text/") or part.media_type == "application/json":
            words = b64decode(part.data).decode(errors="replace")
            return {"type": "text", "text": f"{part.name}\n\n{words}" if part.name else words}
        named = {"filename": part.name or "file", "file_data": data_url(part)}
        return {"type": "file", "file": named}
    return None


def head(model: str, info: ProviderInfo, ceiling: str, request: Request) -> bytes:
    """Everything of a request but its messages. `ceiling` is this server's name for max_tokens."""
    fields: dict[str, Any] = {
        "model": model,
        "stream": True,
        "stream_options": {"include_usage": True},
        **_settings(request.config, ceiling, known_limit(request.config, info)),
    }
    if request.tools:
        fields["tools"] = [
            {
                "type": "function",
                "function": {
                    "name": tool.name,
                    "description": tool.description,
                    "parameters": tool.parameters,
                },
            }
            for tool in request.tools
        ]
        if request.config.tool_choice:
            fields["tool_choice"] = _choice(request.config.tool_choice)
    opened = encode(fields)[:-1] + b',"messages":['
    if not request.system:
        return opened
    return opened + encode({"role": "system", "content": request.system})


def _settings(config: RequestConfig, ceiling: str, limit: int) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    if limit:
        fields[ceiling] = limit
    if config.temperature is not None:
        fields["temperature"] = config.temperature
    if config.effort:
        fields["reasoning_effort"] = config.effort
    if config.stop:
        fields["stop"] = config.stop
    if config.output_schema is not None and (schema := reply_schema(config.output_schema)):
        fields["response_format"] = {"type": "json_schema", "json_schema": schema}
    return fields


def _choice(choice: str) -> str | dict[str, Any]:
    if choice in ("auto", "none", "required"):
        return choice
    return {"type": "function", "function": {"name": choice}}
