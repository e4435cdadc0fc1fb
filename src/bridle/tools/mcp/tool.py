"""A tool of an MCP server: its definition, the name under which it is offered, and its calls.

A definition is made fit for a model: cleaned, limited and checked. One that cannot be used costs
that tool alone. What the server claims about a tool's effects (its annotations) is not read: it
could only make a decision less strict.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable
from hashlib import sha256
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct

from bridle.errors import ConfigError
from bridle.policy import Facts, ToolPolicy
from bridle.protocols.spoken import unknown
from bridle.protocols.tool import ToolContext, ToolResult
from bridle.workspace.text import neutral, one_line, shorten

if TYPE_CHECKING:
    from bridle.tools.mcp.server import Server

Schema = dict[str, Any]
CompileSchema = Callable[[Schema], object]  # raises `ConfigError` for a schema that is not valid

UNUSABLE = "x-unfit"  # marks the replacement of a schema that is no object
_MAX_DESCRIPTION = 4_000  # characters
_MAX_SCHEMA = 30_000  # bytes
_MAX_DEPTH = 40
_MAX_NAME = 64  # characters, of a tool or a parameter
_TEXTS = ("description", "title", "$comment")
_COMBINATIONS = ("oneOf", "anyOf", "allOf", "not", "enum", "const", "if", "then", "else")
_PARAMETER_NAME = re.compile(rf"[A-Za-z0-9_.-]{{1,{_MAX_NAME}}}")
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_-]")
_HASH = 8  # characters that distinguish names which would be the same


class RemoteTool:
    """A tool as the engine sees it. Its effect is unknown, whatever its server says.

    `warning` says how its definition differs from the accepted one. If it does, no rule allows the
    call, and a person is asked.
    """

    policy = ToolPolicy()  # unknown effect: it asks

    def __init__(
        self, name: str, definition: "ToolDefinition", server: "Server", warning: str = ""
    ) -> None:
        self.name = name
        self.definition = definition
        self.warning = warning
        self.server = server

    @property
    def description(self) -> str:
        """The server's description, made harmless."""
        return self.definition.description or f"{self.definition.name} of {self.server.name}"

    @property
    def parameters(self) -> dict[str, Any]:
        """The JSON Schema of its arguments."""
        return self.definition.parameters

    def facts(self, arguments: dict[str, Any]) -> Facts:
        """Return what is known about a call: its arguments, and the warning."""
        reason = f"what {self.definition.name} of {self.server.name} does is not known here"
        return unknown(self.name, arguments, reason=reason, guard=self.warning)

    async def execute(self, arguments: dict[str, Any], context: ToolContext[Any]) -> ToolResult:
        """Call it at the server. Raise `ToolError`."""
        return await self.server.call(self.definition, arguments, context)

    def __repr__(self) -> str:
        return f"<tool {self.name}>"


class ToolDefinition(Struct, frozen=True, omit_defaults=True):
    """A tool as it is described to the model. `digest` identifies what the server said about it.

    `size` is roughly the number of characters that a model reads. `problem` says why it cannot be
    offered.
    """

    name: str
    description: str = ""
    parameters: Schema = {}
    digest: str = ""
    problem: str = ""
    size: int = 0


def parse_definition(
    name: str, description: str, schema: Any, compile_schema: CompileSchema
) -> ToolDefinition:
    """Return a definition of what a server said. Never raises: see `problem`."""
    name = name[:1000]
    digest = _digest(name, description, schema)
    text = shorten(neutral(description.strip()), _MAX_DESCRIPTION)
    try:
        parameters = _usable_schema(schema)
        compile_schema(parameters)
    except (_Unusable, ConfigError) as error:
        problem = one_line(getattr(error, "message", str(error)), 300)
        return ToolDefinition(name, text, digest=digest, problem=problem)
    except RecursionError:
        problem = "its schema is nested too deeply"
        return ToolDefinition(name, text, digest=digest, problem=problem)
    size = len(text) + len(msgspec.json.encode(parameters))
    return ToolDefinition(name, text, parameters, digest, size=size)


class _Unusable(Exception):
    """A schema that cannot be sent to a vendor."""


def _digest(*values: Any) -> str:
    try:
        data = msgspec.json.encode(values, order="deterministic", enc_hook=str)
    except (UnicodeEncodeError, RecursionError):
        data = repr(values).encode(errors="replace")
    return sha256(data).hexdigest()


def _usable_schema(schema: Any) -> Schema:
    """Return the schema as it may be sent. Raise `_Unusable`."""
    if not isinstance(schema, dict) or schema.get("type") != "object" or UNUSABLE in schema:
        raise _Unusable("its arguments are not an object")
    if not isinstance(schema.get("properties", {}), dict):
        raise _Unusable("the `properties` of its schema are not an object")
    usable = {
        key: value
        for key, value in _clean(schema, 0).items()
        if key not in _COMBINATIONS and key != "$schema"
    }
    usable = {"type": "object", "properties": {}, **usable}
    try:
        text = msgspec.json.encode(usable).decode()
    except (UnicodeEncodeError, TypeError) as error:
        raise _Unusable("its schema contains invalid text") from error
    if len(text) > _MAX_SCHEMA:
        raise _Unusable(f"its schema is longer than {_MAX_SCHEMA:,} bytes")
    has_bad_name = any(not _PARAMETER_NAME.fullmatch(key) for key in usable["properties"])
    if neutral(text) != text or has_bad_name:
        raise _Unusable("its schema has names that cannot be shown, or that vendors do not accept")
    return usable


def _clean(value: Any, depth: int, *, has_names: bool = False) -> Any:
    """Return a schema with harmless texts. `has_names`: its keys are names, not keywords."""
    if depth > _MAX_DEPTH:
        raise _Unusable("its schema is nested too deeply")
    if isinstance(value, list):
        return [_clean(item, depth + 1) for item in value]
    if not isinstance(value, dict):
        return value
    cleaned = {}
    for key, item in value.items():
        if key in _TEXTS and isinstance(item, str) and not has_names:
            cleaned[key] = shorten(neutral(item), _MAX_DESCRIPTION)
        else:
            names_inside = not has_names and key in ("properties", "$defs", "definitions")
            cleaned[key] = _clean(item, depth + 1, has_names=names_inside)
    return cleaned


def describe_change(old: ToolDefinition, new: ToolDefinition) -> str:
    """Say in a few words how a definition has changed, for a person."""
    changes = []
    if old.description != new.description:
        changes.append(f"its description is different: {one_line(_changed_text(old, new), 200)!r}")
    before, after = _properties(old), _properties(new)
    if added := sorted(after.keys() - before.keys()):
        changes.append(f"it takes {one_line(', '.join(added), 120)} now")
    if removed := sorted(before.keys() - after.keys()):
        changes.append(f"it no longer takes {one_line(', '.join(removed), 120)}")
    if not added and not removed and old.parameters != new.parameters:
        changed = [key for key in after if before[key] != after[key]]
        changes.append(f"its arguments are different ({one_line(', '.join(changed), 120)})")
    return "; ".join(changes) or "its server describes it differently"


def _changed_text(old: ToolDefinition, new: ToolDefinition) -> str:
    """Return the new description from where it differs."""
    same = 0
    for before, after in zip(old.description, new.description, strict=False):
        if before != after:
            break
        same += 1
    return ("…" if same > 20 else "") + new.description[max(0, same - 20) :]


def _properties(definition: ToolDefinition) -> dict[str, Any]:
    properties = definition.parameters.get("properties")
    return properties if isinstance(properties, dict) else {}


def tool_names(server: str, tools: Iterable[str]) -> dict[str, str]:
    """Return for each tool of a server the name under which it is offered: `mcp__SERVER__TOOL`.

    No two are the same, and vendors accept them. A tool whose own name needs no change always keeps
    it. If changing or cutting others makes them equal, a hash of the own name is appended. The name
    of a server has no double underscore and does not end in one, so the tools of two servers cannot
    have the same name.
    """
    own = list(dict.fromkeys(tools))
    plain = {tool: f"mcp__{server}__{_NOT_IN_NAMES.sub('_', tool)}" for tool in own}
    counts = Counter(plain.values())
    names = {
        tool: name
        for tool, name in plain.items()
        if tool and len(name) <= _MAX_NAME and name.endswith(f"__{tool}")
    }
    taken = set(names.values())
    for tool in sorted(set(own) - set(names)):
        name = plain[tool]
        if counts[name] > 1 or len(name) > _MAX_NAME or not tool:
            name = _with_hash(name, tool)
        while name in taken:  # another tool happens to be named like this
            name = _with_hash(name, f"{tool}\0{name}")
        taken.add(name)
        names[tool] = name
    return {tool: names[tool] for tool in own}


def _with_hash(name: str, tool: str) -> str:
    digest = sha256(tool.encode(errors="replace")).hexdigest()[:_HASH]
    return f"{name[: _MAX_NAME - _HASH - 1]}_{digest}"
