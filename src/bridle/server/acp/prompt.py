"""A prompt as an editor sends it, in our words: text, pictures, files and mentions. Pure."""

import os
from collections.abc import Sequence
from typing import Any
from urllib.parse import unquote, urlsplit

from acp import RequestError, schema

from bridle.messages import File, Image, Part, Text
from bridle.workspace.fs import is_below
from bridle.workspace.text import one_line

_MENTION = 500  # characters of a name or an address


def parts_of(blocks: Sequence[Any], root: str) -> tuple[Part, ...]:
    """The parts of a prompt. Raise `RequestError` for what no model here takes."""
    return tuple(_part(one, root) for one in blocks)


def _part(block: Any, root: str) -> Part:
    match block:
        case schema.TextContentBlock():
            return Text(block.text)
        case schema.ImageContentBlock():
            return Image(block.mime_type, block.data)
        case schema.ResourceContentBlock():
            return Text(_mention(block.uri, block.name, root))
        case schema.EmbeddedResourceContentBlock(resource=schema.TextResourceContents() as found):
            where = _mention(found.uri, "", root)
            return Text(f"\n<file name={where!r}>\n{found.text}\n</file>\n")
        case schema.EmbeddedResourceContentBlock(resource=schema.BlobResourceContents() as found):
            kind = found.mime_type or "application/octet-stream"
            if kind.startswith("image/"):
                return Image(kind, found.blob)
            return File(kind, found.blob, one_line(found.uri.rpartition("/")[2], _MENTION))
    raise RequestError(-32602, f"a prompt cannot hold {getattr(block, 'type', 'that')} here")


def _mention(uri: str, name: str, root: str) -> str:
    """A file of the workspace by its path there; anything else by its address."""
    found = urlsplit(uri)
    if found.scheme == "file":
        path = unquote(found.path)
        inside = os.path.relpath(path, root) if is_below(path, root) else path
        return one_line(inside, _MENTION)
    said = one_line(uri, _MENTION)
    return f"[{one_line(name, _MENTION)}]({said})" if name else said


def command_of(parts: Sequence[Part]) -> tuple[str, str]:
    """The command that a prompt is, such as `/compact`, and what is said behind it; or nothing."""
    first = parts[0].text.strip() if parts and isinstance(parts[0], Text) else ""
    if len(parts) != 1 or not first.startswith("/"):
        return "", ""
    word, _, rest = first.partition(" ")
    return word[1:], rest.strip()
