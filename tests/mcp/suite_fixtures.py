"""The tools that the official conformance suite calls by name, offered by our own server class.

They return what the suite asks for; how it reaches the wire is the same code as for our own tools.
"""

import mcp_types as types
from msgspec import Struct

from bridle.errors import ToolError
from bridle.server.mcp.schemas import Reply, ToolOffer

PNG = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGA"
    "hKmMIQAAAABJRU5ErkJggg=="
)
WAV = "UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAAAAA=="
SCHEMA = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {
        "address": {
            "$anchor": "addressDef",
            "type": "object",
            "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
        }
    },
    "properties": {
        "name": {"type": "string"},
        "address": {"$ref": "#/$defs/address"},
        "contactMethod": {"type": "string", "enum": ["phone", "email"]},
        "phone": {"type": "string"},
        "email": {"type": "string"},
    },
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
    "then": {"required": ["phone"]},
    "else": {"required": ["email"]},
    "additionalProperties": False,
}


MIRRORED = {
    "type": "object",
    "properties": {"region": {"type": "string", "x-mcp-header": "Region"}},
    "required": ["region"],
}


class Nothing(Struct, forbid_unknown_fields=True):
    """No arguments."""


def resource(uri, kind, text):
    inside = types.TextResourceContents(uri=uri, mime_type=kind, text=text)
    return types.EmbeddedResource(type="resource", resource=inside)


def says(*content):
    """A tool that returns just this."""

    async def call(given, caller):
        return Reply(content)

    return call


async def fails(given, caller):
    raise ToolError("This tool intentionally returns an error for testing")


async def tells(given, caller):
    for words in ("begun", "half done", "done"):
        caller.tell(words)
    return Reply(("It told of its progress.",))


IMAGE = types.ImageContent(type="image", data=PNG, mime_type="image/png")
SOUND = types.AudioContent(type="audio", data=WAV, mime_type="audio/wav")
CALLS = {
    "test_simple_text": says("This is a simple text response for testing."),
    "test_image_content": says(IMAGE),
    "test_audio_content": says(SOUND),
    "test_embedded_resource": says(
        resource("test://embedded-resource", "text/plain", "This is an embedded resource content.")
    ),
    "test_multiple_content_types": says(
        "Multiple content types test:",
        IMAGE,
        resource("test://mixed-content-resource", "application/json", '{"test":"data"}'),
    ),
    "test_logging_tool": says("nothing was logged"),
    "test_error_handling": fails,
    "test_tool_with_progress": tells,
}


def fixtures():
    """All of them, as offers."""
    found = [
        ToolOffer(name, f"For the suite: {name}.", Nothing, call) for name, call in CALLS.items()
    ]
    for name, schema in (("json_schema_2020_12_tool", SCHEMA), ("test_header", MIRRORED)):
        found.append(ToolOffer(name, f"For the suite: {name}.", dict, says("seen"), schema=schema))
    return tuple(found)
