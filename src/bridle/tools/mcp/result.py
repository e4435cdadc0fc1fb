"""What a server answers, as a result: harmless text of limited length, pictures, structured data.

A long text is cut in its middle, and all of it is kept in the session's folder, as with a command's
output. What a model cannot take is named and left out.
"""

import base64
import binascii
import time
from collections.abc import Iterable
from typing import Any

import msgspec

from bridle.messages import File, Image
from bridle.protocols.tool import ToolContext, ToolResult
from bridle.tools.mcp.spec import public_url
from bridle.tools.output import BoundedOutput, OutputFile, finish_output, output_path
from bridle.tools.threads import in_thread
from bridle.workspace.text import MOST_PICTURE_BYTES, media_type_of, neutral, one_line

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
    file = OutputFile(output_path(context.folder, context.call_id), context.clean)
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
