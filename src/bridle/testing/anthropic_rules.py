"""The order that Anthropic's Messages API insists on, and the words in which it refuses.

Looks at one request body and at what was issued before. Knows no server.
"""

import re
from collections.abc import Iterator
from typing import Any

from bridle.testing.schema_rules import refused_by_anthropic

Json = dict[str, Any]
_ROLES = ("user", "assistant", "system")
_SEALED = ("thinking", "redacted_thinking")
_MOST_CACHE_MARKS = 4
_ID = "[a-zA-Z0-9_-]+"
_PATTERNS = {
    "tool_use": {"id": _ID, "name": "[a-zA-Z0-9_-]{1,128}"},
    "tool_result": {"tool_use_id": _ID},
}


class Rules:
    """Refuses what the vendor refuses. Remembers the thinking that was issued with each call."""

    def __init__(self) -> None:
        self._sealed: list[Json] = []
        self._with_call: dict[str, list[Json]] = {}

    def remember(self, content: list[Json]) -> None:
        """A message that went out: its thinking may only come back as it was."""
        sealed = [block for block in content if block["type"] in _SEALED]
        self._sealed += sealed
        for block in content:
            if block["type"] == "tool_use":
                self._with_call[block["id"]] = sealed

    def broken_by(self, body: Json) -> str:
        """What the vendor would say against this request; empty if nothing."""
        order = (_fields, _messages, _content, _tool_order, _tools, _cache_marks)
        checks = (*order, _schema, self._thinking)
        try:
            return next((problem for check in checks for problem in check(body)), "")
        except (AttributeError, KeyError, TypeError) as error:
            return f"messages: Input should be a valid list of messages ({error!r})"

    def _thinking(self, body: Json) -> Iterator[str]:
        messages = _joined(body["messages"])
        turn = _turn(messages)
        for index, message in enumerate(messages):
            if message["role"] != "assistant":
                continue
            blocks = _blocks(message)
            sent = [_bare(block) for block in blocks if block["type"] in _SEALED]
            for position, block in enumerate(sent):
                if block not in self._sealed:
                    where = f"messages.{index}.content.{position}"
                    yield f"{where}: Invalid `signature` in `thinking` block"
            calls = [block["id"] for block in blocks if block["type"] == "tool_use"]
            issued = [each for call in calls for each in self._with_call.get(call, [])]
            if index > turn and any(each not in sent for each in issued):
                yield (
                    f"messages.{index}.content.0: `thinking` or `redacted_thinking` blocks in the "
                    "latest assistant message cannot be modified. These blocks must remain as "
                    "they were in the original response."
                )


def _fields(body: Json) -> Iterator[str]:
    for name in ("model", "max_tokens", "messages"):
        if name not in body:
            yield f"{name}: Field required"
    if body.get("stream") is not True:
        yield "stream: this fake only streams"
    if not body["messages"]:
        yield "messages: at least one message is required"


def _messages(body: Json) -> Iterator[str]:
    for index, message in enumerate(body["messages"]):
        if message.get("role") not in _ROLES:
            yield f"messages.{index}.role: Input should be 'user', 'assistant' or 'system'"
    if body["messages"][0]["role"] != "user":
        yield 'messages: first message must use the "user" role'
    last = body["messages"][-1]
    if last["role"] == "assistant" and any(b["type"] in _SEALED for b in _blocks(last)):
        yield "messages: the final message cannot be an assistant message with thinking"


def _content(body: Json) -> Iterator[str]:
    for index, message in enumerate(body["messages"]):
        blocks = _blocks(message)
        if not blocks:
            yield f"messages.{index}: all messages must have non-empty content"
        if message["role"] == "assistant" and blocks and blocks[-1]["type"] in _SEALED:
            yield f"messages.{index}: The final block in an assistant message cannot be `thinking`."
        for position, block in enumerate(blocks):
            where = f"messages.{index}.content.{position}"
            if block["type"] == "text" and not block["text"]:
                yield f"{where}: text content blocks must be non-empty"
            if block["type"] == "text" and not block["text"].strip():
                yield f"{where}: text content blocks must contain non-whitespace text"
            if block["type"] == "tool_use" and not isinstance(block.get("input"), dict):
                yield f"{where}.tool_use.input: Input should be a valid dictionary"
            yield from _names(where, block)


def _names(where: str, block: Json) -> Iterator[str]:
    kind = block["type"]
    for field, pattern in _PATTERNS.get(kind, {}).items():
        if not re.fullmatch(pattern, block[field]):
            yield f"{where}.{kind}.{field}: String should match pattern '^{pattern}$'"


def _tool_order(body: Json) -> Iterator[str]:
    messages = _joined(body["messages"])
    seen: set[str] = set()
    for index, message in enumerate(messages):
        before = messages[index - 1] if index else {"role": "", "content": []}
        asked = _ids(before, "tool_use") if before["role"] == "assistant" else []
        answered = _ids(message, "tool_result") if message["role"] == "user" else []
        yield from _answers(index, asked, answered)
        yield from _results_first(index, message)
        calls = _ids(message, "tool_use")
        if len(set(calls)) < len(calls) or seen & set(calls):
            yield f"messages.{index}: `tool_use` ids must be unique"
        seen |= set(calls)
    if calls := _ids(messages[-1], "tool_use"):
        yield _unanswered(len(messages) - 1, calls)


def _answers(index: int, asked: list[str], answered: list[str]) -> Iterator[str]:
    if missing := [each for each in asked if each not in answered]:
        yield _unanswered(index - 1, missing)
    if stray := [each for each in answered if each not in asked]:
        yield (
            f"messages.{index}.content.0: unexpected `tool_use_id` found in `tool_result` blocks: "
            f"{', '.join(stray)}. Each `tool_result` block must have a corresponding `tool_use` "
            "block in the previous message."
        )
    if twice := [each for each in set(answered) if answered.count(each) > 1]:
        yield (
            f"messages.{index}.content.1: each tool_use must have a single result. "
            f"Found multiple `tool_result` blocks with id: {twice[0]}"
        )


def _unanswered(index: int, calls: list[str]) -> str:
    return (
        f"messages.{index}: `tool_use` ids were found without `tool_result` blocks immediately "
        f"after: {', '.join(calls)}. Each `tool_use` block must have a corresponding "
        "`tool_result` block in the next message."
    )


def _results_first(index: int, message: Json) -> Iterator[str]:
    kinds = [block["type"] == "tool_result" for block in _blocks(message)]
    if kinds != sorted(kinds, reverse=True):
        yield f"messages.{index}: `tool_result` blocks must come before other content"


def _tools(body: Json) -> Iterator[str]:
    names = []
    for index, tool in enumerate(body.get("tools", [])):
        name = str(tool.get("name", ""))
        names.append(name)
        if not re.fullmatch(r"[a-zA-Z0-9_-]{1,128}", name):
            wanted = "'^[a-zA-Z0-9_-]{1,128}$'"
            yield f"tools.{index}.custom.name: String should match pattern {wanted}"
        if "type" not in tool and tool.get("input_schema", {}).get("type") != "object":
            yield f"tools.{index}.custom.input_schema.type: Field required"
    if len(set(names)) < len(names):
        yield "tools: Tool names must be unique."


def _schema(body: Json) -> Iterator[str]:
    asked = (body.get("output_config") or {}).get("format")
    if asked is not None:
        yield from refused_by_anthropic(asked["schema"])


def _cache_marks(body: Json) -> Iterator[str]:
    marks = list(_marked(body))
    if len(marks) > _MOST_CACHE_MARKS:
        yield (f"A maximum of 4 blocks with cache_control may be provided. Found {len(marks)}.")
    if any(block.get("type") in _SEALED for block in marks):
        yield "cache_control cannot be set on thinking blocks"


def _marked(value: Any) -> Iterator[Json]:
    if isinstance(value, dict):
        if "cache_control" in value:
            yield value
        value = list(value.values())
    if isinstance(value, list):
        for each in value:
            yield from _marked(each)


def _blocks(message: Json) -> list[Json]:
    content = message.get("content") or []
    return [{"type": "text", "text": content}] if isinstance(content, str) else list(content)


def _ids(message: Json, kind: str) -> list[str]:
    name = "id" if kind == "tool_use" else "tool_use_id"
    return [block[name] for block in _blocks(message) if block["type"] == kind]


def _joined(messages: list[Json]) -> list[Json]:
    """Neighbours of one role as one message, as the vendor reads them; system messages aside."""
    joined: list[Json] = []
    for message in messages:
        if message["role"] == "system":
            continue
        if joined and joined[-1]["role"] == message["role"]:
            joined[-1] = {**joined[-1], "content": _blocks(joined[-1]) + _blocks(message)}
        else:
            joined.append({"role": message["role"], "content": _blocks(message)})
    return joined


def _turn(messages: list[Json]) -> int:
    """Where the tool loop in progress began: the last user message that answers no call."""
    for index in range(len(messages) - 1, -1, -1):
        if messages[index]["role"] == "user" and not _ids(messages[index], "tool_result"):
            return index
    return 0


def _bare(block: Json) -> Json:
    return {name: value for name, value in block.items() if name != "cache_control"}
