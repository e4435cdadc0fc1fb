"""Calls that a model wrote into its text, as small local models do.

Plain or fenced JSON, or `<tool_call>` tags, naming a tool that was declared. Text that may still
turn out to be a call is held back, so that nobody sees the raw JSON; text that cannot is let go
at once. A call counts when nothing but calls follows it; the text before it stays text.
"""

import json
import os
import re
from collections.abc import Iterator
from typing import Any, Literal

from bridle.messages import ToolCall
from bridle.providers.reply_reader import parse_arguments

_Verdict = Literal["no", "wait", "yes"]
_NAMES = ("name", "tool", "function", "tool_name")
_ARGUMENTS = ("arguments", "args", "parameters", "input")
_KEYS = frozenset((*_NAMES, *_ARGUMENTS, "type", "id", "tool_calls"))
_LANGUAGES = frozenset(("", "json", "jsonc", "tool_call", "tool_code", "xml"))
_TAG = "<tool_call>"
_FENCE = "```"
_OPENER = re.compile(r"\s*(?:<tool_call>|```[a-z_]*\n)\s*")
_CLOSER = re.compile(r"\s*(?:</tool_call>|```)\s*")
_LONGEST_LABEL = 20


class TextCalls:
    """Watches the text of one reply."""

    def __init__(self, names: frozenset[str]) -> None:
        self._names = names
        self._held: str | None = ""  # from the beginning of a line on; None: this line is text
        self._found = False  # what is held looks like a call; only the end will tell
        self._pieces: list[str] = []
        self._in_code = False

    def feed(self, text: str) -> str:
        """Return the text that can be shown now."""
        if self._found:
            self._pieces.append(text)
            return ""
        return "".join([self._read_line(line) for line in _lines(text)])

    def finish(self, *, take: bool = True) -> tuple[str, tuple[ToolCall, ...]]:
        """What is left: text to show, or the calls that it was, if they are to be taken."""
        held = "".join((self._held or "", *self._pieces))
        self._held, self._pieces, self._found = "", [], False
        calls = _parse_calls(held, self._names) if take and held.strip() else ()
        return ("", calls) if calls else (held, ())

    def _read_line(self, line: str) -> str:
        """Show a line or a piece of one, or hold it because it may begin a call."""
        if self._found:
            self._pieces.append(line)
            return ""
        if self._held is None:
            if line.endswith("\n"):
                self._held = ""
            return line
        held = self._held + line
        verdict = self._judge(held)
        if verdict == "no":
            self._held = "" if line.endswith("\n") else None
            return held
        self._held = held
        self._found = verdict == "yes"
        return ""

    def _judge(self, held: str) -> _Verdict:
        bare = held.lstrip()
        if self._in_code:
            if bare.startswith(_FENCE):
                self._in_code = False
            return "no" if len(bare) >= len(_FENCE) or not _FENCE.startswith(bare) else "wait"
        verdict = _verdict(bare)
        if verdict == "no" and bare.startswith(_FENCE):
            self._in_code = True
        return verdict


def _lines(text: str) -> Iterator[str]:
    """Yield the text in pieces that each end with a line."""
    start = 0
    while (end := text.find("\n", start)) >= 0:
        yield text[start : end + 1]
        start = end + 1
    if start < len(text):
        yield text[start:]


def _verdict(bare: str) -> _Verdict:
    """Can a call begin like this?"""
    if bare.startswith(_TAG):
        return "yes"
    if not bare or _FENCE.startswith(bare) or _TAG.startswith(bare):
        return "wait"
    if not bare.startswith(_FENCE):
        return _json_verdict(bare)
    label, end, inside = bare[len(_FENCE) :].partition("\n")
    if len(label) > _LONGEST_LABEL or "`" in label:
        return "no"
    if not end:
        return "wait"
    return _inside_verdict(inside.lstrip()) if label.strip().lower() in _LANGUAGES else "no"


def _inside_verdict(text: str) -> _Verdict:
    """Can a call begin like this in a fence? A tag may be there as far as its first letters."""
    if text.startswith(_TAG):
        return "yes"
    return "wait" if _TAG.startswith(text) else _json_verdict(text)


def _json_verdict(text: str) -> _Verdict:
    """Is this the beginning of an object, or of a list of objects, whose first key fits a call?"""
    if text.startswith("["):
        text = text[1:].lstrip()
    for mark in ("{", '"'):
        if not text:
            return "wait"
        if text[0] != mark:
            return "no"
        text = text[1:] if mark == '"' else text[1:].lstrip()
    key, end, _ = text.partition('"')
    if end:
        return "yes" if key in _KEYS else "no"
    return "wait" if any(known.startswith(key) for known in _KEYS) else "no"


def _parse_calls(text: str, names: frozenset[str]) -> tuple[ToolCall, ...]:
    """Return the calls, if the text consists only of calls of declared tools."""
    calls: list[ToolCall] = []
    try:
        for value in _values(text):
            calls += (_to_call(found, names) for found in _spread(value))
    except (ValueError, RecursionError):
        return ()
    return tuple(calls)


def _values(text: str) -> Iterator[Any]:
    rest = text.strip()
    decode = json.JSONDecoder().raw_decode
    while rest:
        while opener := _OPENER.match(rest):
            rest = rest[opener.end() :]
        value, end = decode(rest)
        yield value
        rest = rest[end:].lstrip()
        while closer := _CLOSER.match(rest):
            rest = rest[closer.end() :]


def _spread(value: Any) -> list[Any]:
    if isinstance(value, dict) and isinstance(value.get("tool_calls"), list):
        value = value["tool_calls"]
    return value if isinstance(value, list) else [value]


def _to_call(value: Any, names: frozenset[str]) -> ToolCall:
    """One call; raise `ValueError` for anything else."""
    if isinstance(value, dict) and isinstance(value.get("function"), dict):
        value = value["function"]
    if not isinstance(value, dict):
        raise ValueError("not an object")
    name = next((value[key] for key in _NAMES if isinstance(value.get(key), str)), "")
    arguments: Any = next((value[key] for key in _ARGUMENTS if key in value), {})
    if isinstance(arguments, str):
        arguments = parse_arguments(arguments)
    if name not in names or not isinstance(arguments, dict):
        raise ValueError("not a call of a declared tool")
    return ToolCall(new_call_id(), name, arguments)


def new_call_id() -> str:
    """Return an id for a call to which the server gave none."""
    return f"call_{os.urandom(9).hex()}"
