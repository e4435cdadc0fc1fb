"""A server that wants to know something of the person: asked where there is somebody to ask.

A form is put as one question. What is left open takes the form's own defaults. Without anybody to
ask, and for addresses that are to be opened, the answer is no.
"""

from collections.abc import Awaitable, Callable
from typing import Any

import msgspec

from bridle.workspace.text import neutral, one_line

Ask = Callable[[str], Awaitable[str]]
_NO = frozenset(("", "no", "n", "decline", "cancel"))
_YES = frozenset(("yes", "y", "ok"))
_MOST = 4_000  # characters of a question
_FIELDS = 50

Answer = dict[str, Any] | None


async def elicit(server: str, message: str, schema: dict[str, Any], ask: Ask | None) -> Answer:
    """What the person filled in; None where they did not want to, or nobody is there."""
    if ask is None:
        return None
    fields = _fields(schema)
    said = (await ask(_question(server, message, fields))).strip()
    if said.lower() in _NO:
        return None
    found = {name: one["default"] for name, one in fields.items() if "default" in one}
    if said.lower() not in _YES or _is_text(fields):
        found |= _read(said, fields)
    lacking = [name for name in schema.get("required") or () if name not in found]
    return None if lacking else found


def _fields(schema: dict[str, Any]) -> dict[str, dict[str, Any]]:
    found = schema.get("properties")
    if not isinstance(found, dict):
        return {}
    pairs = list(found.items())[:_FIELDS]
    return {name: one for name, one in pairs if isinstance(one, dict)}


def _is_text(fields: dict[str, dict[str, Any]]) -> bool:
    """Is it one line of text that is asked for, so that `yes` may be the answer itself?"""
    kinds = [one.get("type") for one in fields.values()]
    return kinds == ["string"] and "default" not in next(iter(fields.values()))


def _question(server: str, message: str, fields: dict[str, dict[str, Any]]) -> str:
    lines = [f"The MCP server {server} asks: {neutral(message)[:_MOST]}"]
    for name, one in fields.items():
        about = one_line(str(one.get("description") or one.get("title") or one.get("type", "")))
        lines.append(f"- {one_line(name)}: {about}")
    if len(fields) > 1:
        lines.append("Answer with a JSON object, or yes for the usual values, or no.")
    return "\n".join(lines)


def _read(said: str, fields: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """A JSON object, or the value of the only field."""
    try:
        found = msgspec.json.decode(said)
    except msgspec.DecodeError:
        found = said
    if isinstance(found, dict):
        return {name: value for name, value in found.items() if name in fields}
    if len(fields) != 1:
        return {}
    ((name, one),) = fields.items()
    return {name: said if one.get("type") == "string" else found}
