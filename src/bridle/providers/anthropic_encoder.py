"""Writes requests for Anthropic's Messages API: messages, tools and thinking.

How long Claude thinks is one word, `effort`. Newer models take the word itself (adaptive), older
ones a number of tokens (budget), and the oldest do not think (none). A model that is not listed
counts as new.
"""

from base64 import b64decode
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
from bridle.protocols.provider import (
    ProviderInfo,
    Request,
    RequestConfig,
    Thinks,
    reply_limit,
)
from bridle.protocols.schema import can_be_closed
from bridle.providers.encoding_cache import EncodedMessage
from bridle.providers.json_schemas import closed
from bridle.providers.wire_names import fit_name

_LEAST = 1024  # the smallest budget that the API takes
_BUDGETS = {"minimal": 1024, "low": 2048, "medium": 8192, "high": 16384, "xhigh": 24576}
_LARGEST = 32768


def thinking_fields(config: RequestConfig, thinks: Thinks | None, limit: int) -> dict[str, Any]:
    """The `thinking` of a request, and `effort` where it is a word of its own."""
    if not config.effort or thinks == "none":
        return {}
    if config.effort == "none":
        return {"thinking": {"type": "disabled"}}
    if thinks != "budget":
        shown = {"type": "adaptive", "display": "summarized"}
        return {"thinking": shown, "effort": config.effort}
    # The budget is part of the limit: a quarter stays for the words, where that much is left.
    budget = max(_LEAST, min(_wanted(config.effort), limit * 3 // 4))
    return {"thinking": {"type": "enabled", "budget_tokens": budget}} if budget < limit else {}


def why_not_thinking(config: RequestConfig, info: ProviderInfo) -> str:
    """Why the effort that was asked for cannot be; empty where it can, or none was asked for."""
    if config.effort in ("", "none"):
        return ""
    limit = reply_limit(config, info)
    if thinking_fields(config, info.thinks, limit):
        return ""
    if info.thinks == "none":
        return f"{info.model} does not think before it answers"
    return f"{info.model} needs max_tokens over {_LEAST} to think"


def _wanted(effort: str) -> int:
    return 0 if effort in ("", "none") else _BUDGETS.get(effort, _LARGEST)


API = "anthropic"
_LONGEST_ID = 64
_LONGEST_NAME = 128

encode = msgspec.json.Encoder(enc_hook=str).encode
_CACHED = {"type": "ephemeral"}
_OPENINGS = {
    "assistant": b'{"role":"assistant","content":[',
    "system": b'{"role":"system","content":[',
    "user": b'{"role":"user","content":[',
    "tool": b'{"role":"user","content":[',
}
# The API wants a user's message first; a conversation from elsewhere may begin with a greeting.
_BEGINS = b'{"role":"user","content":[{"type":"text","text":"(The conversation begins.)"}]},'
_FOREWORDS = {_OPENINGS["assistant"]: _BEGINS, _OPENINGS["system"]: _BEGINS}


class MessagesScript:
    """Writes messages for one model: only its own thinking can go back to it."""

    closing = b"]}"
    forewords: Mapping[bytes, bytes] = _FOREWORDS

    def __init__(self, model: str) -> None:
        self.key = f"{API}/{model}"
        self._model = model

    def write(self, message: Message, thinking: bool) -> EncodedMessage:
        """The message as content blocks of the role it speaks in."""
        blocks: list[bytes] = []
        thinks = False
        thinking = thinking and says_something(message)  # a thought alone is no message
        for part in message.parts:
            if isinstance(part, Thinking):
                block = self._thought(part) if thinking else None
                thinks = thinks or block is not None
            else:
                block = _block(part)
            if block is not None:
                blocks.append(encode(block))
        return EncodedMessage(_OPENINGS[message.role], b",".join(blocks), thinks)

    def _thought(self, part: Thinking) -> dict[str, Any] | None:
        meta = part.meta
        if meta.get("api") != API or meta.get("model") != self._model:
            return None
        if "redacted" in meta:
            return {"type": "redacted_thinking", "data": meta["redacted"]}
        if "signature" in meta:
            return {"type": "thinking", "thinking": part.text, "signature": meta["signature"]}
        return None


def _block(part: Part) -> dict[str, Any] | None:
    if isinstance(part, Text):
        # The API refuses text that is empty or blank.
        return {"type": "text", "text": part.text} if part.text.strip() else None
    if isinstance(part, ToolCall):
        named = {"id": fit_name(part.id, _LONGEST_ID), "name": fit_name(part.name, _LONGEST_NAME)}
        return {"type": "tool_use", **named, "input": part.arguments}
    if isinstance(part, ToolOutput):
        return _tool_result(part)
    if isinstance(part, Image | File):
        return _media(part)
    return None


def _tool_result(output: ToolOutput) -> dict[str, Any]:
    call_id = fit_name(output.call_id, _LONGEST_ID)
    block: dict[str, Any] = {"type": "tool_result", "tool_use_id": call_id}
    if output.media:
        said = [{"type": "text", "text": output.text}] if output.text.strip() else []
        block["content"] = [*said, *map(_media, output.media)]
    elif output.text:
        block["content"] = output.text
    if output.is_error:
        block["is_error"] = True
    return block


def _media(part: Image | File) -> dict[str, Any]:
    if isinstance(part, Image):
        if part.url:
            return {"type": "image", "source": {"type": "url", "url": part.url}}
        return {"type": "image", "source": _base64(part)}
    named = {"title": part.name} if part.name else {}
    if part.media_type == "application/pdf":
        return {"type": "document", "source": _base64(part), **named}
    if part.media_type.startswith("text/") or part.media_type == "application/json":
        words = b64decode(part.data).decode(errors="replace")
        source = {"type": "text", "media_type": "text/plain", "data": words}
        return {"type": "document", "source": source, **named}
    said = f"[A file was left out: {part.name or 'unnamed'}, {part.media_type}]"
    return {"type": "text", "text": said}


def _base64(part: Image | File) -> dict[str, str]:
    return {"type": "base64", "media_type": part.media_type, "data": part.data}


def head(model: str, info: ProviderInfo, request: Request) -> bytes:
    """Everything of a request but its messages: an object that is left open in their array."""
    limit = reply_limit(request.config, info)
    fields: dict[str, Any] = {
        "model": model,
        "max_tokens": limit,
        "stream": True,
        "cache_control": _CACHED,  # the last block that can be cached: the conversation so far
        **_settings(request.config, info.thinks, limit),
    }
    if request.tools:
        fields["tools"] = _tools(request)
    if request.system:
        said = {"type": "text", "text": request.system, "cache_control": _CACHED}
        fields["system"] = [said]
    return encode(fields)[:-1] + b',"messages":['


def _settings(config: RequestConfig, thinks: Thinks | None, limit: int) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    if config.temperature is not None:
        fields["temperature"] = config.temperature
    if config.stop:
        fields["stop_sequences"] = config.stop
    if config.tool_choice:
        fields["tool_choice"] = _choice(config.tool_choice)
    fields |= thinking_fields(config, thinks, limit)
    output: dict[str, Any] = {}
    if "effort" in fields:
        output["effort"] = fields.pop("effort")
    if config.output_schema is not None and can_be_closed(config.output_schema):
        output["format"] = {"type": "json_schema", "schema": closed(config.output_schema)}
    if output:
        fields["output_config"] = output
    return fields


def _choice(choice: str) -> dict[str, str]:
    if choice == "required":
        return {"type": "any"}
    if choice in ("auto", "none"):
        return {"type": choice}
    return {"type": "tool", "name": choice}


def _tools(request: Request) -> list[dict[str, Any]]:
    tools: list[dict[str, Any]] = [
        {"name": tool.name, "description": tool.description, "input_schema": tool.parameters}
        for tool in request.tools
    ]
    tools[-1]["cache_control"] = _CACHED
    return tools
