"""Pictures for a prompt: checked by what they are, not by what they are called."""

import base64
from pathlib import Path

import click

from bridle.messages import Image

_LARGEST = 3_500_000  # bytes; what every vendor takes once it is base64


def load_image(path: Path) -> Image:
    """A picture as a part of a prompt."""
    try:
        with path.open("rb") as file:
            data = file.read(_LARGEST + 1)
    except OSError as error:
        raise click.UsageError(f"{path}: cannot be read: {error.strerror}") from None
    if len(data) > _LARGEST:
        raise click.UsageError(
            f"{path}: larger than {_LARGEST / 1_000_000} MB, which no vendor takes\n"
            "Make the picture smaller."
        )
    media_type = media_type_of(data)
    if not media_type:
        raise click.UsageError(f"{path}: this is not a PNG, JPEG, GIF or WebP picture")
    return Image(media_type, base64.b64encode(data).decode())


def media_type_of(data: bytes) -> str:
    """What the first bytes say; empty for what no model takes."""
    if data.startswith(b"\x89PNG\r\n\x1a\n"):
        return "image/png"
    if data.startswith(b"\xff\xd8\xff"):
        return "image/jpeg"
    if data.startswith((b"GIF87a", b"GIF89a")):
        return "image/gif"
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp"
    return ""
