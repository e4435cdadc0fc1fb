"""The prompt as Claude Code takes it: words alone, or with pictures and documents. Pure."""

from collections.abc import Iterable
from typing import Any

from bridle.messages import File, Image


def blocks_of(prompt: str, parts: Iterable[Any]) -> list[dict[str, Any]]:
    """The prompt with the pictures and documents that were sent with it; empty: words alone."""
    media = [_block(part) for part in parts if isinstance(part, Image | File)]
    return [*media, {"type": "text", "text": prompt}] if media else []


def _block(part: Image | File) -> dict[str, Any]:
    kind = "image" if isinstance(part, Image) else "document"
    if isinstance(part, Image) and part.url:
        return {"type": kind, "source": {"type": "url", "url": part.url}}
    source = {"type": "base64", "media_type": part.media_type, "data": part.data}
    return {"type": kind, "source": source}
