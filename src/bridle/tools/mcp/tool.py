"""A tool of an MCP server: its definition, the name under which it is offered, and its calls.

A definition is made fit for a model: cleaned, limited and checked. One that cannot be used costs
that tool alone. What the server claims about a tool's effects (its annotations) is not read: it
could only make a decision less strict.
"""

import base64
import binascii
import re
import time
from collections import Counter
from collections.abc import Callable, Iterable
from hashlib import sha256
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct

from bridle.errors import ConfigError
from bridle.messages import File, Image
from bridle.policy import Facts, ToolPolicy
from bridle.protocols.tool import ToolContext, ToolResult, judge_by_words
from bridle.tools.mcp.spec import public_url
from bridle.tools.output import BoundedOutput, OutputFile, finish_output, output_path
from bridle.tools.thread_pool import in_thread
from bridle.workspace.text import MOST_PICTURE_BYTES, media_type_of, neutral, one_line, shorten

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
        return judge_by_words(self.name, arguments, reason=reason, guard=self.warning)

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


# What a server answers, as a result: harmless text of limited length, pictures, structured data.
#
# A long text is cut in its middle, and all of it is kept in the session's folder, as with a
# command's output. What a model cannot take is named and left out.

_MAX_PICTURES = 8
_MAX_DATA = 100_000  # bytes of structured data that interfaces get
_MAX_PROGRESS = 500  # lines of one call
_PROGRESS_SECONDS = 0.1  # at least, between two of them


async def to_result(answer: Any, context: ToolContext[Any]) -> ToolResult:
    """Return the SDK's answer to a call as a result."""
    texts, media = _read_content(answer.content)
    data = answer.structured_content
    json = _to_json(data)
    if not any(texts) and data is not None:
        texts.append(json)
    text = await limit_text("\n".join(filter(None, texts)), context)
    if not text:
        text = "see the picture" if media else "done; it returned nothing"
    if len(json) > _MAX_DATA or neutral(json) != json:
        data = None
    if answer.is_error:
        return ToolResult(False, text, diagnostics=data, media=tuple(media))
    return ToolResult(True, text, data, media=tuple(media))


async def limit_text(text: str, context: ToolContext[Any]) -> str:
    """Return a harmless text of the length that a model reads. If it is longer, keep all of it."""
    file = OutputFile(output_path(context.folder, context.call_id), context.redact)
    output = BoundedOutput(keep=file.add)
    output.add(await in_thread(neutral, text) if len(text) > 1 << 20 else neutral(text))
    note = await finish_output(output, file, context.call_id)
    return f"{output.text}\n[{note}]" if note else output.text


def _read_content(blocks: Iterable[Any]) -> tuple[list[str], list[Image | File]]:
    texts: list[str] = []
    media: list[Image | File] = []
    for block in blocks:
        kind = block.type
        if kind == "text":
            texts.append(block.text)
        elif kind == "image":
            picture = parse_picture(block.data) if len(media) < _MAX_PICTURES else None
            if picture is not None:
                media.append(picture)
            else:
                texts.append("[a picture that cannot be shown]")
        elif kind == "resource":
            texts.append(resource_text(block.resource))
        elif kind == "resource_link":
            texts.append(f"[resource {one_line(block.name)}: {one_line(str(block.uri), 400)}]")
        else:
            texts.append(f"[{one_line(kind)} of {len(getattr(block, 'data', '')):,} characters]")
    return texts, media


def parse_picture(data: str) -> Image | None:
    """Return a picture that every vendor accepts, None if it is not one."""
    if len(data) > MOST_PICTURE_BYTES * 4 // 3 + 4:
        return None
    try:
        content = base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError):
        return None
    media_type = media_type_of(content)
    return Image(media_type, data) if media_type else None


def resource_text(resource: Any) -> str:
    """Return the text of a resource, or a line that says what it is."""
    text = getattr(resource, "text", None)
    if isinstance(text, str):
        return text
    kind = one_line(str(resource.mime_type or "of an unknown kind"))
    size = len(getattr(resource, "blob", ""))
    url = one_line(public_url(str(resource.uri)), 400)
    return f"[resource {url}: {size:,} characters, {kind}]"


def _to_json(data: Any) -> str:
    try:
        return msgspec.json.encode(data).decode()
    except (TypeError, UnicodeEncodeError, RecursionError):
        return "[structured data that cannot be shown]"


class Progress:
    """Shows the progress that a server reports during a call: not too often, and no line twice."""

    def __init__(self, context: ToolContext[Any]) -> None:
        self._context = context
        self._last_line = ""
        self._last_time = 0.0
        self._lines_left = _MAX_PROGRESS
        self._is_complete = False

    async def report(self, progress: float, total: float | None, message: str | None) -> None:
        """Show one report, as the SDK passes it on. The first complete one is always shown."""
        now = time.monotonic()
        line = f"{progress:g}/{total:g}" if total else f"{progress:g}"
        if message:
            line = f"{line} {one_line(message, 200)}"
        is_complete = bool(total) and progress >= (total or 0) and not self._is_complete
        is_too_soon = now - self._last_time < _PROGRESS_SECONDS and not is_complete
        if self._lines_left <= 0 or line == self._last_line or is_too_soon:
            return
        self._last_line, self._last_time = line, now
        self._is_complete = self._is_complete or is_complete
        self._lines_left -= 1
        self._context.say(f"{line}\n")
