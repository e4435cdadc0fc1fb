"""What a server answered, as a result: text made harmless and cut, pictures, structured data.

A long text is cut in its middle; all of it is kept in the session's folder, as a command's output
is. What no model takes is named and left out.
"""

import base64
import binascii
from collections.abc import Iterable
from typing import Any

import msgspec

from bridle.messages import File, Image
from bridle.protocols.tool import ToolContext, ToolResult
from bridle.tools.mcp.spec import bare_address
from bridle.tools.output import Kept, Output, kept_path
from bridle.tools.threads import in_thread
from bridle.workspace.pictures import MOST_BYTES, media_type_of
from bridle.workspace.text import neutral, one_line

_PICTURES = 8
_DATA = 100_000  # bytes of structured data that faces are shown


async def to_result(found: Any, context: ToolContext[Any]) -> ToolResult:
    """The one result of a call, from what the SDK gives."""
    texts, media = _read(found.content)
    data = _data(found.structured_content)
    if not any(texts) and found.structured_content is not None:
        texts.append(_written(found.structured_content))
    text = await fit("\n".join(filter(None, texts)), context) or _nothing(media)
    if found.is_error:
        return ToolResult(False, text, diagnostics=data, media=tuple(media))
    return ToolResult(True, text, data, media=tuple(media))


async def fit(text: str, context: ToolContext[Any]) -> str:
    """The text, harmless, and as long as a model reads it; all of it is kept where it is longer."""
    kept = Kept(kept_path(context.folder, context.call_id), context.clean)
    output = Output(lambda said: None, keep=kept.add)
    output.add(await in_thread(neutral, text) if len(text) > 1 << 20 else neutral(text))
    if not output.left_out:
        kept.drop()
        return output.text
    if not await in_thread(kept.finish):
        return output.text
    what = "only its beginning" if kept.is_cut else "all of it"
    note = f"{what} is kept: shell_output with id {context.call_id!r} and a line number reads it"
    return f"{output.text}\n[{note}]"


def _read(blocks: Iterable[Any]) -> tuple[list[str], list[Image | File]]:
    texts: list[str] = []
    media: list[Image | File] = []
    for block in blocks:
        kind = block.type
        if kind == "text":
            texts.append(block.text)
        elif kind == "image":
            picture = picture_of(block.data) if len(media) < _PICTURES else None
            media += [picture] if picture is not None else []
            texts += [] if picture is not None else ["[a picture that cannot be shown]"]
        elif kind == "resource":
            texts.append(resource_text(block.resource))
        elif kind == "resource_link":
            texts.append(f"[resource {one_line(block.name)}: {one_line(str(block.uri), 400)}]")
        else:
            texts.append(f"[{one_line(kind)} of {len(getattr(block, 'data', '')):,} characters]")
    return texts, media


def picture_of(data: str) -> Image | None:
    """A picture that every vendor takes; None for what only says that it is one."""
    if len(data) > MOST_BYTES * 4 // 3 + 4:
        return None
    try:
        found = base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError):
        return None
    media_type = media_type_of(found)
    return Image(media_type, data) if media_type else None


def resource_text(resource: Any) -> str:
    """What a resource holds, where it is text."""
    text = getattr(resource, "text", None)
    if isinstance(text, str):
        return text
    kind = one_line(str(resource.mime_type or "of an unknown kind"))
    size = len(getattr(resource, "blob", ""))
    return (
        f"[resource {one_line(bare_address(str(resource.uri)), 400)}: {size:,} characters, {kind}]"
    )


def _nothing(media: list[Image | File]) -> str:
    return "see the picture" if media else "done; it said nothing"


def _written(data: Any) -> str:
    try:
        return msgspec.json.encode(data).decode()
    except (TypeError, UnicodeEncodeError, RecursionError):
        return "[structured data that cannot be written down]"


def _data(data: Any) -> Any:
    """Structured data for faces, unless there is too much of it, or it cannot be shown as it is."""
    if data is None:
        return None
    written = _written(data)
    return data if len(written) <= _DATA and neutral(written) == written else None
