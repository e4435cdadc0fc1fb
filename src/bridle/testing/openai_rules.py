"""The order that OpenAI's two APIs insist on, and the words in which they refuse.

Looks at one request body and (Responses) at what was issued before. Knows no server.
"""

import re
from collections.abc import Callable, Iterator
from typing import Any

from bridle.testing.schema_rules import refused_by_openai

Json = dict[str, Any]
_ROLES = ("system", "developer", "user", "assistant", "tool")


def _first(checks: tuple[Callable[[Json], Iterator[str]], ...], body: Json) -> str:
    try:
        return next((problem for check in checks for problem in check(body)), "")
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        return f"We could not parse the JSON body of your request. ({error!r})"


def _tool_names(body: Json, where: str, named: Callable[[Json], Json]) -> Iterator[str]:
    for index, tool in enumerate(body.get("tools") or ()):
        yield from _word(where.format(index), named(tool)["name"], 64)


def _word(where: str, word: str, longest: int) -> Iterator[str]:
    if not re.fullmatch("[a-zA-Z0-9_-]+", word):
        wanted = "Expected a string that matches the pattern '^[a-zA-Z0-9_-]+$'."
        yield f"Invalid '{where}': string does not match pattern. {wanted}"
    yield from _length(where, word, longest)


def _length(where: str, word: str, longest: int) -> Iterator[str]:
    if len(word) > longest:
        yield (
            f"Invalid '{where}': string too long. Expected a string with maximum length "
            f"{longest}, but got a string with length {len(word)} instead."
        )


class ChatRules:
    """Chat Completions: each call is answered once, right after the message that made it."""

    def broken_by(self, body: Json) -> str:
        """What the vendor would say against this request; empty if nothing."""
        return _first((self._fields, self._schema, self._roles, self._names, self._order), body)

    def _names(self, body: Json) -> Iterator[str]:
        yield from _tool_names(body, "tools[{}].function.name", lambda tool: tool["function"])
        for index, message in enumerate(body["messages"]):
            for place, call in enumerate(message.get("tool_calls") or ()):
                where = f"messages[{index}].tool_calls[{place}]"
                yield from _word(f"{where}.function.name", call["function"]["name"], 64)
                yield from _length(f"{where}.id", call["id"], 40)

    def _schema(self, body: Json) -> Iterator[str]:
        asked = body.get("response_format")
        if asked is not None:
            yield from refused_by_openai(asked["json_schema"])

    def _fields(self, body: Json) -> Iterator[str]:
        if not body.get("model"):
            yield "you must provide a model parameter"
        if body.get("stream") is not True:
            yield "this fake only streams"
        if not body.get("messages"):
            yield (
                "Invalid 'messages': empty array. Expected an array with minimum length 1, "
                "but got an empty array instead."
            )

    def _roles(self, body: Json) -> Iterator[str]:
        for index, message in enumerate(body["messages"]):
            where = f"messages[{index}]"
            if message["role"] not in _ROLES:
                yield f"Invalid value: '{message['role']}' for '{where}.role'."
            empty = message.get("content") in (None, "", [])
            if message["role"] == "assistant":
                empty = empty and not message.get("tool_calls") and not message.get("refusal")
            if empty and message["role"] != "tool":
                yield f"Invalid value for '{where}.content': expected a string, got null."
            if message.get("tool_calls") == []:
                yield f"Invalid '{where}.tool_calls': empty array."

    def _order(self, body: Json) -> Iterator[str]:
        waiting: list[str] = []
        answered: list[str] = []
        for index, message in enumerate([*body["messages"], {"role": "end"}]):
            if message["role"] == "tool":
                yield from _tool_message(index, message, waiting, answered)
                continue
            if waiting:
                yield (
                    "An assistant message with 'tool_calls' must be followed by tool messages "
                    "responding to each 'tool_call_id'. The following tool_call_ids did not have "
                    f"response messages: {', '.join(waiting)}"
                )
            waiting = [call["id"] for call in message.get("tool_calls") or []]
            answered = []


def _tool_message(
    index: int, message: Json, waiting: list[str], answered: list[str]
) -> Iterator[str]:
    call_id = message["tool_call_id"]
    if call_id in answered:
        yield f"Duplicate tool message for 'tool_call_id' of '{call_id}' in 'messages[{index}]'."
    if not waiting and not answered:
        yield (
            f"Invalid parameter: messages with role 'tool' must be a response to a preceeding "
            f"message with 'tool_calls'. (messages[{index}])"
        )
    if call_id not in waiting:
        yield (
            f"Invalid parameter: 'tool_call_id' of '{call_id}' not found in 'tool_calls' of "
            "previous message."
        )
    waiting.remove(call_id)
    answered.append(call_id)


class ResponsesRules:
    """Responses: every call has its output, and reasoning comes back as it was issued."""

    def __init__(self) -> None:
        self._reasoning: dict[str, Json] = {}
        self._before_call: dict[str, list[str]] = {}

    def remember(self, output: list[Json]) -> None:
        """A response that went out: its reasoning may only come back as it was."""
        ids: list[str] = []
        for item in output:
            if item["type"] == "reasoning":
                self._reasoning[item["id"]] = item
                ids.append(item["id"])
            elif item["type"] == "function_call":
                self._before_call[item["call_id"]] = list(ids)

    def broken_by(self, body: Json) -> str:
        """What the vendor would say against this request; empty if nothing."""
        checks = (self._fields, self._schema, self._names, self._order, self._sealed, self._kept)
        return _first(checks, body)

    def _names(self, body: Json) -> Iterator[str]:
        yield from _tool_names(body, "tools[{}].name", lambda tool: tool)
        for index, item in enumerate(_items(body)):
            if item["type"] == "function_call":
                yield from _word(f"input[{index}].name", item["name"], 64)
            if item["type"] in ("function_call", "function_call_output"):
                yield from _word(f"input[{index}].call_id", item["call_id"], 64)

    def _schema(self, body: Json) -> Iterator[str]:
        asked = (body.get("text") or {}).get("format")
        if asked is not None:
            yield from refused_by_openai(asked)

    def _fields(self, body: Json) -> Iterator[str]:
        if not body.get("model"):
            yield "Missing required parameter: 'model'."
        if body.get("stream") is not True:
            yield "this fake only streams"
        if not body.get("input"):
            yield "Missing required parameter: 'input'."

    def _order(self, body: Json) -> Iterator[str]:
        made: list[str] = []
        answered: list[str] = []
        for item in _items(body):
            if item["type"] == "function_call":
                made.append(item["call_id"])
            elif item["type"] == "function_call_output":
                yield from _output(item["call_id"], made, answered)
                answered.append(item["call_id"])
        for call_id in made:
            if call_id not in answered:
                yield f"No tool output found for function call {call_id}."
        if len(set(made)) < len(made):
            yield "Duplicate call_id in function calls."

    def _sealed(self, body: Json) -> Iterator[str]:
        items = _items(body)
        for index, item in enumerate(items):
            if item["type"] != "reasoning":
                continue
            issued = self._reasoning.get(item.get("id", ""))
            if issued is None or any(
                item.get(name) != issued.get(name) for name in ("summary", "encrypted_content")
            ):
                yield (
                    f"The encrypted content for item {item.get('id')} could not be verified. "
                    "Reason: Encrypted content could not be decrypted or parsed."
                )
            if index + 1 == len(items) or items[index + 1].get("role") == "user":
                yield (
                    f"Item '{item['id']}' of type 'reasoning' was provided without its required "
                    "following item."
                )

    def _kept(self, body: Json) -> Iterator[str]:
        """Inside the tool loop, a call comes with the reasoning that led to it."""
        items = _items(body)
        prompts = [index for index, item in enumerate(items) if item.get("role") == "user"]
        loop = items[prompts[-1] :] if prompts else items
        sent = [item["id"] for item in loop if item["type"] == "reasoning"]
        for item in loop:
            if item["type"] != "function_call":
                continue
            for needed in self._before_call.get(item["call_id"], []):
                if needed not in sent:
                    yield (
                        f"Item '{item.get('id', item['call_id'])}' of type 'function_call' was "
                        f"provided without its required 'reasoning' item: '{needed}'."
                    )


def _output(call_id: str, made: list[str], answered: list[str]) -> Iterator[str]:
    if call_id not in made:
        yield f"No tool call found for function call output with call_id {call_id}."
    if call_id in answered:
        yield f"Duplicate function call output for call_id {call_id}."


def _items(body: Json) -> list[Json]:
    items = body["input"]
    if isinstance(items, str):
        items = [{"role": "user", "content": items}]
    return [{"type": "message", **item} for item in items]
